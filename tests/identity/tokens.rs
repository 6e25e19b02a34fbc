//! `sessiond token`, beside a server that runs.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::Stdio;
use std::time::Duration;

use tokio::time::timeout;

use crate::world::{DEADLINE, asked, client, daemon, home, id, minted, supervised, until};

/// A stop as the home's servers are configured: the drain, then the close; and a second for a busy
/// machine.
const STOPPED_WITHIN: Duration = Duration::from_secs(1 + 5 + 1);

#[tokio::test]
async fn c54_a_token_is_shown_once_works_at_once_and_ends_when_it_is_revoked() {
    let home = home("");
    let server = home.start().await;
    let address = server.address();
    let token = minted(&home, "ci", &[]).await;
    let start = ["invoke", "--new", "docs", "say \"hello\""];
    let ran = until(address, &token, &start, 0).await;
    assert!(ran.out.contains("hello"), "{ran:?}");

    let file = home.data_dir().join("tokens.json");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let listed = daemon(&home, &["token", "list"]).await;
    for part in [id(&token), "ci", "default", "service", "relayed"] {
        assert!(listed.out.contains(part), "{}", listed.out);
    }
    assert!(!listed.out.contains(&token[12..]), "{}", listed.out);
    assert!(listed.out.lines().all(|line| line.chars().count() <= 80));

    let mut attached = client(address, &token, &["events", "docs"]);
    let attached = attached
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let events = asked(address, &token, &["state", "docs"]).await;
    assert_eq!(events.code, 0, "{events:?}");
    let revoked = daemon(&home, &["token", "revoke", id(&token)]).await;
    assert_eq!(revoked.code, 0, "{revoked:?}");
    let ended = timeout(Duration::from_secs(5), attached.wait_with_output()).await;
    let ended = ended.expect("it ends in time").unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.contains("was revoked"), "{said}");
    // A stream that was lost, whatever the reason.
    assert_eq!(ended.status.code(), Some(3), "{said}");
    let refused = until(address, &token, &["state", "docs"], 1).await;
    assert!(refused.err.contains("was revoked"), "{refused:?}");
    let again = daemon(&home, &["token", "revoke", id(&token)]).await;
    assert!(again.code == 0 && again.out.contains("before"), "{again:?}");
    let listed = daemon(&home, &["token", "list", "--json"]).await;
    assert!(
        listed.out.contains("\"state\":\"revoked\""),
        "{}",
        listed.out
    );
}

/// A call with a token, which counts as its use.
async fn use_once(address: &str, token: &str) {
    let asked = asked(address, token, &["capabilities", "--agent", "scripted"]).await;
    assert_eq!(asked.code, 0, "{asked:?}");
}

#[tokio::test]
async fn a_server_that_is_stopped_writes_down_when_its_tokens_were_used_last() {
    let home = home("");
    let token = minted(&home, "ci", &[]).await;
    let server = home.start().await;
    use_once(server.address(), &token).await;
    server.terminate();
    assert!(server.ended(DEADLINE).await.success(), "{}", home.said());
    let listed = daemon(&home, &["token", "list", "--json"]).await;
    let listed: serde_json::Value = serde_json::from_str(&listed.out).unwrap();
    assert!(listed["used"].is_string(), "{listed}");
}

#[tokio::test]
async fn c63_b59_a_disk_that_takes_no_uses_of_tokens_delays_no_stop() {
    let home = home("");
    let token = minted(&home, "ci", &[]).await;
    let server = supervised(&home, "info", "tokens::last-uses=sleep(600000)").await;
    use_once(server.address(), &token).await;
    server.terminate();
    let ended = server.ended(STOPPED_WITHIN).await;
    let said = home.said();
    assert!(ended.success(), "{said}");
    assert!(said.contains("not written down in time"), "{said}");
    assert!(!said.contains("the stop was not done in time"), "{said}");
}

#[tokio::test]
async fn c55_a_looker_on_looks_on_and_another_tenant_sees_nothing() {
    let home = home("");
    let [ci, looker, stranger] = [
        minted(&home, "ci", &[]).await,
        minted(&home, "looker", &["--json"]).await,
        minted(&home, "stranger", &["--expires", "1h"]).await,
    ];
    let looker: serde_json::Value = serde_json::from_str(&looker).unwrap();
    let looker = looker["token"].as_str().unwrap();
    let server = home.start().await;
    let address = server.address();
    let made = asked(address, &ci, &["invoke", "--new", "docs", "say \"hello\""]).await;
    assert_eq!(made.code, 0, "{made:?}");
    let seen = asked(address, looker, &["entries", "docs"]).await;
    assert!(seen.code == 0 && seen.out.contains("hello"), "{seen:?}");
    for words in [
        &["invoke", "docs", "say \"x\""][..],
        &["invoke", "--new", "other", "say \"x\""],
        &["steer", "docs", "x"],
        &["abort", "docs"],
    ] {
        let refused = asked(address, looker, words).await;
        assert_eq!(refused.code, 1, "{words:?}: {refused:?}");
        let told = "here: it takes the group admin or the group operator";
        assert!(refused.err.contains("you may not"), "{refused:?}");
        assert!(refused.err.contains(told), "{refused:?}");
    }
    // A session that is there and one that is not are the same to another tenant.
    let [there, absent] = [
        asked(address, &stranger, &["entries", "docs"]).await,
        asked(address, &stranger, &["entries", "dogs"]).await,
    ];
    assert_eq!((there.code, absent.code), (4, 4), "{there:?}");
    assert_eq!(there.err.replace("docs", "dogs"), absent.err);
    // Its own of the same name is another one.
    let own = asked(
        address,
        &stranger,
        &["invoke", "--new", "docs", "say \"mine\""],
    )
    .await;
    assert_eq!(own.code, 0, "{own:?}");
    let seen = asked(address, &ci, &["entries", "docs"]).await;
    assert!(!seen.out.contains("mine"), "{seen:?}");
}

