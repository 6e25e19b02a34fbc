//! What is wrong with a server's certificate, in words: what, and the way out. Values only.

use rustls::CertificateError;

use super::CA_VARIABLE;

/// What the verifier says of what it has no word of its own for, and ours of it.
const OTHERS: [(&str, &str); 8] = [
    (
        "CaUsedAsEndEntity",
        "is one of an authority (CA:TRUE), and no server may show such a one; its operator has to \
         make one with basicConstraints CA:FALSE",
    ),
    (
        "EndEntityUsedAsCa",
        "was issued with one that is no authority's (CA:FALSE); its operator has to have an \
         authority issue it",
    ),
    (
        "UnsupportedCertVersion",
        "is of an old version, not of version 3; its operator has to make one with a \
         subjectAltName, which has it",
    ),
    ("UnsupportedCriticalExtension", UNKNOWN_EXTENSION),
    ("NameConstraintViolation", NOT_ALLOWED),
    ("PathLenConstraintViolated", NOT_ALLOWED),
    ("MaximumPathDepthExceeded", NOT_ALLOWED),
    (
        "SignatureAlgorithmMismatch",
        "names another signature than it has; its operator has to make a new one",
    ),
];

const UNKNOWN_EXTENSION: &str = "has a critical extension that this client does not know; its \
                                 operator has to make one without it";
const NOT_ALLOWED: &str = "is none that its authority may issue by its own limits (names, length of \
                           the chain); its operator has to have it issued otherwise";

/// What is wrong with it.
pub(super) fn wrong(error: &CertificateError) -> String {
    let what = match error {
        // The latter: one of the same name, but not the same, or not even with a key of that kind.
        CertificateError::UnknownIssuer
        | CertificateError::BadSignature
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => format!(
            "is of an authority that is not trusted here; name the file of its authority: \
             {CA_VARIABLE} (sessionctl: --tls-ca FILE)"
        ),
        CertificateError::UnsupportedSignatureAlgorithmContext { .. } => {
            "is signed in a way that this client does not know; its operator has to have it signed \
             with ECDSA (P-256 or P-384), Ed25519, or RSA of 2048 bits or more, and SHA-256 or better"
                .to_owned()
        }
        CertificateError::NotValidForName => {
            "is for another name; use one that it has as the address".to_owned()
        }
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => {
            let expected = expected.to_str();
            let names = if presented.is_empty() {
                "no name at all".to_owned()
            } else {
                let names: Vec<_> = presented.iter().map(|name| plain(name)).collect();
                names.join(", ")
            };
            format!("is not for {expected} but for {names}; use a name that it has as the address")
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "has expired; its operator has to put a new one in place".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "is not valid yet; look at the clocks of both machines".to_owned()
        }
        CertificateError::Revoked => {
            "was revoked; its operator has to put a new one in place".to_owned()
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "is not for servers; its operator has to make one with extendedKeyUsage serverAuth, or \
             without that extension"
                .to_owned()
        }
        CertificateError::BadEncoding => {
            "cannot be read; its operator has to make a new one".to_owned()
        }
        CertificateError::UnhandledCriticalExtension => UNKNOWN_EXTENSION.to_owned(),
        CertificateError::Other(other) => of_another_kind(&other.0.to_string()),
        other => of_another_kind(&format!("{other:?}")),
    };
    format!("the server's certificate {what}")
}

/// A name of a certificate without the verifier's word for its kind: `DnsName("localhost")`.
fn plain(presented: &str) -> &str {
    let inner = presented.split_once('(').map(|(_, inner)| inner);
    let inner = inner.and_then(|inner| inner.strip_suffix(')'));
    inner.unwrap_or(presented).trim_matches('"')
}

/// What the verifier has only a name for.
fn of_another_kind(name: &str) -> String {
    let known = OTHERS.iter().find(|(known, _)| *known == name);
    known.map_or_else(
        || format!("is not accepted here, for a reason that only has a name: {name}"),
        |(_, words)| (*words).to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rcgen::{
        BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
        KeyPair, PKCS_ECDSA_P384_SHA384, PKCS_ED25519,
    };
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier as _;
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    use rustls::{RootCertStore, crypto};

    use super::*;

    /// What is said of a certificate by who trusts only this one.
    fn said(trusted: &CertificateDer<'static>, shown: &CertificateDer<'static>) -> String {
        let mut roots = RootCertStore::empty();
        roots.add(trusted.clone()).unwrap();
        let provider = Arc::new(crypto::ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let name = ServerName::try_from("localhost").unwrap();
        let judged =
            verifier
                .build()
                .unwrap()
                .verify_server_cert(shown, &[], &name, &[], UnixTime::now());
        super::super::in_words(&judged.unwrap_err())
    }

    fn params() -> CertificateParams {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, "one");
        params
    }

    fn signed_by_itself(params: &CertificateParams, key: &KeyPair) -> CertificateDer<'static> {
        params.self_signed(key).unwrap().der().clone()
    }

    #[test]
    fn c54_what_openssl_makes_unasked_is_told_with_what_to_make_instead() {
        let key = KeyPair::generate().unwrap();
        // As `openssl req -x509` makes it.
        let mut authority = params();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let shown = signed_by_itself(&authority, &key);
        let told = said(&shown, &shown);
        assert!(told.contains("basicConstraints CA:FALSE"), "{told}");
        let issuer = Issuer::new(authority, &key);
        let mut client = params();
        client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let client = client.signed_by(&KeyPair::generate().unwrap(), &issuer);
        let told = said(&shown, client.unwrap().der());
        assert!(told.contains("serverAuth"), "{told}");
    }

    #[test]
    fn c54_the_names_of_a_certificate_are_told_as_they_are_typed() {
        let names = vec!["here.example".to_owned(), "127.0.0.1".to_owned()];
        let mut other = CertificateParams::new(names).unwrap();
        other.is_ca = IsCa::ExplicitNoCa;
        let shown = signed_by_itself(&other, &KeyPair::generate().unwrap());
        assert_eq!(
            said(&shown, &shown),
            "the server's certificate is not for localhost but for here.example, 127.0.0.1; use a \
             name that it has as the address"
        );
    }

    #[test]
    fn c54_an_authority_of_the_same_name_is_not_trusted_whatever_its_key_is() {
        let own = |key: KeyPair| {
            let mut own = params();
            own.is_ca = IsCa::ExplicitNoCa;
            signed_by_itself(&own, &key)
        };
        let shown = own(KeyPair::generate_for(&PKCS_ED25519).unwrap());
        for trusted in [
            own(KeyPair::generate_for(&PKCS_ED25519).unwrap()),
            own(KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).unwrap()),
        ] {
            let told = said(&trusted, &shown);
            assert!(
                told.contains("an authority that is not trusted here"),
                "{told}"
            );
            assert!(told.contains(CA_VARIABLE), "{told}");
        }
    }

    #[test]
    fn c54_no_word_of_the_verifier_reaches_a_person_alone() {
        let named = |name: &str| {
            let error = std::io::Error::other(name.to_owned());
            wrong(&CertificateError::Other(rustls::OtherError(Arc::new(
                error,
            ))))
        };
        for (name, words) in OTHERS {
            assert_eq!(named(name), format!("the server's certificate {words}"));
        }
        for error in [
            named("Unheard"),
            wrong(&CertificateError::UnknownRevocationStatus),
            wrong(&CertificateError::Revoked),
            wrong(&CertificateError::BadEncoding),
            wrong(&CertificateError::UnhandledCriticalExtension),
        ] {
            assert!(!error.contains('(') && !error.contains('{'), "{error}");
        }
    }
}
