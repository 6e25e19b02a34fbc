//! The name of an object.

use std::fmt;

use sha1::{Digest as _, Sha1};

/// The bytes of a name.
pub(super) const OID_BYTES: usize = 20;

/// A SHA-1 name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oid(pub(super) [u8; OID_BYTES]);

impl Oid {
    /// Reads 40 hexadecimal digits.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.as_bytes();
        if text.len() != 2 * OID_BYTES {
            return None;
        }
        let mut bytes = [0; OID_BYTES];
        for (byte, pair) in bytes.iter_mut().zip(text.chunks(2)) {
            let digit = |at: usize| char::from(pair[at]).to_digit(16);
            *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
        }
        Some(Self(bytes))
    }

    /// Takes the first bytes of a slice.
    pub(super) fn take(bytes: &[u8]) -> Option<Self> {
        bytes.first_chunk().copied().map(Self)
    }

    /// The name of a blob with this content.
    pub(super) fn of_blob(content: &[u8]) -> Self {
        let mut hash = Sha1::new();
        hash.update(format!("blob {}\0", content.len()));
        hash.update(content);
        Self(hash.finalize().into())
    }

    /// Its first seven digits, as people call it.
    #[must_use]
    pub fn short(&self) -> String {
        let mut text = self.to_string();
        text.truncate(7);
        text
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
