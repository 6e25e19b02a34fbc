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
    /// Bytes were written to the database file: the call has ended.
    Write(Vec<u8>),
    /// A data sync of the database file has begun.
    SyncBegins,
    /// It has succeeded.
    SyncEnds,
    /// Bytes are handed to a socket: the call has begun.
    Send(Vec<u8>),
}

/// The steps, in order.
pub(crate) struct Trace(Vec<Call>);

impl Trace {
    /// Reads a trace made with `-D -f -y -xx` of a process that is ending, once it is whole.
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
        // What is unfinished of each thread: the resumed line names neither the file nor the bytes.
        let mut unfinished: HashMap<&str, Call> = HashMap::new();
        let text = String::from_utf8_lossy(text);
        for line in text.lines() {
            let Some((pid, call)) = line.split_once(' ') else {
                continue;
            };
            let call = call.trim_start();
            let ended = !call.ends_with("<unfinished ...>");
            if call.starts_with("<... ") {
                match unfinished.remove(pid) {
                    Some(Call::SyncEnds) if !call.ends_with("= 0") => {}
                    step => calls.extend(step),
                }
                continue;
            }
            let step = if call.starts_with("pwrite64(") && is_database(call) {
                Call::Write(decoded(call))
            } else if is_sync(call) && is_database(call) {
                calls.push(Call::SyncBegins);
                Call::SyncEnds
            } else {
                if is_socket(call) {
                    calls.push(Call::Send(decoded(call)));
                }
                continue;
            };
            if !ended {
                unfinished.insert(pid, step);
            } else if step != Call::SyncEnds || call.ends_with("= 0") {
                calls.push(step);
            }
        }
        let written = calls.iter().any(|call| matches!(call, Call::Write(_)));
        assert!(written, "the trace shows no write");
        Self(calls)
    }

    /// The first send that holds a text.
    pub(crate) fn first_sent(&self, text: &str) -> usize {
        let sends = |call: &Call| matches!(call, Call::Send(sent) if holds(sent, text.as_bytes()));
        let found = self.0.iter().position(sends);
        found.unwrap_or_else(|| panic!("{text} was never sent"))
    }

    /// How many steps of a kind there are.
    pub(crate) fn count(&self, window: Range<usize>, kind: impl Fn(&Call) -> bool) -> usize {
        self.0[window].iter().filter(|call| kind(call)).count()
    }

    /// Fails unless, before `sent`, a write that holds `marker` has ended, and a sync that began
    /// after it.
    pub(crate) fn assert_synced_before(&self, sent: usize, marker: &[u8], what: &str) {
        let before = &self.0[..sent];
        let writes = |call: &Call| matches!(call, Call::Write(bytes) if holds(bytes, marker));
        let written = before.iter().position(writes);
        let written = written.unwrap_or_else(|| panic!("{what} was sent before it was written"));
        let since = &before[written..];
        let begun = since.iter().position(|call| *call == Call::SyncBegins);
        let synced = begun.is_some_and(|begun| since[begun..].contains(&Call::SyncEnds));
        assert!(
            synced,
            "{what} was sent before what was written for it was synced"
        );
    }
}

fn holds(bytes: &[u8], marker: &[u8]) -> bool {
    bytes.windows(marker.len()).any(|window| window == marker)
}

/// A line as the bytes that it stands for: `-xx` writes every string as `\xNN`s.
fn decoded(line: &str) -> Vec<u8> {
    let mut parts = line.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at(2);
        bytes.push(u8::from_str_radix(digits, 16).unwrap());
        bytes.extend_from_slice(rest.as_bytes());
    }
    bytes
}

fn is_sync(call: &str) -> bool {
    call.starts_with("fdatasync(") || call.starts_with("fsync(")
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
fn descriptor(call: &str) -> Option<String> {
    let (_, rest) = call.split_once('<')?;
    let (path, _) = rest.split_once('>')?;
    Some(String::from_utf8_lossy(&decoded(path)).into_owned())
}

#[test]
fn an_acknowledgement_before_its_own_write_or_sync_is_told() {
    let database = "3</data/store/db>";
    let write = |text: &str| format!(r#"7 pwrite64({database}, "{text}", 1, 0) = 1"#);
    let hex = |text: &str| {
        let bytes: Vec<String> = text.bytes().map(|byte| format!(r"\x{byte:02x}")).collect();
        bytes.concat()
    };
    let sync = format!("7 fdatasync({database}) = 0");
    let send = format!(r#"8 sendto(4<socket:[1]>, "{}", 3, 0) = 3"#, hex("one"));
    let earlier = write(&hex("other"));
    let own = write(&hex("one"));
    let begun = format!(
        r#"7 pwrite64({database}, "{}", 1, 0 <unfinished ...>"#,
        hex("one")
    );
    let resumed = "7 <... pwrite64 resumed>) = 1".to_owned();
    let passes = |lines: &[&String]| {
        let lines: Vec<&str> = lines.iter().map(|line| line.as_str()).collect();
        let trace = Trace::parse(lines.join("\n").as_bytes());
        let sent = trace.first_sent("one");
        std::panic::catch_unwind(|| trace.assert_synced_before(sent, b"one", "it")).is_ok()
    };
    assert!(passes(&[&own, &sync, &send]));
    assert!(passes(&[&begun, &resumed, &sync, &send]));
    assert!(
        !passes(&[&earlier, &sync, &send, &own, &sync]),
        "not written"
    );
    assert!(!passes(&[&sync, &own, &send, &sync]), "not synced");
    assert!(
        !passes(&[&begun, &sync, &resumed, &send]),
        "synced too early"
    );
}