#[tokio::test]
async fn c55_who_may_nothing_learns_nothing_of_what_there_is() {
    let home = home("");
    let [ci, nobody] = [
        minted(&home, "ci", &[]).await,
        minted(&home, "nobody", &[]).await,
    ];
    let server = home.start().await;
    let address = server.address();
    let made = asked(address, &ci, &["invoke", "--new", "docs", "say \"hello\""]).await;
    assert_eq!(made.code, 0, "{made:?}");
    for words in [
        &["invoke", "--new", "NAME", "say \"x\""][..],
        &["invoke", "NAME", "say \"x\""],
        &["steer", "NAME", "x"],
        &["abort", "NAME"],
        &["state", "NAME"],
        &["entries", "NAME"],
        &["runs", "NAME"],
        &["events", "NAME"],
        &["capabilities", "NAME"],
        &["commands", "NAME"],
    ] {
        let of = |name: &'static str| -> Vec<&str> {
            let named = |word: &&'static str| if *word == "NAME" { name } else { word };
            words.iter().map(named).collect()
        };
        let there = asked(address, &nobody, &of("docs")).await;
        let absent = asked(address, &nobody, &of("dogs")).await;
        assert!(there.code > 0, "{there:?}");
        assert_eq!(
            (there.code, there.err.replace("docs", "dogs"), there.out),
            (absent.code, absent.err, absent.out)
        );
    }
}

#[tokio::test]
async fn c54_a_token_goes_to_a_new_file_of_its_makers_alone_and_replaces_none() {
    let home = home("");
    let file = home.path().join("ci.token");
    let words = ["token", "create", "--principal", "ci", "--out"];
    let words = [&words[..], &[file.to_str().unwrap()]].concat();
    let ran = daemon(&home, &words).await;
    assert!(ran.code == 0 && ran.out.is_empty(), "{ran:?}");
    let token = fs::read_to_string(&file).unwrap();
    assert!(
        token.starts_with("sp_") && !ran.err.contains(token.trim()),
        "{ran:?}"
    );
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    // What is there stays, and no token is made for nothing.
    let again = daemon(&home, &words).await;
    assert!(
        again.code == 1 && again.err.contains("no token was made"),
        "{again:?}"
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), token);
    let there = daemon(&home, &["token", "list", "--json"]).await;
    assert_eq!(there.out.lines().count(), 1, "{there:?}");
    // One that cannot be made leaves no file.
    minted(&home, "ci", &[]).await;
    let third = home.path().join("third");
    let words = [&words[..4], &["--out", third.to_str().unwrap()]].concat();
    let third_token = daemon(&home, &words).await;
    assert!(third_token.code == 1 && !third.exists(), "{third_token:?}");
}

#[tokio::test]
async fn c54_what_token_cannot_do_it_says_with_the_way_out() {
    let home = home("");
    for (words, says) in [
        (
            &["create", "--principal", "cd"][..],
            "[identity.principals.cd]",
        ),
        (
            &["create", "--principal", "ci", "--trust", "typed"],
            "--trust relayed",
        ),
        (
            &["create", "--principal", "ci", "--tenant", "x"],
            "tenant of ci",
        ),
        (&["revoke", "00000000"], "no data directory"),
        // Not "no tokens": there may be some, elsewhere.
        (&["list"], "no data directory"),
    ] {
        let ran = daemon(&home, &[&["token"], words].concat()).await;
        assert_eq!(ran.code, 1, "{words:?}: {ran:?}");
        assert!(ran.err.contains(says) && ran.out.is_empty(), "{ran:?}");
    }
    for _ in 0..2 {
        minted(&home, "ci", &[]).await;
    }
    let third = daemon(&home, &["token", "create", "--principal", "ci"]).await;
    assert!(
        third.code == 1 && third.err.contains("token revoke"),
        "{third:?}"
    );
    let unknown = daemon(&home, &["token", "revoke", "00000000"]).await;
    assert!(
        unknown.code == 1 && unknown.err.contains("token list"),
        "{unknown:?}"
    );
    let none = daemon(&home, &["token", "revoke", "nonsense!"]).await;
    assert!(
        none.code == 1 && none.err.contains("no token id"),
        "{none:?}"
    );
}
