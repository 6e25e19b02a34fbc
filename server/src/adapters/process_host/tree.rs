//! Processes as the system lists them: which there are beneath others, which bear a mark, and how all
//! of them are killed.
//!
//! A process is its number and the moment at which it began, so that a number which another process
//! has by now is never struck.

use std::collections::HashSet;
use std::fs::{self, DirEntry, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, waitpid,
};
use serde::{Deserialize, Serialize};

/// The variable that a process and all that it starts have in their environment.
pub(super) const MARK: &str = "SESSIONPLANE_PROCESS";
/// How often it is looked for processes that were made meanwhile, before those found are killed.
const LOOKS: usize = 64;
/// The largest environment that is looked at: as large as the system lets one be.
const ENVIRONMENT_BYTES: u64 = 8 * 1024 * 1024;

/// A process, and no other that has its number later.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(super) struct Which {
    /// Its number.
    pub(super) pid: i32,
    /// When it began, in the system's ticks since its boot.
    pub(super) began: u64,
}

/// A process that runs, or has ended and was not waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Seen {
    pub(super) which: Which,
    pub(super) parent: i32,
    /// It has ended: there is nothing to kill.
    pub(super) ended: bool,
}

/// Which boot of the machine this is; processes of another are gone. A service may have a view of the
/// system that does not tell it.
pub(super) fn boot() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
}

/// A process by its number; none if there is none.
pub(super) fn look(pid: i32) -> Option<Seen> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(pid, &String::from_utf8_lossy(&text))
}

/// Reads the system's line about a process. Its name may hold anything, brackets and spaces too: what
/// comes after the last bracket counts.
fn parse(pid: i32, line: &str) -> Option<Seen> {
    let (_, rest) = line.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    // The 20th and the 22nd of all; two stand before the bracket closes, and two were taken.
    let threads: u64 = fields.nth(15)?.parse().ok()?;
    let began = fields.nth(1)?.parse().ok()?;
    // The state is that of the first thread: the others may go on without it.
    let ended = matches!(state, "Z" | "X") && threads <= 1;
    Some(Seen {
        which: Which { pid, began },
        parent,
        ended,
    })
}

/// All processes of the system that can be seen.
pub(super) fn all() -> io::Result<Vec<Seen>> {
    let mut seen = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let pid = name.to_str().and_then(|name| name.parse().ok());
        seen.extend(pid.and_then(look));
    }
    Ok(seen)
}

