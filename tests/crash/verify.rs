//! What must be true of a server that was started anew, whatever its predecessor died of.
//!
//! What must never enter: knowledge of how it died.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt as _;
use sessionplane_client::Client;
use sessionplane_client::contract::{
    Agent as _, CallOptions, EventItem, InvokeEvent, ListEntriesRequest, SessionControl as _,
    SessionState,
};
use sessionplane_client::domain::command::{Acceptance, DispatchAnswer};
use sessionplane_client::domain::entry::{Entry, EntryBody};
use sessionplane_client::domain::error::Reason;
use sessionplane_client::domain::ids::{InputId, RequestId, RunId};
use sessionplane_client::domain::input::InputFate;
use sessionplane_client::domain::run::{RunOutcome, RunRecord, code};
use sessionplane_client::domain::view::Status;
use tokio::time::timeout;

use crate::changes;
use crate::ledger::{Dispatched, Invoked, Known, Ledger, Shared, marker};
use crate::load::{at_rest, resumption, under};

/// How long any one answer may take on a machine that is busy with other tests.
const ANSWER: Duration = Duration::from_secs(30);

/// Verifies one session, and takes note of what it learns on the way.
pub(crate) async fn session(client: &Client, session: &Shared, data_dir: &Path, round: usize) {
    let check = Check { client, session };
    match check.observers_resume().await {
        Some(state) => {
            assert_eq!(
                state.view.status(),
                Status::Idle,
                "nothing runs after a start"
            );
            assert!(state.view.pending.is_empty(), "an input waits for no run");
            check.entries_are_whole(&state).await;
            check.runs_are_settled().await;
            session.lock().changes_hold(&state);
            session.lock().questions_have_ended(&state);
            session.lock().artifacts_are_there(data_dir);
            check.repeats_do_nothing().await;
            assert_eq!(check.state().await, state, "a repeat did something");
        }
        None => check.nothing_was_acknowledged(),
    }
    check.unknown_calls_find_out().await;
    check.takes_a_run_at_once(round).await;
    if let Some(state) = check.observers_resume().await {
        check.entries_are_whole(&state).await;
        check.runs_are_settled().await;
        session.lock().changes_hold(&state);
    }
}

struct Check<'a> {
    client: &'a Client,
    session: &'a Shared,
}

