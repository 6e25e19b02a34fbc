//! An observer comes back to a long conversation in which a run is hot: how long until it is live,
//! against the time that it takes to read the same entries page by page.

use super::burst::until_snapshot;
use super::session::{self, EVENTS, by_id};
use crate::Outcome;
use crate::load::{Target, now};
use crate::process::{Server, Wire};
use crate::report::{Goal, Line, Report};
use crate::settings::{Pace, Settings};
use sessionplane::v1 as wire;

const ENTRIES: usize = 100_000;
/// As many as a page of a backfill has.
const PAGE: u32 = 256;
/// Longest way to live, in times of reading.
const TIME: f64 = 1.5;

/// Measures the row.
pub(super) async fn measure(settings: &Settings, report: &mut Report) -> Outcome<()> {
    let entries = settings.size(ENTRIES, 600);
    let server = Server::sessiond(Wire::Plain)?;
    let target = Target::connect(&server, 1).await?;
    session::of_entries(&target, "long", entries).await?;
    let session = session::start(&target, "long", &Pace::BURSTS.words(10_000_000)).await?;
    let (mut floor, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..settings.rounds {
        let began = now();
        let read = read_all(&target, &session).await?;
        floor.push(began.elapsed().as_secs_f64() * 1e3);
        if read < entries {
            return Err(format!("{read} of {entries} entries were read").into());
        }
        let began = now();
        let request = wire::EventsRequest {
            session: Some(by_id(&session)),
            ..Default::default()
        };
        let mut stream = target.observe(0, EVENTS, &request).await?;
        until_snapshot(&mut stream).await?;
        ours.push(began.elapsed().as_secs_f64() * 1e3);
    }
    session::abort(&target, &session).await?;
    let name = format!("Events, {entries} entries and a hot run: until live");
    report.add(Line::paired(name, &floor, &ours, "ms", Goal::AtMost(TIME)));
    Ok(())
}

/// Reads every entry, page by page.
async fn read_all(target: &Target, session: &str) -> Outcome<usize> {
    let (mut read, mut since) = (0, String::new());
    loop {
        let page = session::page(target, session, since, PAGE).await?;
        read += page.entries.len();
        since = page.next_since;
        if !page.has_more {
            return Ok(read);
        }
    }
}
