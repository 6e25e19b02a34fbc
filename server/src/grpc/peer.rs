//! What the certificate of a connection's peer says of it: read once, when it has shaken hands.
//!
//! What must never enter: who is trusted, and what a name may do.

use sessionplane_core::domain::certificate::{NameProblem, Names, PeerCertificate, subject_part};
use sessionplane_core::domain::time::Timestamp;
use sha2::{Digest as _, Sha256};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::X509Certificate;
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

/// Most alternative names that are looked at. A certificate with more names nobody.
const NAMES_AT_MOST: usize = 64;

/// Attributes of a subject by the names that RFC 4514 gives them; others go by their number.
const KINDS: &[(&str, &str)] = &[
    ("2.5.4.3", "CN"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "STREET"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.25", "DC"),
];

/// Reads a certificate (DER) that the handshake has verified. One that cannot be read names nobody, and
/// is over.
#[must_use]
pub fn read(der: &[u8]) -> PeerCertificate {
    let mut fingerprint = [0; 8];
    fingerprint.copy_from_slice(&Sha256::digest(der)[..8]);
    let (name, ends) = match x509_parser::parse_x509_certificate(der) {
        Ok(([], certificate)) => {
            let name = names(&certificate).and_then(|names| names.choose());
            (name, ends(&certificate))
        }
        _ => (Err(NameProblem::Unreadable), Timestamp::default()),
    };
    PeerCertificate {
        name,
        ends,
        fingerprint,
    }
}

fn ends(certificate: &X509Certificate<'_>) -> Timestamp {
    let seconds = certificate.validity().not_after.timestamp();
    let seconds = u64::try_from(seconds).unwrap_or(0);
    Timestamp::from_millis(seconds.saturating_mul(1000))
}

fn names(certificate: &X509Certificate<'_>) -> Result<Names, NameProblem> {
    let mut names = Names::default();
    // An extension that is there twice is refused with one that makes no sense.
    let extension = certificate.subject_alternative_name();
    let extension = extension.map_err(|_wrong| NameProblem::Unreadable)?;
    if let Some(extension) = extension {
        let all = &extension.value.general_names;
        if all.len() > NAMES_AT_MOST {
            return Err(NameProblem::Unreadable);
        }
        for name in all {
            match name {
                GeneralName::URI(uri) => names.uris.push((*uri).to_owned()),
                GeneralName::DNSName(name) => names.dns.push((*name).to_owned()),
                GeneralName::Invalid(..) => return Err(NameProblem::Unreadable),
                _ => {}
            }
        }
    }
    // A subject that cannot be written down is none.
    names.subject = subject(certificate.subject()).unwrap_or_default();
    Ok(names)
}

/// A subject as RFC 4514 writes it: its last part first.
fn subject(name: &X509Name<'_>) -> Option<String> {
    let parts = name.iter_rdn().map(|part| {
        let attributes: Option<Vec<String>> = part.iter().map(attribute).collect();
        Some(attributes?.join("+"))
    });
    let mut parts = parts.collect::<Option<Vec<String>>>()?;
    parts.reverse();
    Some(parts.join(","))
}

fn attribute(attribute: &AttributeTypeAndValue<'_>) -> Option<String> {
    let number = attribute.attr_type().to_id_string();
    let kind = KINDS.iter().find(|(known, _)| *known == number);
    let kind = kind.map_or(number.as_str(), |(_, kind)| kind);
    Some(subject_part(kind, attribute.as_str().ok()?))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, SanType, date_time_ymd};

    use super::*;

    fn certificate(uris: &[&str], dns: &[&str], subject: &[(DnType, &str)]) -> Vec<u8> {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        let uris = uris
            .iter()
            .map(|uri| SanType::URI((*uri).try_into().unwrap()));
        let dns = dns
            .iter()
            .map(|name| SanType::DnsName((*name).try_into().unwrap()));
        params.subject_alt_names = uris.chain(dns).collect();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, value) in subject {
            params.distinguished_name.push(kind.clone(), *value);
        }
        params.not_after = date_time_ymd(2030, 1, 1);
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    fn told(der: &[u8]) -> Result<String, NameProblem> {
        read(der).name.map(|name| name.to_string())
    }

    #[test]
    fn c54_a_certificate_is_read_with_its_name_its_end_and_its_fingerprint() {
        let (common, organization) = (DnType::CommonName, DnType::OrganizationName);
        let subject = [(organization, "acme, inc"), (common, "ci")];
        let spiffe = certificate(&["spiffe://acme.test/ci"], &["a.test"], &subject);
        assert_eq!(told(&spiffe).unwrap(), "spiffe://acme.test/ci");
        assert_eq!(
            read(&spiffe).ends,
            Timestamp::from_millis(1_893_456_000_000)
        );
        let plain = certificate(&[], &[], &subject);
        assert_eq!(told(&plain).unwrap(), "subject:CN=ci,O=acme\\, inc");
        assert_ne!(read(&spiffe).fingerprint, read(&plain).fingerprint);
        let dns = certificate(&["https://x.test/"], &["A.test"], &subject);
        assert_eq!(told(&dns).unwrap(), "dns:a.test");
    }

    #[test]
    fn c54_a_certificate_that_is_cut_or_longer_than_it_should_be_names_nobody() {
        let whole = certificate(&["spiffe://acme.test/ci"], &[], &[]);
        for cut in 0..whole.len() {
            let read = read(&whole[..cut]);
            assert_eq!(read.name, Err(NameProblem::Unreadable), "{cut}");
            assert_eq!(read.ends, Timestamp::default());
        }
        let longer = [&whole[..], &[0]].concat();
        assert_eq!(told(&longer), Err(NameProblem::Unreadable));
        let two = certificate(&["spiffe://a/b", "spiffe://a/c"], &[], &[]);
        assert_eq!(told(&two), Err(NameProblem::SeveralSpiffeIds));
    }
}
