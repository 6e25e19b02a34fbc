//! What the tools say.
#![allow(
    clippy::print_stderr,
    reason = "how a tool goes on, to whoever started it"
)]

use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use super::ToolError;
use crate::adapters::sled::OpenError;
use crate::adapters::sled::tools::{
    Dumped, DumpedWhole, Fault, Findings, Judged, Loaded, Progress, Stats, Without,
};

/// How long a tool is silent at first.
const SILENT: Duration = Duration::from_secs(2);
/// How often it says how far it is after that.
const EVERY: Duration = Duration::from_secs(1);
/// Most sessions that are named where some are left out.
const NAMED: usize = 20;

/// Tells how far something is that takes long.
pub(super) struct Meter {
    what: &'static str,
    next: Instant,
}

#[expect(
    clippy::disallowed_methods,
    reason = "how often something is said, which no stored time depends on"
)]
fn now() -> Instant {
    Instant::now()
}

impl Meter {
    pub(super) fn new(what: &'static str) -> Self {
        Self {
            what,
            next: now() + SILENT,
        }
    }
}

impl Progress for Meter {
    fn at(&mut self, done: u64, of: u64) {
        let now = now();
        if now < self.next {
            return;
        }
        self.next = now + EVERY;
        match of {
            0 => eprintln!("{}: {done} records", self.what),
            of => eprintln!("{}: {done} of about {of} records", self.what),
        }
    }
}

/// An import that failed left something behind.
pub(super) fn unfinished(data_dir: &Path) {
    eprintln!(
        "sessiond store: what was written to {} until then is no store; remove it before you try again",
        data_dir.display()
    );
}

/// What root made, a server of another user cannot read.
pub(super) fn of_root(data_dir: &Path) {
    eprintln!(
        "sessiond store: all of it is root's; before a server of another user starts: \
         chown -R USER: {}",
        data_dir.display()
    );
}

pub(super) fn failed(error: &ToolError) {
    eprintln!("sessiond store: {error}");
}

fn json(value: &impl serde::Serialize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, value)?;
    out.write_all(b"\n")
}

fn text(lines: &[String]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    lines.iter().try_for_each(|line| writeln!(out, "{line}"))
}

pub(super) fn unopened(error: &OpenError, as_json: bool) -> io::Result<()> {
    if as_json {
        return json(&serde_json::json!({ "whole": false, "unopened": error.to_string() }));
    }
    let mut lines = vec![format!("not whole: {error}")];
    if matches!(error, OpenError::Damaged { .. }) {
        lines.push(
            "what to do: restore a backup into a new directory; without one, `sessiond store export \
             --whole` takes out all sessions that are whole, where the database can still be read"
                .to_owned(),
        );
    }
    text(&lines)
}

#[derive(serde::Serialize)]
struct Verified<'a> {
    whole: bool,
    #[serde(flatten)]
    findings: &'a Findings,
}

pub(super) fn findings(findings: &Findings, as_json: bool) -> io::Result<()> {
    let whole = findings.whole();
    if as_json {
        return json(&Verified { whole, findings });
    }
    text(&told(findings))
}

/// So many of what `one` names: what more than one is called ends in an s.
fn counted(count: u64, one: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {one}{s}")
}

fn told(findings: &Findings) -> Vec<String> {
    let mut lines = Vec::new();
    let mut say = |line: String| lines.push(line);
    for fault in &findings.faults {
        say(format!("fault: {}: {}", fault.key, fault.problem));
        if let Some(session) = &fault.session {
            say(format!("  session: {session}"));
        }
        say(format!("  what to do: {}", fault.remedy));
    }
    let unnamed = findings.fault_count - findings.faults.len() as u64;
    if unnamed > 0 {
        say(format!("and {}", counted(unnamed, "more fault")));
    }
    if findings.unlinked_entries > 0 {
        say(format!(
            "note: entries that were written by a server that knew no digests: {}; chains that begin \
             after them: {}",
            findings.unlinked_entries, findings.chains_that_begin_late
        ));
    }
    let Findings {
        keys,
        sessions,
        entries,
        artifacts,
        ..
    } = findings;
    let judged = match findings.fault_count {
        0 => "whole".to_owned(),
        count => format!("not whole, {}", counted(count, "fault")),
    };
    let entries = match entries {
        1 => "1 entry".to_owned(),
        entries => format!("{entries} entries"),
    };
    say(format!(
        "{judged}: {}, {entries}, {}, {}",
        counted(*sessions, "session"),
        counted(*artifacts, "artifact"),
        counted(*keys, "key")
    ));
    lines
}

