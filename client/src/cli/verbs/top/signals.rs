//! What the system tells a program that has the whole terminal: to end, to stop, to go on. What a
//! program does by itself then leaves the terminal as no shell can use it.

use std::io;

use rustix::process::{
    Pid, Signal as Number, getpgid, getpgrp, getpid, getppid, getsid, kill_current_process_group,
    kill_process,
};
use tokio::process::Child;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What was told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Told {
    /// To end.
    End,
    /// To end what is in front on the terminal.
    Interrupt,
    /// To stop until it is told to go on.
    Stop,
    /// To go on: whatever had the terminal meanwhile has left it as it likes.
    GoOn,
}

/// A listener from its making on.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    stop: Signal,
    go_on: Signal,
}

impl Signals {
    /// From now on none of them has its usual effect.
    ///
    /// # Errors
    /// When the process cannot be told of them.
    pub(super) fn new() -> io::Result<Self> {
        let of = |number: Number| signal(SignalKind::from_raw(number.as_raw()));
        Ok(Self {
            terminate: of(Number::TERM)?,
            interrupt: of(Number::INT)?,
            hang_up: of(Number::HUP)?,
            stop: of(Number::TSTP)?,
            go_on: of(Number::CONT)?,
        })
    }

    /// The next that is told.
    pub(super) async fn next(&mut self) -> Told {
        tokio::select! {
            _ = self.terminate.recv() => Told::End,
            _ = self.interrupt.recv() => Told::Interrupt,
            _ = self.hang_up.recv() => Told::End,
            _ = self.stop.recv() => Told::Stop,
            _ = self.go_on.recv() => Told::GoOn,
        }
    }
}

/// Whether a shell waits on this terminal that can let the program go on: one that stops without would
/// stay so for ever.
pub(super) fn can_go_on() -> bool {
    let Some(parent) = getppid() else {
        return false;
    };
    let (theirs, ours) = (getsid(Some(parent)), getsid(None));
    let same_terminal = matches!((theirs, ours), (Ok(theirs), Ok(ours)) if theirs == ours);
    let other_job = getpgid(Some(parent)).is_ok_and(|group| group != getpgrp());
    same_terminal && other_job
}

/// Tells the whole job to stop, as its terminal does where it reads Ctrl-Z itself.
pub(super) fn stop_job() {
    // Who cannot be told goes on.
    let _ = kill_current_process_group(Number::TSTP);
}

/// Stops this process; returns when it goes on.
pub(super) fn stop() {
    let _ = kill_process(getpid(), Number::STOP);
}

/// Has another process end, and waits until it has.
pub(super) async fn end(child: &mut Child) {
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    if let Some(id) = id.and_then(Pid::from_raw) {
        let _ = kill_process(id, Number::TERM);
    }
    let _ = child.wait().await;
}
