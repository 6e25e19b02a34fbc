//! An issuer's public keys, as a JWK set tells them, and whether one of them made a signature.
//!
//! What must never enter: where a set comes from; a secret: symmetric keys are passed over.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    self, ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::compact::{Algorithm, Compact};

/// Largest set that is read, in bytes.
pub const MAX_BYTES: usize = 256 * 1024;
/// Most keys of a set.
const KEYS_AT_MOST: usize = 64;

/// Why a set is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoKeys {
    /// It is too large to be looked at.
    #[error("it has more than 256 KiB")]
    TooLarge,
    /// It is no JWK set.
    #[error("it is no JWK set: {{\"keys\": [...]}}")]
    Shape,
    /// It is larger than any issuer's.
    #[error("it has more than 64 keys")]
    TooMany,
    /// All keys of it are of other kinds, or for other ends.
    #[error(
        "it has no key that could verify a JWT: RSA of 2048 bits or more, P-256, P-384, Ed25519"
    )]
    NoneUsable,
}

/// A public key.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    kid: Option<String>,
    algorithm: Option<Algorithm>,
    material: Material,
    /// SHA-256 of what it is made of.
    pub(super) mark: [u8; 32],
}

#[derive(Clone, PartialEq, Eq)]
enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

#[derive(Deserialize)]
struct Set {
    keys: Vec<Value>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

/// Reads a set. Keys that are not for signatures that are accepted here are passed over.
///
/// # Errors
/// When it is none, or has no key that could be used.
pub fn read(bytes: &[u8]) -> Result<Vec<Key>, NoKeys> {
    if bytes.len() > MAX_BYTES {
        return Err(NoKeys::TooLarge);
    }
    let set: Set = serde_json::from_slice(bytes).map_err(|_| NoKeys::Shape)?;
    if set.keys.len() > KEYS_AT_MOST {
        return Err(NoKeys::TooMany);
    }
    let keys: Vec<Key> = set.keys.into_iter().filter_map(key).collect();
    if keys.is_empty() {
        return Err(NoKeys::NoneUsable);
    }
    Ok(keys)
}

fn key(value: Value) -> Option<Key> {
    let jwk: Jwk = serde_json::from_value(value).ok()?;
    if jwk
        .purpose
        .as_deref()
        .is_some_and(|purpose| purpose != "sig")
    {
        return None;
    }
    let verifies = |ops: &Vec<String>| ops.iter().any(|op| op == "verify");
    if jwk.key_ops.as_ref().is_some_and(|ops| !verifies(ops)) {
        return None;
    }
    let algorithm = match jwk.alg.as_deref() {
        None => None,
        // One for another algorithm is none for ours.
        Some(name) => Some(Algorithm::named(name)?),
    };
    let material = material(&jwk)?;
    let mark = material.mark();
    Some(Key {
        kid: jwk.kid,
        algorithm,
        material,
        mark,
    })
}

fn material(jwk: &Jwk) -> Option<Material> {
    let part = |part: &Option<String>| URL_SAFE_NO_PAD.decode(part.as_deref()?).ok();
    let point = |length: usize| {
        let (x, y) = (part(&jwk.x)?, part(&jwk.y)?);
        (x.len() == length && y.len() == length).then(|| [&[4][..], &x, &y].concat())
    };
    match (jwk.kty.as_str(), jwk.crv.as_deref()) {
        ("RSA", _) => {
            let (n, e) = (part(&jwk.n)?, part(&jwk.e)?);
            // The least that is safe, and the most that costs a call no more than a moment.
            (256..=512)
                .contains(&n.len())
                .then_some(Material::Rsa { n, e })
        }
        ("EC", Some("P-256")) => point(32).map(Material::P256),
        ("EC", Some("P-384")) => point(48).map(Material::P384),
        ("OKP", Some("Ed25519")) => {
            let x = part(&jwk.x)?;
            (x.len() == 32).then_some(Material::Ed25519(x))
        }
        _ => None,
    }
}

impl Material {
    fn mark(&self) -> [u8; 32] {
        let (kind, parts): (u8, [&[u8]; 2]) = match self {
            Self::Rsa { n, e } => (0, [n, e]),
            Self::P256(point) => (1, [point, &[]]),
            Self::P384(point) => (2, [point, &[]]),
            Self::Ed25519(point) => (3, [point, &[]]),
        };
        let mut digest = Sha256::new();
        digest.update([kind]);
        for part in parts {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        digest.finalize().into()
    }

    /// Whether this key, and not only its like, made the signature. A key verifies by the algorithms of
    /// its own kind, whatever the token says.
    fn verifies(&self, algorithm: Algorithm, signed: &[u8], signature: &[u8]) -> bool {
        let verified = match (self, algorithm) {
            (Self::Rsa { n, e }, algorithm) => {
                let parameters = match algorithm {
                    Algorithm::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
                    Algorithm::Rs384 => &signature::RSA_PKCS1_2048_8192_SHA384,
                    Algorithm::Rs512 => &signature::RSA_PKCS1_2048_8192_SHA512,
                    Algorithm::Ps256 => &signature::RSA_PSS_2048_8192_SHA256,
                    Algorithm::Es256 | Algorithm::Es384 | Algorithm::EdDsa => return false,
                };
                RsaPublicKeyComponents { n, e }.verify(parameters, signed, signature)
            }
            (Self::P256(point), Algorithm::Es256) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(signed, signature)
            }
            (Self::P384(point), Algorithm::Es384) => {
                UnparsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, point).verify(signed, signature)
            }
            (Self::Ed25519(point), Algorithm::EdDsa) => {
                UnparsedPublicKey::new(&ED25519, point).verify(signed, signature)
            }
            _ => return false,
        };
        verified.is_ok()
    }
}

/// What a set says of a token.
pub enum Judged {
    /// The key with this mark signed it.
    Signed([u8; 32]),
    /// A key of its name did not sign it.
    Forged,
    /// There is no key of its name: there may be one soon.
    NoSuchKey,
}

/// Whether one of the keys signed a token. Without a key's name in it only one that is the only one of
/// its kind may have.
pub(super) fn judge(keys: &[Key], token: &Compact<'_>) -> Judged {
    let fits = |key: &&Key| {
        key.algorithm.is_none_or(|named| named == token.algorithm)
            && key.material.fits(token.algorithm)
    };
    let fitting: Vec<&Key> = match &token.kid {
        Some(kid) => keys
            .iter()
            .filter(|key| key.kid.as_ref() == Some(kid))
            .collect(),
        None => keys.iter().filter(fits).collect(),
    };
    if fitting.is_empty() {
        return Judged::NoSuchKey;
    }
    if token.kid.is_none() && fitting.len() > 1 {
        return Judged::Forged;
    }
    let signed = fitting.into_iter().filter(fits).find(|key| {
        let material = &key.material;
        material.verifies(token.algorithm, token.signed, &token.signature)
    });
    signed.map_or(Judged::Forged, |key| Judged::Signed(key.mark))
}

impl Material {
    fn fits(&self, algorithm: Algorithm) -> bool {
        match self {
            Self::Rsa { .. } => matches!(
                algorithm,
                Algorithm::Rs256 | Algorithm::Rs384 | Algorithm::Rs512 | Algorithm::Ps256
            ),
            Self::P256(_) => algorithm == Algorithm::Es256,
            Self::P384(_) => algorithm == Algorithm::Es384,
            Self::Ed25519(_) => algorithm == Algorithm::EdDsa,
        }
    }
}