pub(super) fn exported(dumped: &Dumped) -> io::Result<()> {
    let Dumped {
        records,
        artifacts,
        missing,
        bytes,
        unreadable_bindings,
    } = dumped;
    // Standard output may be the export itself.
    let mut out = io::stderr().lock();
    writeln!(
        out,
        "exported {} and {}, {}",
        counted(*records, "record"),
        counted(*artifacts, "artifact"),
        counted(*bytes, "byte")
    )?;
    if *missing > 0 {
        writeln!(
            out,
            "artifacts that could not be read: {missing}; `sessiond store verify` names them"
        )?;
    }
    if *unreadable_bindings > 0 {
        writeln!(
            out,
            "request bindings that could not be read and are not in it: {unreadable_bindings}; one \
             that was of these sessions is forgotten, and its request, sent again, is taken for a \
             new one"
        )?;
    }
    Ok(())
}

/// What an export of the sessions that are whole has not, or has anew.
pub(super) fn left_out(judged: &Judged, made: &DumpedWhole, without: Without) -> io::Result<()> {
    let mut out = io::stderr().lock();
    for line in said_of(judged, made, without) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn said_of(judged: &Judged, made: &DumpedWhole, without: Without) -> Vec<String> {
    let mut lines = sessions_left_out(&judged.findings);
    let (strays, anew) = (made.strays, made.made_anew);
    if strays > 0 {
        lines.push(format!(
            "left out: records that lead to no session, or are damaged so that nobody knows to \
             which: {strays}"
        ));
    }
    if anew > 0 {
        lines.push(format!(
            "made anew: indexes of names and marks of request bindings: {anew}"
        ));
    }
    if without.meta {
        let told = "made anew: the record of the store itself, of its tokens and the file \
                    `acknowledged`";
        lines.push(told.to_owned());
    }
    if !judged.sum_fits {
        let why = if without.round {
            "the record of the newest round is damaged, which says what the store is to hold"
        } else {
            "what was read is not what the newest round says that the store holds"
        };
        lines.push(format!(
            "note: {why}: something may be lost or old also in what is exported, although each \
             session of it is whole by itself"
        ));
    }
    lines
}

fn sessions_left_out(findings: &Findings) -> Vec<String> {
    let count = findings.not_whole.len();
    let mut lines = Vec::new();
    if count > 0 {
        let what = if count == 1 {
            "1 session that is".to_owned()
        } else {
            format!("{count} sessions that are")
        };
        lines.push(format!("left out: {what} not whole"));
    }
    for id in findings.not_whole.iter().take(NAMED) {
        let id = id.to_string();
        let of_it = |fault: &&Fault| fault.session.as_ref() == Some(&id);
        let why = findings.faults.iter().find(of_it).map_or_else(
            || "it branched off one that is not whole, or needs a damaged record".to_owned(),
            |fault| format!("{}: {}", fault.key, fault.problem),
        );
        lines.push(format!("  {id}: {why}"));
    }
    if count > NAMED {
        lines.push(format!(
            "  and {} more: `sessiond store verify --json` names all in `not_whole`",
            count - NAMED
        ));
    }
    lines
}

pub(super) fn imported(
    loaded: &Loaded,
    findings: &Findings,
    data_dir: &Path,
    as_json: bool,
) -> io::Result<()> {
    let whole = findings.whole();
    if as_json {
        let verified = Verified { whole, findings };
        return json(&serde_json::json!({ "imported": loaded, "verified": verified }));
    }
    let Loaded {
        records,
        artifacts,
        missing,
    } = loaded;
    let mut lines = vec![format!(
        "read {} and {}",
        counted(*records, "record"),
        counted(*artifacts, "artifact")
    )];
    if *missing > 0 {
        lines.push(format!(
            "artifacts that were missing when the export was made: {missing}"
        ));
    }
    lines.extend(told(findings));
    lines.push(without_tokens(data_dir));
    text(&lines)
}

/// What becomes of the tokens, none of which is in an export.
fn without_tokens(data_dir: &Path) -> String {
    format!(
        "no token is in the export: the next start on {} makes a new owner token; those of principals \
         are to be made anew (sessiond token create)",
        data_dir.display()
    )
}

pub(super) fn backed_up(made: &Loaded, to: &Path, as_json: bool) -> io::Result<()> {
    if as_json {
        return json(&serde_json::json!({ "backup": made, "to": to }));
    }
    let Loaded {
        records,
        artifacts,
        missing,
    } = made;
    let mut lines = vec![format!(
        "{}: {} and {}; no tokens",
        to.display(),
        counted(*records, "record"),
        counted(*artifacts, "artifact")
    )];
    if *missing > 0 {
        lines.push(format!(
            "artifacts that could not be read: {missing}; `sessiond store verify` names them"
        ));
    }
    text(&lines)
}

pub(super) fn stats(stats: &Stats, as_json: bool) -> io::Result<()> {
    if as_json {
        return json(stats);
    }
    let mut lines = vec![
        format!(
            "{}; format {}, opened {}",
            counted(stats.sessions, "session"),
            stats.format,
            counted(stats.boots.into(), "time")
        ),
        String::new(),
        format!("{:<16} {:>11} {:>14}", "kind", "records", "bytes"),
    ];
    lines.extend(stats.kinds.iter().map(|kind| {
        let (kind, records, bytes) = (kind.kind, kind.records, kind.bytes);
        format!("{kind:<16} {records:>11} {bytes:>14}")
    }));
    lines.extend([String::new(), format!("{:<28} {:>14}", "file", "bytes")]);
    let files = stats.files.iter();
    lines.extend(files.map(|(name, bytes)| format!("{name:<28} {bytes:>14}")));
    let title = format!(
        "{:<26} {:>9} {:>14}",
        "largest sessions", "records", "bytes"
    );
    lines.extend([String::new(), title]);
    lines.extend(stats.largest.iter().map(|largest| {
        let (session, records, bytes) = (&largest.session, largest.records, largest.bytes);
        format!("{session} {records:>9} {bytes:>14}")
    }));
    text(&lines)
}

#[cfg(test)]
mod tests {
    use sessionplane_core::domain::ids::SessionId;

    use super::*;

    #[test]
    fn what_there_is_one_of_is_told_as_one() {
        let one = Findings {
            sessions: 1,
            entries: 1,
            artifacts: 2,
            keys: 0,
            not_whole: std::iter::once(SessionId::from_bytes([1; 16])).collect(),
            ..Findings::default()
        };
        assert_eq!(
            told(&one),
            ["whole: 1 session, 1 entry, 2 artifacts, 0 keys"]
        );
        let left_out = sessions_left_out(&one);
        assert_eq!(left_out[0], "left out: 1 session that is not whole");
    }

    #[test]
    fn who_restores_is_told_that_only_the_owner_token_is_made_by_the_start() {
        let told = without_tokens(Path::new("/d"));
        for part in ["/d makes a new owner token", "sessiond token create"] {
            assert!(told.contains(part), "{told}");
        }
    }

    #[test]
    fn so_many_sessions_that_are_left_out_are_named_and_the_rest_is_counted() {
        let ids: Vec<SessionId> = (1..=25).map(|n| SessionId::from_bytes([n; 16])).collect();
        let findings = Findings {
            not_whole: ids.iter().copied().collect(),
            faults: vec![Fault {
                key: "head".to_owned(),
                session: Some(ids[1].to_string()),
                problem: "it is missing".to_owned(),
                remedy: "",
            }],
            ..Findings::default()
        };
        let lines = sessions_left_out(&findings);
        assert_eq!(lines.len(), 1 + NAMED + 1);
        assert!(lines[0].contains("25 sessions"), "{lines:?}");
        let why = |n: usize| lines[n + 1].trim().to_owned();
        assert_eq!(why(1), format!("{}: head: it is missing", ids[1]));
        assert!(why(2).contains("branched off"), "{lines:?}");
        let rest = lines.last().unwrap();
        assert!(rest.contains("5 more") && rest.contains("verify --json"));
        assert!(sessions_left_out(&Findings::default()).is_empty());
    }
}
