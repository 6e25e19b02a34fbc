//! `sessionctl new`.

use sessionplane_core::contract::fleet::{CreateSession, Fleet as _, ListSessions};
use sessionplane_core::contract::{CallOptions, Parent};
use sessionplane_core::domain::fleet::labels::Labels;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::SessionRef;
use sessionplane_core::domain::place::{Directory, Place};

use crate::cli::args::{NewArgs, quoted};
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::{self, About, Effect};
use crate::cli::json;
use crate::cli::program::PROGRAM;
use crate::cli::render::named;
use crate::cli::screen::Screen;
use crate::cli::session::shell_word;

/// The folder in which a server makes working trees.
const HOME: &str = ".worktrees";
/// Sessions of one working tree that are looked for at most, and told at most.
const PAGE: u32 = 100;
const MOST: usize = 5;

pub(super) async fn run(
    args: NewArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let parent = match args.parent {
        Some(session) => {
            let entry = match args.from {
                Some(place) => Some(place.id(&session, context, screen).await?),
                None => None,
            };
            Some(Parent { session, entry })
        }
        None => None,
    };
    let (branch, asked) = (args.worktree.clone(), args.dir.clone());
    let request = CreateSession {
        name: args.name.clone(),
        external_key: args.key.clone(),
        agent: args.agent,
        labels: Labels::of(args.label).map_err(|error| Stop::usage(error.to_string()))?,
        priority: args.priority.unwrap_or_default(),
        paused: args.paused,
        workspace: args.workspace,
        directory: args.dir,
        worktree_branch: args.worktree,
        parent,
    };
    let call = context.client.create_session(request, context.call());
    let created = context.patiently(screen, Effect::Writes, call).await?;
    let (name, key) = (
        args.name.map(SessionRef::Name),
        args.key.map(SessionRef::ExternalKey),
    );
    let created = created.map_err(|error| {
        // Who has what is taken is told.
        let mut fields = error.violations.iter();
        let by_key = fields.any(|violation| violation.field == "external_key");
        let called = if by_key { &key } else { &name };
        let about = called.as_ref().map_or(About::Nothing, About::Session);
        context.stop(error, about, Effect::Writes)
    })?;
    if context.globals.json {
        screen.json(&json::session(&created))?;
        return Ok(Exit::Done);
    }
    screen.line(&words(&created))?;
    if let Some(branch) = &branch {
        let told = tree(&created, branch, context, screen).await?;
        told.map_or(Ok(()), |told| screen.notice(&told))?;
        let top = asked.and_then(|asked| at_the_top(&created, &asked));
        top.map_or(Ok(()), |top| screen.notice(&top))?;
    }
    let word = hint::word(&named(&created));
    let next = if created.paused {
        format!("let it go on: {PROGRAM} resume {word}")
    } else {
        format!("give it work: {PROGRAM} invoke {word} \"...\"")
    };
    screen.aside(&next)?;
    Ok(Exit::Done)
}

fn words(session: &SessionSummary) -> String {
    let mut words = vec![format!("created {}", named(session))];
    if session.name.is_some() || session.external_key.is_some() {
        words.push(session.id.to_string());
    }
    words.push(format!("agent {}", session.agent));
    if let Some(place) = &session.place {
        words.push(format!("in {}:{}", place.workspace, place.directory));
    }
    words.join(", ")
}

/// What is to be known of the working tree that a branch had already: nobody else may be disturbed
/// who did not look. A list that cannot be had is no failure: the session is made.
async fn tree(
    created: &SessionSummary,
    branch: &str,
    context: &Context,
    screen: &mut Screen,
) -> Result<Option<String>, Stop> {
    let Some(place) = &created.place else {
        return Ok(None);
    };
    let request = ListSessions {
        filter: format!(
            "workspace = {} AND directory = {}",
            quoted(place.workspace.as_str()),
            quoted(place.directory.as_str())
        ),
        page_size: PAGE,
        ..ListSessions::default()
    };
    let call = context
        .client
        .list_sessions(request, CallOptions::default());
    let page = context.patiently(screen, Effect::Reads, call).await?;
    let others = page.map_or_else(|_| Vec::new(), |page| page.sessions);
    let others = others.iter().filter(|other| other.id != created.id);
    let others: Vec<_> = others.map(|other| named(other).to_string()).collect();
    Ok(shared(branch, place, &others))
}

