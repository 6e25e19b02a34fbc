//! Identifiers: opaque to callers, cheap to compare, parsed at the edge.
//!
//! Session and run ids are ULIDs. Entry, input and audit ids are *derived* from what they belong
//! to plus an ordinal, so that the state machine needs no randomness, a lookup needs no index,
//! and an id can be checked against its session without I/O.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use ulid::Ulid;

use super::time::Timestamp;

/// Why a text is not an identifier of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {problem}")]
pub struct IdError {
    /// The kind of identifier that was expected, for example `session id`.
    pub what: &'static str,
    /// What is wrong with it, in words for the caller.
    pub problem: &'static str,
}

macro_rules! ulid_id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Ulid);

        impl $name {
            /// Makes an id from the present time and 80 random bits (the low ones of `random`).
            #[must_use]
            pub fn mint(now: Timestamp, random: u128) -> Self {
                Self(Ulid::from_parts(now.as_millis(), random))
            }
            /// The 16 bytes of the id, big-endian: byte order is time order.
            #[must_use]
            pub fn to_bytes(self) -> [u8; 16] {
                self.0.to_bytes()
            }
            /// The inverse of [`Self::to_bytes`].
            #[must_use]
            pub fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Ulid::from_bytes(bytes))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                parse_ulid(text)
                    .map(Self)
                    .ok_or(IdError { what: $what, problem: "is not a ULID (26 characters of 0-9 and A-Z without I, L, O and U)" })
            }
        }
    };
}

ulid_id!(
    /// A durable conversation's id.
    SessionId,
    "session id"
);
ulid_id!(
    /// One activity window's id.
    RunId,
    "run id"
);
ulid_id!(
    /// A stored content's id. Says nothing of where it lies.
    ArtifactId,
    "artifact id"
);

fn parse_ulid(text: &str) -> Option<Ulid> {
    // The crate accepts small letters, letters that look like digits, and the overflowing first
    // characters 8-Z. An id that is not what it prints is a second name for the same thing, so only
    // the canonical text is taken.
    let ulid = Ulid::from_string(text).ok()?;
    (ulid.to_string() == text).then_some(ulid)
}

/// Whether a text has the shape of a ULID. Names may not, so that a bare word on a command line
/// is never ambiguous.
#[must_use]
pub fn is_ulid_shaped(text: &str) -> bool {
    text.len() == 26 && text.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// An entry's place in its session's append order, from 1.
pub type EntrySeq = u64;

/// A durable entry's id: its session and its place in the session's append order.
///
/// Text form: `<session ULID>-<seq>`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EntryId {
    /// The session that holds the entry.
    pub session: SessionId,
    /// The entry's place in the session, from 1.
    pub seq: EntrySeq,
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.session, self.seq)
    }
}

impl FromStr for EntryId {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        let err = IdError {
            what: "entry id",
            problem: "is not of the form <session>-<number>",
        };
        let (session, seq) = text.rsplit_once('-').ok_or_else(|| err.clone())?;
        let session = session.parse().map_err(|_| err.clone())?;
        let seq = parse_ordinal(seq).ok_or(err)?;
        Ok(Self { session, seq })
    }
}

/// A dispatched input's id: the run it joined and its number within it.
///
/// Text form: `<run ULID>-i<ordinal>`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InputId {
    /// The run that the input joined.
    pub run: RunId,
    /// The input's number within its run, from 1, in order of acceptance.
    pub ordinal: u32,
}

impl fmt::Display for InputId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-i{}", self.run, self.ordinal)
    }
}

impl FromStr for InputId {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        let err = IdError {
            what: "input id",
            problem: "is not of the form <run>-i<number>",
        };
        let (run, ordinal) = text.rsplit_once("-i").ok_or_else(|| err.clone())?;
        let run = run.parse().map_err(|_| err.clone())?;
        let ordinal = parse_ordinal(ordinal)
            .and_then(|n| u32::try_from(n).ok())
            .ok_or(err)?;
        Ok(Self { run, ordinal })
    }
}

/// An interaction's id: the run that asks and its number within it.
///
/// Text form: `<run ULID>-q<ordinal>`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InteractionId {
    /// The run that asks.
    pub run: RunId,
    /// The question's number within its run, from 1.
    pub ordinal: u32,
}

impl fmt::Display for InteractionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-q{}", self.run, self.ordinal)
    }
}

impl FromStr for InteractionId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let err = IdError {
            what: "interaction id",
            problem: "is not of the form <run>-q<number>",
        };
        let (run, ordinal) = text.rsplit_once("-q").ok_or_else(|| err.clone())?;
        let run = run.parse().map_err(|_| err.clone())?;
        let ordinal = parse_ordinal(ordinal)
            .and_then(|n| u32::try_from(n).ok())
            .ok_or(err)?;
        Ok(Self { run, ordinal })
    }
}