impl Check<'_> {
    fn ledger<T>(&self, read: impl FnOnce(&mut Ledger) -> T) -> T {
        read(&mut self.session.lock())
    }

    async fn state(&self) -> SessionState {
        let at = self.ledger(|ledger| ledger.at.clone());
        self.client
            .get_state(at, None, CallOptions::default())
            .await
            .unwrap()
    }

    /// An observer of before comes back with one call and misses no entry. Nothing if there is no
    /// such session.
    async fn observers_resume(&self) -> Option<SessionState> {
        let request = resumption(self.session);
        let (resume, had) = (request.resume, request.entries_since.clone());
        let mut stream = match self.client.events(request, CallOptions::default()).await {
            Ok(stream) => stream,
            Err(error) if error.reason == Reason::NoSuchSession => return None,
            Err(error) => panic!("an observer cannot come back: {error:?}"),
        };
        loop {
            let item = timeout(ANSWER, stream.next())
                .await
                .expect("a snapshot comes");
            let item = item.expect("a snapshot comes").unwrap();
            if let EventItem::Subscribed {
                epoch,
                resumed,
                gap,
                ..
            } = &item
            {
                let same = resume.is_some_and(|resume| resume.epoch == *epoch);
                assert_eq!(
                    (*resumed, *gap),
                    (same, resume.is_some() && !same),
                    "of {had:?}"
                );
            }
            self.ledger(|ledger| ledger.observed(&item));
            if let EventItem::Snapshot(state) = item {
                let last = self.ledger(|ledger| ledger.entries.keys().next_back().copied());
                assert_eq!(last.unwrap_or(0), state.view.entries, "entries were missed");
                return Some(*state);
            }
        }
    }

    /// The chain has no hole, is what was told before, and holds no text twice.
    async fn entries_are_whole(&self, state: &SessionState) {
        let entries = self.all_entries().await;
        assert_eq!(entries.len() as u64, state.view.entries);
        // What was written last, or where somebody moved.
        let moves = self.ledger(|ledger| ledger.moves());
        let leaf = state.view.leaf.map(|leaf| leaf.seq);
        let last = entries.last().map(|entry| entry.id.seq);
        assert!(
            leaf == last || moves.contains(&leaf),
            "nobody moved to {leaf:?}"
        );
        let mut before = None;
        let mut texts = BTreeMap::new();
        for (entry, seq) in entries.iter().zip(1..) {
            let parent = entry.parent.map(|parent| parent.seq);
            assert_eq!(entry.id.seq, seq, "the chain is broken");
            assert!(
                parent == before || moves.contains(&parent) && parent < Some(seq),
                "{} follows {parent:?}, where nobody moved to",
                entry.id
            );
            before = Some(seq);
            if let (None, EntryBody::Compaction { summary, .. }) = (entry.run, &entry.body) {
                let whole = marker(entry).map(changes::summary);
                assert_eq!(Some(&summary.text), whole.as_ref(), "half a summary");
            }
            if let Some(marker) = marker(entry) {
                let before = texts.insert(marker.to_owned(), entry.id);
                assert_eq!(before, None, "{marker} is there twice");
            }
            self.ledger(|ledger| ledger.entry(entry));
        }
        self.ledger(|ledger| {
            assert_eq!(
                ledger.entries.len(),
                entries.len(),
                "an entry that was seen is gone"
            );
            for invoked in ledger.invokes.values() {
                let there = texts.contains_key(&invoked.marker);
                match invoked.known {
                    Known::Accepted(_) => assert!(there, "lost: {invoked:?}"),
                    Known::Nothing => assert!(!there, "refused and done: {invoked:?}"),
                    Known::Unknown => {}
                }
            }
            for dispatched in ledger.dispatches.values() {
                let there = dispatched
                    .marker
                    .as_ref()
                    .is_some_and(|text| texts.contains_key(text));
                assert!(
                    !(there && dispatched.known == Known::Nothing),
                    "rejected and done: {dispatched:?}"
                );
            }
        });
    }

    async fn all_entries(&self) -> Vec<Entry> {
        let session = self.ledger(|ledger| ledger.at.clone());
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            let since = entries.last().map(|entry| entry.id.to_string());
            let request = ListEntriesRequest {
                session: session.clone(),
                since,
                page_size: 500,
            };
            let page = self
                .client
                .list_entries(request, CallOptions::default())
                .await
                .unwrap();
            entries.extend(page.entries);
            if !page.has_more {
                return entries;
            }
        }
    }

    /// Every run has one end; a cut one is interrupted, unless its abort had been acknowledged.
    async fn runs_are_settled(&self) {
        let mut entries: BTreeMap<RunId, Vec<Entry>> = BTreeMap::new();
        self.ledger(|ledger| {
            for entry in ledger.entries.values() {
                if let Some(run) = entry.run {
                    entries.entry(run).or_default().push(entry.clone());
                }
            }
        });
        for (id, entries) in entries {
            let run = self
                .client
                .get_run(id, CallOptions::default())
                .await
                .unwrap();
            self.ledger(|ledger| ledger.settled(&run));
            assert_eq!(run.first_entry, entries.first().unwrap().id);
            assert_eq!(run.final_entry, entries.last().map(|entry| entry.id));
            let cut = entries.iter().filter(|entry| tells_of_a_cut(entry)).count();
            assert!(cut <= 1, "{id} was cut {cut} times");
            let outcome = &run.settled.as_ref().unwrap().outcome;
            let interrupted = outcome.code() == Some(code::INTERRUPTED);
            assert!(
                !interrupted || cut == 1,
                "{id}: interrupted, and no entry tells it"
            );
            if self.ledger(|ledger| ledger.aborted.contains(&id)) {
                assert_eq!(
                    outcome,
                    &RunOutcome::Aborted,
                    "{id}: its abort was acknowledged"
                );
            }
            self.inputs_ended_once(&run, &entries);
        }
    }

    /// What a run lists as undelivered agrees with its entries and with what was told.
    fn inputs_ended_once(&self, run: &RunRecord, entries: &[Entry]) {
        let mut fates: BTreeMap<InputId, InputFate> = BTreeMap::new();
        for entry in entries {
            if let EntryBody::User {
                input: Some(input), ..
            } = &entry.body
            {
                let twice = fates.insert(*input, InputFate::Delivered(entry.id));
                assert_eq!(twice, None, "{input} was delivered twice");
            }
        }
        for lost in &run.undelivered {
            let twice = fates.insert(lost.id, InputFate::Discarded(lost.cause));
            assert_eq!(twice, None, "{} ended twice", lost.id);
        }
        self.ledger(|ledger| {
            for (input, fate) in ledger.fates.range(first_of(run.id)..) {
                if input.run != run.id {
                    break;
                }
                assert_eq!(fates.get(input), Some(fate), "{input} ended otherwise");
            }
            for (input, fate) in fates {
                ledger.fate(input, fate);
            }
        });
    }

    /// Repeats of accepted calls get the first answer.
    async fn repeats_do_nothing(&self) {
        let (invokes, dispatches) =
            self.ledger(|ledger| (ledger.invokes.clone(), ledger.dispatches.clone()));
        for (id, dispatched) in &dispatches {
            if let Known::Accepted(acceptance) = dispatched.known {
                self.dispatch_again(id, dispatched, acceptance).await;
            }
        }
        for (id, invoked) in &invokes {
            if let Known::Accepted(run) = invoked.known {
                assert_eq!(self.invoke_again(id, invoked).await, Some((run, true)));
            }
        }
    }

    async fn dispatch_again(&self, id: &RequestId, dispatched: &Dispatched, first: Acceptance) {
        let answer = self
            .client
            .dispatch(dispatched.request.clone(), under(id))
            .await;
        let Ok(DispatchAnswer::Accepted(again)) = &answer else {
            panic!("{id} was accepted, and is now {answer:?}");
        };
        assert_eq!(again.run, first.run);
        assert_eq!(
            again.input.map(|input| input.id),
            first.input.map(|input| input.id)
        );
        if let Some(input) = again.input {
            let fate = self.ledger(|ledger| ledger.fates.get(&input.id).copied());
            assert_eq!(fate, Some(input.fate), "{} has ended otherwise", input.id);
        }
    }

    /// The run that answers, and whether it had been started before; nothing if none was started.
    async fn invoke_again(&self, id: &RequestId, invoked: &Invoked) -> Option<(RunId, bool)> {
        let mut stream = self
            .client
            .invoke(invoked.request.clone(), under(id))
            .await
            .unwrap();
        let mut accepted = None;
        loop {
            let event = timeout(ANSWER, stream.next()).await.expect("the run ends");
            match event.expect("a stream ends with its terminal").unwrap() {
                InvokeEvent::Accepted { run, joined, .. } => accepted = Some((run, joined)),
                InvokeEvent::Failed { run: None, .. } => return None,
                terminal if terminal.is_terminal() => {
                    self.ledger(|ledger| ledger.terminal(id, terminal));
                    return accepted;
                }
                _ => assert_ne!(
                    accepted.map(|(_, joined)| joined),
                    Some(true),
                    "{id} is over"
                ),
            }
        }
    }

    fn nothing_was_acknowledged(&self) {
        self.ledger(|ledger| {
            let accepted = ledger
                .invokes
                .values()
                .find(|invoked| invoked.terminal.is_some());
            assert!(
                accepted.is_none() && ledger.entries.is_empty(),
                "the session is gone"
            );
            let accepted = |invoked: &Invoked| matches!(invoked.known, Known::Accepted(_));
            assert!(
                !ledger.invokes.values().any(accepted),
                "the session is gone"
            );
        });
    }

    /// Calls that got no answer: a repeat finds what was done, or does it now, once.
    async fn unknown_calls_find_out(&self) {
        let (invokes, dispatches) =
            self.ledger(|ledger| (ledger.invokes.clone(), ledger.dispatches.clone()));
        for (id, dispatched) in dispatches {
            if dispatched.known == Known::Unknown {
                let answer = self.client.dispatch(dispatched.request, under(&id)).await;
                self.ledger(|ledger| ledger.answer(&id, &answer));
                if let Ok(DispatchAnswer::Accepted(found)) = answer {
                    let run = found.run;
                    let known = |ledger: &mut Ledger| {
                        run.is_none_or(|run| ledger.settled.contains_key(&run))
                    };
                    let ended = self.ledger(known);
                    assert!(ended, "{id} was accepted by a run that nobody knows");
                }
            }
        }
        // A compaction that was not known of may have begun just now.
        let at = self.ledger(|ledger| ledger.at.clone());
        if self.ledger(|ledger| !ledger.entries.is_empty()) {
            at_rest(self.client, at).await;
        }
        for (id, invoked) in invokes {
            if invoked.known != Known::Unknown {
                continue;
            }
            // Those that hang would wait for an abort or an answer: they are left to their unknown
            // fate.
            let there = self.ledger(|ledger| {
                ledger
                    .entries
                    .values()
                    .any(|entry| marker(entry) == Some(&invoked.marker))
            });
            let prompt = &invoked.request.prompt;
            let waits = prompt.ends_with("hang") || prompt.ends_with("wait-answers");
            if !there && waits {
                self.ledger(|ledger| ledger.invokes.remove(&id));
                continue;
            }
            let (run, joined) = self.invoke_again(&id, &invoked).await.expect("it is idle");
            assert_eq!(
                joined, there,
                "{id}: joined is {joined}, its prompt is there: {there}"
            );
            self.ledger(|ledger| ledger.invokes.get_mut(&id).unwrap().known = Known::Accepted(run));
        }
    }

    /// C44, B27: no session is stuck busy.
    async fn takes_a_run_at_once(&self, round: usize) {
        let mut request = match self.ledger(|ledger| ledger.invokes.values().next().cloned()) {
            Some(invoked) => invoked.request,
            None => return,
        };
        let name = format!("after-{round}-{}", request.session).replace(':', "-");
        let marker = format!("<m:{name}>");
        request.prompt = format!("# {marker}\nsay \"at your service\"");
        let id = RequestId::parse(&name).unwrap();
        let (known, terminal) = (Known::Unknown, None);
        let invoked = Invoked {
            request,
            marker,
            known,
            terminal,
        };
        self.ledger(|ledger| ledger.invokes.insert(id.clone(), invoked.clone()));
        let (run, joined) = self
            .invoke_again(&id, &invoked)
            .await
            .expect("it is not busy");
        assert!(!joined);
        self.ledger(|ledger| {
            let invoked = ledger.invokes.get_mut(&id).unwrap();
            invoked.known = Known::Accepted(run);
            assert!(matches!(
                invoked.terminal,
                Some(InvokeEvent::Completed { .. })
            ));
        });
    }
}

fn tells_of_a_cut(entry: &Entry) -> bool {
    matches!(&entry.body, EntryBody::Notice { code, .. }
        if code == code::INTERRUPTED || code == code::ABORTED)
}

/// The least id that an input of a run can have.
fn first_of(run: RunId) -> InputId {
    InputId { run, ordinal: 0 }
}