/// That a session works at the top of its working tree, where a directory within the repository was
/// asked for; and how it gets there, where that can be told.
fn at_the_top(created: &SessionSummary, asked: &Directory) -> Option<String> {
    let place = created.place.as_ref()?;
    let (top, asked) = (place.directory.as_str(), asked.as_str());
    let (workspace, word) = (&place.workspace, hint::word(&named(created)));
    let root = match top.split_once(HOME) {
        Some((root, _)) => root,
        // The main checkout is the repository itself.
        None if top == "." => "",
        None => &format!("{top}/"),
    };
    let within = asked.strip_prefix(root)?;
    if within.is_empty() || within == "." || asked == top {
        return None;
    }
    let target = if top == "." {
        within.to_owned()
    } else {
        format!("{top}/{within}")
    };
    let target = shell_word(&target);
    Some(format!(
        "! it works in {workspace}:{top}, the top of the working tree, not in {within} of it\n  \
         move it: {PROGRAM} cd {word} {target}"
    ))
}

fn shared(branch: &str, place: &Place, others: &[String]) -> Option<String> {
    let (workspace, directory) = (&place.workspace, &place.directory);
    let has = format!("! branch {branch} has its working tree in {workspace}:{directory} already");
    // Those that are made for sessions are in this folder.
    let is_made = directory.as_str().split('/').any(|part| part == HOME);
    let more = others.len().saturating_sub(MOST);
    let shown = &others[..others.len().min(MOST)];
    match (shown, more) {
        ([], _) if is_made => None,
        ([], _) => Some(format!("{has}; that one is used")),
        (shown, 0) => Some(format!("{has}; it is shared with {}", shown.join(", "))),
        (shown, more) => {
            let shown = shown.join(", ");
            Some(format!("{has}; it is shared with {shown} and {more} more"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::testing::session;

    #[test]
    fn c53_who_asked_for_a_directory_of_the_repository_is_told_that_it_works_at_the_top() {
        let told = |top: &str, asked: &str| {
            let directory = Directory::parse(top).unwrap();
            let workspace = "home".parse().unwrap();
            let created = SessionSummary {
                name: Some("docs".parse().unwrap()),
                place: Some(Place {
                    workspace,
                    directory,
                }),
                ..session(1)
            };
            at_the_top(&created, &Directory::parse(asked).unwrap())
        };
        assert_eq!(
            told(".worktrees/foo", "docs").as_deref(),
            Some(
                "! it works in home:.worktrees/foo, the top of the working tree, not in docs of it\n  \
                 move it: sessionctl cd docs .worktrees/foo/docs"
            )
        );
        let beneath = told("repo/.worktrees/foo", "repo/docs/guide").unwrap();
        assert!(
            beneath.ends_with("cd docs repo/.worktrees/foo/docs/guide"),
            "{beneath}"
        );
        let main = told(".", "docs").unwrap();
        assert!(main.ends_with("cd docs docs"), "{main}");
        for (top, asked) in [
            ("repo/.worktrees/foo", "repo"),
            (".worktrees/foo", "."),
            ("docs", "docs"),
            ("elsewhere", "docs"),
        ] {
            assert_eq!(told(top, asked), None, "{top}, {asked}");
        }
    }

    #[test]
    fn c53_a_working_tree_that_a_branch_had_already_is_told_with_those_who_share_it() {
        let told = |directory: &str, others: usize| {
            let place = Place {
                workspace: "home".parse().unwrap(),
                directory: Directory::parse(directory).unwrap(),
            };
            let others: Vec<_> = (1..=others).map(|number| format!("s{number}")).collect();
            shared("fix/flaky", &place, &others)
        };
        assert_eq!(told(".worktrees/fix-flaky", 0), None, "a new one");
        let has = "! branch fix/flaky has its working tree in home:";
        assert_eq!(
            told(".", 0),
            Some(format!("{has}. already; that one is used"))
        );
        assert_eq!(
            told("x/.worktrees/fix-flaky", 2),
            Some(format!(
                "{has}x/.worktrees/fix-flaky already; it is shared with s1, s2"
            ))
        );
        let many = told(".", 7).unwrap();
        assert!(many.ends_with("s4, s5 and 2 more"), "{many}");
    }
}
