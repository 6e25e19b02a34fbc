use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::json;
use sessionplane_core::domain::access::PrincipalKind;
use sessionplane_core::domain::ids::{PrincipalId, TenantId};
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::authenticator::{Authenticator as _, Presented};
use tokio::time::timeout;

use super::super::{Identities, OwnerToken, Tokens};
use super::*;
use crate::adapters::clock::TokioClock;

/// 2023-11-14.
const NOW: u64 = 1_700_000_000;
const ISSUER: &str = "https://id.acme.test";
const GITHUB: &str = "https://token.actions.githubusercontent.com";
/// What C55 allows.
const ENDS_WITHIN: Duration = Duration::from_secs(5);
const REFRESH: Duration = Duration::from_secs(300);
const STALE: Duration = Duration::from_secs(3600);

/// The modulus of a key whose private half is gone.
const RSA: &str = "\
    n1K24plHaVQX70Xkyiap1cV4t_2LQyA00tyoRCYl-ye1Z_cRGmdmp1maWfarD_SPM7Mi0s2Dm8XKpeaPuLsbW0dqDzKi\
    -XAl6joFutQw0dM_8Ucl-8tfquus3XFidbwfZHsyZZNlZbkCyqUeGdEnyOvKotHhFAw2_35JQt7rAwE0FO1I15b0y_Lr\
    QCGzi-E1tAI5bA_kpK_gauwiyGASpLK1EydRgOsOSffTBeknHcRUOlbIZRGqCzWrR5Q3TwF1OxaD3hf0SqBY-06XYRjV\
    w1R0PJGDFVNa0VERa4n5H2R_eb3kDn_OG00F1VZP3vGVlKXlGGLj2BYe6FBM0-UMww";
/// What a job of GitHub Actions might show, signed with that key.
const ACTIONS: &str = "\
    eyJ0eXAiOiJKV1QiLCJhbGciOiJSUzI1NiIsImtpZCI6InJzYS0xIn0.eyJpc3MiOiJodHRwczovL3Rva2VuLmFjdGlv\
    bnMuZ2l0aHVidXNlcmNvbnRlbnQuY29tIiwiYXVkIjoic2Vzc2lvbnBsYW5lIiwic3ViIjoicmVwbzphY21lL2FwcDpl\
    bnZpcm9ubWVudDpwcm9kdWN0aW9uIiwicmVwb3NpdG9yeSI6ImFjbWUvYXBwIiwicmVwb3NpdG9yeV9vd25lciI6ImFj\
    bWUiLCJyZWYiOiJyZWZzL2hlYWRzL21haW4iLCJlbnZpcm9ubWVudCI6InByb2R1Y3Rpb24iLCJqb2Jfd29ya2Zsb3df\
    cmVmIjoiYWNtZS9hcHAvLmdpdGh1Yi93b3JrZmxvd3MvZGVwbG95LnltbEByZWZzL2hlYWRzL21haW4iLCJpYXQiOjE2\
    OTk5OTk5OTAsIm5iZiI6MTY5OTk5OTk5MCwiZXhwIjoxNzAwMDAwNjAwfQ.fHQ_gNb9u8nLttY_qGi-BkUyeKP7tj9gl\
    MoIeNV63rJa6WM4WQdGbsqiasbNt3gPmPJ6JEFWXniKxa_JVpS7EyK4cmhh-Lpwz6p-4u0CwQLHkqwXeDvmP1X-CWPxs\
    VjyF5TTNRSzlSWVX6HKS6yeOwE0WEJO6ou3s_80nc-e6uYEc4j7nXBRy1cBIGjxqk0XEqmSGGMc1-Hu_JuQCX8YFuJKG\
    qEnPVSrUH5M1R0n4RWcARHj54geU-IDDZW2pg5DQ4mpduI5r4QLtDbHBx3Kj0dhHMfN3cyVBQ5t323UQqvAmMYkFzlsu\
    XI9bJA4QFyqmH5JeNlHIiB7IbH4sBfL3Q";

