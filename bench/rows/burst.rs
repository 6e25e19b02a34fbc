//! A burst of 15,000 deltas, as fast as the engine can say them: no observer that keeps reading is
//! cut.

use bytes::Bytes;
use prost::Message;
use sessionplane::v1 as wire;
use sessionplane::v1::events_response::Item;
use tokio::task::JoinSet;
use tonic::Streaming;

use super::session::{self, EVENTS, by_id};
use crate::Outcome;
use crate::load::Target;
use crate::process::{Server, Wire};
use crate::report::{Goal, Line, Report};
use crate::settings::Settings;

const WORDS: usize = 15_000;
const OBSERVERS: usize = 100;
const CONNECTIONS: usize = 16;

/// Counts the row.
pub(super) async fn measure(settings: &Settings, report: &mut Report) -> Outcome<()> {
    let (words, observers) = (settings.size(WORDS, 500), settings.size(OBSERVERS, 5));
    let server = Server::sessiond(Wire::Plain)?;
    let target = Target::connect(&server, CONNECTIONS).await?;
    let scenario = format!("wait-steer\nsay-words {words}");
    let session = session::start(&target, "burst", &scenario).await?;
    let request = wire::EventsRequest {
        session: Some(by_id(&session)),
        ..Default::default()
    };
    let mut readers = JoinSet::new();
    for observer in 0..observers {
        let mut stream = target.observe(observer, EVENTS, &request).await?;
        until_snapshot(&mut stream).await?;
        readers.spawn(read(stream));
    }
    session::steer(&target, &session, "say \"go\"").await?;
    let mut cut = 0.0;
    while let Some(ended) = readers.join_next().await {
        if !ended?? {
            cut += 1.0;
        }
    }
    let name = format!("{words} deltas at once, {observers} observers: cut");
    report.add(Line::alone(name, cut, "", Goal::AtMost(0.0)));
    Ok(())
}

/// Reads the beginning of a stream.
pub(super) async fn until_snapshot(stream: &mut Streaming<Bytes>) -> Outcome<()> {
    while let Some(message) = stream.message().await? {
        let item = wire::EventsResponse::decode(message)?.item;
        if matches!(item, Some(Item::Snapshot(_))) {
            return Ok(());
        }
    }
    Err("a stream ended before its snapshot".into())
}

/// Whether it could read until the run settled.
async fn read(mut stream: Streaming<Bytes>) -> Outcome<bool> {
    while let Ok(Some(message)) = stream.message().await {
        if let Some(Item::Event(event)) = wire::EventsResponse::decode(message)?.item
            && event
                .event
                .is_some_and(|event| event.r#type == "run_settled")
        {
            return Ok(true);
        }
    }
    Ok(false)
}
