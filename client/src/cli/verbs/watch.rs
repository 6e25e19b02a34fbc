//! `sessionctl watch`: tells each question once when it is asked, and runs a command for it.

mod asked;
mod commands;

use crate::cli::args::WatchArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::fleet;
use crate::cli::hint::{About, Effect};
use crate::cli::json;
use crate::cli::outage::Outage;
use crate::cli::render::{Desk, named, question_lines};
use crate::cli::screen::{Row, Screen, Tone};
use crate::clock::instant;
use crate::fleet_watch::FleetWatchItem;
use asked::{Asked, Questions};
use commands::Commands;

pub(super) async fn run(
    args: WatchArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let options = fleet::watching(args.wanted.that_ask(), context.opening());
    let mut watch = context.client.watch_fleet(options);
    let mut questions = Questions::new(args.open);
    let mut commands = Commands::new(args.exec, context.globals.json);
    let mut outage = Outage::default();
    loop {
        let item = tokio::select! {
            biased;
            // The end that it is given for.
            () = context.interrupts.pressed() => return Ok(Exit::Interrupted),
            problem = commands.problem() => {
                screen.notice(&problem)?;
                continue;
            }
            item = watch.next() => item,
        };
        if let Some(Ok(FleetWatchItem::Changed { .. } | FleetWatchItem::Current)) = &item
            && let Some(words) = outage.ended(context.client.target())
        {
            screen.aside(&words)?;
        }
        match item {
            Some(Ok(FleetWatchItem::Changed { sessions, gone })) => {
                for session in &sessions {
                    for asked in questions.of(session) {
                        tell(&asked, context, screen)?;
                        if let Some(words) = commands.give(asked) {
                            screen.notice(&words)?;
                        }
                    }
                    commands.drop_answered(session);
                }
                for id in gone {
                    questions.forget(id);
                    commands.forget(id);
                }
            }
            Some(Ok(FleetWatchItem::Current)) => {
                context.stream_has_begun();
                questions.current();
            }
            Some(Ok(FleetWatchItem::Reconnecting { .. })) => {
                let target = context.client.target();
                if let Some(words) = outage.begun(target, instant()) {
                    screen.aside(&words)?;
                }
            }
            Some(Err(error)) => return Err(context.stop(error, About::Nothing, Effect::Reads)),
            None => return Ok(Exit::Done),
        }
    }
}

fn tell(asked: &Asked, context: &Context, screen: &mut Screen) -> Result<(), Stop> {
    if context.globals.json {
        return Ok(screen.json(&json::asked(&asked.told()))?);
    }
    let heading = vec![
        (Tone::Alarm, named(&asked.session).to_string()),
        (Tone::Faint, format!("  {}", asked.interaction.id)),
    ];
    screen.rows(&[Row(heading)])?;
    let lines = question_lines(&asked.interaction, &Desk::Shell(named(&asked.session)));
    let lines: Vec<_> = lines.iter().map(|line| format!("  {line}")).collect();
    Ok(screen.line(&lines.join("\n"))?)
}
