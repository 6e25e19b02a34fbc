//! Which calls of the system are refused to a program, because they reach into processes that are not
//! its own: limits, priorities and processors of others, and the keys of the user.
//!
//! Landlock scopes signals, and everything that `ptrace` guards. It does not know these: a limit of
//! processor time that is set from outside ends a process as surely as a signal. A call is refused with
//! `EPERM`, as if the process were another user's; nothing is killed. What a program does to itself
//! (process 0) goes on.
//!
//! The filter is a list of the kernel's small instructions. Calls have other numbers where a 32-bit
//! program runs on a 64-bit system, and any program can make such calls: each kind has a table.

use std::io;
use std::sync::OnceLock;
use std::thread;

use seccompiler::{apply_filter, sock_filter};

/// Loads a word of what is known of the call.
const LOAD: u16 = 0x20;
/// Jumps over some where the word is the operand, and over others where it is not.
const IF_EQUAL: u16 = 0x15;
/// The same, where it is not less.
const IF_AT_LEAST: u16 = 0x35;
/// Jumps over some.
const JUMP: u16 = 0x05;
/// Returns the operand.
const RETURN: u16 = 0x06;

/// The call is made.
const ALLOW: u32 = 0x7fff_0000;
/// It fails with `EPERM`.
const REFUSE: u32 = 0x0005_0001;
/// It fails with `ENOSYS`.
const UNKNOWN: u32 = 0x0005_0026;

/// Where the number of the call is.
const NUMBER: u32 = 0;
/// Which kind of calls it is of.
const KIND: u32 = 4;

/// The lower word of an argument. Process numbers and selectors have no more.
const fn low(argument: u32) -> u32 {
    16 + 8 * argument
}

/// The upper word.
const fn high(argument: u32) -> u32 {
    low(argument) + 4
}

/// A call is let through where all words of one of these are as they say.
type Own = &'static [&'static [(u32, u32)]];

/// Process 0: whoever calls.
const SELF: Own = &[&[(low(0), 0)]];
/// Whoever calls, or limits that are only read.
const SELF_OR_READ: Own = &[&[(low(0), 0)], &[(low(2), 0), (high(2), 0)]];
/// Whoever calls, or its process group, which is in a session of the program's own. Never the user's.
const SELF_OR_GROUP_FROM_0: Own = &[&[(low(0), 0), (low(1), 0)], &[(low(0), 1), (low(1), 0)]];
/// The same of a call that counts what is meant from 1.
const SELF_OR_GROUP_FROM_1: Own = &[&[(low(0), 1), (low(1), 0)], &[(low(0), 2), (low(1), 0)]];
/// Nobody needs it to work on files.
const NEVER: Own = &[];

/// What is judged, in the order of the tables' numbers.
const JUDGED: [Own; 10] = [
    SELF_OR_READ,         // prlimit64
    SELF_OR_GROUP_FROM_0, // setpriority
    SELF_OR_GROUP_FROM_1, // ioprio_set
    SELF,                 // sched_setaffinity
    SELF,                 // sched_setscheduler
    SELF,                 // sched_setparam
    SELF,                 // sched_setattr
    NEVER,                // add_key
    NEVER,                // request_key
    NEVER,                // keyctl
];

/// A kind of calls: its name in the kernel, the numbers of what is judged, and from which number on
/// there is nothing that anybody should need.
struct Kind {
    name: u32,
    numbers: [u32; JUDGED.len()],
    end: Option<u32>,
}

#[cfg(target_arch = "x86_64")]
const KINDS: &[Kind] = &[
    Kind {
        name: 0xc000_003e,
        numbers: [302, 141, 251, 203, 144, 142, 314, 248, 249, 250],
        // Those with narrow pointers (x32) are the same calls once more.
        end: Some(0x4000_0000),
    },
    Kind {
        name: 0x4000_0003,
        numbers: [340, 97, 289, 241, 156, 154, 351, 286, 287, 288],
        end: None,
    },
];

#[cfg(target_arch = "aarch64")]
const KINDS: &[Kind] = &[
    Kind {
        name: 0xc000_00b7,
        numbers: [261, 140, 30, 122, 119, 118, 274, 217, 218, 219],
        end: None,
    },
    Kind {
        name: 0x4000_0028,
        numbers: [369, 97, 314, 241, 156, 154, 380, 309, 310, 311],
        end: None,
    },
];

/// Elsewhere the numbers are not known, and nothing is claimed.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const KINDS: &[Kind] = &[];

/// Puts this thread, and all that it starts from here on, under the filter. It cannot be undone.
///
/// # Errors
/// When this system has no such filters, or does not let one be set.
pub(super) fn enter() -> io::Result<()> {
    if KINDS.is_empty() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    apply_filter(&filter()).map_err(io::Error::other)
}

/// Whether [`enter`] would do it: a thread that ends at once has tried it.
pub(super) fn is_had() -> bool {
    static HAD: OnceLock<bool> = OnceLock::new();
    *HAD.get_or_init(|| {
        let tried = thread::Builder::new().spawn(|| enter().is_ok());
        tried.is_ok_and(|tried| tried.join().unwrap_or_default())
    })
}