/// Those that descend from any of the roots, without these.
pub(super) fn beneath(all: &[Seen], roots: &[i32]) -> Vec<Seen> {
    let mut known: HashSet<i32> = roots.iter().copied().collect();
    let mut found = Vec::new();
    loop {
        let before = found.len();
        for seen in all {
            if known.contains(&seen.parent) && known.insert(seen.which.pid) {
                found.push(*seen);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// Whether a process was started with this mark.
pub(super) fn bears(pid: i32, mark: &str) -> bool {
    let own = PathBuf::from(format!("/proc/{pid}"));
    told(&own, mark).unwrap_or_else(|| {
        // Once the first thread has left nothing is told of it, and all is of the others.
        let others = own.join("task").read_dir().into_iter().flatten().flatten();
        let told = |thread: DirEntry| told(&thread.path(), mark);
        others.into_iter().find_map(told).unwrap_or(false)
    })
}

/// Whether a process or a thread has this mark in its environment; nothing where none is told.
fn told(path: &Path, mark: &str) -> Option<bool> {
    let mut environment = Vec::new();
    // Of one that ended meanwhile, or is another user's, nothing is read: it is not ours to find.
    File::open(path.join("environ"))
        .and_then(|file| file.take(ENVIRONMENT_BYTES).read_to_end(&mut environment))
        .ok()
        .filter(|bytes| *bytes > 0)?;
    let wanted = format!("{MARK}={mark}");
    let mut variables = environment.split(|byte| *byte == 0);
    Some(variables.any(|variable| variable == wanted.as_bytes()))
}

/// How many filters of calls a process is under; none where the system does not tell. It never gets rid
/// of one, and what it starts has as many at least. Of one that has ended it is told as well.
fn filters(pid: i32) -> Option<u32> {
    let status = fs::read(format!("/proc/{pid}/status")).ok()?;
    let status = String::from_utf8_lossy(&status).into_owned();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Seccomp_filters:"));
    line?.trim().parse().ok()
}

/// Children of this process that it did not start itself: they lost their supervisor, and fell to it.
/// Those that it starts have no more filters than itself, and what is held in has one more.
pub(super) fn fallen(all: &[Seen]) -> Vec<Seen> {
    let us = rustix::process::getpid().as_raw_nonzero().get();
    let Some(ours) = filters(us) else {
        return Vec::new();
    };
    let is_held_in = |pid| filters(pid).is_some_and(|its| its > ours);
    let children = all.iter().filter(|seen| seen.parent == us);
    let fallen = children.filter(|seen| is_held_in(seen.which.pid));
    fallen.copied().collect()
}

/// Waits for those that fell to this process and have ended: nobody else does.
pub(super) fn reap(all: &[Seen]) {
    for seen in fallen(all).into_iter().filter(|seen| seen.ended) {
        if let Some(pid) = Pid::from_raw(seen.which.pid) {
            // Another look may have been faster.
            let _reaped = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

/// Sends a signal to this very process; nothing happens if it is gone.
pub(super) fn signal(which: Which, signal: Signal) {
    let Some(pid) = Pid::from_raw(which.pid) else {
        return;
    };
    // Once the descriptor is open it stands for one process; which one is looked at afterwards.
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
        return;
    };
    if look(which.pid).is_some_and(|seen| seen.which == which) {
        // It may have ended meanwhile.
        let _gone = pidfd_send_signal(process, signal);
    }
}

/// Sends a signal to all that are found.
pub(super) fn tell(found: &[Seen], what: Signal) {
    for seen in found {
        signal(seen.which, what);
    }
}

/// Kills what is found: all of it is stopped first, until no more comes, so that nothing is born while
/// its parent is killed. Returns how many there were.
pub(super) fn strike(find: &dyn Fn() -> io::Result<Vec<Seen>>) -> io::Result<usize> {
    let mut stopped = HashSet::new();
    for _ in 0..LOOKS {
        let found = find()?;
        let fresh: Vec<Seen> = found
            .into_iter()
            .filter(|seen| stopped.insert(seen.which))
            .collect();
        if fresh.is_empty() {
            break;
        }
        tell(&fresh, Signal::STOP);
    }
    let found = find()?;
    tell(&found, Signal::KILL);
    Ok(found.len())
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_hides_nothing() {
        let rest = "S 7 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 1 1";
        let seen = parse(9, &format!("9 (a) R 1 (b) {rest}")).unwrap();
        assert_eq!(
            (seen.parent, seen.which.began, seen.ended),
            (7, 4711, false)
        );
        assert_eq!(parse(9, "9 (a) Z"), None);
        let left =
            |threads| format!("9 (a) Z 7 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 {threads} 0 4711 1");
        assert!(parse(9, &left(1)).unwrap().ended);
        assert!(!parse(9, &left(2)).unwrap().ended, "others go on");
    }

    #[test]
    fn those_beneath_are_found_whatever_their_order() {
        let seen = |pid, parent| Seen {
            which: Which { pid, began: 1 },
            parent,
            ended: false,
        };
        let all = [seen(5, 4), seen(4, 3), seen(3, 1), seen(9, 1), seen(1, 0)];
        let mut found: Vec<i32> = beneath(&all, &[3]).iter().map(|it| it.which.pid).collect();
        found.sort_unstable();
        assert_eq!(found, [4, 5]);
    }

    #[test]
    fn c42_a_number_that_another_process_has_by_now_is_not_struck() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let seen = look(child.id().cast_signed()).unwrap();
        let earlier = Which {
            began: seen.which.began - 1,
            ..seen.which
        };
        signal(earlier, Signal::KILL);
        signal(seen.which, Signal::TERM);
        // What comes first ends it, and nothing else was sent before.
        let ended = child.wait().unwrap();
        assert_eq!(ended.signal(), Some(Signal::TERM.as_raw()));
    }
}
