//! The agent's git tools, and what it says of a repository.

use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::json;
use sessionplane_core::domain::time::date_of;

use super::about::PLAIN;
use super::files::Folder;
use super::page::{shown, shown_path};
use super::tree::files_in;
use super::voice::{Stop, Voice};
use crate::adapters::git::{Change, Changes, Commit, Git, GitError, Head, Log, Status};

/// How long a repository is read.
const LONGEST: Duration = Duration::from_secs(10);
/// How many paths of a sort are told.
const TOLD: usize = 12;

/// What is checked out, and its newest commit.
pub(super) type Tip = (Head, Option<Commit>);

/// Reads what is checked out.
pub(super) async fn branch(
    voice: &mut Voice,
    folder: &Folder,
) -> Result<Result<Tip, GitError>, Stop> {
    let read = |git: &Git, stop: &AtomicBool| tip(git, stop);
    tool(voice, folder, "git_branch", json!({}), read, |(head, _)| {
        format!("{}\n", at(head))
    })
    .await
}

/// Compares the folder with what is checked out.
pub(super) async fn status(
    voice: &mut Voice,
    folder: &Folder,
) -> Result<Result<(Status, Option<Commit>), GitError>, Stop> {
    let read = |git: &Git, stop: &AtomicBool| {
        let (_, commit) = tip(git, stop)?;
        Ok((git.status(stop)?, commit))
    };
    tool(
        voice,
        folder,
        "git_status",
        json!({}),
        read,
        |(status, _)| {
            format!(
                "{}; {} staged, {} changed, {} unknown\n",
                at(&status.head),
                status.staged.count,
                status.unstaged.count,
                status.unknown_count,
            )
        },
    )
    .await
}

/// Reads the newest commits.
pub(super) async fn log(
    voice: &mut Voice,
    folder: &Folder,
    most: usize,
) -> Result<Result<(Head, Log), GitError>, Stop> {
    let read = move |git: &Git, stop: &AtomicBool| Ok((git.head(stop)?, git.log(most, stop)?));
    tool(
        voice,
        folder,
        "git_log",
        json!({"most": most}),
        read,
        |(_, log)| log.commits.iter().map(one).collect(),
    )
    .await
}

async fn tool<T: Send + 'static>(
    voice: &mut Voice,
    folder: &Folder,
    name: &str,
    input: serde_json::Value,
    read: impl FnOnce(&Git, &AtomicBool) -> Result<T, GitError> + Send + 'static,
    told: impl Fn(&T) -> String,
) -> Result<Result<T, GitError>, Stop> {
    let call = voice.call(name, &input).await?;
    voice.progress(&call, "reading .git\n".to_owned()).await?;
    let folder = folder.clone();
    let work = move |stop: &AtomicBool| read(&folder.git(stop)?, stop);
    let result = voice.work_within(LONGEST, work).await?;
    let output = match &result {
        Ok(read) => told(read),
        Err(error) => format!("{error}\n"),
    };
    voice.give_back(call, output, result.is_err()).await?;
    Ok(result)
}

fn tip(git: &Git, stop: &AtomicBool) -> Result<Tip, GitError> {
    let head = git.head(stop)?;
    let log = git.log(1, stop)?;
    Ok((head, log.commits.into_iter().next()))
}

/// What is said of a repository that cannot be read.
pub(super) fn unread(error: &GitError) -> String {
    format!("I cannot tell that from git: {error}.\n\n{PLAIN}")
}

/// What is said of what is checked out.
pub(super) fn branch_words((head, commit): &Tip) -> String {
    format!("{}\n{PLAIN}", standing(head, commit.as_ref()))
}

