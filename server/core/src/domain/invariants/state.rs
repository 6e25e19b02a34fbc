//! Predicates over one state of a session, as it stands after a step.

use std::collections::BTreeSet;

use super::{Held, Violation, ensure};
use crate::domain::command::CommandKind;
use crate::domain::input::{InputFate, InputKind};
use crate::domain::lifecycle::{ActiveCompaction, ActiveRun, EngineStatus, Phase, Session};
use crate::domain::limits::{
    MAX_FINISHED_KEPT, MAX_OPEN_BYTES_PER_RUN, MAX_OPEN_INTERACTIONS, MAX_OPEN_PER_RUN,
};
use crate::domain::run::RunOutcome;
use crate::domain::session::LastRun;

/// Judges a state that [`crate::domain::lifecycle::step`] has left behind.
///
/// # Errors
/// The first predicate that does not hold.
pub fn check(session: &Session) -> Result<(), Violation> {
    rounds(session)?;
    head(session)?;
    if let Some(compaction) = session.compaction() {
        return boundary(session, compaction);
    }
    if let Some(deletion) = session.deletion() {
        let newest = session.exists && session.head().token < deletion.token();
        return ensure(newest, "I23", || {
            format!(
                "a deletion under {}, which is no new token",
                deletion.token()
            )
        });
    }
    let Some(run) = session.run() else {
        return Ok(());
    };
    ensure(session.exists, "I03", || {
        "a run is active in a session that no commit creates".to_owned()
    })?;
    ensure(session.head().token == run.token(), "I04", || {
        format!(
            "the head stands at token {}, the run holds {}",
            session.head().token,
            run.token()
        )
    })?;
    queue(session, run)?;
    phase(session, run)?;
    engine(session, run)?;
    record(session, run)?;
    asks(session, run)?;
    bounds(session, run)
}

fn rounds(session: &Session) -> Held {
    let (next, durable) = (session.next_round, session.durable_round);
    let in_flight = next.checked_sub(durable + 1);
    ensure(matches!(in_flight, Some(0 | 1)), "I01", || {
        format!("round {durable} is durable and the next one is {next}")
    })
}

fn head(session: &Session) -> Held {
    let head = session.head();
    let leaf = head.leaf.map_or(0, |leaf| leaf.seq);
    let ours = head.leaf.is_none_or(|leaf| leaf.session == session.id());
    let marks = [head.path.settings, head.path.compaction, head.path.said];
    let behind = marks.into_iter().flatten().all(|mark| mark <= leaf);
    ensure(leaf <= head.entries && ours && behind, "I02", || {
        format!("{} entries, but the leaf is {:?}", head.entries, head.leaf)
    })
}

/// A compaction holds the lease of an existing session, and its engine is opened exactly when that
/// is durable. One that aborts waits for its engine; its end joins the next round or the one in
/// flight.
fn boundary(session: &Session, compaction: &ActiveCompaction) -> Held {
    let holds = session.exists && session.head().token == compaction.token();
    let admitted = compaction.admitted_in <= session.durable_round;
    let engine = compaction.engine();
    let opened = engine != EngineStatus::Unopened;
    let fits = match compaction.phase() {
        Phase::Active => {
            let waits = matches!(engine, EngineStatus::Opening | EngineStatus::Working);
            opened == admitted && (waits || !opened)
        }
        Phase::Aborting => admitted && engine == EngineStatus::Working,
        Phase::Settling { round } => {
            (admitted || !opened) && session.durable_round < round && round <= session.next_round
        }
    };
    ensure(holds && fits, "I20", || {
        format!("a compaction that holds nothing or waits for nothing: {compaction:?}")
    })
}

fn queue(session: &Session, run: &ActiveRun) -> Held {
    let handed = run.queue().filter(|input| input.handed).count();
    ensure(handed <= 1, "I05", || format!("{handed} inputs are handed"))?;
    let mut last = 0;
    for input in run.queue() {
        let id = input.record.id;
        let durable = input.accepted_in <= session.durable_round;
        ensure(durable || !input.handed, "I06", || {
            format!("{id} is handed although its acceptance is not durable")
        })?;
        let in_order =
            id.run == run.record().id && last < id.ordinal && id.ordinal < run.next_ordinal;
        ensure(in_order, "I07", || {
            format!("{id} stands behind ordinal {last}")
        })?;
        last = id.ordinal;
        let allowed = run.capabilities.allows(match input.record.kind {
            InputKind::Steer => CommandKind::Steer,
            InputKind::FollowUp => CommandKind::FollowUp,
        });
        ensure(
            allowed && input.record.fate == InputFate::Pending,
            "I08",
            || {
                format!(
                    "{id} waits although it may not, or has ended: {:?}",
                    input.record.fate
                )
            },
        )?;
    }
    Ok(())
}

