//! The list, kept up to date: drawn again in its place on a terminal, and in a pipe a line for each
//! session that changes.

use std::collections::HashMap;
use std::time::Duration;

use sessionplane_core::domain::fleet::summary::SessionSummary;
use sessionplane_core::domain::ids::SessionId;

use super::rows;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::{self, About, Effect};
use crate::cli::json;
use crate::cli::outage::Outage;
use crate::cli::render::{content, in_order, table};
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
        limit,
    };
    loop {
        let item = tokio::select! {
            biased;
            () = context.interrupts.pressed() => return Err(hint::interrupted(Effect::Reads, context)),
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
                self.outage.begin(instant());
                let words = self.outage.words(context.client.target(), instant());
                if !screen.redraws() || !self.complete {
                    screen.aside(&words.unwrap_or_default())?;
                }
                Ok(self.complete && screen.redraws())
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
        let mut rows = rows(&sessions, more, width);
        let lost = self.outage.words(context.client.target(), instant());
        rows.extend(lost.map(|words| Row::of(Tone::Wrong, words)));
        Ok(screen.redraw(rows)?)
    }

    /// Prints the sessions that differ from what was printed of them.
    fn tell(&mut self, as_json: bool, screen: &mut Screen) -> Result<(), Stop> {
        let first = self.printed.is_empty();
        let mut changed = Vec::new();
        for session in self.sessions.values() {
            let content = if as_json {
                session.revision.to_string()
            } else {
                content(session)
            };
            if self.printed.get(&session.id) != Some(&content) {
                self.printed.insert(session.id, content);
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
        if !changed.is_empty() {
            let rows = table(&changed, now(), screen.columns());
            // The heading once.
            screen.rows(&rows[usize::from(!first)..])?;
        }
        for (id, content) in gone {
            let name = content.split('\t').nth(1).map(str::to_owned);
            let name = name.unwrap_or_else(|| id.to_string());
            screen.line(&format!("gone          {name}"))?;
        }
        Ok(())
    }
}
