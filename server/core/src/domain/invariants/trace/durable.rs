//! What is durable, and whether each commit may follow the ones before it.

use std::collections::{BTreeMap, HashSet};

use crate::domain::commit::Commit;
use crate::domain::entry::{Entry, EntryBody, PathMarks};
use crate::domain::ids::{InputId, InteractionId, RunId};
use crate::domain::input::{InputFate, InputRecord, UndeliveredInput};
use crate::domain::interaction::Interaction;
use crate::domain::invariants::{Held, ensure};
use crate::domain::lease::{Holder, LeaseClause, LeaseToken};
use crate::domain::provenance::Digest;
use crate::domain::run::RunRecord;
use crate::domain::session::{LastRun, SessionHead};
use crate::domain::settings::SettingsOverride;

/// The rows, as far as the predicates need them.
#[derive(Clone, Debug, Default)]
pub(super) struct Durable {
    pub(super) head: Option<SessionHead>,
    /// What holds the session.
    pub(super) lease: Option<(Holder, LeaseToken)>,
    pub(super) entries: Vec<Entry>,
    pub(super) runs: BTreeMap<RunId, RunRecord>,
    pub(super) inputs: BTreeMap<InputId, InputRecord>,
    pub(super) interactions: BTreeMap<InteractionId, Interaction>,
    /// Digests of the requests that left an audit record.
    pub(super) requests: HashSet<Digest>,
}

impl Durable {
    pub(super) fn committed(&mut self, commit: &Commit) -> Held {
        self.follows(commit)?;
        ensure(!commit.audits.is_empty(), "T02", || {
            format!("a commit of {} has no audit record", commit.holder)
        })?;
        self.fenced(commit)?;
        for input in &commit.inputs {
            self.input(input)?;
        }
        for interaction in &commit.interactions {
            self.interaction(interaction)?;
        }
        for entry in &commit.entries {
            self.append(entry)?;
        }
        for run in &commit.runs {
            self.run(run)?;
        }
        self.leads(&commit.head)?;
        self.head = Some(commit.head.clone());
        self.lease = match commit.lease {
            LeaseClause::Acquire(token) => Some((commit.holder, token)),
            LeaseClause::Hold(_) => self.lease,
            LeaseClause::Release(_) | LeaseClause::Recover(_) => None,
        };
        let digests = commit
            .audits
            .iter()
            .filter_map(|audit| audit.request_digest);
        self.requests.extend(digests);
        self.agrees(commit)
    }

    /// Numbers go on without a hole, and the head says what was written.
    fn follows(&self, commit: &Commit) -> Held {
        let (entries, audits) = self
            .head
            .as_ref()
            .map_or((0, 0), |head| (head.entries, head.audits));
        let expected = commit.expected_entries == entries && commit.expected_audits == audits;
        let numbered = (entries + 1..)
            .zip(&commit.entries)
            .all(|(seq, entry)| entry.id.seq == seq && entry.id.session == commit.session)
            && (audits + 1..).zip(&commit.audits).all(|(ordinal, audit)| {
                audit.ordinal == ordinal && audit.session == commit.session
            });
        let head = &commit.head;
        let leaf = commit.entries.last().map(|entry| entry.id);
        let said = head.entries == entries + commit.entries.len() as u64
            && head.audits == audits + commit.audits.len() as u64
            && head.leaf.is_none_or(|leaf| leaf.seq <= head.entries)
            // A leaf that was moved lies behind the newest entry; one that was not is it.
            && (leaf.is_none() || head.leaf == leaf || commit.holder.run().is_none());
        let created = commit.create.is_some() == self.head.is_none();
        ensure(expected && numbered && said && created, "T01", || {
            format!("after {entries} entries and {audits} audits comes {commit:?}")
        })
    }

    /// What holds at an entry is what holds at the one before it, and what it says itself: so the
    /// marks are those of a walk to the root.
    fn append(&mut self, entry: &Entry) -> Held {
        let before = entry.parent.map(|parent| self.entry(parent.seq));
        let known = before.is_none_or(|parent| parent.is_some());
        let marks = before.flatten().map(|parent| parent.path);
        let marks = marks.unwrap_or_default().then(
            entry.parent.map(|parent| parent.seq),
            entry.id.seq,
            &entry.body,
        );
        ensure(known && entry.path == marks, "T24", || {
            format!("{marks:?} hold at {entry:?}, if its parent is known: {known}")
        })?;
        self.entries.push(entry.clone());
        Ok(())
    }

