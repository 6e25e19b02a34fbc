//! Reading the fleet page by page, and the sessions that are called nearly so. Knows no terminal but
//! to tell that it waits.

use std::collections::HashSet;
use std::time::Duration;

use sessionplane_core::contract::CallOptions;
use sessionplane_core::contract::fleet::{
    Fleet as _, FleetInteraction, ListInteractions, ListSessions, SessionOrder,
};
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::SessionName;

use super::args::quoted;
use super::context::Context;
use super::exit::{Exit, Stop};
use super::hint::{About, Effect};
use super::render::in_order;
use super::screen::Screen;
use crate::backoff::Backoff;
use crate::clock::instant;
use crate::connection::Client;
use crate::fleet_watch::FleetWatchOptions;

/// Most sessions, or questions, that one page is asked for.
const PAGE: u32 = 1000;
/// Sessions that are read at most to find which of them come first.
const MOST_SESSIONS: usize = 10_000;
/// Questions that are listed at most.
const MOST_QUESTIONS: usize = 10_000;
/// Names that are looked at for one that is nearly so, at most.
const NAMES: u32 = 1000;
/// How long who has mistyped a name waits for the right one.
const BRIEFLY: Duration = Duration::from_secs(2);
/// Sessions that are watched at most: all of them are held.
const MOST_WATCHED: usize = 50_000;
/// How much two names must be alike, of 1.
const LIKENESS: f64 = 0.85;

/// How a command watches that is left running: however long its server is away, it is there again when
/// that is. Whoever called no server at all is told so soon.
pub(crate) fn watching(filter: String, opening: Duration) -> FleetWatchOptions {
    FleetWatchOptions {
        filter,
        open_deadline: opening,
        reconnect: Backoff {
            attempts: u32::MAX,
            ..Backoff::STREAMS
        },
    }
}

/// Refuses to hold more sessions than there is room for.
pub(crate) fn watchable(sessions: usize) -> Result<(), Stop> {
    if sessions <= MOST_WATCHED {
        return Ok(());
    }
    let words = format!(
        "more than {MOST_WATCHED} sessions are wanted, and no more are watched at a time\n  \
         leave out those at rest: --filter 'NOT phase = DORMANT'\n  \
         or some others:          --label, --agent, --phase"
    );
    Err(Stop::failed(Exit::Failed, words))
}

/// The sessions that a filter wants as people want to see them, at most `limit`; and whether there
/// are more.
///
/// The server tells them by what they are at, whatever their priority, so that the first `limit` of
/// them would not be those of the whole list. So all are read, as long as there are not too many and
/// it does not take longer than `patience`.
pub(crate) async fn sessions(
    filter: String,
    limit: usize,
    patience: Duration,
    context: &Context,
    screen: &mut Screen,
) -> Result<(Vec<SessionSummary>, bool), Stop> {
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    let (begun, most) = (instant(), limit.max(MOST_SESSIONS));
    let mut request = ListSessions {
        filter,
        order: SessionOrder::Attention,
        page_size: PAGE,
        ..ListSessions::default()
    };
    let unread = loop {
        let call = context
            .client
            .list_sessions(request.clone(), CallOptions::default());
        let page = context.patiently(screen, Effect::Reads, call).await?;
        let page = page.map_err(|error| context.stop(error, About::Nothing, Effect::Reads))?;
        // One that changes between two pages may be told twice.
        let sessions = page.sessions.into_iter();
        found.extend(sessions.filter(|session| seen.insert(session.id)));
        let is_late = found.len() >= limit && begun.elapsed() >= patience;
        if page.next.is_none() || found.len() >= most || is_late {
            break page.next.is_some();
        }
        request.page_token = page.next;
    };
    in_order(&mut found);
    let more = unread || found.len() > limit;
    found.truncate(limit);
    Ok((found, more))
}

