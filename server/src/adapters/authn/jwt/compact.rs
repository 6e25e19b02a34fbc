//! A signed JWT in its compact form, taken apart. Nothing of it is proved yet.
//!
//! What must never enter: a key, a clock, who is trusted.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

/// Longest JWT that is read, in bytes.
pub const MAX_BYTES: usize = 8 * 1024;

/// How a JWT may be signed. Nothing symmetric, and not `none`: there is no word for them here, so that
/// no configuration and no token can ask for them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Algorithm {
    /// RSA, PKCS#1 1.5, SHA-256.
    Rs256,
    /// RSA, PKCS#1 1.5, SHA-384.
    Rs384,
    /// RSA, PKCS#1 1.5, SHA-512.
    Rs512,
    /// RSA, PSS, SHA-256.
    Ps256,
    /// ECDSA, P-256, SHA-256.
    Es256,
    /// ECDSA, P-384, SHA-384.
    Es384,
    /// Ed25519.
    EdDsa,
}

impl Algorithm {
    /// Their names, for configuration.
    pub const NAMES: [(&'static str, Self); 7] = [
        ("RS256", Self::Rs256),
        ("RS384", Self::Rs384),
        ("RS512", Self::Rs512),
        ("PS256", Self::Ps256),
        ("ES256", Self::Es256),
        ("ES384", Self::Es384),
        ("EdDSA", Self::EdDsa),
    ];

    /// The one of this name, in exactly this case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let found = Self::NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, algorithm)| *algorithm)
    }
}

/// What is wrong with a text that should be a JWT.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Malformed {
    /// It is too long to be looked at.
    #[error("it has more than 8 KiB")]
    TooLong,
    /// It is no JWT.
    #[error("it is malformed")]
    Shape,
    /// It is signed in no way that is ever accepted.
    #[error("its algorithm is none that is ever accepted here")]
    Algorithm,
    /// It must not be used by who does not know everything in it.
    #[error("it demands an extension (crit)")]
    Critical,
}

/// A JWT's parts.
pub struct Compact<'t> {
    /// How it says that it is signed.
    pub algorithm: Algorithm,
    /// The name of the key, if it tells one.
    pub kid: Option<String>,
    /// What it claims.
    pub claims: Map<String, Value>,
    /// What is signed.
    pub signed: &'t [u8],
    /// The signature.
    pub signature: Vec<u8>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    crit: Option<IgnoredAny>,
}

/// Whether a bearer token may be a JWT: three parts, of which the first begins an object. No token of
/// ours looks like that.
#[must_use]
pub fn looks_like(token: &str) -> bool {
    token.starts_with("eyJ") && token.matches('.').count() == 2
}

/// Takes a token apart.
///
/// # Errors
/// When it is none, or one that is never accepted.
pub fn read(token: &str) -> Result<Compact<'_>, Malformed> {
    if token.len() > MAX_BYTES {
        return Err(Malformed::TooLong);
    }
    let (signed, signature) = token.rsplit_once('.').ok_or(Malformed::Shape)?;
    let (header, claims) = signed.split_once('.').ok_or(Malformed::Shape)?;
    let header: Header = json(header)?;
    if header.crit.is_some() {
        return Err(Malformed::Critical);
    }
    let algorithm = Algorithm::named(&header.alg).ok_or(Malformed::Algorithm)?;
    Ok(Compact {
        algorithm,
        kid: header.kid,
        claims: json(claims)?,
        signed: signed.as_bytes(),
        signature: bytes(signature)?,
    })
}

fn bytes(text: &str) -> Result<Vec<u8>, Malformed> {
    URL_SAFE_NO_PAD.decode(text).map_err(|_| Malformed::Shape)
}

fn json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, Malformed> {
    serde_json::from_slice(&bytes(text)?).map_err(|_| Malformed::Shape)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn token(header: &str, claims: &str) -> String {
        let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part));
        format!("{header}.{claims}.c2ln")
    }

    #[test]
    fn c54_a_jwt_is_taken_apart_and_what_is_none_is_told() {
        let whole = token(
            "{\"alg\":\"RS256\",\"kid\":\"k\",\"x5c\":[]}",
            "{\"iss\":\"i\"}",
        );
        assert!(looks_like(&whole));
        let read_ = read(&whole).ok().unwrap();
        assert_eq!(
            (read_.algorithm, read_.kid.as_deref()),
            (Algorithm::Rs256, Some("k"))
        );
        assert_eq!(read_.claims["iss"], "i");
        assert_eq!(read_.signature, b"sig");
        for (text, problem) in [
            (String::new(), Malformed::Shape),
            ("a.b".to_owned(), Malformed::Shape),
            (format!("{whole}="), Malformed::Shape),
            (format!("{whole}.x"), Malformed::Shape),
            (token("{}", "{}"), Malformed::Shape),
            (token("{\"alg\":\"RS256\"}", "[]"), Malformed::Shape),
            (
                token("{\"alg\":\"RS256\",\"alg\":\"ES256\"}", "{}"),
                Malformed::Shape,
            ),
            (
                token("{\"alg\":\"RS256\",\"crit\":[]}", "{}"),
                Malformed::Critical,
            ),
            ("x".repeat(MAX_BYTES + 1), Malformed::TooLong),
        ] {
            assert_eq!(read(&text).err(), Some(problem), "{text}");
        }
        for name in ["none", "None", "HS256", "HS512", "rs256", "RS256 ", ""] {
            let text = token(&format!("{{\"alg\":\"{name}\"}}"), "{}");
            assert_eq!(read(&text).err(), Some(Malformed::Algorithm), "{name}");
        }
    }

    proptest! {
        #[test]
        fn c54_no_text_takes_the_reader_down(text in "[A-Za-z0-9_.=-]{0,200}") {
            let _read = read(&text);
        }
    }
}