fn parse_ordinal(text: &str) -> Option<u64> {
    let canonical =
        !text.is_empty() && !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit());
    canonical.then(|| text.parse().ok()).flatten()
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $max:expr, $check:expr, $problem:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The longest text that is accepted, in bytes.
            pub const MAX_BYTES: usize = $max;
            /// Parses a caller's text.
            ///
            /// # Errors
            /// When the text is empty, too long or has characters that the kind does not allow.
            pub fn parse(text: &str) -> Result<Self, IdError> {
                let check: fn(&str) -> bool = $check;
                if text.is_empty() || text.len() > Self::MAX_BYTES || !check(text) {
                    return Err(IdError { what: $what, problem: $problem });
                }
                Ok(Self(text.into()))
            }
            /// The text as the caller gave it.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::parse(text)
            }
        }
    };
}

text_id!(
    /// A session's human name, unique in its tenant.
    SessionName,
    "session name",
    63,
    |text| is_label(text) && !is_ulid_shaped(text),
    "must be 1-63 characters of a-z, 0-9 and inner hyphens, and not look like an id"
);
text_id!(
    /// A host's own key for a session, unique in its tenant, immutable.
    ExternalKey,
    "external_key",
    256,
    |_| true,
    "must be 1-256 bytes of UTF-8"
);
text_id!(
    /// The name of an agent definition in the server's configuration.
    AgentName,
    "agent",
    63,
    is_label,
    "must be 1-63 characters of a-z, 0-9 and inner hyphens"
);
text_id!(
    /// The name of a workspace in the server's configuration.
    WorkspaceName,
    "workspace",
    63,
    is_label,
    "must be 1-63 characters of a-z, 0-9 and inner hyphens"
);
text_id!(
    /// A caller's key for one logical call.
    RequestId,
    "request_id",
    128,
    |text| text.bytes().all(|b| b.is_ascii_graphic()),
    "must be 1-128 printable ASCII characters without spaces"
);
text_id!(
    /// The isolation unit that a principal and its sessions belong to.
    TenantId,
    "tenant",
    63,
    is_label,
    "must be 1-63 characters of a-z, 0-9 and inner hyphens"
);
text_id!(
    /// An authenticated caller's id within its tenant.
    PrincipalId,
    "principal",
    128,
    |text| text.bytes().all(|b| b.is_ascii_graphic()),
    "must be 1-128 printable ASCII characters without spaces"
);

fn is_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// How a caller names a session. Nothing guesses between the three.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum SessionRef {
    /// By its opaque id.
    Id(SessionId),
    /// By its name in the caller's tenant.
    Name(SessionName),
    /// By the host's own key in the caller's tenant.
    ExternalKey(ExternalKey),
}

impl fmt::Display for SessionRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Name(name) => name.fmt(f),
            Self::ExternalKey(key) => write!(f, "key:{key}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_ids_read_back_as_they_print() {
        let session = SessionId::mint(Timestamp::from_millis(1_700_000_000_000), 7);
        let run = RunId::mint(Timestamp::from_millis(1_700_000_000_000), 9);
        let entry = EntryId { session, seq: 42 };
        let input = InputId { run, ordinal: 3 };
        assert_eq!(entry.to_string().parse(), Ok(entry));
        assert_eq!(input.to_string().parse(), Ok(input));
    }

    #[test]
    fn a_second_spelling_of_an_id_is_refused() {
        let session = SessionId::mint(Timestamp::from_millis(1), 1);
        assert!(format!("{session}-07").parse::<EntryId>().is_err());
        assert!(format!("{session}-0").parse::<EntryId>().is_err());
        assert!(format!("{session}-+7").parse::<EntryId>().is_err());
        let text = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
        assert_eq!(
            text.parse::<SessionId>().map(|id| id.to_string()),
            Ok(text.to_owned())
        );
        for second in [
            "8ZZZZZZZZZZZZZZZZZZZZZZZZZ",
            "01arz3ndektsv4rrffq69g5fav",
            "01ARZ3NDEKTSV4RRFFQ69G5FAv",
            "O1ARZ3NDEKTSV4RRFFQ69G5FAV",
            "0IARZ3NDEKTSV4RRFFQ69G5FAV",
        ] {
            assert!(second.parse::<SessionId>().is_err(), "{second}");
            assert!(format!("{second}-7").parse::<EntryId>().is_err());
        }
    }

    #[test]
    fn a_name_never_looks_like_an_id() {
        assert!(SessionName::parse("fix-flaky-tests").is_ok());
        for bad in [
            "",
            "-a",
            "a-",
            "A",
            "a_b",
            "01arz3ndektsv4rrffq69g5fav",
            &"a".repeat(64),
        ] {
            assert!(SessionName::parse(bad).is_err(), "{bad:?} was accepted");
        }
    }
}
