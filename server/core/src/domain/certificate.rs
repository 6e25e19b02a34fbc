//! What a certificate calls its holder, and which of several names counts.
//!
//! What must never enter: the bytes of a certificate, and who is trusted.

use std::fmt::{self, Write as _};
use std::str::FromStr;
use std::sync::Arc;

use super::time::Timestamp;

/// Longest SPIFFE id, in bytes, by its standard.
const SPIFFE_BYTES: usize = 2048;
/// Longest trust domain, in bytes, by the same.
const DOMAIN_BYTES: usize = 255;
/// Longest DNS name, in bytes.
const DNS_BYTES: usize = 253;
/// Longest subject that counts, in bytes.
const SUBJECT_BYTES: usize = 1024;

/// The one name of a certificate's holder that counts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CertificateName {
    /// A SPIFFE id, `spiffe://` included.
    Spiffe(Arc<str>),
    /// A DNS name in lower case, without a wildcard.
    Dns(Arc<str>),
    /// The subject as RFC 4514 writes it: `CN=ci,O=acme`.
    Subject(Arc<str>),
}

/// Why a certificate names nobody.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NameProblem {
    /// It is a SPIFFE certificate, and not as the standard has it.
    #[error("it has a SPIFFE id that is none")]
    NoSpiffeId,
    /// Two identities in one certificate: each side could believe another one.
    #[error("it has more than one SPIFFE id, and must have one")]
    SeveralSpiffeIds,
    /// Nothing says which of them it is.
    #[error("it has no SPIFFE id and more than one DNS name; one of either would name its holder")]
    SeveralDnsNames,
    /// It has no name at all.
    #[error("it has no SPIFFE id, no DNS name and no subject")]
    Nameless,
    /// It cannot be read.
    #[error("it cannot be read")]
    Unreadable,
}

/// Why a text is no name of a certificate.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{0:?} is no name of a certificate: use spiffe://DOMAIN/PATH, dns:NAME without a wildcard, or \
     subject:CN=NAME,O=... as `openssl x509 -noout -subject -nameopt RFC2253` shows it"
)]
pub struct NoCertificateName(String);

/// What a peer has proved to be by a certificate. Read once a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerCertificate {
    /// What it calls its holder.
    pub name: Result<CertificateName, NameProblem>,
    /// When it ends.
    pub ends: Timestamp,
    /// The first bytes of its SHA-256, which tell it from others of the same name.
    pub fingerprint: [u8; 8],
}

/// The names in a certificate, in its order.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Names {
    /// The URIs among its alternative names.
    pub uris: Vec<String>,
    /// The DNS names among them.
    pub dns: Vec<String>,
    /// The subject as RFC 4514 writes it; empty: it has none.
    pub subject: String,
}

impl Names {
    /// The name that counts: its one SPIFFE id, else its one DNS name, else its subject. What has one
    /// sort of name is never known by the next.
    ///
    /// # Errors
    /// When it has none, or more than one of a sort.
    pub fn choose(&self) -> Result<CertificateName, NameProblem> {
        let mut ids = self.uris.iter().filter(|uri| claims_spiffe(uri));
        match (ids.next(), ids.next()) {
            (Some(_), Some(_)) => return Err(NameProblem::SeveralSpiffeIds),
            (Some(id), None) if is_spiffe(id) => {
                return Ok(CertificateName::Spiffe(id.as_str().into()));
            }
            (Some(_), None) => return Err(NameProblem::NoSpiffeId),
            (None, _) => {}
        }
        match &self.dns[..] {
            [] => {}
            [name] => {
                let name = name.to_ascii_lowercase();
                let fits = is_dns(&name).then(|| CertificateName::Dns(name.into()));
                return fits.ok_or(NameProblem::Nameless);
            }
            _ => return Err(NameProblem::SeveralDnsNames),
        }
        let fits = is_subject(&self.subject);
        let subject = fits.then(|| CertificateName::Subject(self.subject.as_str().into()));
        subject.ok_or(NameProblem::Nameless)
    }
}

impl fmt::Display for CertificateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spiffe(id) => f.write_str(id),
            Self::Dns(name) => write!(f, "dns:{name}"),
            Self::Subject(subject) => write!(f, "subject:{subject}"),
        }
    }
}

impl FromStr for CertificateName {
    type Err = NoCertificateName;

    fn from_str(text: &str) -> Result<Self, NoCertificateName> {
        let name = if is_spiffe(text) {
            Some(Self::Spiffe(text.into()))
        } else if let Some(name) = text.strip_prefix("dns:") {
            let name = name.to_ascii_lowercase();
            is_dns(&name).then(|| Self::Dns(name.into()))
        } else {
            let subject = text.strip_prefix("subject:");
            let subject = subject.filter(|subject| is_subject(subject));
            subject.map(|subject| Self::Subject(subject.into()))
        };
        name.ok_or_else(|| NoCertificateName(text.to_owned()))
    }
}

/// Whether a URI says that it is a SPIFFE id, in whatever case: schemes have none.
fn claims_spiffe(uri: &str) -> bool {
    uri.get(.."spiffe:".len())
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("spiffe:"))
}

