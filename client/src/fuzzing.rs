//! What a server sends, and what a terminal shows of it, each as a function of bytes for the fuzzer
//! (`tests/fuzz`). Built with the feature `fuzzing` only.
//!
//! What must never enter: a promise that is not made elsewhere, and anything that a client needs.

use prost::Message;

use crate::cli;
use crate::convert::{entry, event, fleet, invoke, observation, state};

/// What is given bytes.
pub type Parser = fn(&[u8]);

/// Every parser, by the name that its corpus has.
pub const PARSERS: [(&str, Parser); 3] = [
    ("answers", answer),
    ("shown_texts", cli::fuzzing::shown),
    ("markdown", cli::fuzzing::laid_out),
];

/// The first byte says which message of a server the others are: it is read, passed over or refused.
fn answer(bytes: &[u8]) {
    let Some((which, bytes)) = bytes.split_first() else {
        return;
    };
    match which % 8 {
        0 => read(bytes, |answer| drop(event::read(answer))),
        1 => read(bytes, |answer| drop(invoke::event(answer))),
        2 => read(bytes, |answer| drop(observation::item(answer))),
        3 => read(bytes, |answer| drop(fleet::watched(answer))),
        4 => read(bytes, |answer| drop(fleet::page(answer))),
        5 => read(bytes, |answer| drop(fleet::interactions(answer))),
        6 => read(bytes, |answer| drop(state::answer(answer))),
        _ => read(bytes, |answer| drop(entry::page(answer))),
    }
}

fn read<M: Message + Default>(bytes: &[u8], read: impl Fn(M)) {
    if let Ok(message) = M::decode(bytes) {
        read(message);
    }
}