    /// The head says what holds at its leaf.
    fn leads(&self, head: &SessionHead) -> Held {
        let leaf = head.leaf.and_then(|leaf| self.entry(leaf.seq));
        let marks = leaf.map(|leaf| leaf.path).unwrap_or_default();
        let chosen = self.chosen(marks);
        ensure(head.path == marks && head.chosen == chosen, "T25", || {
            format!("{marks:?} and {chosen:?} hold at the leaf of {head:?}")
        })
    }

    /// What is chosen where these marks hold.
    pub(super) fn chosen(&self, marks: PathMarks) -> SettingsOverride {
        let settings = marks.settings.and_then(|seq| self.entry(seq));
        match settings.map(|entry| &entry.body) {
            Some(EntryBody::Settings { chosen }) => chosen.clone(),
            _ => SettingsOverride::default(),
        }
    }

    fn fenced(&self, commit: &Commit) -> Held {
        let last = self.head.as_ref().map(|head| head.token);
        let token = commit.lease.token();
        let may = match commit.lease {
            LeaseClause::Acquire(_) | LeaseClause::Recover(_) => {
                last.is_none_or(|last| token > last)
            }
            LeaseClause::Hold(_) | LeaseClause::Release(_) => last == Some(token),
        };
        ensure(may && commit.head.token == token, "T03", || {
            format!("{:?} after token {last:?}", commit.lease)
        })
    }

    fn input(&mut self, input: &InputRecord) -> Held {
        let id = input.id;
        let open = self
            .runs
            .get(&id.run)
            .is_none_or(|run| run.settled.is_none());
        let before = self.inputs.get(&id).map(|before| before.fate);
        ensure(
            open && matches!(before, None | Some(InputFate::Pending)),
            "T05",
            || {
                format!(
                    "{id} had ended as {before:?}, or its run had, before {:?}",
                    input.fate
                )
            },
        )?;
        let follows = id.ordinal == 1
            || self.inputs.contains_key(&InputId {
                ordinal: id.ordinal - 1,
                ..id
            });
        ensure(follows, "T05", || {
            format!("{id} is not the next input of its run")
        })?;
        self.inputs.insert(id, input.clone());
        Ok(())
    }

    /// Asked once, ended once, and never after its run.
    fn interaction(&mut self, interaction: &Interaction) -> Held {
        let id = interaction.id;
        let run = self.runs.get(&id.run);
        let open = run.is_none_or(|run| run.settled.is_none());
        let before = self.interactions.get(&id);
        let fresh = before.is_none_or(|before| {
            before.resolution.is_none() && before.question == interaction.question
        });
        ensure(open && fresh, "T21", || {
            format!("{id} had ended, or its run had: {before:?}")
        })?;
        if let Some(end) = &interaction.resolution {
            let ends = self.interactions_of(id.run);
            let last = ends
                .filter_map(|it| it.resolution.as_ref())
                .max_by_key(|end| end.at);
            ensure(last.is_none_or(|last| last.at < end.at), "T21", || {
                format!("{id} ends at {:?}, and not after {last:?}", end.at)
            })?;
        }
        self.interactions.insert(id, interaction.clone());
        Ok(())
    }

    fn run(&mut self, run: &RunRecord) -> Held {
        let others = self
            .runs
            .values()
            .any(|other| other.id != run.id && other.settled.is_none());
        let settled = self
            .runs
            .get(&run.id)
            .is_some_and(|before| before.settled.is_some());
        ensure(!others && !settled, "T04", || {
            format!(
                "run {} is written although it has settled, or another is active",
                run.id
            )
        })?;
        let listed = run
            .undelivered
            .iter()
            .map(|input| (input.id, input.clone()))
            .collect::<BTreeMap<_, _>>();
        let discarded: BTreeMap<_, _> = self
            .discarded_of(run.id)
            .map(|input| (input.id, input))
            .collect();
        ensure(
            listed == discarded && listed.len() == run.undelivered.len(),
            "T06",
            || {
                format!(
                    "run {} lists {:?}, its inputs say {discarded:?}",
                    run.id, run.undelivered
                )
            },
        )?;
        if run.settled.is_some() {
            self.settles(run)?;
        } else {
            ensure(run.final_entry.is_none(), "T06", || {
                format!(
                    "run {} is active and ends with {:?}",
                    run.id, run.final_entry
                )
            })?;
        }
        self.runs.insert(run.id, run.clone());
        Ok(())
    }

