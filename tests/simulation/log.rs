//! What a world tells: every observation as a line, their fingerprint, and the first thing that was
//! wrong.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use crate::executor::{Executor, lock};
use crate::rng::Fingerprint;

/// Lines that are kept to be printed when something is wrong.
const KEPT: usize = 60;
/// A line is printed up to here; its fingerprint is that of the whole.
const WIDTH: usize = 360;

/// The log. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Log {
    executor: Executor,
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    fingerprint: Fingerprint,
    lines: u64,
    kept: VecDeque<String>,
    wrong: Option<String>,
    printing: bool,
}

impl Log {
    pub(crate) fn new(executor: Executor) -> Self {
        let inner = Inner {
            fingerprint: Fingerprint::new(),
            lines: 0,
            kept: VecDeque::new(),
            wrong: None,
            printing: std::env::var_os("TRACE").is_some(),
        };
        Self {
            executor,
            inner: Arc::new(Mutex::new(inner)),
        }
    }

    /// Tells what happened.
    pub(crate) fn tell(&self, who: &str, what: impl std::fmt::Debug) {
        let mut line = String::new();
        let at = self.executor.elapsed().as_micros();
        // Writing to a string cannot fail.
        let _ = write!(line, "{at:>10} {who} {what:?}");
        let mut inner = lock(&self.inner);
        inner.fingerprint.add(&line);
        inner.lines += 1;
        if line.len() > WIDTH {
            let end = (0..=WIDTH).rev().find(|at| line.is_char_boundary(*at));
            line.truncate(end.unwrap_or(0));
            line.push_str(" ...");
        }
        if inner.printing {
            println!("{line}");
        }
        inner.kept.push_back(line);
        if inner.kept.len() > KEPT {
            inner.kept.pop_front();
        }
    }

    /// Something is wrong. The first such thing counts.
    pub(crate) fn wrong(&self, what: impl Into<String>) {
        let what = what.into();
        self.tell("WRONG", &what);
        lock(&self.inner).wrong.get_or_insert(what);
    }

    /// What holds, or it is wrong.
    pub(crate) fn ensure(&self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.wrong(what());
        }
    }

    /// The first thing that was wrong, after what led to it.
    pub(crate) fn verdict(&self) -> Option<String> {
        let inner = lock(&self.inner);
        let wrong = inner.wrong.as_ref()?;
        let kept: Vec<&str> = inner.kept.iter().map(String::as_str).collect();
        Some(format!("{}\n\n{wrong}", kept.join("\n")))
    }

    pub(crate) fn fingerprint(&self) -> (Fingerprint, u64) {
        let inner = lock(&self.inner);
        (inner.fingerprint, inner.lines)
    }
}
