use clap::Parser;

use super::*;
use crate::adapters::authn::{State, Uses};
use crate::config::{self, Sources};

#[derive(Parser)]
struct Line {
    #[command(subcommand)]
    command: TokenCommand,
}

const CONFIG: &str = "[identity.principals.ci]\nkind = \"service\"\ntenant = \"team\"\n\
    groups = [\"operator\", \"observer\"]\n[identity.principals.ada]\nkind = \"human\"\n";

fn asked(words: &[&str]) -> Result<Grant, String> {
    let words = ["sessiond", "create"].iter().chain(words);
    let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
    let TokenCommand::Create(args) = line.command else {
        panic!("something else");
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    std::fs::write(&file, CONFIG).unwrap();
    let sources = Sources {
        file: Some(file),
        ..Sources::default()
    };
    let config = config::load(&sources).unwrap();
    let grant = grant(&args, &config, Some(Path::new("/etc/sessiond.toml")));
    grant.map_err(|error| error.to_string())
}

#[test]
fn c57_a_token_is_relayed_by_default_and_none_can_say_that_a_text_was_typed() {
    assert_eq!(
        asked(&["--principal", "ci"]).unwrap().ceiling,
        Trust::Relayed
    );
    let lower = asked(&["--principal", "ci", "--trust", "untrusted"]).unwrap();
    assert_eq!(lower.ceiling, Trust::Untrusted);
    let typed = asked(&["--principal", "ada", "--trust", "typed"]).unwrap_err();
    assert!(typed.contains("--trust relayed"), "{typed}");
}

#[test]
fn c54_a_token_names_a_configured_principal_as_it_is() {
    let grant = asked(&["--principal", "ci", "--tenant", "team", "--kind", "service"]).unwrap();
    assert_eq!(grant.holder.tenant.as_str(), "team");
    assert_eq!(grant.lifetime, Some(Duration::from_secs(90 * 86_400)));
    assert_eq!(grant.groups, None);
    let fewer = asked(&[
        "--principal",
        "ci",
        "--group",
        "observer",
        "--expires",
        "never",
    ]);
    let fewer = fewer.unwrap();
    assert_eq!(fewer.groups.as_deref(), Some(&["observer".to_owned()][..]));
    assert_eq!(fewer.lifetime, None);
    for (words, says) in [
        (
            &["--principal", "cd"][..],
            "[identity.principals.cd] to /etc/sessiond.toml",
        ),
        (&["--principal", "cd"], "there are: ada, ci"),
        (&["--principal", "owner"], "no principal"),
        (
            &["--principal", "ci", "--tenant", "default"],
            "tenant of ci is team",
        ),
        (
            &["--principal", "ci", "--kind", "human"],
            "kind of ci is service",
        ),
        (&["--principal", "ci", "--group", "admin"], "operator"),
        (
            &["--principal", "ci", "--expires", "0s"],
            "more than nothing",
        ),
        (&["--principal", "ci", "--expires", "4000d"], "ten years"),
        (&["--principal", "ci", "--expires", "soon"], "like 90d"),
        (&[], "--principal"),
    ] {
        let error = asked(words).unwrap_err();
        assert!(error.contains(says), "{words:?}: {error}");
    }
}

#[test]
fn c61_what_is_no_id_is_not_repeated_and_a_whole_token_is_as_good_as_its_id() {
    let token = format!("sp_AbCd1234_{}", "s".repeat(43));
    assert_eq!(id(&token).unwrap().as_str(), "AbCd1234");
    let error = id(&token[..50]).unwrap_err().to_string();
    assert!(
        !error.contains("sss") && error.contains("token list"),
        "{error}"
    );
}

fn of(name: &str) -> Grant {
    Grant {
        holder: Registered {
            id: sessionplane_core::domain::ids::PrincipalId::parse(name).unwrap(),
            tenant: sessionplane_core::domain::ids::TenantId::parse("team").unwrap(),
            kind: PrincipalKind::Service,
            groups: std::sync::Arc::new([]),
        },
        groups: None,
        ceiling: Trust::Relayed,
        lifetime: None,
    }
}

/// An output that takes so many bytes and no more, like a full disk.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        if taken == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn args(json: bool) -> CreateArgs {
    let words = ["sessiond", "create", "--principal", "ci"];
    let line = Line::try_parse_from(words.into_iter().chain(json.then_some("--json")));
    let Ok(TokenCommand::Create(args)) = line.map(|line| line.command) else {
        panic!("something else");
    };
    args
}

