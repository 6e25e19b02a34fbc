//! Sessions for the rows: started, observed and asked through the public API.

use bytes::Bytes;
use prost::Message;
use sessionplane::v1 as wire;
use sessionplane::v1::dispatch_request::Command;
use sessionplane::v1::invoke_client::InvokeClient;
use sessionplane::v1::invoke_event::Event;
use tonic::Streaming;

use crate::Outcome;
use crate::load::Target;

/// The path of our event stream.
pub(super) const EVENTS: &str = "/sessionplane.v1.SessionControl/Events";

/// A session by its id.
pub(super) fn by_id(id: &str) -> wire::SessionRef {
    wire::SessionRef {
        r#ref: Some(wire::session_ref::Ref::Id(id.to_owned())),
    }
}

/// Words that fill a session's ring of events.
const RING_FULL: u64 = 20_000;

/// Makes a session whose ring is full: from there on it holds no more memory than before, and what
/// is measured is a session at work, not one that grows for the first time.
pub(super) async fn filled(target: &Target, name: &str) -> Outcome<()> {
    let (_accepted, mut run) = invoke(target, name, &format!("say-words {RING_FULL}")).await?;
    while run.message().await?.is_some() {}
    Ok(())
}

/// Entries of a run that fills a session; its prompt is far below what a prompt may have.
const ENTRIES_OF_A_RUN: usize = 50_000;

/// Makes a session of so many entries: prompts, and tools' outputs of two bytes.
pub(super) async fn of_entries(target: &Target, name: &str, entries: usize) -> Outcome<String> {
    let (mut left, mut session) = (entries, String::new());
    while left > 0 {
        let now = left.min(ENTRIES_OF_A_RUN);
        left -= now;
        let prompt = format!("#!scenario\n{}#!end", "tool t\n".repeat(now - 1));
        let (accepted, mut run) = invoke(target, name, &prompt).await?;
        while run.message().await?.is_some() {}
        session = accepted.session_id;
    }
    Ok(session)
}

/// A page of a session's entries, as it comes.
pub(super) async fn page(
    target: &Target,
    session: &str,
    since: String,
    page_size: u32,
) -> Result<wire::ListEntriesResponse, tonic::Status> {
    let request = wire::ListEntriesRequest {
        session: Some(by_id(session)),
        since,
        page_size,
    };
    let request = target.request(request);
    let page = target.control(0).list_entries(request).await?;
    Ok(page.into_inner())
}

/// Starts a detached run in the session of this name, a new one if there is none; returns the
/// session's id.
pub(super) async fn start(target: &Target, name: &str, scenario: &str) -> Outcome<String> {
    let (accepted, _stream) = invoke(target, name, scenario).await?;
    Ok(accepted.session_id)
}

/// Starts a detached run in the session of this name; returns how it was accepted, and the rest of its
/// stream.
pub(super) async fn invoke(
    target: &Target,
    name: &str,
    scenario: &str,
) -> Outcome<(wire::InvokeAccepted, Streaming<wire::InvokeResponse>)> {
    let request = wire::InvokeRequest {
        session: Some(wire::SessionRef {
            r#ref: Some(wire::session_ref::Ref::Name(name.to_owned())),
        }),
        prompt: Some(wire::Prompt {
            text: scenario.to_owned(),
            ..Default::default()
        }),
        on_disconnect: wire::OnDisconnect::Detach.into(),
        ..Default::default()
    };
    let mut client = InvokeClient::new(target.channel(0));
    let mut stream = client.invoke(target.request(request)).await?.into_inner();
    match stream
        .message()
        .await?
        .and_then(|message| message.event?.event)
    {
        Some(Event::Accepted(accepted)) => Ok((accepted, stream)),
        other => Err(format!("the run was not accepted: {other:?}").into()),
    }
}

/// Stops the run of a session.
pub(super) async fn abort(target: &Target, session: &str) -> Outcome<()> {
    dispatch(target, session, Command::Abort(wire::Abort {})).await
}

/// Steers the run of a session.
pub(super) async fn steer(target: &Target, session: &str, text: &str) -> Outcome<()> {
    let text = text.to_owned();
    dispatch(
        target,
        session,
        Command::Steer(wire::Steer {
            text,
            ..Default::default()
        }),
    )
    .await
}

async fn dispatch(target: &Target, session: &str, command: Command) -> Outcome<()> {
    let request = wire::DispatchRequest {
        session: Some(by_id(session)),
        command: Some(command),
        ..Default::default()
    };
    target.control(0).dispatch(target.request(request)).await?;
    Ok(())
}

/// The state of a session.
pub(super) async fn state(target: &Target, session: &str) -> Outcome<wire::GetStateResponse> {
    let request = wire::GetStateRequest {
        session: Some(by_id(session)),
        min_position: None,
    };
    let answer = target.control(0).get_state(target.request(request)).await?;
    Ok(answer.into_inner())
}

/// The number of a session's newest event.
pub(super) async fn newest_seq(target: &Target, session: &str) -> Outcome<u64> {
    let state = state(target, session).await?.state;
    let position = state.and_then(|state| state.position);
    Ok(position.ok_or("the state has no position")?.seq)
}

/// Real answers, for the floor to give.
pub(super) struct Samples {
    pub(super) session: String,
    pub(super) state: Vec<u8>,
    pub(super) event: Bytes,
}

/// Lets a run end, and takes its session's state and one of its text events.
pub(super) async fn samples(target: &Target) -> Outcome<Samples> {
    let scenario = "say-words 5000\nusage in=120 out=24 cost=0.002";
    let (accepted, mut run) = invoke(target, "sample", scenario).await?;
    while run.message().await?.is_some() {}
    let session = accepted.session_id;
    let state = state(target, &session).await?.encode_to_vec();
    let request = wire::EventsRequest {
        session: Some(by_id(&session)),
        resume: accepted.position,
        ..Default::default()
    };
    let mut events = target.observe(0, EVENTS, &request).await?;
    let mut event = Bytes::new();
    // A word in the middle is as long as those of a benchmarked run are.
    for _ in 0..2500 {
        event = events.message().await?.ok_or("the sample's events ended")?;
    }
    let kind = wire::EventsResponse::decode(event.clone())?;
    match kind.item {
        Some(wire::events_response::Item::Event(_)) => Ok(Samples {
            session,
            state,
            event,
        }),
        other => Err(format!("not an event: {other:?}").into()),
    }
}
