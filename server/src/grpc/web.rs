//! gRPC-Web, for pages: which of them may call, and what their browsers must be told first.
//!
//! A browser says where a page is from. What an unknown page asks is refused before anything else is
//! looked at, so that no page that somebody happens to open can reach a server on their machine. What
//! must never enter: who calls, and what a message says.

use std::convert::Infallible;

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, CONTENT_TYPE, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use tokio_util::task::TaskTracker;
use tonic::body::Body;
use tonic_web::GrpcWebLayer;
use tower::{Layer as _, ServiceExt as _, service_fn};

use super::connection::Closing;
use super::routes::Routes;
use crate::app::face::Faces;

/// What a page may send.
const SENT: &str = "authorization, content-type, grpc-accept-encoding, grpc-encoding, grpc-timeout, \
                    traceparent, tracestate, x-grpc-web, x-user-agent";
/// What a page may read.
const READ: &str = "grpc-encoding, grpc-message, grpc-status, grpc-status-details-bin";
/// How long a browser need not ask again, in seconds.
const REMEMBERED: &str = "7200";

/// The pages that may call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Web {
    origins: Vec<String>,
}

/// Whether a text names origins: `http://host`, `https://host:port`, or `:*` for any port.
///
/// # Errors
/// What is wrong with it, and the way out.
pub fn check_origin(text: &str) -> Result<(), String> {
    let wrong = || {
        format!(
            "{text:?} is no origin; use http://HOST, https://HOST:PORT, or HOST:* for any port; a \
             path, or * alone, is none"
        )
    };
    let rest = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"))
        .ok_or_else(wrong)?;
    let host = rest.strip_suffix(":*").unwrap_or(rest);
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._:[]".contains(c);
    let right = !host.is_empty() && host.chars().all(plain);
    right.then_some(()).ok_or_else(wrong)
}

impl Web {
    /// Pages of these origins.
    pub(crate) fn new(origins: &[String]) -> Self {
        Self {
            origins: origins.to_vec(),
        }
    }

    fn knows(&self, origin: &str) -> bool {
        self.origins
            .iter()
            .any(|known| match known.strip_suffix(":*") {
                Some(host) => origin.strip_prefix(host).is_some_and(any_port),
                None => origin == known,
            })
    }

    /// Answers a request, of a page or of anybody else.
    pub(crate) async fn respond<F: Faces>(
        &self,
        routes: &Routes<F>,
        request: Request<Incoming>,
        connection: &Closing,
        tasks: &TaskTracker,
    ) -> Response<Body> {
        let origin = request.headers().get(ORIGIN).cloned();
        if let Some(origin) = &origin
            && !origin.to_str().is_ok_and(|origin| self.knows(origin))
        {
            return unknown_page();
        }
        let mut response = if origin.is_some() && request.method() == Method::OPTIONS {
            allowed()
        } else if is_web(request.headers()) {
            let inner = service_fn(async |request: Request<Body>| {
                Ok::<_, Infallible>(routes.respond(request, connection, tasks).await)
            });
            let answered = GrpcWebLayer::new().layer(inner).oneshot(request).await;
            answered.unwrap_or_else(|never| match never {})
        } else if request.version() == Version::HTTP_2 {
            routes.respond(request, connection, tasks).await
        } else {
            needs_http2()
        };
        if let Some(origin) = origin {
            let headers = response.headers_mut();
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(VARY, HeaderValue::from_static("origin"));
            headers.insert(
                ACCESS_CONTROL_EXPOSE_HEADERS,
                HeaderValue::from_static(READ),
            );
        }
        response
    }
}

/// Whether this is what may follow a host: nothing, or a port.
fn any_port(rest: &str) -> bool {
    let port = |port: &str| !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit());
    rest.is_empty() || rest.strip_prefix(':').is_some_and(port)
}

fn is_web(headers: &HeaderMap) -> bool {
    let kind = headers
        .get(CONTENT_TYPE)
        .map_or(&b""[..], |kind| kind.as_bytes());
    kind.starts_with(b"application/grpc-web")
}

/// The answer to a browser that asks whether a page may call.
fn allowed() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    let put = [
        (ACCESS_CONTROL_ALLOW_METHODS, "POST"),
        (ACCESS_CONTROL_ALLOW_HEADERS, SENT),
        (ACCESS_CONTROL_MAX_AGE, REMEMBERED),
    ];
    for (name, value) in put {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn unknown_page() -> Response<Body> {
    let text =
        "this page may not call this server; its operator names origins in edge.web_origins\n";
    in_words(StatusCode::FORBIDDEN, text)
}

fn needs_http2() -> Response<Body> {
    let text = "gRPC needs HTTP/2 (h2c, with prior knowledge); pages use gRPC-Web: a POST of \
                application/grpc-web\n";
    in_words(StatusCode::HTTP_VERSION_NOT_SUPPORTED, text)
}

/// What somebody is told who does not speak gRPC.
fn in_words(code: StatusCode, text: &'static str) -> Response<Body> {
    let body = http_body_util::Full::new(bytes::Bytes::from_static(text.as_bytes()));
    let mut response = Response::new(Body::new(body));
    *response.status_mut() = code;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_known_as_a_whole_or_with_any_port_and_never_by_its_beginning() {
        let web = Web::new(&[
            "http://localhost:*".to_owned(),
            "https://ui.example".to_owned(),
        ]);
        for known in [
            "http://localhost",
            "http://localhost:5173",
            "https://ui.example",
        ] {
            assert!(web.knows(known), "{known}");
        }
        for unknown in [
            "null",
            "https://localhost:5173",
            "http://localhost.evil.example",
            "http://localhost:80.evil.example",
            "http://localhost:",
            "https://ui.example:8443",
            "https://ui.example.evil",
        ] {
            assert!(!web.knows(unknown), "{unknown}");
        }
        assert!(!Web::default().knows("http://localhost"));
    }

    #[test]
    fn what_is_no_origin_is_told_with_the_way_out() {
        for right in [
            "http://localhost:*",
            "https://a.b",
            "http://[::1]:*",
            "http://127.0.0.1:80",
        ] {
            assert_eq!(check_origin(right), Ok(()), "{right}");
        }
        for wrong in [
            "*",
            "localhost",
            "http://",
            "http://a/b",
            "ftp://a",
            "http://*.a",
            "http://A",
        ] {
            let told = check_origin(wrong).unwrap_err();
            assert!(told.contains("http://HOST"), "{told}");
        }
    }
}
