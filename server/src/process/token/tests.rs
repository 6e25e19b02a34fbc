use clap::Parser;

use super::*;
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

#[test]
fn c54_the_list_fits_a_terminal_and_holds_no_secret() {
    let directory = tempfile::tempdir().unwrap();
    let book = TokenBook::of(directory.path());
    let now = Timestamp::from_millis(1_796_029_500_000);
    let mut out = Vec::new();
    list(&[], false, now, &mut out).unwrap();
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
    for json in [false, true] {
        let mut out = Vec::new();
        list(&records, json, later, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(
            secrets.iter().all(|secret| !text.contains(secret)),
            "{text}"
        );
        let words: &[&str] = if json {
            &[
                "\"state\":\"expired\"",
                "\"expires\":\"2027-02-28T09:05:00Z\"",
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
                "2026-11-30 2027-02-28",
                "a-principal-with-…",
            ]
        };
        for word in words {
            assert!(text.contains(word), "{word}: {text}");
        }
    }
}
