//! Who calls? Asked once per call, before anything else is looked at.
//!
//! What must never enter: how a credential is checked, and a credential in any text.

use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{Extensions, HeaderMap};
use sessionplane_core::domain::certificate::PeerCertificate;
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::ports::authenticator::{Authenticator, Forwarded, Known, Presented};

/// The header by which a proxy says whose certificate it has seen.
const FORWARDED: &str = "x-forwarded-client-cert";

/// Is with every request of a connection whose peer has shown a certificate.
#[derive(Clone)]
pub(crate) struct Peer(pub(crate) Arc<PeerCertificate>);

/// Who is behind a call, and how long that holds.
pub(crate) async fn known(
    authenticator: &dyn Authenticator,
    headers: &HeaderMap,
    extensions: &Extensions,
) -> Result<Known, CallError> {
    let refused = |words: String| CallError::refused(Reason::Unauthenticated, words);
    let bearer = bearer(headers).map_err(|Unreadable| {
        refused(
            "no bearer token that can be read: send exactly one `authorization: Bearer TOKEN`, or \
             none where a certificate says who calls"
                .to_owned(),
        )
    })?;
    let presented = Presented {
        bearer,
        certificate: extensions.get::<Peer>().map(|Peer(peer)| &**peer),
        forwarded: forwarded(headers),
    };
    let known = authenticator.authenticate(presented).await;
    known.map_err(|refusal| refused(refusal.to_string()))
}

/// There is a header, and no token in it: whoever sent it must not pass for somebody who sent none.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Unreadable;

/// The token of `authorization: Bearer TOKEN`. A header that is repeated is none: a proxy and the
/// server might otherwise each believe another one.
pub(super) fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Unreadable> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(first) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(Unreadable);
    }
    let parts = first.to_str().ok().and_then(|text| text.split_once(' '));
    let (scheme, token) = parts.ok_or(Unreadable)?;
    let token = token.trim_start_matches(' ');
    if scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() {
        return Ok(Some(token));
    }
    Err(Unreadable)
}

fn forwarded(headers: &HeaderMap) -> Forwarded<'_> {
    let mut values = headers.get_all(FORWARDED).iter();
    match (values.next(), values.next()) {
        (None, _) => Forwarded::Absent,
        (Some(once), None) => Forwarded::Once(once.as_bytes()),
        (Some(_), Some(_)) => Forwarded::Repeated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn one_bearer_token_is_read_whatever_the_case_of_its_scheme() {
        for value in ["Bearer abc", "bearer abc", "BEARER  abc"] {
            let headers = headers("authorization", &[value]);
            assert_eq!(bearer(&headers), Ok(Some("abc")), "{value}");
        }
        assert_eq!(bearer(&HeaderMap::new()), Ok(None));
    }

    #[test]
    fn c54_a_header_without_one_token_is_told_from_none() {
        for values in [
            &["abc"][..],
            &["Bearer"],
            &["Bearer "],
            &["Basic abc"],
            &["Bearer abc", "Bearer abc"],
        ] {
            let headers = headers("authorization", values);
            assert_eq!(bearer(&headers), Err(Unreadable), "{values:?}");
        }
    }

    #[test]
    fn c54_a_forwarded_certificate_that_came_twice_is_told_from_one() {
        let told = |values: &[&str]| match forwarded(&headers(FORWARDED, values)) {
            Forwarded::Absent => "absent".to_owned(),
            Forwarded::Once(value) => String::from_utf8(value.to_vec()).unwrap(),
            Forwarded::Repeated => "repeated".to_owned(),
        };
        assert_eq!(told(&[]), "absent");
        assert_eq!(told(&["URI=a"]), "URI=a");
        assert_eq!(told(&["URI=a", "URI=a"]), "repeated");
    }
}
