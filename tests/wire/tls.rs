//! TLS on the wire: handshakes that stall, fail or change their certificate, and what each side
//! hears of what is wrong.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use sessionplane_client::contract::{CallOptions, SessionControl as _};
use sessionplane_client::domain::error::{CallError, Outcome, Reason};
use sessionplane_client::domain::ids::{SessionName, SessionRef};
use sessionplane_client::{Client, ClientOptions, TlsOptions, Token};
use sessionplane_core::ports::clock::Clock;
use sessionplane_server::adapters::authn::OwnerToken;
use sessionplane_server::adapters::clock::TokioClock;
use sessionplane_server::adapters::tls_files::{TlsFiles, TlsPaths};
use sessionplane_server::grpc::listener::{Address, Guard, Listener};
use sessionplane_server::grpc::server::{Config, Stopped};
use sessionplane_server::grpc::tls::{ALPN, Tls};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::pki::{Files, Pair, Pki, replace};
use crate::server::{Caller, Running, connect, soon};
use crate::streams::observe;

const LONG: Duration = Duration::from_secs(600);
/// A handshake record that promises more than it brings.
const HALF_A_HELLO: &[u8] = &[0x16, 3, 1, 2, 0, 1, 0];

impl Files {
    pub(crate) fn paths(&self) -> TlsPaths {
        TlsPaths {
            cert: self.cert.clone(),
            key: self.key.clone(),
            clients: None,
            alpn: ALPN.map(<[u8]>::to_vec).into(),
        }
    }

    fn open(&self) -> TlsFiles {
        TlsFiles::open(self.paths(), clock()).unwrap()
    }

    /// TLS of these files as they are now.
    pub(crate) fn tls(&self) -> Tls {
        Tls::new(self.open().current())
    }
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(TokioClock::start())
}

/// A server that speaks TLS.
async fn serve(tls: Tls, config: Config) -> Running {
    let directory = tempfile::tempdir().unwrap();
    let owner = Arc::new(OwnerToken::open(directory.path()).unwrap());
    let guard = Guard {
        tls: Some(tls),
        identities: false,
    };
    let address = "127.0.0.1:0".parse().unwrap();
    let listener = Listener::guarded(&address, guard).await.unwrap();
    Running::on(listener, directory, config, owner)
}

fn port(server: &Running) -> u16 {
    let Address::Tcp(address) = &server.address else {
        panic!("only over TCP");
    };
    address.port()
}

