use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

async fn answer<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, answer: &[u8]) {
    let mut asked = [0; 1024];
    let read = stream.read(&mut asked).await.unwrap();
    assert!(asked[..read].starts_with(b"GET /keys?v=1 HTTP/1.1\r\n"));
    let _gone = stream.write_all(answer).await;
    let _gone = stream.shutdown().await;
}

fn http(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}").into_bytes()
}

/// A server that answers once, and the URL of its keys.
async fn server(says: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        answer(stream, &says).await;
    });
    format!("http://127.0.0.1:{port}/keys?v=1")
}

#[tokio::test]
async fn c54_keys_are_fetched_and_whatever_else_is_answered_is_an_error_in_words() {
    let url = server(http("200 OK", "{}")).await;
    let fetched = KeyUrl::new(&url, None).unwrap().fetch().await;
    assert_eq!(fetched.unwrap(), b"{}");
    let large = "x".repeat(jwks::MAX_BYTES + 1);
    for (says, told) in [
        (http("500 Oops", ""), "HTTP 500"),
        (
            http("302 Found\r\nlocation: http://127.0.0.1:1/", ""),
            "HTTP 302",
        ),
        (http("200 OK", &large), "cannot be read"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx".to_vec(),
            "cannot be read",
        ),
        (b"nonsense\r\n\r\n".to_vec(), "does not answer"),
        (Vec::new(), "does not answer"),
    ] {
        let url = server(says).await;
        let problem = KeyUrl::new(&url, None).unwrap().fetch().await.unwrap_err();
        assert!(problem.contains(told), "{problem}");
        assert!(problem.contains(&url), "{problem}");
    }
    let nobody = KeyUrl::new("http://127.0.0.1:1/", None).unwrap();
    assert!(
        nobody
            .fetch()
            .await
            .unwrap_err()
            .contains("cannot be reached")
    );
}

#[tokio::test(start_paused = true)]
async fn c54_an_issuer_that_says_nothing_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let hangs = KeyUrl::new(&format!("http://localhost:{port}/"), None).unwrap();
    let problem = hangs.fetch().await.unwrap_err();
    assert!(problem.contains("within 5 s"), "{problem}");
}

#[tokio::test]
async fn c54_keys_come_over_tls_from_whom_the_authorities_vouch_for() {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, authority.pem()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    let cert = params.signed_by(&key, &authority).unwrap().der().clone();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            if let Ok(stream) = acceptor.accept(stream).await {
                answer(stream, &http("200 OK", "{}")).await;
            }
        }
    });
    let url = format!("https://localhost:{port}/keys?v=1");
    let fetched = KeyUrl::new(&url, Some(&ca)).unwrap().fetch().await;
    assert_eq!(fetched.unwrap(), b"{}");
    let other = format!("https://127.0.0.1:{port}/keys?v=1");
    let problem = KeyUrl::new(&other, Some(&ca)).unwrap().fetch().await;
    assert!(problem.unwrap_err().contains("TLS with it fails"));
    assert!(KeyUrl::new(&url, Some(&folder.path().join("none"))).is_err());
}

#[test]
fn c54_keys_are_asked_for_over_tls_or_on_this_host() {
    for url in [
        "https://id.acme.test/keys",
        "http://127.0.0.1:8/k",
        "http://[::1]:8/k",
    ] {
        assert_eq!(KeyUrl::check(url), Ok(()), "{url}");
    }
    for url in [
        "http://id.acme.test/keys",
        "http://127.0.0.1.acme.test/",
        "ftp://localhost/",
        "https://ada@id.acme.test/",
        "/keys",
        "",
    ] {
        assert!(KeyUrl::check(url).is_err(), "{url}");
    }
}