fn filter() -> Vec<sock_filter> {
    let mut filter = vec![load(KIND)];
    for kind in KINDS {
        let judged = kind.judged();
        // Longer than one jump reaches: over a jump that always is.
        filter.push(either(IF_EQUAL, kind.name, 1, 0));
        filter.push(over(judged.len()));
        filter.extend(judged);
    }
    filter.push(returned(REFUSE));
    filter
}

impl Kind {
    fn judged(&self) -> Vec<sock_filter> {
        let mut judged = vec![load(NUMBER)];
        if let Some(end) = self.end {
            judged.extend([either(IF_AT_LEAST, end, 0, 1), returned(UNKNOWN)]);
        }
        for (number, own) in self.numbers.iter().zip(JUDGED) {
            let rule = rule(own);
            judged.push(either(IF_EQUAL, *number, 0, length(&rule)));
            judged.extend(rule);
        }
        judged.push(returned(ALLOW));
        judged
    }
}

/// What is done where it is this call. Every way through it returns.
fn rule(own: Own) -> Vec<sock_filter> {
    let mut rule = Vec::new();
    for words in own {
        let mut way = vec![returned(ALLOW)];
        for (word, value) in words.iter().rev() {
            way.insert(0, either(IF_EQUAL, *value, 0, length(&way)));
            way.insert(0, load(*word));
        }
        rule.extend(way);
    }
    rule.push(returned(REFUSE));
    rule
}

/// The tables are constants, and the rules of a few instructions.
fn length(instructions: &[sock_filter]) -> u8 {
    u8::try_from(instructions.len()).unwrap_or(u8::MAX)
}

fn load(word: u32) -> sock_filter {
    instruction(LOAD, 0, 0, word)
}

fn either(code: u16, operand: u32, then: u8, otherwise: u8) -> sock_filter {
    instruction(code, then, otherwise, operand)
}

fn over(instructions: usize) -> sock_filter {
    let by = u32::try_from(instructions).unwrap_or(u32::MAX);
    instruction(JUMP, 0, 0, by)
}

fn returned(what: u32) -> sock_filter {
    instruction(RETURN, 0, 0, what)
}

fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel would answer.
    fn answer(kind: u32, number: u32, arguments: [u64; 3]) -> u32 {
        let mut known = vec![number, kind, 0, 0];
        for argument in arguments {
            let (high, low) = (argument >> 32, argument & u64::from(u32::MAX));
            known.extend([low, high].map(|word| u32::try_from(word).unwrap()));
        }
        let (filter, mut at, mut word) = (filter(), 0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = filter[at];
            at += 1;
            let is = match code {
                LOAD => {
                    word = known[k as usize / 4];
                    continue;
                }
                RETURN => return k,
                JUMP => {
                    at += k as usize;
                    continue;
                }
                IF_EQUAL => word == k,
                IF_AT_LEAST => word >= k,
                other => panic!("{other:#x}"),
            };
            at += usize::from(if is { jt } else { jf });
        }
    }

    /// What is let through of each call that is judged, and what is not.
    #[test]
    fn c57_every_kind_of_call_is_judged_by_what_it_means() {
        const FAR: u64 = 1 << 40;
        for kind in KINDS {
            let ask = |call: usize, arguments| answer(kind.name, kind.numbers[call], arguments);
            // Limits: others' are read, one's own are set.
            assert_eq!(ask(0, [0, 0, 7]), ALLOW);
            assert_eq!(ask(0, [9, 0, 0]), ALLOW);
            assert_eq!(ask(0, [9, 0, 7]), REFUSE);
            assert_eq!(ask(0, [9, 0, FAR]), REFUSE);
            for (call, first) in [(1, 0), (2, 1)] {
                for which in [first, first + 1] {
                    assert_eq!(ask(call, [which, 0, 7]), ALLOW);
                    assert_eq!(ask(call, [which, 9, 7]), REFUSE);
                }
                assert_eq!(ask(call, [first + 2, 0, 7]), REFUSE, "all of the user's");
            }
            for call in 3..7 {
                // The kernel reads the lower half of a number.
                assert_eq!(ask(call, [FAR, 8, 7]), ALLOW);
                assert_eq!(ask(call, [FAR + 9, 8, 7]), REFUSE);
            }
            for call in 7..JUDGED.len() {
                assert_eq!(ask(call, [0; 3]), REFUSE);
            }
            assert_eq!(answer(kind.name, 1, [9, 9, 9]), ALLOW);
            if let Some(end) = kind.end {
                assert_eq!(answer(kind.name, end + kind.numbers[0], [9, 9, 9]), UNKNOWN);
            }
        }
        assert_eq!(
            answer(1, 1, [0; 3]),
            REFUSE,
            "calls of which nothing is known"
        );
    }

    #[test]
    fn the_numbers_are_this_systems() {
        use nix::libc;
        let here = [
            libc::SYS_prlimit64,
            libc::SYS_setpriority,
            libc::SYS_ioprio_set,
            libc::SYS_sched_setaffinity,
            libc::SYS_sched_setscheduler,
            libc::SYS_sched_setparam,
            libc::SYS_sched_setattr,
            libc::SYS_add_key,
            libc::SYS_request_key,
            libc::SYS_keyctl,
        ];
        assert_eq!(KINDS[0].numbers.map(i64::from), here);
    }
}