/// What is said of what is changed.
pub(super) fn status_words(status: &Status, commit: Option<&Commit>) -> String {
    let mut text = standing(&status.head, commit);
    text.push('\n');
    let mut is_clean = status.conflicted.is_empty();
    if !is_clean {
        let conflicted = status.conflicted.iter().map(|path| shown_path(path));
        list(
            &mut text,
            "In conflict",
            status.conflicted.len(),
            conflicted,
        );
    }
    for (title, changes) in [("Staged", &status.staged), ("Changed", &status.unstaged)] {
        is_clean &= changes.count == 0;
        list(&mut text, title, changes.count, changed(changes));
    }
    is_clean &= status.unknown_count == 0;
    let unknown = status.unknown.iter().map(|path| shown_path(path));
    list(&mut text, "Not known to git", status.unknown_count, unknown);
    if is_clean {
        text.push_str("Nothing is changed: all files are as in that commit.\n\n");
    }
    if status.unsure > 0 {
        let _ = writeln!(
            text,
            "I did not compare {}, which may be changed: too large, a link, or not readable.\n",
            files_in(status.unsure)
        );
    }
    if status.cut {
        text.push_str("The folder is large: files that git does not know may be missing here.\n\n");
    }
    text.push_str(PLAIN);
    text
}

/// What is said of the newest commits.
pub(super) fn log_words(head: &Head, log: &Log) -> String {
    if log.commits.is_empty() {
        return format!("{}, which has no commits yet.\n\n{PLAIN}", at(head));
    }
    let mut text = match log.commits.len() {
        1 => format!("{}. The last commit:\n\n", at(head)),
        count => format!("{}. The last {count} commits:\n\n", at(head)),
    };
    for commit in &log.commits {
        let _ = write!(text, "- {}", one(commit));
    }
    text.push('\n');
    if log.broken {
        text.push_str(
            "Older ones are not in this folder: the history was fetched in part, or \
                       lies elsewhere.\n\n",
        );
    }
    text.push_str(PLAIN);
    text
}

/// A commit in a line.
pub(super) fn one(commit: &Commit) -> String {
    let (name, date) = (commit.oid.short(), date(commit.written));
    let (author, subject) = (shown(&commit.author), shown(&commit.subject));
    format!("`{name}` {date} {author}: {subject}\n")
}

/// What is checked out, in a line.
pub(super) fn standing(head: &Head, commit: Option<&Commit>) -> String {
    match commit {
        Some(commit) => format!("{}, at {}", at(head), one(commit)),
        None => format!("{}, which has no commits yet.\n", at(head)),
    }
}

/// What is checked out, as a sentence begins with it.
fn at(head: &Head) -> String {
    match (&head.branch, head.commit) {
        (Some(branch), _) => format!("On branch `{}`", shown(branch)),
        (None, Some(commit)) => format!("On no branch, but commit `{}`", commit.short()),
        (None, None) => "On no branch".to_owned(),
    }
}

fn changed(changes: &Changes) -> impl Iterator<Item = String> {
    changes.told.iter().map(|(path, change)| {
        let what = match change {
            Change::Added => "new",
            Change::Modified => "changed",
            Change::Deleted => "deleted",
        };
        format!("{} ({what})", shown_path(path))
    })
}

fn list(text: &mut String, title: &str, count: usize, paths: impl Iterator<Item = String>) {
    if count == 0 {
        return;
    }
    let _ = writeln!(text, "{title} ({count}):");
    for path in paths.take(TOLD) {
        let _ = writeln!(text, "- {path}");
    }
    if count > TOLD {
        let _ = writeln!(text, "- and {} more", count - TOLD);
    }
    text.push('\n');
}

/// A day as it was where it was written.
fn date((seconds, minutes): (i64, i32)) -> String {
    let local = seconds.saturating_add(i64::from(minutes) * 60);
    let (year, month, day) = date_of(local.div_euclid(86_400));
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (seconds, minutes, expected) in [
            (0, 0, "1970-01-01"),
            (951_782_400, 0, "2000-02-29"),
            (1_709_164_799, 0, "2024-02-28"),
            (1_709_164_799, 60, "2024-02-29"),
            (1_704_067_200, -60, "2023-12-31"),
            (-86_400, 0, "1969-12-31"),
        ] {
            assert_eq!(date((seconds, minutes)), expected);
        }
        let _no_panic = (date((i64::MAX, 840)), date((i64::MIN, -840)));
    }
}
