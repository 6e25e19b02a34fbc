//! An engine that is gone says so, and one that nobody holds leaves nothing behind.

use std::time::Duration;

use sessionplane_core::ports::engine::EngineCommand;

use super::Subject;
use super::bench::{Bench, Opened};

/// Sends until the engine is found gone. A command to a gone engine is an error, never a hang; one
/// that crosses with its end may still be taken.
async fn is_found_gone(opened: &mut Opened, prompt: &str) {
    for _ in 0..20 {
        if opened.try_prompt(prompt).await.is_err() {
            let abort = opened.send(EngineCommand::Abort).await;
            assert!(abort.is_err(), "a gone engine took a command");
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("commands to a gone engine are not refused");
}

pub(crate) async fn a_gone_engine_takes_no_command(subject: Subject) {
    let Some(crash) = subject.prompts.crash else {
        return;
    };
    let bench = Bench::new(subject);
    let mut opened = bench.open().await;
    opened.prompt(crash).await;
    while opened.next().await.is_some() {}
    assert_eq!(opened.next().await, None, "gone is gone");
    is_found_gone(&mut opened, crash).await;
    bench.tasks_end().await;
}

pub(crate) async fn an_unread_engine_goes(subject: Subject) {
    let bench = Bench::new(subject);
    let mut opened = bench.open().await;
    opened.output = Box::new(Nothing);
    is_found_gone(&mut opened, bench.subject.prompts.plain).await;
    bench.tasks_end().await;
}

/// The place of an output half that was dropped.
struct Nothing;

#[async_trait::async_trait]
impl sessionplane_core::ports::engine::EngineOutput for Nothing {
    async fn next(&mut self) -> Option<sessionplane_core::ports::engine::EngineEvent> {
        None
    }
}

pub(crate) async fn dropping_the_commands_ends_it_at_rest(subject: Subject) {
    let bench = Bench::new(subject);
    let Opened {
        commands,
        mut output,
        ..
    } = bench.open().await;
    assert!(bench.tasks() > 0, "the engine does not use the spawner");
    drop(commands);
    bench.tasks_end().await;
    while output.next().await.is_some() {}
}

pub(crate) async fn dropping_the_commands_ends_it_at_work(subject: Subject) {
    let prompts = &subject.prompts;
    let work = [
        prompts.long_text,
        prompts.long_tool,
        prompts.retry,
        prompts.hang,
    ];
    let bench = Bench::new(subject);
    for prompt in work.into_iter().flatten() {
        let mut opened = bench.open().await;
        opened.prompt(prompt).await;
        opened.next().await;
        let Opened {
            commands,
            mut output,
            ..
        } = opened;
        // Nobody reads any more: the engine may wait for room just now.
        drop(commands);
        bench.tasks_end().await;
        while output.next().await.is_some() {}
    }
}