/// A key of an issuer.
struct Signer {
    kid: &'static str,
    pair: EcdsaKeyPair,
}

impl Signer {
    fn new(kid: &'static str) -> Self {
        let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let made = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, made.as_ref(), &random).unwrap();
        Self { kid, pair }
    }

    fn jwk(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        let part = |part: &[u8]| URL_SAFE_NO_PAD.encode(part);
        json!({"kty": "EC", "crv": "P-256", "kid": self.kid, "use": "sig",
               "x": part(&point[1..33]), "y": part(&point[33..])})
    }

    fn signed(&self, header: &Value, claims: &Value) -> String {
        let parts = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let signed = parts.join(".");
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes());
        let signature = URL_SAFE_NO_PAD.encode(signature.unwrap());
        format!("{signed}.{signature}")
    }

    /// A token that is good for ten minutes, but for what `changes` say.
    fn token(&self, changes: &Value) -> String {
        let mut claims = json!({
            "iss": ISSUER, "aud": ["other", "sessionplane"], "sub": "ada", "exp": NOW + 600,
            "nbf": NOW - 5, "iat": NOW - 5, "team": "blue"
        });
        for (claim, value) in changes.as_object().unwrap() {
            claims[claim] = value.clone();
        }
        self.signed(
            &json!({"alg": "ES256", "kid": self.kid, "typ": "JWT"}),
            &claims,
        )
    }
}

fn set(keys: &[Value]) -> String {
    json!({ "keys": keys }).to_string()
}

/// Keys that the test decides; it counts how often they are asked for.
struct Fake {
    says: Mutex<Option<Result<String, String>>>,
    asked: AtomicUsize,
}

impl Fake {
    fn says(&self, keys: Option<Result<String, String>>) {
        *self.says.lock().unwrap() = keys;
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl KeySource for Fake {
    async fn fetch(&self) -> Result<Vec<u8>, String> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let says = self.says.lock().unwrap().clone();
        match says {
            Some(said) => said.map(String::into_bytes),
            None => std::future::pending().await,
        }
    }
}

struct Bench {
    _directory: tempfile::TempDir,
    source: Arc<Fake>,
    identities: Arc<Identities>,
    clock: Arc<TokioClock>,
}

fn claimed(name: &str, rule: &str) -> Claimed {
    Claimed {
        holder: Registered {
            id: PrincipalId::parse(name).unwrap(),
            tenant: TenantId::parse("team").unwrap(),
            kind: PrincipalKind::Service,
            groups: [String::from("observer")].into(),
        },
        ceiling: Trust::Relayed,
        rules: vec![rule.parse().unwrap()],
    }
}

impl Bench {
    fn new(issuer: &str, keys: String) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let start = Timestamp::from_millis(NOW * 1000);
        let clock = Arc::new(TokioClock::starting_at(start));
        let source = Arc::new(Fake {
            says: Mutex::new(Some(Ok(keys))),
            asked: AtomicUsize::new(0),
        });
        let settings = IssuerSettings {
            name: "acme".to_owned(),
            issuer: issuer.to_owned(),
            audiences: vec!["sessionplane".to_owned()],
            algorithms: vec![Algorithm::Rs256, Algorithm::Es256],
            leeway: Duration::from_secs(30),
            refresh: REFRESH,
            stale: STALE,
        };
        let holders = vec![
            claimed("ada", "acme: sub=ada"),
            claimed("reds", "acme: team=red"),
            claimed(
                "ci",
                "acme: repository=acme/app, ref=refs/heads/*, environment=production",
            ),
        ];
        let issuer = Issuer::new(settings, source.clone(), clock.clone());
        let issuers = Issuers::new(vec![issuer], holders, clock.clone());
        let owner = OwnerToken::open(directory.path()).unwrap();
        let tokens = Tokens::open(directory.path(), [], clock.clone()).unwrap();
        let identities = Arc::new(Identities::new(owner, tokens).with_issuers(issuers));
        let followed = identities.clone();
        tokio::spawn(async move { followed.follow().await });
        Self {
            _directory: directory,
            source,
            identities,
            clock,
        }
    }