/// Whether a text is a SPIFFE id with a path, as the standard writes it: no port, no user, no query,
/// no step up.
fn is_spiffe(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("spiffe://") else {
        return false;
    };
    let Some((domain, path)) = rest.split_once('/') else {
        return false;
    };
    let low = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let domain_fits = (1..=DOMAIN_BYTES).contains(&domain.len())
        && domain
            .bytes()
            .all(|byte| low(byte) || b"-._".contains(&byte));
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let segment = |segment: &str| {
        !segment.is_empty() && segment != "." && segment != ".." && segment.bytes().all(plain)
    };
    text.len() <= SPIFFE_BYTES && domain_fits && path.split('/').all(segment)
}

fn is_dns(name: &str) -> bool {
    let plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    let label = |label: &str| (1..=63).contains(&label.len()) && label.bytes().all(plain);
    name.len() <= DNS_BYTES && name.split('.').all(label)
}

fn is_subject(text: &str) -> bool {
    !text.is_empty() && text.len() <= SUBJECT_BYTES && !text.contains(char::is_control)
}

/// One part of a subject as RFC 4514 writes it: `CN=a\, b`. So no value can look like two parts.
#[must_use]
pub fn subject_part(kind: &str, value: &str) -> String {
    let mut text = format!("{kind}=");
    let last = value.chars().count().saturating_sub(1);
    for (at, character) in value.chars().enumerate() {
        match character {
            ',' | '+' | '"' | '\\' | '<' | '>' | ';' => text.push('\\'),
            '#' if at == 0 => text.push('\\'),
            ' ' if at == 0 || at == last => text.push('\\'),
            character if character.is_control() => {
                let mut bytes = [0; 4];
                for byte in character.encode_utf8(&mut bytes).bytes() {
                    let _infallible = write!(text, "\\{byte:02X}");
                }
                continue;
            }
            _ => {}
        }
        text.push(character);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(uris: &[&str], dns: &[&str], subject: &str) -> Names {
        Names {
            uris: uris.iter().map(ToString::to_string).collect(),
            dns: dns.iter().map(ToString::to_string).collect(),
            subject: subject.to_owned(),
        }
    }

    #[test]
    fn c54_a_spiffe_id_counts_before_a_dns_name_and_that_before_the_subject() {
        let told = |names: Names| names.choose().map(|name| name.to_string());
        let id = "spiffe://acme.test/ns/ci";
        let all = names(&["https://x", id], &["CI.test"], "CN=ci");
        assert_eq!(told(all).unwrap(), id);
        let two = names(&["https://x"], &["CI.test"], "CN=ci");
        assert_eq!(told(two).unwrap(), "dns:ci.test");
        let one = names(&[], &[], "CN=ci");
        assert_eq!(told(one).unwrap(), "subject:CN=ci");
    }

    #[test]
    fn c54_a_certificate_with_two_names_of_a_sort_or_none_names_nobody() {
        let id = "spiffe://acme.test/ci";
        for (names, problem) in [
            (
                names(&[id, id], &["a"], "CN=a"),
                NameProblem::SeveralSpiffeIds,
            ),
            (
                names(&[id, "SPIFFE://x/y"], &[], ""),
                NameProblem::SeveralSpiffeIds,
            ),
            (
                names(&["spiffe://"], &["a"], "CN=a"),
                NameProblem::NoSpiffeId,
            ),
            (
                names(&["SPIFFE://x/y"], &["a"], ""),
                NameProblem::NoSpiffeId,
            ),
            (
                names(&[], &["a", "b"], "CN=a"),
                NameProblem::SeveralDnsNames,
            ),
            (names(&[], &["*.a"], "CN=a"), NameProblem::Nameless),
            (names(&[], &[], ""), NameProblem::Nameless),
        ] {
            assert_eq!(names.choose(), Err(problem), "{names:?}");
        }
    }

    #[test]
    fn a_configured_name_is_read_as_certificates_have_it_and_nothing_else_is() {
        for text in [
            "spiffe://a.b/c/d-1",
            "dns:ci.acme.test",
            "subject:CN=ci,O=acme",
        ] {
            assert_eq!(text.parse::<CertificateName>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "ci",
            "dns:",
            "dns:*.acme.test",
            "dns:a..b",
            "subject:",
            "spiffe://A.b/c",
            "spiffe://a",
            "spiffe://a/",
            "spiffe://a//b",
            "spiffe://a/../b",
            "spiffe://a:1/b",
            "spiffe://u@a/b",
            "spiffe://a/b?c",
            "spiffe://a/b%41",
        ] {
            assert!(text.parse::<CertificateName>().is_err(), "{text:?}");
        }
        assert!(
            format!("spiffe://a/{}", "b".repeat(2048))
                .parse::<CertificateName>()
                .is_err()
        );
    }

    #[test]
    fn c54_no_value_of_a_subject_looks_like_two_parts() {
        assert_eq!(subject_part("CN", "a, O=b+c"), "CN=a\\, O=b\\+c");
        assert_eq!(subject_part("CN", " #a\\\n "), "CN=\\ #a\\\\\\0A\\ ");
        assert_eq!(subject_part("O", "#\u{e4}"), "O=\\#\u{e4}");
    }
}
