//! `sessionctl` where its server is elsewhere, silent, gone, or something else.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tonic::Code;

use super::cli::{interrupt, ran, reads_from, sends, sessionctl, told};
use super::fake::{Fake, Stage, Step, soon};
use super::relay::Relay;
use super::wire;

async fn with_state() -> Fake {
    let state = sessionplane::v1::GetStateResponse {
        state: Some(wire::state(false)),
    };
    Fake::start(Stage {
        states: [Ok(state)].into(),
        ..Stage::default()
    })
    .await
}

/// Runs `sessionctl` with this address in its variable.
async fn with_address(fake: &Fake, address: &str, arguments: &[&str]) -> (i32, String, String) {
    let mut command = sessionctl(fake, arguments);
    command.env("SESSIONPLANE_ADDRESS", address);
    told(soon(command.output()).await.unwrap())
}

#[tokio::test]
async fn a_bare_host_and_port_is_enough() {
    let fake = with_state().await;
    let bare = fake.address.to_string();
    let (code, out, err) = with_address(&fake, &bare, &["state", "docs"]).await;
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains(wire::SESSION), "{out}");
}

#[tokio::test]
async fn a_malformed_variable_is_named_and_hinders_nobody_who_needs_none() {
    let fake = with_state().await;
    let (code, _, err) = with_address(&fake, "ftp://nowhere", &["state", "docs"]).await;
    assert_eq!(code, 2);
    assert!(err.contains("SESSIONPLANE_ADDRESS"), "{err}");
    let url = fake.url();
    for words in [&["--address", &url, "state", "docs"][..], &["version"], &[]] {
        let (code, _, err) = with_address(&fake, "ftp://nowhere", words).await;
        assert_eq!((code, err.as_str()), (0, ""), "{words:?}");
    }
}

#[tokio::test]
async fn a_port_that_cannot_be_is_refused() {
    let fake = with_state().await;
    let words = ["--address", "127.0.0.1:70000", "state", "docs"];
    let (code, _, err) = ran(&fake, &words).await;
    assert_eq!(code, 2);
    assert!(err.contains("1 to 65535"), "{err}");
}

#[tokio::test]
async fn where_nobody_listens_it_is_known_that_nothing_was_done() {
    let fake = with_state().await;
    let folder = tempfile::tempdir().unwrap();
    let address = format!("unix:{}", folder.path().join("gone.sock").display());
    for words in [&["invoke", "docs", "hi"][..], &["steer", "docs", "hi"]] {
        let (code, _, err) = with_address(&fake, &address, words).await;
        assert_eq!(code, 3, "{err}");
        assert!(err.contains("nothing was sent"), "{err}");
        assert!(!err.contains("unknown"), "{err}");
    }
}

#[tokio::test]
async fn a_hint_of_a_server_that_speaks_tls_can_be_pasted() {
    let fake = with_state().await;
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, made.cert.pem()).unwrap();
    let ca = ca.display().to_string();
    let called = ["--address", &fake.url(), "--tls-ca", &ca];
    let words = [&called[..], &["attach", "docs", "--last", "0"]].concat();
    fake.stage.lock().unwrap().events = [Ok(sends([
        wire::subscribed(false, false),
        wire::snapshot(5, false),
    ]))]
    .into();
    let (_, out, _) = ran(&fake, &words).await;
    let again = format!("sessionctl {} attach docs", called.join(" "));
    assert!(out.contains(&again), "{out}");
}

#[tokio::test]
async fn a_silent_peer_is_left_after_the_time_that_was_given() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let fake = with_state().await;
    let words = ["--timeout", "300ms", "state", "docs"];
    let (code, _, err) = with_address(&fake, &address, &words).await;
    assert_eq!(code, 3);
    assert!(err.contains(&address) && err.contains("300ms"), "{err}");
}

/// Whether these bytes of an HTTP/2 client hold a request: the head of a stream, after the preface.
fn asks(bytes: &[u8]) -> bool {
    let mut rest = bytes.get(24..).unwrap_or_default();
    while let [high, middle, low, kind, ..] = *rest {
        if kind == 1 {
            return true;
        }
        let length = u32::from_be_bytes([0, high, middle, low]) as usize;
        rest = rest.get(9 + length..).unwrap_or_default();
    }
    false
}

