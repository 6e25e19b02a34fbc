//! What a stranger can send: a request's bytes, and the header that says who calls.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use prost::Message;
use sessionplane::v1 as wire;
use sessionplane_core::domain::error::CallError;

use super::authn::bearer;
use super::convert::{capabilities, command, fleet, invoke, labels, observe, run, session};
use crate::fuzzing::short;

/// The first byte says which request the others are.
pub(crate) fn request(bytes: &[u8]) {
    let Some((which, bytes)) = bytes.split_first() else {
        return;
    };
    match which % 14 {
        0 => parsed(bytes, invoke::request),
        1 => parsed(bytes, command::request),
        2 => parsed(bytes, capabilities::target),
        3 => parsed(bytes, |request: wire::ListCommandsRequest| {
            capabilities::commands_target(request.target)?;
            capabilities::commands_page(&[], request.page_size, &request.page_token)
        }),
        4 => parsed(bytes, observe::list_request),
        5 => parsed(bytes, observe::events_request),
        6 => parsed(bytes, run::list_request),
        7 => parsed(bytes, fleet::create),
        8 => parsed(bytes, fleet::list),
        9 => parsed(bytes, labels::update),
        10 => parsed(bytes, fleet::delete),
        11 => parsed(bytes, fleet::change_directory),
        12 => parsed(bytes, fleet::list_interactions),
        _ => parsed(bytes, |request: wire::GetSessionRequest| {
            session::reference(request.session)
        }),
    }
}

/// A request is taken, or refused in words that can be shown.
fn parsed<W: Message + Default, D>(bytes: &[u8], parse: impl Fn(W) -> Result<D, CallError>) {
    let Ok(request) = W::decode(bytes) else {
        return;
    };
    if let Err(refusal) = parse(request) {
        short(&refusal.to_string());
        let status = super::status::status(refusal.clone());
        assert_ne!(status.code(), tonic::Code::Internal, "{refusal}");
    }
}

/// Values of the header, one a line. A token that is read stands in its one value.
pub(crate) fn authorization(bytes: &[u8]) {
    let mut headers = HeaderMap::new();
    let values = bytes.split(|byte| *byte == b'\n').take(8);
    for value in values.filter_map(|value| HeaderValue::from_bytes(value).ok()) {
        headers.append(AUTHORIZATION, value);
    }
    if let Ok(Some(token)) = bearer(&headers) {
        let mut all = headers.get_all(AUTHORIZATION).iter();
        let only = all.next().and_then(|value| value.to_str().ok());
        assert!(all.next().is_none(), "one of several was believed");
        assert!(only.is_some_and(|only| only.ends_with(token) && !token.is_empty()));
    }
}

/// A certificate that a peer shows: it names nobody, or somebody.
pub(crate) fn certificate(bytes: &[u8]) {
    let _names_or_none = super::peer::read(bytes);
}
