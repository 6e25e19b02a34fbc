//! The names of branches, and of directories for their worktrees.

use sessionplane_core::domain::place::MAX_BRANCH_BYTES;

use super::WorktreeError;

/// The longest name of a directory that is made of a branch's, in bytes. With a number and what git
/// adds while it writes a ref, it is still a name that every file system has.
const DIRECTORY_BYTES: usize = 200;

/// Whether a branch may be called so, by git's rules.
#[must_use]
pub fn is_branch(name: &str) -> bool {
    gix_validate::reference::branch_name(full(name).as_str().into()).is_ok()
}

/// Refuses what no branch that is made here may be called.
pub(super) fn judge(name: &str) -> Result<(), WorktreeError> {
    let refuse = |problem: &str| Err(WorktreeError::Name(name.to_owned(), problem.to_owned()));
    if name.is_empty() {
        return refuse("it is empty");
    }
    if name.len() > MAX_BRANCH_BYTES {
        let short: String = name.chars().take(20).collect();
        let problem = format!("it has more than {MAX_BRANCH_BYTES} bytes");
        return Err(WorktreeError::Name(short, problem));
    }
    // It would be taken for an option of a command.
    if name.starts_with('-') {
        return refuse("it begins with `-`");
    }
    match gix_validate::reference::branch_name(full(name).as_str().into()) {
        Ok(_) => Ok(()),
        Err(error) => refuse(&error.to_string()),
    }
}

/// The ref of a branch.
pub(super) fn full(name: &str) -> String {
    format!("refs/heads/{name}")
}

/// What the directory of a branch's worktree is called: its name in one step, with nothing in it that
/// a shell or another file system takes for something else.
pub(super) fn directory(branch: &str) -> String {
    let plain = |c: char| match c {
        c if c.is_alphanumeric() || "-_.+=".contains(c) => c,
        _ => '-',
    };
    let name: String = branch.chars().map(plain).collect();
    // Neither hidden nor taken for an option.
    let mut name = match name.trim_start_matches(['-', '.']) {
        "" => "worktree".to_owned(),
        name => name.to_owned(),
    };
    let end = (0..=DIRECTORY_BYTES.min(name.len()))
        .rev()
        .find(|at| name.is_char_boundary(*at));
    name.truncate(end.unwrap_or(0));
    name
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;
    use crate::adapters::boundary;

    #[test]
    fn c45_a_branch_that_git_would_not_have_is_refused_with_why() {
        for bad in [
            "", "-x", "a..b", "a b", "a~1", "a^", "a:b", "a?", "a*", "a[", "a\\b", "/a", "a/",
            "a//b", "a.lock", "a/.b", ".a", "a.", "@{", "a@{b", "HEAD", "a\nb", "a\0b", "a\x7f",
            "../../x", "x/../y",
        ] {
            assert!(judge(bad).is_err(), "{bad:?}");
        }
        assert!(judge(&"a".repeat(MAX_BRANCH_BYTES)).is_ok());
        let long = judge(&"\u{e9}".repeat(MAX_BRANCH_BYTES)).map_err(|error| error.to_string());
        assert!(long.is_err_and(|error| error.contains("256 bytes")));
        for good in [
            "main",
            "fix/the-gate",
            "v1.2",
            "b\u{fc}cher/\u{1f600}",
            "@x",
            "a@b",
        ] {
            assert_eq!(judge(good), Ok(()), "{good}");
        }
    }

    proptest! {
        /// Whatever a branch is called, its directory is one step that leads nowhere else.
        #[test]
        fn c53_b48_a_directory_of_a_branch_is_one_plain_name(branch in "\\PC{1,300}") {
            if judge(&branch).is_ok() {
                let name = directory(&branch);
                prop_assert!(name.len() <= DIRECTORY_BYTES);
                let path = Path::new(&name);
                prop_assert_eq!(path.file_name(), Some(path.as_os_str()));
                prop_assert!(!name.starts_with(['.', '-']) && !name.contains(['~', ':', '\\']));
                let kept = boundary::directory(path);
                prop_assert_eq!(kept.map(|it| it.to_string()), Some(name));
            }
        }
    }
}