/// What the runs of these sessions ask, oldest first; and whether there is more.
pub(crate) async fn questions(
    filter: String,
    context: &Context,
    screen: &mut Screen,
) -> Result<(Vec<FleetInteraction>, bool), Stop> {
    let mut asked = Vec::new();
    let mut request = ListInteractions {
        filter,
        page_size: PAGE,
        ..ListInteractions::default()
    };
    loop {
        let call = context
            .client
            .list_interactions(request.clone(), CallOptions::default());
        let page = context.patiently(screen, Effect::Reads, call).await?;
        let page = page.map_err(|error| context.stop(error, About::Nothing, Effect::Reads))?;
        asked.extend(page.interactions);
        let more = page.next.is_some();
        if !more || asked.len() >= MOST_QUESTIONS {
            return Ok((asked, more));
        }
        request.page_token = page.next;
    }
}

/// Names of sessions that a mistyped one may be meant for, the likeliest first. Nothing is said of
/// why there are none: this is a courtesy.
pub(crate) async fn near(client: &Client, name: &SessionName) -> Vec<SessionName> {
    let told = tokio::time::timeout(BRIEFLY, names(client, name)).await;
    let Ok(Ok(names)) = told else {
        return Vec::new();
    };
    nearest(name, names)
}

/// Names that begin as it does, and those of whatever is in use.
async fn names(client: &Client, name: &SessionName) -> Result<Vec<SessionName>, CallError> {
    let first: String = name.as_str().chars().take(1).collect();
    let beginning = ListSessions {
        filter: format!("name = {}", quoted(&format!("{first}*"))),
        order: SessionOrder::Name,
        page_size: NAMES,
        page_token: None,
    };
    let in_use = ListSessions {
        order: SessionOrder::Attention,
        page_size: NAMES,
        ..ListSessions::default()
    };
    let mut names = Vec::new();
    for request in [beginning, in_use] {
        let page = client
            .list_sessions(request, CallOptions::default())
            .await?;
        names.extend(page.sessions.into_iter().filter_map(|session| session.name));
    }
    Ok(names)
}

fn nearest(name: &SessionName, names: Vec<SessionName>) -> Vec<SessionName> {
    const MOST: usize = 3;
    let likeness = |other: &SessionName| {
        let (one, other) = (name.as_str(), other.as_str());
        if one.len() >= 3 && other.starts_with(one) {
            return 1.0;
        }
        let spelt = strsim::normalized_damerau_levenshtein(one, other);
        spelt.max(strsim::jaro_winkler(one, other) - 0.05)
    };
    let alike = names.into_iter().map(|other| (likeness(&other), other));
    let mut alike: Vec<_> = alike.filter(|(alike, _)| *alike >= LIKENESS).collect();
    alike.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
    alike.dedup_by(|one, other| one.1 == other.1);
    let names = alike.into_iter().take(MOST);
    names.map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c47_b05_a_watch_that_is_left_running_outlasts_any_outage() {
        let options = watching(String::new(), Duration::from_secs(1));
        let later = options.reconnect.delay(1_000_000, None);
        assert!(later.is_some_and(|delay| delay <= Backoff::STREAMS.longest));
    }

    #[test]
    fn c60_more_sessions_than_can_be_held_are_refused_with_a_way_out() {
        assert!(watchable(MOST_WATCHED).is_ok());
        let Err(Stop::Failed { words, .. }) = watchable(MOST_WATCHED + 1) else {
            panic!("not refused");
        };
        assert!(
            words.contains("50000") && words.contains("NOT phase = DORMANT"),
            "{words}"
        );
    }

    #[test]
    fn a_name_that_is_nearly_right_leads_to_the_right_one() {
        let names = || {
            let names = [
                "refactor-core",
                "fix-flaky-tests",
                "docs",
                "docs-old",
                "docs",
            ];
            names.map(|name| name.parse().unwrap()).to_vec()
        };
        let near = |name: &str| {
            let near = nearest(&name.parse().unwrap(), names()).into_iter();
            near.map(|name| name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(near("refactor-cor"), ["refactor-core"]);
        assert_eq!(near("refacotr-core"), ["refactor-core"]);
        assert_eq!(near("fix-flaky-test"), ["fix-flaky-tests"]);
        assert_eq!(near("fix"), ["fix-flaky-tests"]);
        assert_eq!(near("docs-ol"), ["docs-old", "docs"]);
        assert_eq!(near("weather"), [""; 0]);
    }
}
