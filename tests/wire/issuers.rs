//! JWTs on the wire, with an issuer whose keys are in a file: who is let in, and what ends with them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::json;
use sessionplane_core::domain::access::PrincipalKind;
use sessionplane_core::domain::ids::{PrincipalId, TenantId};
use sessionplane_core::domain::provenance::Trust;
use sessionplane_core::ports::clock::Clock;
use sessionplane_server::adapters::authn::jwt::{
    Algorithm, Claimed, Issuer, IssuerSettings, Issuers, KeyFile,
};
use sessionplane_server::adapters::authn::{Identities, OwnerToken, Registered, Tokens};
use sessionplane_server::adapters::clock::TokioClock;
use sessionplane_server::grpc::listener::Listener;
use sessionplane_server::grpc::server::Config;
use tonic::{Code, Status};

use crate::pki::replace;
use crate::server::{Answer, Caller, Running, told};
use crate::streams::{invoke, observe};

const GET_STATE: &str = "/sessionplane.v1.SessionControl/GetState";
/// The session `a`.
const SESSION_A: [u8; 5] = [0x0a, 0x03, 0x12, 0x01, b'a'];
/// What C55 allows, and a second in which the file is looked at.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// A key of the issuer.
struct Key(EcdsaKeyPair);

impl Key {
    fn new() -> Self {
        let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let made = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        Self(EcdsaKeyPair::from_pkcs8(algorithm, made.as_ref(), &random).unwrap())
    }

    fn publish(&self, path: &Path) {
        let point = self.0.public_key().as_ref();
        let part = |part: &[u8]| URL_SAFE_NO_PAD.encode(part);
        let key = json!({"kty": "EC", "crv": "P-256", "kid": "k", "x": part(&point[1..33]),
                         "y": part(&point[33..])});
        replace(path, &json!({ "keys": [key] }).to_string());
    }

    fn token(&self, lifetime: Duration) -> String {
        let now = TokioClock::start().now().as_millis() / 1000;
        let claims = json!({"iss": "https://id.acme.test", "aud": "sessionplane", "sub": "build 7",
                            "exp": now + lifetime.as_secs(), "repository": "acme/app"});
        let header = json!({"alg": "ES256", "kid": "k"});
        let parts = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let signed = parts.join(".");
        let signature = self
            .0
            .sign(&SystemRandom::new(), signed.as_bytes())
            .unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

async fn start(key: &Key) -> Running {
    let directory = tempfile::tempdir().unwrap();
    let keys = directory.path().join("keys.json");
    key.publish(&keys);
    let clock: Arc<dyn Clock> = Arc::new(TokioClock::start());
    let settings = IssuerSettings {
        name: "acme".to_owned(),
        issuer: "https://id.acme.test".to_owned(),
        audiences: vec!["sessionplane".to_owned()],
        algorithms: vec![Algorithm::Es256],
        leeway: Duration::from_secs(30),
        refresh: Duration::from_secs(1),
        stale: Duration::from_secs(3600),
    };
    let holder = Registered {
        id: PrincipalId::parse("ci").unwrap(),
        tenant: TenantId::parse("team").unwrap(),
        kind: PrincipalKind::Service,
        groups: [String::from("operator")].into(),
    };
    let claimed = Claimed {
        holder,
        ceiling: Trust::Relayed,
        rules: vec!["acme: repository=acme/app".parse().unwrap()],
    };
    let issuer = Issuer::new(settings, Arc::new(KeyFile(keys)), clock.clone());
    let issuers = Issuers::new(vec![issuer], vec![claimed], clock.clone());
    let owner = OwnerToken::open(directory.path()).unwrap();
    let tokens = Tokens::open(directory.path(), [], clock).unwrap();
    let identities = Arc::new(Identities::new(owner, tokens).with_issuers(issuers));
    let followed = identities.clone();
    tokio::spawn(async move { followed.follow().await });
    let listener = Listener::bind(&"127.0.0.1:0".parse().unwrap()).await;
    Running::on(listener.unwrap(), directory, Config::default(), identities)
}

async fn get_state(caller: &Caller) -> Status {
    caller.call(GET_STATE, &SESSION_A).await.status().await
}

async fn end_in_time(streams: Vec<Answer>, within: Duration, says: &str) {
    for stream in streams {
        let status = tokio::time::timeout(within, stream.status()).await;
        let status = status.expect("in time");
        assert_eq!(
            (status.code(), told(&status)),
            (
                Code::Unauthenticated,
                ("UNAUTHENTICATED".to_owned(), "stream_ended".to_owned())
            )
        );
        assert!(status.message().contains(says), "{status:?}");
    }
}

#[tokio::test]
async fn c54_a_jwt_of_a_configured_issuer_lets_its_principal_in() {
    let key = Key::new();
    let server = start(&key).await;
    let token = key.token(Duration::from_secs(600));
    let holder = server.holder(&token).await;
    assert_eq!(get_state(&holder).await.code(), Code::Ok);
    let (caller, _options) = server.fake.asked();
    let principal = &caller.principal;
    assert_eq!(principal.id.as_str(), "ci");
    assert!(
        principal.credential.starts_with("jwt:acme:build_7#"),
        "{}",
        principal.credential
    );
    for wrong in [
        Key::new().token(Duration::from_secs(600)),
        key.token(Duration::ZERO),
        format!("{token}x"),
    ] {
        let refused = get_state(&server.holder(&wrong).await).await;
        assert_eq!(refused.code(), Code::Unauthenticated);
        assert!(!refused.message().contains(&wrong), "{refused:?}");
    }
    assert_eq!(get_state(&server.owner().await).await.code(), Code::Ok);
}

#[tokio::test]
async fn c55_streams_of_a_jwt_end_with_it_and_with_the_key_that_signed_it() {
    let key = Key::new();
    let server = start(&key).await;
    let lifetime = Duration::from_secs(2);
    let brief = server.holder(&key.token(lifetime)).await;
    let long = server.holder(&key.token(Duration::from_secs(600))).await;
    let ends = vec![invoke(&brief).await, observe(&brief).await];
    let stays = vec![invoke(&long).await, observe(&long).await];
    end_in_time(ends, lifetime + ENDS_WITHIN, "has expired").await;
    server.fake.until_open(2).await;
    Key::new().publish(&server.directory.path().join("keys.json"));
    end_in_time(stays, ENDS_WITHIN, "withdrawn").await;
    assert_eq!(get_state(&long).await.code(), Code::Unauthenticated);
}
