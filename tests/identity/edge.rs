//! Where the real server listens, over what, and what a supervisor's SIGHUP does.

use std::time::Duration;

use rustix::process::Signal;
use sessionplane_client::contract::{CallOptions, SessionControl as _};
use sessionplane_client::domain::error::Reason;
use sessionplane_client::domain::ids::{SessionName, SessionRef};
use sessionplane_client::{Client, ClientOptions, TlsOptions, Token};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::daemon::{Daemon, Home, Started, sessiond};
use crate::pki::{Files, Pki};
use crate::world::{daemon, home, minted, supervised};

/// The bounds of a stop are 6 s together; the rest is for a busy machine.
const STOP: Duration = Duration::from_secs(20);

fn tls(files: &Files) -> String {
    format!(
        "[tls]\ncert_file = {:?}\nkey_file = {:?}\n",
        files.cert, files.key
    )
}

/// What the SDK is told over a new connection.
async fn told(server: &Daemon, home: &Home, tls: TlsOptions) -> Reason {
    let mut options = ClientOptions::new(server.address().parse().unwrap());
    options.token = Some(Token::from_file(&home.data_dir().join("owner.token")).unwrap());
    options.tls = tls;
    let client = Client::connect(options).unwrap();
    let session = SessionRef::Name(SessionName::parse("none").unwrap());
    let state = client.get_state(session, None, CallOptions::default());
    state.await.unwrap_err().reason
}

#[tokio::test]
async fn c54_a_server_that_others_reach_starts_only_with_tls_and_identities() {
    let bare = Home::new();
    let files = Pki::new().files();
    let some = home("");
    let open = home(&tls(&files));
    for address in ["0.0.0.0:0", "[::]:0", "[::ffff:0.0.0.0]:0"] {
        for (home, says, not) in [
            (&bare, "[identity.principals.NAME]", ""),
            (&bare, "[tls]", ""),
            (&some, "[tls]", "[identity"),
        ] {
            let refused = daemon(home, &["--listen", address]).await;
            assert_eq!(refused.code, 1, "{refused:?}");
            assert!(refused.err.contains(says), "{refused:?}");
            assert!(not.is_empty() || !refused.err.contains(not), "{refused:?}");
        }
    }
    let mut flags = open.flags();
    flags[1] = "0.0.0.0:0".to_owned();
    let mut command = open.command(&sessiond());
    command.args(flags);
    let Started::Ready(server) = open.launch(command).await else {
        panic!("it has all that it needs: {}", open.said());
    };
    assert!(server.address().starts_with("https://0.0.0.0:"));
    let refused = daemon(&open, &["--listen", "example.org:1"]).await;
    assert!(refused.err.contains("IP:PORT"), "{refused:?}");
}

#[tokio::test]
async fn c54_tls_is_served_reloaded_at_sighup_and_a_bad_pair_keeps_the_old_one() {
    let (pki, next) = (Pki::new(), Pki::new());
    let files = pki.files();
    let home = home(&tls(&files));
    let server = supervised(&home, "info", "").await;
    assert!(server.address().starts_with("https://127.0.0.1:"));
    let trust = |authority: &Pki| {
        let ca = files.directory.path().join("trusted.pem");
        std::fs::write(&ca, authority.ca()).unwrap();
        TlsOptions::default().ca_file(&ca).unwrap()
    };
    assert_eq!(
        told(&server, &home, trust(&pki)).await,
        Reason::NoSuchSession
    );
    assert_eq!(
        told(&server, &home, trust(&next)).await,
        Reason::Unimplemented
    );

    std::fs::write(&files.key, "nonsense").unwrap();
    server.signal(Signal::HUP);
    home.until_said("the old certificate stays in use").await;
    assert_eq!(
        told(&server, &home, trust(&pki)).await,
        Reason::NoSuchSession
    );
    assert!(!home.said().contains("nonsense"), "{}", home.said());

    files.put(&next.pair(&["127.0.0.1"]));
    server.signal(Signal::HUP);
    home.until_said("the TLS files were read again").await;
    assert_eq!(
        told(&server, &home, trust(&next)).await,
        Reason::NoSuchSession
    );

    // A probe in plain text is told what it met.
    let asked = daemon(
        &home,
        &["health", "--address", &server.socket().to_string()],
    )
    .await;
    assert_eq!(asked.code, 1, "{asked:?}");
    assert!(asked.err.contains("speaks TLS"), "{asked:?}");
    assert!(asked.err.contains("--health-listen"), "{asked:?}");

    // A handshake that stalls delays no stop, and SIGHUP was none.
    let mut stalled = TcpStream::connect(server.socket()).await.unwrap();
    stalled.write_all(&[0x16, 3, 1, 2, 0]).await.unwrap();
    server.terminate();
    assert_eq!(server.ended(STOP).await.code(), Some(0), "{}", home.said());
}

#[tokio::test]
async fn c54_sessionctl_speaks_tls_and_says_what_is_wrong() {
    let pki = Pki::new();
    let files = pki.files();
    let home = home(&tls(&files));
    let server = home.start().await;
    let token = minted(&home, "ci", &[]).await;
    let ca = files.ca.to_str().unwrap();
    let start = ["invoke", "--new", "docs", "say \"hello\""];
    let trusted = [&["--tls-ca", ca][..], &start].concat();
    let ran = crate::world::until(server.address(), &token, &trusted, 0).await;
    assert!(ran.out.contains("hello"), "{ran:?}");
    let plain = server.address().replace("https", "http");
    for (address, words, says) in [
        (server.address(), &start[..], "--tls-ca"),
        (&plain, &start, "https://"),
        (
            server.address(),
            &["--tls-ca", "/none", "state", "docs"],
            "/none",
        ),
    ] {
        let ran = crate::world::asked(address, &token, words).await;
        assert!(ran.code > 0 && ran.err.contains(says), "{ran:?}");
        assert!(!ran.err.contains(&token), "{ran:?}");
    }
}