/// A TLS connection that trusts an authority, and shows a certificate if it has one.
pub(crate) async fn shake(
    server: &Running,
    ca: &str,
    shows: Option<&Pair>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(ca.as_bytes()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match shows {
        None => builder.with_no_client_auth(),
        Some(pair) => {
            let cert = CertificateDer::from_pem_slice(pair.cert.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
            builder.with_client_auth_cert(vec![cert], key).unwrap()
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    let name = ServerName::try_from("localhost").unwrap();
    let stream = server.silent().await;
    soon(TlsConnector::from(Arc::new(config)).connect(name, stream)).await
}

async fn owner(server: &Running, ca: &str) -> Caller {
    let stream = shake(server, ca, None).await.unwrap();
    Caller::over(connect(stream).await, &server.token)
}

/// The first certificate that a server shows to who trusts this authority.
async fn shown(server: &Running, ca: &str) -> Vec<u8> {
    let stream = shake(server, ca, None).await.unwrap();
    stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

fn der(pair: &Pair) -> Vec<u8> {
    CertificateDer::from_pem_slice(pair.cert.as_bytes())
        .unwrap()
        .to_vec()
}

/// What the SDK is told when it asks at an address.
async fn asked(address: &str, tls: TlsOptions, token: &str) -> Result<(), CallError> {
    let mut options = ClientOptions::new(address.parse().unwrap());
    options.tls = tls;
    options.token = Some(Token::parse(token).unwrap());
    let client = Client::connect(options).unwrap();
    let session = SessionRef::Name(SessionName::parse("a").unwrap());
    let state = client.get_state(session, None, CallOptions::default());
    soon(state).await.map(drop)
}

fn trusting(files: &Files) -> TlsOptions {
    TlsOptions::default().ca_file(&files.ca).unwrap()
}

#[tokio::test]
async fn c54_calls_and_streams_go_over_tls_and_the_sdk_speaks_it() {
    let files = Pki::new().files();
    let mut server = serve(files.tls(), Config::default()).await;
    let address = format!("https://localhost:{}", port(&server));
    asked(&address, trusting(&files), &server.token)
        .await
        .unwrap();
    let address = format!("https://127.0.0.1:{}", port(&server));
    asked(&address, trusting(&files), &server.token)
        .await
        .unwrap();

    let ca = std::fs::read_to_string(&files.ca).unwrap();
    let caller = owner(&server, &ca).await;
    let stream = observe(&caller).await;
    server.stop();
    assert_eq!(stream.status().await.code(), tonic::Code::Unavailable);
    drop(caller);
    assert_eq!(soon(server.stopped()).await.dropped_connections, 0);
}

#[tokio::test]
async fn c54_whoever_speaks_wrongly_is_told_what_is_wrong_and_the_way_out() {
    let (pki, other) = (Pki::new(), Pki::new());
    let files = pki.files();
    let server = serve(files.tls(), Config::default()).await;
    let plain = Running::start().await;
    let https = format!("https://localhost:{}", port(&server));
    for (address, tls, says) in [
        (
            https.clone(),
            trusting(&other.files()),
            "SESSIONPLANE_TLS_CA",
        ),
        (https.clone(), TlsOptions::default(), "SESSIONPLANE_TLS_CA"),
        (
            format!("http://localhost:{}", port(&server)),
            TlsOptions::default(),
            "use an https:// address",
        ),
        (
            format!("https://localhost:{}", port(&plain)),
            trusting(&files),
            "use an http:// address",
        ),
    ] {
        let error = asked(&address, tls, &server.token).await.unwrap_err();
        assert_eq!(error.outcome, Outcome::Refused, "{address}: {error}");
        assert!(error.message.contains(says), "{address}: {error}");
        assert!(!error.message.contains(&server.token), "{error}");
    }
    assert!(!server.fake.was_asked() && !plain.fake.was_asked());
    // A name that its certificate does not have, told with those that it has.
    files.put(&pki.pair(&["sessions.example.com"]));
    let server = serve(files.tls(), Config::default()).await;
    let address = format!("https://localhost:{}", port(&server));
    let error = asked(&address, trusting(&files), &server.token)
        .await
        .unwrap_err();
    assert_eq!(error.reason, Reason::Unimplemented, "not asked again");
    for part in ["localhost", "sessions.example.com"] {
        assert!(error.message.contains(part), "{error}");
    }
    files.put(&pki.pair_until(&["localhost"], 2000));
    let server = serve(files.tls(), Config::default()).await;
    let address = format!("https://localhost:{}", port(&server));
    let error = asked(&address, trusting(&files), &server.token)
        .await
        .unwrap_err();
    assert!(error.message.contains("has expired"), "{error}");
}

#[tokio::test]
async fn c54_plaintext_http_of_either_version_hears_that_the_port_speaks_tls() {
    let server = serve(Pki::new().files().tls(), Config::default()).await;
    for said in [
        &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..],
        b"GET / HTTP/1.1\r\nhost: a\r\n\r\n",
        b"\x00",
    ] {
        let mut connection = server.silent().await;
        connection.write_all(said).await.unwrap();
        let mut heard = Vec::new();
        soon(connection.read_to_end(&mut heard)).await.unwrap();
        let heard = String::from_utf8_lossy(&heard);
        assert!(heard.contains("use an https:// address"), "{heard:?}");
    }
}

#[tokio::test]
async fn b59_handshakes_that_stall_keep_nobody_out_and_delay_no_stop() {
    let pki = Pki::new();
    let config = Config {
        max_connections: 4,
        handshake_within: LONG,
        first_request_within: LONG,
        // Over only when the test is.
        drain_within: LONG,
        stop_within: LONG,
        ..Config::default()
    };
    let mut server = serve(pki.files().tls(), config).await;
    let mut stalled = Vec::new();
    for said in [&[][..], HALF_A_HELLO, &HALF_A_HELLO[..1], HALF_A_HELLO] {
        let mut connection = server.silent().await;
        connection.write_all(said).await.unwrap();
        stalled.push(connection);
    }
    let caller = owner(&server, &pki.ca()).await;
    let stream = observe(&caller).await;
    drop((stream, caller));
    for _ in 0..4 {
        let mut connection = server.silent().await;
        connection.write_all(HALF_A_HELLO).await.unwrap();
        stalled.push(connection);
    }
    server.stop();
    let clean = Stopped {
        dropped_connections: 0,
        calls_left: 0,
    };
    assert_eq!(soon(server.stopped()).await, clean);
    drop(stalled);
}

#[tokio::test]
async fn c54_a_handshake_has_its_time_and_not_more() {
    let config = Config {
        handshake_within: Duration::from_millis(200),
        first_request_within: LONG,
        ..Config::default()
    };
    let server = serve(Pki::new().files().tls(), config).await;
    for said in [&[][..], HALF_A_HELLO] {
        let mut connection = server.silent().await;
        connection.write_all(said).await.unwrap();
        let mut heard = Vec::new();
        // A reset is a close, too.
        let _cut = soon(connection.read_to_end(&mut heard)).await;
    }
}

#[tokio::test]
async fn c54_a_client_certificate_is_asked_for_and_judged() {
    let (pki, clients) = (Pki::new(), Pki::new());
    let files = pki.files();
    std::fs::write(&files.ca, clients.ca()).unwrap();
    let (good, bad) = (clients.pair(&["ada"]), pki.pair(&["eve"]));
    for required in [false, true] {
        let mut paths = files.paths();
        paths.clients = Some((files.ca.clone(), required));
        let tls = Tls::new(TlsFiles::open(paths, clock()).unwrap().current());
        let server = serve(tls, Config::default()).await;
        let let_in = |shown| {
            let (server, ca) = (&server, pki.ca());
            async move {
                let Ok(mut stream) = shake(server, &ca, shown).await else {
                    return false;
                };
                let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
                let said = stream.write_all(preface).await;
                // A client is done before its certificate is judged: the server's frames tell.
                said.is_ok() && matches!(soon(stream.read(&mut [0; 9])).await, Ok(1..))
            }
        };
        assert!(let_in(Some(&good)).await);
        assert!(!let_in(Some(&bad)).await);
        assert_eq!(let_in(None).await, !required);
    }
}

#[tokio::test]
async fn c54_a_client_whose_certificate_is_not_accepted_is_told_so_and_nothing_of_it_is_read() {
    let (pki, clients) = (Pki::new(), Pki::new());
    let files = pki.files();
    let mut paths = files.paths();
    let authority = files.directory.path().join("clients.pem");
    std::fs::write(&authority, clients.ca()).unwrap();
    paths.clients = Some((authority, true));
    let tls = Tls::new(TlsFiles::open(paths, clock()).unwrap().current());
    let server = serve(tls, Config::default()).await;
    let address = format!("https://localhost:{}", port(&server));
    let with = |pair: Pair| {
        let [cert, key] = ["c", "k"].map(|name| files.directory.path().join(name));
        std::fs::write(&cert, pair.cert).unwrap();
        std::fs::write(&key, pair.key).unwrap();
        trusting(&files).identity_files(&cert, &key).unwrap()
    };
    for (tls, says) in [
        (trusting(&files), "SESSIONPLANE_TLS_CERT"),
        (
            with(pki.pair(&["eve"])),
            "does not accept this client's certificate",
        ),
        (
            with(clients.pair_until(&["ada"], 2000)),
            "this client's certificate has expired",
        ),
    ] {
        // What it hears must not depend on how much it had said by then.
        for _ in 0..20 {
            let refused = asked(&address, tls.clone(), &server.token).await;
            let error = refused.unwrap_err();
            assert!(error.message.contains(says), "{error}");
            assert_eq!(
                (error.reason, error.outcome),
                (Reason::Unimplemented, Outcome::Refused)
            );
        }
    }
    assert!(!server.fake.was_asked());
    let good = with(clients.pair(&["ada"]));
    asked(&address, good, &server.token).await.unwrap();
}

#[tokio::test]
async fn c54_who_is_not_let_in_hears_why_however_much_it_says_meanwhile() {
    let (pki, clients) = (Pki::new(), Pki::new());
    let files = pki.files();
    std::fs::write(&files.ca, clients.ca()).unwrap();
    let mut paths = files.paths();
    paths.clients = Some((files.ca.clone(), true));
    let tls = Tls::new(TlsFiles::open(paths, clock()).unwrap().current());
    let server = serve(tls, Config::default()).await;
    let eve = pki.pair(&["eve"]);
    let mut stream = shake(&server, &pki.ca(), Some(&eve)).await.unwrap();
    // The server has said it and is done with her. She has not read it yet.
    soon(stream.get_ref().0.peek(&mut [0])).await.unwrap();
    for _ in 0..10 {
        tokio::task::yield_now().await;
        stream.write_all(&[0; 100]).await.unwrap();
        stream.flush().await.unwrap();
    }
    let heard = soon(stream.read(&mut [0; 9])).await.unwrap_err();
    assert!(heard.to_string().contains("fatal alert"), "{heard}");
}

#[tokio::test]
async fn c54_a_new_certificate_is_used_while_connections_and_streams_go_on() {
    let pki = Pki::new();
    let files = pki.files();
    let read = files.open();
    let server = serve(Tls::new(read.current()), Config::default()).await;
    let hurry = Arc::new(Notify::new());
    let following = tokio::spawn(read.follow(hurry.clone()));
    let caller = owner(&server, &pki.ca()).await;
    let mut stream = observe(&caller).await;

    let renewed = pki.pair(&["localhost"]);
    files.put(&renewed);
    hurry.notify_one();
    soon(async {
        while shown(&server, &pki.ca()).await != der(&renewed) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    server.fake.until_open(1).await;
    observe(&caller).await;

    // One that is no good changes nothing, however it is no good, and the next good one counts.
    let (stranger, next) = (pki.pair(&["localhost"]), pki.pair(&["localhost"]));
    for broken in [
        Pair {
            cert: String::new(),
            key: String::new(),
        },
        Pair {
            cert: next.cert.clone(),
            key: stranger.key,
        },
    ] {
        files.put(&broken);
        hurry.notify_one();
        assert_eq!(shown(&server, &pki.ca()).await, der(&renewed));
    }
    std::fs::remove_file(&files.key).unwrap();
    hurry.notify_one();
    assert_eq!(shown(&server, &pki.ca()).await, der(&renewed));
    // Nobody asks for it: it is found by itself.
    replace(&files.key, &next.key);
    soon(async {
        while shown(&server, &pki.ca()).await != der(&next) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    following.abort();
    let waiting = stream.next();
    assert!(
        tokio::time::timeout(Duration::ZERO, waiting).await.is_err(),
        "it goes on"
    );
}