    fn settles(&self, run: &RunRecord) -> Held {
        for input in self.inputs_of(run.id) {
            let shown = match input.fate {
                InputFate::Pending => false,
                InputFate::Discarded(_) => true,
                InputFate::Delivered(entry) => self.entry(entry.seq).is_some_and(|entry| {
                    matches!(&entry.body, EntryBody::User { input: Some(id), text, data, .. }
                        if *id == input.id && *text == input.text && *data == input.data)
                }),
            };
            ensure(shown, "T06", || {
                format!("{} settles as {:?}", input.id, input.fate)
            })?;
        }
        let open = self
            .interactions_of(run.id)
            .find(|interaction| interaction.resolution.is_none());
        ensure(open.is_none(), "T21", || {
            format!("run {} settles while {open:?} is open", run.id)
        })?;
        let mine = |entry: &&Entry| entry.run == Some(run.id);
        let last = self.entries.iter().rev().find(mine);
        ensure(
            last.is_some() && last.map(|entry| entry.id) == run.final_entry,
            "T06",
            || {
                format!(
                    "run {} ends with {:?}, not with its newest entry",
                    run.id, run.final_entry
                )
            },
        )
    }

    /// The commit as a whole: whose writes they are, and what the head says of the last run.
    fn agrees(&self, commit: &Commit) -> Held {
        let Some(id) = commit.holder.run() else {
            return self.boundary(commit);
        };
        // A boundary mutation that was over before the run began may share its round.
        let one = |run: Option<RunId>| run.is_none_or(|run| run == id);
        let whose = commit.entries.iter().all(|entry| one(entry.run))
            && commit.runs.iter().all(|run| run.id == id)
            && commit.interactions.iter().all(|it| it.id.run == id)
            && commit.inputs.iter().all(|input| input.id.run == id);
        let run = self.runs.get(&id);
        ensure(whose && run.is_some(), "T04", || {
            format!("a commit of more than run {id}")
        })?;
        let settled = run.and_then(LastRun::of);
        let freed = matches!(
            commit.lease,
            LeaseClause::Release(_) | LeaseClause::Recover(_)
        );
        ensure(freed == settled.is_some(), "T04", || {
            format!("{:?}, and the run's end is {settled:?}", commit.lease)
        })?;
        ensure(
            settled.is_none() || settled == commit.head.last_run,
            "T04",
            || format!("the head's last run is {:?}", commit.head.last_run),
        )
    }

    /// Outside of runs nothing of a run is written, and nothing while one is active.
    fn boundary(&self, commit: &Commit) -> Held {
        let nothing = commit.runs.is_empty()
            && commit.inputs.is_empty()
            && commit.interactions.is_empty()
            && commit.entries.iter().all(|entry| entry.run.is_none());
        let active = self.runs.values().any(|run| run.settled.is_none());
        ensure(nothing && !active, "T22", || {
            format!("a boundary mutation writes of a run, or during one: {commit:?}")
        })
    }

    pub(super) fn interactions_of(&self, run: RunId) -> impl Iterator<Item = &Interaction> {
        self.interactions
            .values()
            .filter(move |interaction| interaction.id.run == run)
    }

    pub(super) fn entry(&self, seq: u64) -> Option<&Entry> {
        let at = usize::try_from(seq.checked_sub(1)?).ok()?;
        self.entries.get(at)
    }

    pub(super) fn inputs_of(&self, run: RunId) -> impl Iterator<Item = &InputRecord> {
        self.inputs
            .values()
            .filter(move |input| input.id.run == run)
    }

    fn discarded_of(&self, run: RunId) -> impl Iterator<Item = UndeliveredInput> {
        self.inputs_of(run).filter_map(|input| match input.fate {
            InputFate::Discarded(cause) => Some(UndeliveredInput {
                id: input.id,
                kind: input.kind,
                cause,
                text: None,
            }),
            InputFate::Pending | InputFate::Delivered(_) => None,
        })
    }
}
