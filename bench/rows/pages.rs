//! A page of a conversation of a million entries against one of a thousand.

use super::session;
use crate::Outcome;
use crate::load::{Sample, Target, closed_loop};
use crate::process::{Server, Wire};
use crate::report::{Goal, Line, Report};
use crate::settings::Settings;

const SHORT: usize = 1000;
const LONG: usize = 1_000_000;
const PAGE: u32 = 100;
/// Most CPU time of a page of the long one, in pages of the short one.
const CPU: f64 = 1.2;

/// Measures the row.
pub(super) async fn measure(settings: &Settings, report: &mut Report) -> Outcome<()> {
    let long = settings.size(LONG, 3000);
    let server = Server::sessiond(Wire::Plain)?;
    let target = Target::connect(&server, 1).await?;
    let short_one = session::of_entries(&target, "short", SHORT).await?;
    let long_one = session::of_entries(&target, "long", long).await?;
    let (mut short, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..settings.rounds {
        short.push(round(settings, &server, &target, &short_one, SHORT).await?);
        ours.push(round(settings, &server, &target, &long_one, long).await?);
    }
    let cpu = |samples: &[Sample]| samples.iter().map(Sample::cpu_us).collect::<Vec<_>>();
    let name = format!("ListEntries, {PAGE} of {long} entries, to of {SHORT}: CPU a page");
    let goal = Goal::AtMost(CPU);
    report.add(Line::paired(name, &cpu(&short), &cpu(&ours), "us", goal));
    Ok(())
}

/// One caller that reads pages from all over the session.
async fn round(
    settings: &Settings,
    server: &Server,
    target: &Target,
    session: &str,
    entries: usize,
) -> Outcome<Sample> {
    let pages = entries / PAGE as usize - 1;
    closed_loop(Some(server), 1, settings.round, |_| {
        let (target, session) = (target.clone(), session.to_owned());
        let mut next = 0;
        move || {
            // Far from the page before.
            next = (next + pages * 5 / 8 + 1) % pages.max(1);
            let since = format!("{session}-{}", next * PAGE as usize + 1);
            let (target, session) = (target.clone(), session.clone());
            async move {
                let page = session::page(&target, &session, since, PAGE).await?;
                if page.entries.len() == PAGE as usize {
                    return Ok(());
                }
                let found = page.entries.len();
                Err(tonic::Status::internal(format!(
                    "a page of {found} entries"
                )))
            }
        }
    })
    .await
}
