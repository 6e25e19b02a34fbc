//! Who calls? Asked once per call, before anything else is looked at.
//!
//! What must never enter: how a credential is checked, and a credential in any text.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use sessionplane_core::domain::access::Principal;
use sessionplane_core::domain::error::{CallError, Reason};
use sessionplane_core::ports::authenticator::{Authenticator, Presented};

/// The principal behind a call.
pub(crate) async fn principal(
    authenticator: &dyn Authenticator,
    headers: &HeaderMap,
) -> Result<Principal, CallError> {
    let presented = Presented {
        bearer: bearer(headers),
    };
    authenticator
        .authenticate(presented)
        .await
        .map_err(|refusal| CallError::refused(Reason::Unauthenticated, refusal.to_string()))
}

/// The token of `authorization: Bearer TOKEN`. A header that is repeated is none: a proxy and the
/// server might otherwise each believe another one.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (first, second) = (values.next()?, values.next());
    if second.is_some() {
        return None;
    }
    let (scheme, token) = first.to_str().ok()?.split_once(' ')?;
    let token = token.trim_start_matches(' ');
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn one_bearer_token_is_read_whatever_the_case_of_its_scheme() {
        for value in ["Bearer abc", "bearer abc", "BEARER  abc"] {
            assert_eq!(bearer(&headers(&[value])), Some("abc"), "{value}");
        }
    }

    #[test]
    fn anything_else_is_no_token() {
        for values in [
            &[][..],
            &["abc"],
            &["Bearer"],
            &["Bearer "],
            &["Basic abc"],
            &["Bearer abc", "Bearer abc"],
        ] {
            assert_eq!(bearer(&headers(values)), None, "{values:?}");
        }
    }
}
