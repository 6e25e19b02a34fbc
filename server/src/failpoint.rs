//! Named places where a test kills the process, in builds with the feature `failpoints`.
//!
//! The variable FAILPOINTS sets them, in the language of the `fail` crate:
//! `FAILPOINTS='session::after-commit=3*off->return(kill)'` kills the process with SIGKILL when it
//! comes there for the fourth time; `panic` and `sleep(MS)` work as well. The store's rounds have
//! places of their own, named in its device. What must never enter: behaviour of a build without
//! the feature.

/// Says that a place was reached.
#[cfg(feature = "failpoints")]
pub(crate) fn reach(place: &'static str) {
    fail::fail_point!(place, |said: Option<String>| kill_if_asked(said.as_deref()));
}

/// Says that a place was reached.
#[cfg(not(feature = "failpoints"))]
pub(crate) fn reach(_place: &'static str) {}

/// What a test says there: what is to be taken for a fact of this system.
#[cfg(feature = "failpoints")]
pub(crate) fn told(place: &'static str) -> Option<String> {
    fail::fail_point!(place, |said: Option<String>| said);
    None
}

/// What a test says there; nothing.
#[cfg(not(feature = "failpoints"))]
pub(crate) fn told(_place: &'static str) -> Option<String> {
    None
}

/// Ends the process as a SIGKILL from outside would, if the failpoint's argument asks for that.
#[cfg(feature = "failpoints")]
pub(crate) fn kill_if_asked(said: Option<&str>) {
    use rustix::process::{Signal, getpid, kill_process};
    if said != Some("kill") {
        return;
    }
    let killed = kill_process(getpid(), Signal::KILL);
    tracing::error!(?killed, "a failpoint could not kill the process");
}