    async fn known(&self, token: &str) -> Result<Known, String> {
        let presented = Presented {
            bearer: Some(token),
            ..Presented::default()
        };
        let known = self.identities.authenticate(presented).await;
        known.map_err(|no| no.to_string())
    }

    async fn refused(&self, token: &str, says: &str) {
        let refused = self.known(token).await.unwrap_err();
        assert!(refused.contains(says), "{refused}");
        assert!(!refused.contains(token), "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn c54_a_jwt_is_the_principal_whose_claims_it_has() {
    let signer = Signer::new("k1");
    let bench = Bench::new(ISSUER, set(&[signer.jwk()]));
    let token = signer.token(&json!({}));
    for _again in 0..2 {
        let known = bench.known(&token).await.unwrap();
        let principal = &known.principal;
        assert_eq!(
            (principal.id.as_str(), principal.tenant.as_str()),
            ("ada", "team")
        );
        assert_eq!(
            (principal.ceiling, &*principal.groups),
            (Trust::Relayed, &["observer".to_owned()][..])
        );
        assert!(
            principal.credential.starts_with("jwt:acme:ada#"),
            "{}",
            principal.credential
        );
        assert_eq!(
            known.until,
            Some(Timestamp::from_millis((NOW + 600) * 1000))
        );
    }
    bench
        .refused(&signer.token(&json!({"sub": "eve"})), "no principal claims")
        .await;
    bench
        .refused(
            &signer.token(&json!({"team": "red"})),
            "more than one principal",
        )
        .await;
    let odd = signer.token(&json!({"sub": "a\n b", "team": "red"}));
    let known = bench.known(&odd).await.unwrap();
    assert!(known.principal.credential.starts_with("jwt:acme:a__b#"));
}

#[tokio::test(start_paused = true)]
async fn c54_a_token_of_github_actions_is_known_by_its_repository_branch_and_environment() {
    let key =
        json!({"kty": "RSA", "kid": "rsa-1", "alg": "RS256", "use": "sig", "e": "AQAB", "n": RSA});
    let bench = Bench::new(GITHUB, set(&[key]));
    let known = bench.known(ACTIONS).await.unwrap();
    assert_eq!(known.principal.id.as_str(), "ci");
    let credential = &known.principal.credential;
    assert!(credential.starts_with("jwt:acme:repo:acme/app:environment:production#"));
    // The same claims under another signature, and other claims under this one.
    let (signed, _) = ACTIONS.rsplit_once('.').unwrap();
    let last = &ACTIONS[ACTIONS.len() - 20..];
    for forged in [
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode([7; 256])),
        ACTIONS.replacen("eyJ0eXAi", "eyJ0eXBi", 1),
        ACTIONS.replace(last, &last.chars().rev().collect::<String>()),
    ] {
        bench.refused(&forged, "is not known").await;
    }
}

#[tokio::test(start_paused = true)]
async fn c54_no_token_chooses_how_it_is_verified() {
    let signer = Signer::new("k1");
    let bench = Bench::new(ISSUER, set(&[signer.jwk()]));
    let good = signer.token(&json!({}));
    let claims = good.split('.').nth(1).unwrap().to_owned();
    let with = |header: Value, signature: &str| {
        format!(
            "{}.{claims}.{signature}",
            URL_SAFE_NO_PAD.encode(header.to_string())
        )
    };
    let signature = good.rsplit('.').next().unwrap();
    for token in [
        with(json!({"alg": "none", "kid": "k1"}), ""),
        with(json!({"alg": "None"}), ""),
        with(json!({"alg": "HS256", "kid": "k1"}), signature),
        with(json!({"alg": "RS256", "kid": "k1"}), signature),
        with(json!({"alg": "EdDSA", "kid": "k1"}), signature),
        with(json!({"alg": "ES384", "kid": "k1"}), signature),
        with(
            json!({"alg": "ES256", "kid": "k1", "jwk": signer.jwk()}),
            "",
        ),
        with(json!({"alg": "ES256", "kid": "k1"}), ""),
        Signer::new("k1").token(&json!({})),
        format!("{good}x"),
        good[..good.len() - 4].to_owned(),
    ] {
        bench.refused(&token, "is not known").await;
    }
    // One that says nothing of its key may be of the only one there is.
    let claims = json!({"iss": ISSUER, "aud": "sessionplane", "sub": "ada", "exp": NOW + 9});
    let unnamed = signer.signed(&json!({"alg": "ES256"}), &claims);
    assert_eq!(
        bench.known(&unnamed).await.unwrap().principal.id.as_str(),
        "ada"
    );
}

#[tokio::test(start_paused = true)]
async fn c54_a_jwt_of_another_issuer_for_another_server_or_for_another_time_is_refused() {
    let signer = Signer::new("k1");
    let bench = Bench::new(ISSUER, set(&[signer.jwk()]));
    for (changes, says) in [
        (json!({"iss": "https://id.acme.test/"}), "is not known"),
        (json!({"iss": null}), "is not known"),
        (json!({"aud": "sessionplane2"}), "(aud)"),
        (json!({"aud": []}), "(aud)"),
        (json!({"aud": {"a": "sessionplane"}}), "(aud)"),
        (json!({"exp": null}), "a time that is none"),
        (json!({"exp": "1700000600"}), "a time that is none"),
        (json!({"exp": -1}), "a time that is none"),
        (json!({"exp": NOW}), "has expired"),
        (json!({"nbf": NOW + 31}), "(nbf)"),
        (json!({"nbf": "0"}), "a time that is none"),
        (json!({"iat": NOW + 31}), "(iat)"),
    ] {
        bench.refused(&signer.token(&changes), says).await;
    }
    for good in [
        json!({"nbf": NOW + 29, "iat": NOW + 29}),
        json!({"exp": 1_700_000_000.5}),
    ] {
        bench.known(&signer.token(&good)).await.unwrap();
    }
    let header = json!({"alg": "ES256", "kid": "k1"});
    let endless = json!({"iss": ISSUER, "aud": "sessionplane", "sub": "ada"});
    bench
        .refused(&signer.signed(&header, &endless), "no end (exp)")
        .await;
    bench
        .refused(
            &signer.token(&json!({"sub": "a".repeat(9000)})),
            "is not known",
        )
        .await;
    // A token that was good once is refused when its time is over.
    let token = signer.token(&json!({}));
    bench.known(&token).await.unwrap();
    bench.clock.sleep(Duration::from_secs(600)).await;
    bench.refused(&token, "has expired").await;
}

#[tokio::test(start_paused = true)]
async fn c54_tokens_with_invented_keys_do_not_make_the_server_hammer_the_issuer() {
    let signer = Signer::new("k1");
    let bench = Bench::new(ISSUER, set(&[signer.jwk()]));
    bench.known(&signer.token(&json!({}))).await.unwrap();
    let before = bench.source.asked();
    for _ in 0..100 {
        bench
            .refused(&Signer::new("invented").token(&json!({})), "is not known")
            .await;
        bench.clock.sleep(Duration::from_millis(250)).await;
    }
    // 25 seconds.
    assert!(
        bench.source.asked() <= before + 1,
        "{} times",
        bench.source.asked() - before
    );
    // Who is known stays so.
    bench.known(&signer.token(&json!({}))).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn c55_keys_change_without_a_restart_and_a_withdrawn_one_ends_what_it_signed() {
    let (old, new) = (Signer::new("k1"), Signer::new("k2"));
    let bench = Bench::new(ISSUER, set(&[old.jwk()]));
    let token = old.token(&json!({"exp": NOW + 86_400}));
    let known = bench.known(&token).await.unwrap();
    bench.source.says(Some(Ok(set(&[old.jwk(), new.jwk()]))));
    // The first token of the new key is let in at once.
    let next = new.token(&json!({"exp": NOW + 86_400}));
    bench.known(&next).await.unwrap();
    let ended = bench.identities.ended(&known);
    assert!(timeout(ENDS_WITHIN, ended).await.is_err());

    bench.source.says(Some(Ok(set(&[new.jwk()]))));
    bench.clock.sleep(REFRESH).await;
    let ended = timeout(ENDS_WITHIN, bench.identities.ended(&known)).await;
    assert!(ended.unwrap().to_string().contains("withdrawn"));
    bench.refused(&token, "is not known").await;
    bench.known(&next).await.unwrap();
    // A key of an old name is another key.
    let renamed = Signer::new("k2");
    bench.source.says(Some(Ok(set(&[renamed.jwk()]))));
    bench.clock.sleep(REFRESH * 2).await;
    bench.refused(&next, "is not known").await;
}

#[tokio::test(start_paused = true)]
async fn c54_keys_that_cannot_be_read_count_for_a_bounded_time() {
    let signer = Signer::new("k1");
    let many = (0..65).map(|_| signer.jwk()).collect::<Vec<_>>();
    let symmetric = json!({"kty": "oct", "kid": "k1", "k": "c2VjcmV0"});
    for failure in [
        Some(Err("down".to_owned())),
        Some(Ok("<html>".to_owned())),
        Some(Ok(set(&[]))),
        Some(Ok(set(&[symmetric]))),
        Some(Ok(set(&many))),
        Some(Ok(format!(
            "{}{}",
            set(&[signer.jwk()]),
            " ".repeat(256 * 1024)
        ))),
        None,
    ] {
        let bench = Bench::new(ISSUER, set(&[signer.jwk()]));
        let token = signer.token(&json!({"exp": NOW + 86_400}));
        let known = bench.known(&token).await.unwrap();
        bench.source.says(failure.clone());
        bench.clock.sleep(STALE).await;
        bench.known(&token).await.unwrap();
        assert!(
            timeout(ENDS_WITHIN, bench.identities.ended(&known))
                .await
                .is_err()
        );
        bench.clock.sleep(REFRESH).await;
        let ended = timeout(ENDS_WITHIN, bench.identities.ended(&known)).await;
        assert!(ended.is_ok(), "{failure:?}");
        bench.refused(&token, "is not known").await;
        if failure.is_some() {
            // It is asked again, and is back.
            bench.source.says(Some(Ok(set(&[signer.jwk()]))));
            bench.clock.sleep(Duration::from_secs(11)).await;
            bench.known(&token).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c54_an_issuer_that_hangs_keeps_a_call_waiting_for_three_seconds_at_most() {
    let signer = Signer::new("k1");
    let bench = Bench::new(ISSUER, set(&[signer.jwk()]));
    bench.source.says(None);
    let start = bench.clock.now();
    bench
        .refused(&signer.token(&json!({})), "is not known")
        .await;
    assert!(bench.clock.now().since(start) <= Duration::from_secs(4));
}

#[tokio::test(start_paused = true)]
async fn c55_what_goes_on_under_a_jwt_ends_within_five_seconds_of_its_end() {
    let signer = Signer::new("k1");
    let bench = Bench::new(ISSUER, set(&[signer.jwk()]));
    let known = bench.known(&signer.token(&json!({}))).await.unwrap();
    bench.clock.sleep(Duration::from_secs(599)).await;
    let ended = timeout(ENDS_WITHIN, bench.identities.ended(&known)).await;
    assert!(ended.unwrap().to_string().contains("has expired"));
}
