//! `sessionctl questions`: what all runs wait for an answer to.

use sessionplane_core::contract::fleet::FleetInteraction;
use sessionplane_core::domain::ids::SessionRef;

use crate::cli::args::QuestionsArgs;
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::fleet;
use crate::cli::json;
use crate::cli::program::PROGRAM;
use crate::cli::render::{Desk, ago, question_lines};
use crate::cli::screen::{Row, Screen, Tone};
use crate::clock::now;

pub(super) async fn run(
    args: QuestionsArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    let filter = args.wanted.filter();
    let filtered = !filter.is_empty();
    let (asked, more) = fleet::questions(filter, context, screen).await?;
    for one in &asked {
        if context.globals.json {
            screen.json(&json::asked(one))?;
        } else {
            show(one, screen)?;
        }
    }
    if more {
        let words = format!(
            "! these are the first {}; narrow with --filter, --label or --agent",
            asked.len()
        );
        screen.notice(&words)?;
    }
    if asked.is_empty() {
        if filtered {
            screen.aside(&format!(
                "no question is open that the filter wants; all there are: {PROGRAM} questions"
            ))?;
        } else {
            screen.aside("no question is open")?;
        }
    }
    Ok(Exit::Done)
}

fn show(asked: &FleetInteraction, screen: &mut Screen) -> Result<(), Stop> {
    let session = match &asked.name {
        Some(name) => SessionRef::Name(name.clone()),
        None => SessionRef::Id(asked.session),
    };
    let age = ago(now().since(asked.interaction.asked_at));
    let rest = format!("  {}  {age}", asked.interaction.id);
    let heading = vec![(Tone::Alarm, session.to_string()), (Tone::Faint, rest)];
    screen.rows(&[Row(heading)])?;
    let lines = question_lines(&asked.interaction, &Desk::Shell(session));
    let lines: Vec<_> = lines.iter().map(|line| format!("  {line}")).collect();
    Ok(screen.line(&lines.join("\n"))?)
}