#[test]
fn c54_a_token_that_could_not_be_shown_is_revoked_and_takes_no_place() {
    let directory = tempfile::tempdir().unwrap();
    let book = TokenBook::of(directory.path());
    let now = Timestamp::from_millis(1_796_029_500_000);
    for json in [false, true, false] {
        let (mut out, mut aside) = (Full(30), Vec::new());
        let error = create(&book, &of("ci"), &args(json), now, (&mut out, &mut aside)).unwrap_err();
        let (error, records) = (error.to_string(), book.read().unwrap());
        let id = records.last().unwrap().id.as_str();
        assert!(
            error.contains(id) && error.contains("revoked again"),
            "{error}"
        );
        assert!(aside.is_empty());
    }
    // What is said beside it may get lost.
    let mut out = Vec::new();
    create(
        &book,
        &of("ci"),
        &args(false),
        now,
        (&mut out, &mut Full(0)),
    )
    .unwrap();
    let records = book.read().unwrap();
    let states: Vec<State> = records.iter().map(|record| record.state(now)).collect();
    assert!(
        matches!(
            states[..],
            [State::Revoked, State::Revoked, State::Revoked, State::Live]
        ),
        "{states:?}"
    );
}

#[test]
fn c54_of_several_tokens_all_that_can_be_revoked_are() {
    let directory = tempfile::tempdir().unwrap();
    let book = TokenBook::of(directory.path());
    let now = Timestamp::from_millis(1_796_029_500_000);
    let [first, second] = ["ci", "ada"].map(|name| book.create(&of(name), now).unwrap().0.id);
    let words = ["nonsense!", "00000000", first.as_str(), second.as_str()].map(str::to_owned);
    // Nobody hears of the second one, which counts nevertheless.
    let mut out = Full(90);
    let error = revoke(&book, &words, now, &mut out)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("no token id") && error.contains("there is no token 00000000"),
        "{error}"
    );
    let records = book.read().unwrap();
    assert!(
        records
            .iter()
            .all(|record| record.state(now) == State::Revoked)
    );
    let mut out = Vec::new();
    revoke(&book, &words[2..], now, &mut out).unwrap();
    let said = String::from_utf8(out).unwrap();
    assert_eq!(said.matches("was revoked before").count(), 2, "{said}");
}

#[test]
fn c54_the_list_fits_a_terminal_and_holds_no_secret() {
    let directory = tempfile::tempdir().unwrap();
    let book = TokenBook::of(directory.path());
    let now = Timestamp::from_millis(1_796_029_500_000);
    let mut out = Vec::new();
    list(&[], &Uses::new(), false, now, &mut out).unwrap();
    assert!(String::from_utf8(out).unwrap().contains("token create"));

    let mut secrets = Vec::new();
    for (name, lifetime) in [
        ("ci", Some(Duration::from_secs(1))),
        ("a-principal-with-a-very-long-name-indeed", None),
        ("ada", Some(Duration::from_secs(90 * 86_400))),
        ("gone", None),
    ] {
        let holder = Registered {
            id: sessionplane_core::domain::ids::PrincipalId::parse(name).unwrap(),
            tenant: sessionplane_core::domain::ids::TenantId::parse("a-long-tenants-name").unwrap(),
            kind: PrincipalKind::Service,
            groups: std::sync::Arc::new([]),
        };
        let grant = Grant {
            holder,
            groups: None,
            ceiling: Trust::Untrusted,
            lifetime,
        };
        let (record, token) = book.create(&grant, now).unwrap();
        secrets.push(token.reveal()[12..].to_owned());
        if name == "gone" {
            book.revoke(&record.id, now).unwrap();
        }
    }
    let later = now.after(Duration::from_secs(2));
    let records = book.read().unwrap();
    let uses = Uses::from([(records[2].id.clone(), now)]);
    for json in [false, true] {
        let mut out = Vec::new();
        list(&records, &uses, json, later, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(
            secrets.iter().all(|secret| !text.contains(secret)),
            "{text}"
        );
        let words: &[&str] = if json {
            &[
                "\"state\":\"expired\"",
                "\"expires\":\"2027-02-28T09:05:00Z\"",
                "\"used\":\"2026-11-30T09:05:00Z\"",
                "\"used\":null",
                "very-long-name-indeed",
            ]
        } else {
            assert!(
                text.lines().all(|line| line.chars().count() <= 80),
                "{text}"
            );
            &[
                "expired",
                "revoked",
                "never",
                "just now  2027-02-28",
                "-         never",
                "a-principal-with-…",
            ]
        };
        for word in words {
            assert!(text.contains(word), "{word}: {text}");
        }
    }
}
