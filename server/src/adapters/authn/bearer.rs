//! The text of a token: `sp_<id>_<secret>`. Secret scanners find it by its beginning; the id names
//! it where the secret must not be.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::sync::Arc;

use rand::TryRng as _;
use rand::rngs::SysRng;
use sha2::{Digest as _, Sha256};

const PREFIX: &str = "sp_";
const ID_CHARACTERS: usize = 8;
/// 43 characters of 62 are 256 bits.
const SECRET_CHARACTERS: usize = 43;
pub(super) const CHARACTERS: usize = PREFIX.len() + ID_CHARACTERS + 1 + SECRET_CHARACTERS;
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// SHA-256 of a token. Tokens are random, so that no slower digest is needed.
pub(super) type Digest = [u8; 32];

/// The part of a token that is no secret: eight letters and digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenId(Arc<str>);

impl TokenId {
    /// Reads an id, or the one of a whole token: who revokes one may have nothing else at hand.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let id = id(text).or_else(|| is_id(text).then_some(text))?;
        Some(Self(id.into()))
    }

    /// The id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenId({})", self.0)
    }
}

/// A token that was just made. It can be shown once; its debug form does not show it.
pub struct Minted(String);

impl Minted {
    /// Draws one from the system's randomness.
    pub(super) fn draw() -> io::Result<Self> {
        let (id, secret) = (draw(ID_CHARACTERS)?, draw(SECRET_CHARACTERS)?);
        Ok(Self(format!("{PREFIX}{id}_{secret}")))
    }

    /// The whole token, secret included.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Its id.
    pub(super) fn id(&self) -> TokenId {
        TokenId(self.0[PREFIX.len()..PREFIX.len() + ID_CHARACTERS].into())
    }
}

impl fmt::Debug for Minted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Minted(..)")
    }
}

/// Whether a text has the shape of a token.
pub(super) fn is_token(text: &str) -> bool {
    id(text).is_some()
}

/// The id of a text that has the shape of a token.
pub(super) fn id(text: &str) -> Option<&str> {
    let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
    let secret_fits = secret.len() == SECRET_CHARACTERS && is_plain(secret);
    (is_id(id) && secret_fits).then_some(id)
}

fn is_id(text: &str) -> bool {
    text.len() == ID_CHARACTERS && is_plain(text)
}

fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// A text in which of each token only what is no secret is left: for what tells somebody their own
/// words, where a token may be among them by mistake.
#[must_use]
pub fn without_secrets(text: &str) -> Cow<'_, str> {
    with_secrets_as(text, "...")
}

/// The same with `mark` in the place of each secret: for what tells somebody what others wrote.
#[must_use]
pub fn with_secrets_as<'t>(text: &'t str, mark: &str) -> Cow<'t, str> {
    const BEFORE: usize = CHARACTERS - SECRET_CHARACTERS;
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(PREFIX) {
        let token = rest.get(at..at + CHARACTERS).filter(|text| is_token(text));
        let shown = at
            + if token.is_some() {
                BEFORE
            } else {
                PREFIX.len()
            };
        out.push_str(&rest[..shown]);
        if token.is_some() {
            out.push_str(mark);
        }
        rest = &rest[token.map_or(shown, |_| at + CHARACTERS)..];
    }
    if out.is_empty() {
        return Cow::Borrowed(text);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// A text that was cut, without the token that its end may be the beginning of.
#[must_use]
pub fn without_a_begun_token(text: &str) -> &str {
    let mut begun = text.match_indices(PREFIX).map(|(at, _)| at);
    let is_of_one = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let at = begun.find(|at| text.len() - at < CHARACTERS && text[*at..].bytes().all(is_of_one));
    at.map_or(text, |at| &text[..at])
}

/// The digest of whatever a caller sent, at the same cost however long it is: no token is longer
/// than what is looked at, and what is longer gets a digest that no token has.
pub(super) fn digest(text: &str) -> Digest {
    let bytes = text.as_bytes();
    let mut digest = Sha256::new();
    digest.update(&bytes[..bytes.len().min(CHARACTERS)]);
    if bytes.len() > CHARACTERS {
        digest.update(b" and more");
    }
    digest.finalize().into()
}

/// Random characters, all equally likely.
fn draw(characters: usize) -> io::Result<String> {
    let mut drawn = String::with_capacity(characters);
    while drawn.len() < characters {
        let mut bytes = [0_u8; 64];
        SysRng
            .try_fill_bytes(&mut bytes)
            .map_err(io::Error::other)?;
        // 248 is the largest multiple of 62 that a byte holds: what lies above would favour some.
        let fair = bytes.into_iter().filter(|byte| *byte < 248);
        let letters = fair.map(|byte| char::from(ALPHABET[usize::from(byte % 62)]));
        drawn.extend(letters.take(characters - drawn.len()));
    }
    Ok(drawn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c61_a_minted_token_has_its_shape_and_never_prints_itself() {
        let minted = Minted::draw().unwrap();
        assert!(is_token(minted.reveal()));
        assert_eq!(minted.reveal().len(), CHARACTERS);
        assert_eq!(TokenId::parse(minted.reveal()), Some(minted.id()));
        assert_eq!(TokenId::parse(minted.id().as_str()), Some(minted.id()));
        assert_eq!(format!("{minted:?}"), "Minted(..)");
        assert_ne!(Minted::draw().unwrap().reveal(), minted.reveal());
    }

    #[test]
    fn c61_a_text_is_told_without_the_secrets_of_the_tokens_in_it() {
        let (one, two) = (Minted::draw().unwrap(), Minted::draw().unwrap());
        let shown = |token: &Minted| token.reveal()[..CHARACTERS - SECRET_CHARACTERS].to_owned();
        let text = |one: &str, two: &str| format!("sp_ {one}{two} sp_x \u{e4}sp_{one}");
        assert_eq!(
            without_secrets(&text(one.reveal(), two.reveal())),
            text(
                &format!("{}...", shown(&one)),
                &format!("{}...", shown(&two))
            )
        );
        for none in ["", "sp_", "sp_12345678_short", "\u{e4}"] {
            assert_eq!(without_secrets(none), none);
        }
    }

    #[test]
    fn c61_a_text_that_is_cut_within_a_token_ends_before_it() {
        let minted = Minted::draw().unwrap();
        let whole = format!("sp_x. key={}", minted.reveal());
        for cut in 13..whole.len() {
            assert_eq!(without_a_begun_token(&whole[..cut]), "sp_x. key=", "{cut}");
        }
        for text in [whole.as_str(), "sp_x.", "", "\u{e4}"] {
            assert_eq!(without_a_begun_token(text), text);
        }
    }

    #[test]
    fn what_is_no_id_is_none() {
        for text in [
            "",
            "short",
            "sp_12345678",
            "1234567_",
            "123456789",
            "sp_12345678_x",
        ] {
            assert_eq!(TokenId::parse(text), None, "{text}");
        }
    }

    #[test]
    fn c54_a_longer_text_never_has_the_digest_of_a_token() {
        let token = Minted::draw().unwrap();
        let plain: Digest = Sha256::digest(token.reveal()).into();
        assert_eq!(digest(token.reveal()), plain);
        for more in ["x", " and more", &"x".repeat(100_000)] {
            assert_ne!(digest(&format!("{}{more}", token.reveal())), plain);
        }
    }
}
