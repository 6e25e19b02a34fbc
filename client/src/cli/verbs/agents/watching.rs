//! The list, kept up to date: drawn again in its place on a terminal, and in a pipe a line for each
//! session that changes.

use std::collections::HashMap;
use std::time::Duration;

use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::SessionId;

use super::rows;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::{About, Effect};
use crate::cli::json;
use crate::cli::outage::Outage;
use crate::cli::render::{Growing, content, in_order, none_line};
use crate::cli::screen::{Row, Screen, Tone};
use crate::clock::{instant, now};
use crate::fleet_watch::{FleetWatchItem, FleetWatchOptions};

/// Ages go on though nothing happens.
const TICK: Duration = Duration::from_secs(1);

pub(super) async fn run(
    filter: String,
    limit: usize,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let filtered = !filter.is_empty();
    let options = FleetWatchOptions {
        filter,
        open_deadline: context.opening(),
        ..FleetWatchOptions::default()
    };
    let mut watch = context.client.watch_fleet(options);
    let redraws = screen.redraws() && !context.globals.json;
    let mut list = List {
        sessions: HashMap::new(),
        printed: HashMap::new(),
        outage: Outage::default(),
        complete: false,
        filtered,
        table: Growing::default(),
        limit,
    };
    loop {
        let item = tokio::select! {
            biased;
            // The end that it is given for.
            () = context.interrupts.pressed() => return Ok(Exit::Interrupted),
            item = watch.next() => item,
            () = tokio::time::sleep(TICK), if redraws && list.complete => {
                list.draw(context, screen)?;
                continue;
            }
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
            list.draw(context, screen)?;
        } else if current {
            list.tell(context.globals.json, screen)?;
        }
    }
}

/// What is shown.
struct List {
    sessions: HashMap<SessionId, SessionSummary>,
    /// What was printed of each in a pipe: its content, or its revision as JSON.
    printed: HashMap<SessionId, String>,
    outage: Outage,
    /// All that there is was told once.
    complete: bool,
    /// Not all sessions are wanted.
    filtered: bool,
    table: Growing,
    limit: usize,
}

impl List {
    /// Takes an item; whether there is something to show.
    fn take(
        &mut self,
        item: FleetWatchItem,
        context: &Context,
        screen: &mut Screen,
    ) -> Result<bool, Stop> {
        match item {
            FleetWatchItem::Changed { sessions, gone } => {
                self.sessions
                    .extend(sessions.into_iter().map(|session| (session.id, session)));
                for id in gone {
                    self.sessions.remove(&id);
                }
                Ok(false)
            }
            FleetWatchItem::Current => {
                context.stream_has_begun();
                self.outage.end();
                self.complete = true;
                Ok(true)
            }
            FleetWatchItem::Reconnecting { .. } => {
                let words = self.outage.begun(context.client.target(), instant());
                let drawn = self.complete && screen.redraws() && !context.globals.json;
                if let Some(words) = words.filter(|_| !drawn) {
                    screen.aside(&words)?;
                }
                Ok(drawn)
            }
        }
    }

    /// Draws the whole table in its place.
    fn draw(&self, context: &Context, screen: &mut Screen) -> Result<(), Stop> {
        let mut sessions: Vec<_> = self.sessions.values().cloned().collect();
        in_order(&mut sessions);
        let more = sessions.len() > self.limit;
        sessions.truncate(self.limit);
        let width = screen.columns();
        let mut rows = if sessions.is_empty() {
            vec![none_line(self.filtered, width)]
        } else {
            rows(&sessions, more, width)
        };
        let lost = self.outage.words(context.client.target(), instant());
        rows.extend(lost.map(|words| Row::of(Tone::Wrong, words)));
        Ok(screen.redraw(rows)?)
    }

    /// Prints the sessions that differ from what was printed of them.
    fn tell(&mut self, as_json: bool, screen: &mut Screen) -> Result<(), Stop> {
        let (mut changed, mut renamed) = (Vec::new(), Vec::new());
        for session in self.sessions.values() {
            let content = if as_json {
                session.revision.to_string()
            } else {
                content(session)
            };
            if self.printed.get(&session.id) != Some(&content) {
                let name = name_in(&content);
                let before = self.printed.insert(session.id, content.clone());
                let before = before.as_deref().and_then(name_in);
                renamed.extend(
                    before
                        .filter(|before| Some(*before) != name)
                        .map(|before| format!("{before} -> {}", name.unwrap_or_default())),
                );
                changed.push(session.clone());
            }
        }
        in_order(&mut changed);
        let (sessions, mut gone) = (&self.sessions, Vec::new());
        self.printed.retain(|id, content| {
            let is_there = sessions.contains_key(id);
            if !is_there {
                gone.push((*id, std::mem::take(content)));
            }
            is_there
        });
        gone.sort();
        if as_json {
            for session in &changed {
                screen.json(&json::session(session))?;
            }
            for (id, _) in gone {
                screen.json(&json::gone(id))?;
            }
            return Ok(());
        }
        for words in &renamed {
            screen.line(&self.table.line("renamed", words))?;
        }
        if !changed.is_empty() {
            let rows = self.table.rows(&changed, now(), screen.columns());
            screen.rows(&rows)?;
        }
        for (id, content) in gone {
            let name = name_in(&content).map_or_else(|| id.to_string(), str::to_owned);
            screen.line(&self.table.line("gone", &name))?;
        }
        Ok(())
    }
}

/// How a session was named in what was printed of it.
fn name_in(content: &str) -> Option<&str> {
    content.split('\t').nth(1)
}
