//! Where a text came from. One struct, written into entry, event and audit record alike.

use std::fmt;

use super::access::PrincipalKind;
use super::ids::{PrincipalId, RequestId};

/// How far the content of a text may be taken as an instruction.
///
/// The order is the order of trust: a call may only lower what its credential allows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Trust {
    /// Data: files, pipes, other sessions' output.
    Untrusted,
    /// An instruction that some caller relayed.
    Relayed,
    /// Typed by a person at a terminal or editor.
    Typed,
}

/// The way by which a text entered a session.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Channel {
    /// The prompt of an invoke.
    Invoke,
    /// A steer.
    Steer,
    /// A follow-up.
    FollowUp,
    /// `SessionControl.Dispatch` with `respond`.
    Respond,
    /// `SessionControl.Dispatch` with a command that carries no text for the model.
    Control,
}

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Reads what is displayed: 64 hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        let mut bytes = [0; 32];
        if digits.len() != 64 {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            let digit = |at: u8| char::from(at).to_digit(16);
            let value = digit(pair[0])? << 4 | digit(pair[1])?;
            *byte = u8::try_from(value).ok()?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// Who sent a text, how, and how far it is trusted. Set by the server from the credential, never
/// by what a client says of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The sender.
    pub principal: PrincipalId,
    /// What kind of actor the sender is.
    pub kind: PrincipalKind,
    /// The way the text came in.
    pub channel: Channel,
    /// How far it is trusted.
    pub trust: Trust,
    /// SHA-256 of the text's UTF-8 bytes.
    pub digest: Digest,
    /// The caller's key for the call, if it gave one.
    pub request_id: Option<RequestId>,
}
