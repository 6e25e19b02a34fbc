//! A trace that strace wrote, as the few kinds of calls that matter here, in order.
//!
//! A line is printed where its call begins, and ends there or in a later `resumed` line; so the
//! order of lines is the order of beginnings and ends. What must never enter: what a test expects.

use std::collections::HashMap;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use tokio::time::{sleep, timeout};

/// One step of the trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Call {
    /// The database file is written to: the call has begun.
    Write,
    /// A data sync of the database file has begun.
    SyncBegins,
    /// It has succeeded.
    SyncEnds,
    /// Bytes are handed to a socket: the call has begun.
    Send(String),
}

/// The steps, in order.
pub(crate) struct Trace(Vec<Call>);

impl Trace {
    /// Reads a trace made with `-D -f -y` of a process that is ending, once it is whole.
    pub(crate) async fn read(path: &Path) -> Self {
        let whole = async {
            loop {
                let text = fs::read(path).unwrap();
                if text.ends_with(b"+++ exited with 0 +++\n") {
                    return text;
                }
                // Nothing tells of a file of another process but the file.
                sleep(Duration::from_millis(20)).await;
            }
        };
        let text = timeout(Duration::from_secs(30), whole).await;
        Self::parse(&text.expect("strace ends with what it traces"))
    }

    fn parse(text: &[u8]) -> Self {
        let mut calls = Vec::new();
        // Whose sync is unfinished: the resumed line does not name the file again.
        let mut syncing: HashMap<&str, bool> = HashMap::new();
        let text = String::from_utf8_lossy(text);
        for line in text.lines() {
            let Some((pid, call)) = line.split_once(' ') else {
                continue;
            };
            let call = call.trim_start();
            let (ours, done) = (is_database(call), call.ends_with("= 0"));
            if call.starts_with("pwrite64(") && ours {
                calls.push(Call::Write);
            } else if call.starts_with("fdatasync(") || call.starts_with("fsync(") {
                if ours {
                    calls.push(Call::SyncBegins);
                    if done {
                        calls.push(Call::SyncEnds);
                    }
                }
                syncing.insert(pid, ours && !done);
            } else if call.starts_with("<... fdatasync resumed") || call.starts_with("<... fsync") {
                if syncing.remove(pid) == Some(true) && done {
                    calls.push(Call::SyncEnds);
                }
            } else if is_socket(call) {
                calls.push(Call::Send(call.to_owned()));
            }
        }
        assert!(calls.contains(&Call::Write), "the trace shows no write");
        Self(calls)
    }

    /// The first send that holds a text.
    pub(crate) fn first_sent(&self, text: &str) -> usize {
        let sends = |call: &Call| matches!(call, Call::Send(bytes) if bytes.contains(text));
        let found = self.0.iter().position(sends);
        found.unwrap_or_else(|| panic!("{text} was never sent"))
    }

    /// How many steps of a kind there are.
    pub(crate) fn count(&self, window: Range<usize>, kind: impl Fn(&Call) -> bool) -> usize {
        self.0[window].iter().filter(|call| kind(call)).count()
    }

    /// Fails unless a sync that began after the last write before `sent` has ended by then.
    pub(crate) fn assert_synced_before(&self, sent: usize, what: &str) {
        let before = &self.0[..sent];
        let written = before.iter().rposition(|call| *call == Call::Write);
        let written = written.unwrap_or_else(|| panic!("{what} was sent, and nothing written"));
        let since = &before[written..];
        let begun = since.iter().position(|call| *call == Call::SyncBegins);
        let synced = begun.is_some_and(|begun| since[begun..].contains(&Call::SyncEnds));
        assert!(
            synced,
            "{what} was sent before what was written for it was synced: {since:?}"
        );
    }
}

/// Whether the call's descriptor is the database file's.
fn is_database(call: &str) -> bool {
    descriptor(call).is_some_and(|path| path.ends_with("/store/db"))
}

fn is_socket(call: &str) -> bool {
    let sends = ["sendto(", "sendmsg(", "write(", "writev("];
    sends.iter().any(|name| call.starts_with(name))
        && descriptor(call).is_some_and(|path| path.contains("socket:") || path.contains("TCP"))
}

/// What `-y` says of the first argument: `9</data/store/db>`.
fn descriptor(call: &str) -> Option<&str> {
    let (_, rest) = call.split_once('<')?;
    rest.split_once('>').map(|(path, _)| path)
}