/// Answers the first request of every connection with these bytes.
async fn stranger(answer: &'static [u8]) -> (String, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let task = tokio::spawn(async move {
        while let Ok((mut peer, _)) = listener.accept().await {
            let (mut seen, mut buffer) = (Vec::new(), [0; 1024]);
            while !asks(&seen) {
                match peer.read(&mut buffer).await {
                    Ok(read) if read > 0 => seen.extend_from_slice(&buffer[..read]),
                    _ => break,
                }
            }
            let _ = peer.write_all(answer).await;
            while peer.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
        }
    });
    (address, task)
}

#[tokio::test]
async fn another_server_in_its_place_is_told_from_a_silent_one() {
    let fake = with_state().await;
    let (address, task) = stranger(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").await;
    let (code, _, err) = with_address(&fake, &address, &["state", "docs"]).await;
    task.abort();
    assert_eq!(code, 3, "{err}");
    assert!(
        err.contains("something else than a Sessionplane server"),
        "{err}"
    );
    let unimplemented = tonic::Status::unimplemented("");
    let other_api = Fake::start(Stage {
        states: [Err(unimplemented)].into(),
        ..Stage::default()
    })
    .await;
    let (code, _, err) = ran(&other_api, &["state", "docs"]).await;
    assert_eq!(code, 3, "{err}");
    assert!(
        err.contains("something else than a Sessionplane server"),
        "{err}"
    );
}

#[tokio::test]
async fn a_wrong_token_says_where_it_came_from() {
    let refusal = wire::ours(Code::Unauthenticated, "UNAUTHENTICATED", "refused");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.token");
    std::fs::write(&path, "sp_wrong").unwrap();
    let path = path.display().to_string();
    let fake = Fake::start(Stage {
        states: [Err(refusal.clone()), Err(refusal)].into(),
        ..Stage::default()
    })
    .await;
    let (code, _, err) = ran(&fake, &["state", "docs"]).await;
    assert_eq!(code, 1);
    assert!(
        err.contains("the token came from SESSIONPLANE_TOKEN"),
        "{err}"
    );
    let (_, _, err) = ran(&fake, &["--token-file", &path, "state", "docs"]).await;
    assert!(err.contains(&format!("--token-file {path}")), "{err}");
}

#[tokio::test]
async fn an_owners_token_that_cannot_be_used_is_not_called_missing() {
    let refusal = wire::ours(Code::Unauthenticated, "UNAUTHENTICATED", "refused");
    let fake = Fake::start(Stage {
        states: (0..3).map(|_| Err(refusal.clone())).collect(),
        ..Stage::default()
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("owner.token");
    let says = async || {
        let mut command = sessionctl(&fake, &["state", "docs"]);
        command.env_remove("SESSIONPLANE_TOKEN");
        command.env("SESSIONPLANE_DATA_DIR", folder.path());
        told(soon(command.output()).await.unwrap()).2
    };
    let err = says().await;
    assert!(err.contains("no token was found in"), "{err}");
    // A folder cannot be read, not even by a tester who may read all files.
    std::fs::create_dir(&path).unwrap();
    let err = says().await;
    let named = format!("the owner's token in {} is of no use", path.display());
    assert!(err.contains(&named), "{err}");
    std::fs::remove_dir(&path).unwrap();
    std::fs::write(&path, "two words").unwrap();
    let err = says().await;
    assert!(err.contains(&named), "{err}");
}

#[tokio::test]
async fn one_ctrl_c_leaves_a_run_whose_server_is_gone() {
    let mut steps = sends([wire::accepted(false), wire::text("m-1", "counting")]);
    steps.push(Step::Hang);
    let fake = Fake::start(Stage {
        invokes: [Ok(steps)].into(),
        ..Stage::default()
    })
    .await;
    let relay = Relay::to(fake.address).await;
    let mut command = sessionctl(
        &fake,
        &["--request-id", "build-7", "invoke", "docs", "count"],
    );
    command.env("SESSIONPLANE_ADDRESS", relay.url());
    let mut child = command.spawn().unwrap();
    soon(reads_from(child.stdout.as_mut().unwrap(), "counting")).await;
    relay.cut();
    drop(relay);
    soon(reads_from(
        child.stderr.as_mut().unwrap(),
        "connection lost",
    ))
    .await;
    interrupt(&child).await;
    let (code, _, err) = told(soon(child.wait_with_output()).await.unwrap());
    assert_eq!(code, 3, "{err}");
    assert!(err.contains("--request-id build-7"), "{err}");
    assert!(
        err.contains(&format!("sessionctl run {}", wire::RUN)),
        "{err}"
    );
    assert!(err.contains("not known"), "{err}");
}