fn phase(session: &Session, run: &ActiveRun) -> Held {
    let record = run.record();
    let settling = match run.phase() {
        Phase::Settling { round } => Some(round),
        Phase::Active | Phase::Aborting => None,
    };
    let joins = settling.is_none_or(|round| {
        session.durable_round < round && round <= session.next_round && run.queue().count() == 0
    });
    ensure(
        joins && settling.is_some() == record.settled.is_some(),
        "I09",
        || format!("phase {:?}, settlement {:?}", run.phase(), record.settled),
    )?;
    let told = session.head().last_run.as_ref();
    let agrees = match settling {
        Some(_) => told == LastRun::of(record).as_ref(),
        None => told.is_none_or(|last| last.run != record.id),
    };
    ensure(agrees, "I10", || format!("the head's last run is {told:?}"))?;
    let aborted = match &record.settled {
        None => run.phase() == Phase::Aborting,
        Some(end) => end.outcome == RunOutcome::Aborted,
    };
    ensure(aborted == record.abort_requested, "I11", || {
        format!(
            "abort requested: {}, phase {:?}",
            record.abort_requested,
            run.phase()
        )
    })?;
    let waits = match run.engine() {
        EngineStatus::Opening | EngineStatus::Working => true,
        EngineStatus::Dropped => session.unread.reports > 0,
        EngineStatus::Unopened | EngineStatus::Resting | EngineStatus::Gone => false,
    };
    let drained = run.queue().all(|input| input.handed) && waits;
    ensure(drained || run.phase() != Phase::Aborting, "I12", || {
        format!(
            "an aborting run waits for {:?}, or for a queue",
            run.engine()
        )
    })
}

fn engine(session: &Session, run: &ActiveRun) -> Held {
    let admitted = run.admitted_in <= session.durable_round;
    let status = run.engine();
    let settling = matches!(run.phase(), Phase::Settling { .. });
    ensure(
        settling || admitted == (status != EngineStatus::Unopened),
        "I13",
        || format!("admission durable: {admitted}, engine {status:?}"),
    )?;
    ensure(settling || status != EngineStatus::Gone, "I14", || {
        "the engine is gone and the run goes on".to_owned()
    })?;
    let first = |kind| {
        run.queue()
            .find(|input| input.record.kind == kind && !input.handed)
    };
    let ready = |kind| {
        first(kind).is_some_and(|input| !input.held && input.accepted_in <= session.durable_round)
    };
    let steerable = run.capabilities.steering.is_some();
    let handing = run.queue().any(|input| input.handed);
    let unread = session.unread.reports > 0;
    if status == EngineStatus::Resting && !settling && !unread {
        // A durable follow-up may still wait for a steer that is not durable yet.
        let first = first(InputKind::Steer).or_else(|| first(InputKind::FollowUp));
        let waits = first.is_some_and(|input| input.accepted_in > session.durable_round);
        ensure(waits && !handing, "I15", || {
            "the engine rests, and nothing that is on its way will wake it".to_owned()
        })?;
    }
    let idle =
        run.phase() == Phase::Active && status == EngineStatus::Working && steerable && !handing;
    ensure(unread || !(idle && ready(InputKind::Steer)), "I16", || {
        "a durable steer waits although nothing is outstanding".to_owned()
    })
}

fn record(session: &Session, run: &ActiveRun) -> Held {
    let record = run.record();
    let (first, last) = (record.first_entry, record.final_entry);
    let ours = record.session == session.id() && first.session == session.id();
    let ordered = first.seq <= last.map_or(first.seq, |last| last.seq)
        && last.map_or(first.seq, |last| last.seq) <= session.head().entries;
    let ended = last.is_some() == record.settled.is_some();
    ensure(ours && ordered && ended, "I17", || {
        format!("the run spans {first} to {last:?}")
    })?;
    let queued: BTreeSet<_> = run.queue().map(|input| input.record.id).collect();
    let mut listed = BTreeSet::new();
    for input in &record.undelivered {
        let known = input.id.run == record.id && input.id.ordinal < run.next_ordinal;
        let new = listed.insert(input.id) && !queued.contains(&input.id);
        ensure(known && new, "I18", || {
            format!(
                "{} is listed as undelivered twice, or still waits",
                input.id
            )
        })?;
    }
    Ok(())
}

/// What is open was asked by this run and has no end. What is answered waits for the disk and for
/// nothing else; an engine that takes no answers is owed none.
fn asks(session: &Session, run: &ActiveRun) -> Held {
    let id = run.record().id;
    let listed = run.asked().all(|(ordinal, asked)| {
        let own = asked.id.run == id && asked.id.ordinal == ordinal;
        own && ordinal < run.next_question && asked.resolution.is_none()
    });
    let works = run.phase() == Phase::Active && run.engine() == EngineStatus::Working;
    let open = run.asked().next().is_some();
    ensure(listed && (works || !open), "I21", || {
        format!("{:?} are open", run.asked().collect::<Vec<_>>())
    })?;
    let late = run
        .owed()
        .any(|decided_in| decided_in <= session.durable_round);
    let owed = run.owed().next().is_some();
    ensure(!late && (works || !owed), "I22", || {
        format!("the engine is not told what was answered: {run:?}")
    })
}

fn bounds(session: &Session, run: &ActiveRun) -> Held {
    let (queued, limit) = (run.queue().count(), session.limits.max_pending_inputs);
    let (messages, tools, lanes) = (run.open_messages(), run.open_tools(), run.lanes());
    let bounded = queued <= limit
        && messages <= MAX_OPEN_PER_RUN
        && tools <= MAX_OPEN_PER_RUN
        && run.open_asks() <= MAX_OPEN_INTERACTIONS
        && run.open_bytes() <= MAX_OPEN_BYTES_PER_RUN
        && run.remembered() <= 2 * MAX_FINISHED_KEPT
        && lanes <= tools + 1;
    ensure(bounded, "I19", || {
        let bytes = run.open_bytes();
        format!(
            "{queued} inputs, {messages} messages, {tools} tools, {lanes} lanes are open, {bytes} bytes"
        )
    })
}
