//! The list, kept up to date: drawn again in its place on a terminal, and in a pipe a line for each
//! session that changes.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::SessionId;
use tokio::time::Instant;

use super::rows;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::fleet;
use crate::cli::hint::{About, Effect};
use crate::cli::json;
use crate::cli::outage::Outage;
use crate::cli::render::{Growing, Places, content, in_order, none_line, order};
use crate::cli::screen::{Row, Screen, Tone};
use crate::cli::wrap::wrapped;
use crate::clock::{instant, now};
use crate::fleet_watch::FleetWatchItem;

/// Ages go on though nothing happens.
const TICK: Duration = Duration::from_secs(1);
/// Changes are drawn together that come within this time: a person reads no faster.
const FRAME: Duration = Duration::from_millis(100);

pub(super) async fn run(
    filter: String,
    limit: usize,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let mut list = List::of(limit, !filter.is_empty());
    let options = fleet::watching(filter, context.opening());
    let mut watch = context.client.watch_fleet(options);
    let redraws = screen.redraws() && !context.globals.json;
    let mut drawn = instant();
    // When the table is drawn next; never before all that there is was told.
    let mut due: Option<Instant> = None;
    loop {
        let item = tokio::select! {
            biased;
            // The end that it is given for.
            () = context.interrupts.pressed() => return Ok(Exit::Interrupted),
            () = until(due) => {
                list.draw(context, screen)?;
                drawn = instant();
                due = Some(drawn + TICK);
                continue;
            }
            item = watch.next() => item,
        };
        let item = match item {
            Some(Ok(item)) => item,
            Some(Err(error)) => {
                return Err(context.stop(error, About::Nothing, Effect::Reads));
            }
            None => return Ok(Exit::Done),
        };
        let current = list.take(item, context, screen)?;
        if redraws && current {
            due = Some(drawn + FRAME);
        } else if current {
            list.tell(context.globals.json, screen)?;
        }
    }
}

/// Until then; for ever without.
async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// What is shown.
struct List {
    /// All that are wanted; where objects are printed, those that are not printed yet.
    sessions: HashMap<SessionId, SessionSummary>,
    /// Those that were told of since the last time that anything was printed.
    news: BTreeSet<SessionId>,
    /// What was printed of each in a pipe.
    printed: HashMap<SessionId, String>,
    outage: Outage,
    /// All that there is was told once.
    complete: bool,
    /// Not all are wanted.
    filtered: bool,
    /// What is printed in a pipe.
    table: Growing,
    limit: usize,
}

impl List {
    fn of(limit: usize, filtered: bool) -> Self {
        Self {
            sessions: HashMap::new(),
            news: BTreeSet::new(),
            printed: HashMap::new(),
            outage: Outage::default(),
            complete: false,
            filtered,
            table: Growing::default(),
            limit,
        }
    }

    /// Takes an item; whether there is something to show.
    fn take(
        &mut self,
        item: FleetWatchItem,
        context: &Context,
        screen: &mut Screen,
    ) -> Result<bool, Stop> {
        let target = context.client.target();
        let drawn = self.complete && screen.redraws() && !context.globals.json;
        let words = match &item {
            FleetWatchItem::Reconnecting { .. } => self.outage.begun(target, instant()),
            FleetWatchItem::Changed { .. } | FleetWatchItem::Current => self.outage.ended(target),
        };
        // The table itself says so.
        if let Some(words) = words.filter(|_| !drawn) {
            screen.aside(&words)?;
        }
        match item {
            FleetWatchItem::Changed { sessions, gone } => {
                self.changed(sessions, gone);
                fleet::watchable(self.sessions.len())?;
                Ok(false)
            }
            FleetWatchItem::Current => {
                context.stream_has_begun();
                self.complete = true;
                Ok(true)
            }
            FleetWatchItem::Reconnecting { .. } => Ok(drawn),
        }
    }

    fn changed(&mut self, sessions: Vec<SessionSummary>, gone: Vec<SessionId>) {
        self.news.extend(sessions.iter().map(|session| session.id));
        self.news.extend(&gone);
        self.sessions
            .extend(sessions.into_iter().map(|session| (session.id, session)));
        for id in gone {
            self.sessions.remove(&id);
        }
    }

    /// Draws the whole table in its place.
    fn draw(&mut self, context: &Context, screen: &mut Screen) -> Result<(), Stop> {
        self.news.clear();
        let mut sessions: Vec<_> = self.sessions.values().collect();
        sessions.sort_by_cached_key(|session| order(session));
        let more = sessions.len() > self.limit;
        sessions.truncate(self.limit);
        let sessions: Vec<_> = sessions.into_iter().cloned().collect();
        let width = screen.columns();
        let mut rows = if sessions.is_empty() {
            vec![none_line(self.filtered, width)]
        } else {
            rows(&sessions, more, width)
        };
        let lost = self.outage.words(context.client.target(), instant());
        let lost = lost.map(|words| wrapped(&words, 0, width, "  "));
        let lost = lost.iter().flat_map(|words| words.lines());
        rows.extend(lost.map(|line| Row::of(Tone::Wrong, line)));
        Ok(screen.redraw(rows)?)
    }

    /// Prints what is news.
    fn tell(&mut self, as_json: bool, screen: &mut Screen) -> Result<(), Stop> {
        let news = std::mem::take(&mut self.news);
        if as_json {
            return self.tell_objects(&news, screen);
        }
        let (mut changed, mut renamed, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        for id in news {
            let Some(session) = self.sessions.get(&id) else {
                gone.extend(self.printed.remove(&id).map(|content| (id, content)));
                continue;
            };
            let content = content(session);
            if self.printed.get(&id) != Some(&content) {
                let before = self.printed.insert(id, content.clone());
                renamed.extend(before.and_then(|before| another_name(&before, &content)));
                changed.push(session.clone());
            }
        }
        in_order(&mut changed);
        for words in &renamed {
            screen.line(&self.table.line("renamed", words))?;
        }
        if !changed.is_empty() {
            // Where a session works is told in the same words, whichever others change with it.
            let places = Places::of(self.sessions.values());
            let rows = self.table.rows(&places, &changed, now(), screen.columns());
            screen.rows(&rows)?;
        }
        for (id, content) in gone {
            let name = name_in(&content).map_or_else(|| id.to_string(), str::to_owned);
            screen.line(&self.table.line("gone", &name))?;
        }
        Ok(())
    }

    /// The watch tells each revision once: nothing that was printed needs to be known.
    fn tell_objects(
        &mut self,
        news: &BTreeSet<SessionId>,
        screen: &mut Screen,
    ) -> Result<(), Stop> {
        let mut changed: Vec<_> = self.sessions.drain().map(|(_, session)| session).collect();
        in_order(&mut changed);
        for session in &changed {
            screen.json(&json::session(session))?;
        }
        let is_there: BTreeSet<_> = changed.iter().map(|session| session.id).collect();
        for id in news.difference(&is_there) {
            screen.json(&json::gone(*id))?;
        }
        Ok(())
    }
}

/// How a session was named in what was printed of it.
fn name_in(content: &str) -> Option<&str> {
    content.split('\t').nth(1)
}

/// That a session is named otherwise than in what was printed of it before.
fn another_name(before: &str, content: &str) -> Option<String> {
    let (before, name) = (name_in(before)?, name_in(content));
    (Some(before) != name).then(|| format!("{before} -> {}", name.unwrap_or_default()))
}
