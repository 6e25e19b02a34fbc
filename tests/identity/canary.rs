//! The canary: tokens, good and bad, in every place where a caller can put one, are found nowhere
//! afterwards but in the owner's file.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use sessionplane::v1 as wire;
use sessionplane::v1::session_control_client::SessionControlClient;
use tonic::Request;
use tonic::metadata::{AsciiMetadataKey, AsciiMetadataValue};
use tonic::transport::Channel;
use tonic_prost::ProstCodec;

use crate::daemon::Home;
use crate::world::{asked, daemon, daemon_with, home, id, minted, supervised};

/// The shape of a token that nobody has, and texts that are none.
const WRONG: &str = "sp_Canary01_CanaryCanaryCanaryCanaryCanaryCanaryCanaryC";
const MALFORMED: &str = "sp_CanaryMalformedCanaryMalformed";

/// Keys of metadata in which a token can end up by mistake.
const KEYS: [&str; 8] = [
    "authorization",
    "x-api-key",
    "cookie",
    "proxy-authorization",
    "sp-token",
    "traceparent",
    "grpc-timeout",
    "user-agent",
];

/// Sends a token in every one of the keys, alone and beside a good one.
async fn send(address: &str, good: &str, token: &str) {
    let channel = Channel::from_shared(address.to_owned()).unwrap();
    let mut client = SessionControlClient::new(channel.connect().await.unwrap());
    for key in KEYS {
        for scheme in ["", "Bearer ", "Basic ", "Bearer  bearer "] {
            for good in [None, Some(good)] {
                let mut request = Request::new(wire::GetStateRequest {
                    session: None,
                    min_position: None,
                });
                let metadata = request.metadata_mut();
                if let Some(good) = good {
                    let value: AsciiMetadataValue = format!("Bearer {good}").parse().unwrap();
                    metadata.append("authorization", value);
                }
                let key = AsciiMetadataKey::from_static(key);
                let value: AsciiMetadataValue = format!("{scheme}{token}").parse().unwrap();
                metadata.append(key, value);
                let _refused = client.get_state(request).await;
            }
        }
    }
    // In the path of a method that there is not.
    let mut grpc = tonic::client::Grpc::new(
        Channel::from_shared(address.to_owned())
            .unwrap()
            .connect()
            .await
            .unwrap(),
    );
    grpc.ready().await.unwrap();
    let path = format!("/sessionplane.v1.SessionControl/{token}");
    let path = path.parse().unwrap();
    let codec = ProstCodec::<Bytes, Bytes>::default();
    let _refused = grpc.unary(Request::new(Bytes::new()), path, codec).await;
}

/// All files below a directory, with what is in them.
fn contents(directory: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            contents(&path, found);
        } else if path.is_file() {
            found.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|part| part == text.as_bytes())
}

fn nowhere(home: &Home, secrets: &[&str]) {
    let mut found = Vec::new();
    contents(home.path(), &mut found);
    for log in ["stdout", "stderr"] {
        let size = found.iter().find(|(name, _)| name.ends_with(log));
        assert!(size.is_some(), "what the server said is looked at");
    }
    for (name, bytes) in &found {
        for secret in secrets {
            let ours = name.ends_with("/owner.token");
            assert!(ours || !holds(bytes, secret), "{name} holds {secret}");
        }
    }
}

/// Whether a text is in the files whose paths hold `place`.
fn found(home: &Home, place: &str, text: &str) -> bool {
    let mut all = Vec::new();
    contents(home.path(), &mut all);
    let mut there = all.iter().filter(|(name, _)| name.contains(place));
    there.any(|(_, bytes)| holds(bytes, text))
}

/// What is told of the configuration is told to anybody.
async fn configuration_tells_none(home: &Home, tokens: &[&str]) {
    for &token in tokens {
        for words in [
            &["explain"][..],
            &["check"],
            &["schema"],
            &["explain", token],
        ] {
            let words = [&["config"], words].concat();
            let ran = daemon_with(home, &words, token).await;
            let asked_for = words.len() == 3;
            assert_eq!(ran.code, i32::from(asked_for), "{words:?}");
            assert!(!(ran.out + &ran.err).contains(&token[12..]), "{words:?}");
        }
        // In the place of a value, too.
        let set = format!("--set=default_agent={token}");
        for words in [
            &["config", "explain", &set][..],
            &["config", "check", &set],
            &[&set],
        ] {
            let ran = daemon(home, words).await;
            assert_eq!(ran.code, 1, "{words:?}");
            assert!(
                ran.err.contains("default_agent holds a token"),
                "{}",
                ran.err
            );
            assert!(!(ran.out + &ran.err).contains(&token[12..]), "{words:?}");
        }
    }
}

#[tokio::test]
async fn c61_no_token_is_found_anywhere_but_in_the_owners_file() {
    for json in [false, true] {
        let home = home(if json { "[log]\njson = true\n" } else { "" });
        let good = minted(&home, "ci", &[]).await;
        // The first run's second commit panics.
        let panics = "session::after-commit=1*off->1*panic(a bug)";
        let server = supervised(&home, "trace", panics).await;
        let address = server.address().to_owned();
        let words = ["invoke", "--new", "unlucky", "say \"hello\""];
        let cut = asked(&address, &good, &words).await;
        assert!(home.said().contains("a bug"), "{cut:?}");
        let owner = fs::read_to_string(home.data_dir().join("owner.token")).unwrap();
        let owner = owner.trim_end().to_owned();
        for token in [&good, &owner] {
            let name = &token[3..11].to_lowercase();
            let words = ["invoke", "--new", name, "say \"hello\""];
            let ran = asked(&address, token, &words).await;
            assert_eq!(ran.code, 0, "{ran:?}");
            let events = ["--json", "entries", name];
            let ran = asked(&address, token, &events).await;
            assert!(!ran.out.contains(&token[12..]), "{ran:?}");
        }
        let revoked = minted(&home, "ci", &[]).await;
        daemon(&home, &["token", "revoke", &revoked]).await;
        for token in [&good, &owner, &revoked, WRONG, MALFORMED] {
            send(&address, &good, token).await;
            let ran = asked(&address, token, &["state", "docs"]).await;
            assert!(!(ran.out + &ran.err).contains(&token[12..]));
        }
        configuration_tells_none(&home, &[&good, &owner, WRONG]).await;
        // Where a word on the command line goes wrong.
        for words in [
            &["token", "revoke", MALFORMED][..],
            &[
                "token",
                "create",
                "--principal",
                "nobody",
                "--tenant",
                &good,
            ],
        ] {
            let ran = daemon(&home, words).await;
            assert_eq!(ran.code, 1, "{ran:?}");
            assert!(!(ran.out + &ran.err).contains("CanaryMal"));
        }
        server.terminate();
        let stopped = server.ended(std::time::Duration::from_secs(30)).await;
        assert_eq!(stopped.code(), Some(0), "{stopped}: {}", home.said());
        assert!(home.said().contains("TRACE"), "the log was at its finest");
        let secrets = [&good, &owner, &revoked, WRONG, MALFORMED].map(|token| &token[12..]);
        nowhere(&home, &secrets);
        // The counter-test: what is no secret of a token is found where it belongs.
        assert!(found(&home, "/store/", &format!("token:{}", id(&good))));
    }
}
