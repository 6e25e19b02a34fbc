//! Commits, newest first.

use std::collections::{BinaryHeap, HashSet};
use std::sync::atomic::AtomicBool;

use super::GitError;
use super::objects::{OBJECT_BYTES, Sort};
use super::oid::Oid;
use super::repository::Git;

/// The most parents of a commit that are gone after.
const PARENTS: usize = 16;

/// A commit, as a list of them shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Commit {
    /// Its name.
    pub oid: Oid,
    /// Who wrote it: a name, without the address.
    pub author: String,
    /// When it was written, as it was there: seconds since 1970 and minutes east of UTC.
    pub written: (i64, i32),
    /// The first line of its message.
    pub subject: String,
    pub(super) committed: i64,
    pub(super) tree: Oid,
    parents: Vec<Oid>,
}

/// The newest commits.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Log {
    /// Newest first.
    pub commits: Vec<Commit>,
    /// There are older ones.
    pub more: bool,
    /// History goes on, but not in what is here: a shallow clone, or objects elsewhere.
    pub broken: bool,
}

/// A commit in the order in which they are told.
#[derive(PartialEq, Eq)]
struct ByTime(Commit);

impl Ord for ByTime {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |this: &Self| (this.0.committed, this.0.oid);
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for ByTime {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Git {
    /// The newest commits of what is checked out, at most so many. Blocks.
    ///
    /// # Errors
    /// When the head or a commit cannot be read.
    pub fn log(&self, most: usize, stop: &AtomicBool) -> Result<Log, GitError> {
        let mut log = Log::default();
        let mut waiting = BinaryHeap::new();
        let mut seen = HashSet::new();
        let head = self.head(stop)?.commit;
        if let Some(oid) = head {
            seen.insert(oid);
            let commit = self.commit(oid, stop)?;
            waiting.push(ByTime(commit.ok_or(GitError::Absent("last commit"))?));
        }
        while let Some(ByTime(commit)) = waiting.pop() {
            if log.commits.len() == most {
                log.more = true;
                break;
            }
            for parent in commit.parents.iter().filter(|parent| seen.insert(**parent)) {
                match self.commit(*parent, stop)? {
                    Some(parent) => waiting.push(ByTime(parent)),
                    None => log.broken = true,
                }
            }
            log.commits.push(commit);
        }
        Ok(log)
    }

    /// A commit, if it is there.
    pub(super) fn commit(&self, oid: Oid, stop: &AtomicBool) -> Result<Option<Commit>, GitError> {
        let content = self
            .objects
            .content(oid, Sort::Commit, OBJECT_BYTES, stop)?;
        let commit = content.map(|content| parse(oid, &content));
        commit
            .map(|commit| commit.ok_or(GitError::Damaged("commit")))
            .transpose()
    }
}

pub(super) fn parse(oid: Oid, content: &[u8]) -> Option<Commit> {
    let text = String::from_utf8_lossy(content);
    let (header, message) = text.split_once("\n\n").unwrap_or((&text, ""));
    let mut commit = Commit {
        oid,
        author: String::new(),
        written: (0, 0),
        subject: message.trim_start().lines().next().unwrap_or("").to_owned(),
        committed: 0,
        tree: oid,
        parents: Vec::new(),
    };
    let mut has_tree = false;
    for line in header.lines() {
        match line.split_once(' ')? {
            ("tree", name) => {
                commit.tree = Oid::parse(name)?;
                has_tree = true;
            }
            ("parent", name) if commit.parents.len() < PARENTS => {
                commit.parents.push(Oid::parse(name)?);
            }
            ("author", who) => (commit.author, commit.written) = person(who),
            ("committer", who) => commit.committed = person(who).1.0,
            // A signature goes on over lines that begin with a space.
            _ => {}
        }
    }
    has_tree.then_some(commit)
}

/// A name and a time: `Name <address> 1700000000 +0100`.
fn person(text: &str) -> (String, (i64, i32)) {
    let (name, rest) = text.split_once('<').unwrap_or((text, ""));
    let (_, time) = rest.rsplit_once('>').unwrap_or(("", ""));
    let mut words = time.split_whitespace();
    let seconds = words.next().and_then(|word| word.parse().ok());
    let zone = words.next().and_then(|word| word.parse::<i32>().ok());
    let zone = zone.filter(|zone| zone.abs() < 2400).unwrap_or(0);
    let minutes = zone / 100 * 60 + zone % 100;
    (name.trim().to_owned(), (seconds.unwrap_or(0), minutes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_commits_are_read_or_told() {
        let oid = Oid([7; 20]);
        let tree = format!("tree {oid}\n");
        let read = |rest: &str| parse(oid, format!("{tree}{rest}").as_bytes());
        let signed = "author A B <a@b> 86400 -0130\ncommitter C <c> 5 +0000\ngpgsig -----\n more\n\nsubject\n\nbody";
        let commit = read(signed).expect("a commit");
        assert_eq!(commit.author, "A B");
        assert_eq!(commit.written, (86400, -90));
        assert_eq!((commit.subject.as_str(), commit.committed), ("subject", 5));
        let odd = read("author nobody\n\n").expect("a commit");
        assert_eq!((odd.author.as_str(), odd.subject.as_str()), ("nobody", ""));
        assert_eq!(odd.written, (0, 0));
        assert_eq!(read("parent abc\n\n"), None);
        assert_eq!(parse(oid, b"author x\n\n"), None);
        assert_eq!(parse(oid, b""), None);
    }
}
