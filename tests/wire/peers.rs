//! Client certificates on the wire: whom they name, for whom they are forwarded, and what ends with
//! them.

use std::sync::Arc;
use std::time::Duration;

use sessionplane_core::domain::access::PrincipalKind;
use sessionplane_core::domain::certificate::CertificateName;
use sessionplane_core::domain::ids::{PrincipalId, TenantId};
use sessionplane_core::domain::provenance::Trust;
use sessionplane_core::domain::time::Timestamp;
use sessionplane_core::ports::clock::Clock;
use sessionplane_server::adapters::authn::{
    Certificates, Certified, Forwarding, Identities, OwnerToken, Registered, Tokens,
};
use sessionplane_server::adapters::clock::TokioClock;
use sessionplane_server::adapters::tls_files::TlsFiles;
use sessionplane_server::grpc::listener::{Guard, Listener};
use sessionplane_server::grpc::server::Config;
use sessionplane_server::grpc::tls::Tls;
use tonic::{Code, Status};

use crate::pki::{Files, Pair, Pki};
use crate::server::{Caller, Running, connect, told};
use crate::streams::{invoke, observe};
use crate::tls::shake;

const GET_STATE: &str = "/sessionplane.v1.SessionControl/GetState";
/// The session `a`.
const SESSION_A: [u8; 5] = [0x0a, 0x03, 0x12, 0x01, b'a'];
/// What C55 allows.
const ENDS_WITHIN: Duration = Duration::from_secs(5);
const CI: &str = "spiffe://acme.test/ci";
const PROXY: &str = "spiffe://acme.test/proxy";
const FORWARDED: &str = "x-forwarded-client-cert";
/// 2999-12-31, an hour before the tests' certificates end.
const LATE: Timestamp = Timestamp::from_millis(32_503_676_400_000);

fn certified(name: &str, certificate: &str) -> Certified {
    Certified {
        holder: Registered {
            id: PrincipalId::parse(name).unwrap(),
            tenant: TenantId::parse("team").unwrap(),
            kind: PrincipalKind::Service,
            groups: [String::from("operator")].into(),
        },
        ceiling: Trust::Relayed,
        names: vec![certificate.parse().unwrap()],
    }
}

/// A server that asks for certificates of `clients`, and believes the proxy.
struct World {
    server: Running,
    clients: Pki,
    files: Files,
    clock: Arc<TokioClock>,
}

impl World {
    async fn start() -> Self {
        let clock = Arc::new(TokioClock::start());
        Self::at(clock).await
    }

    async fn at(clock: Arc<TokioClock>) -> Self {
        let (files, clients) = (Pki::new().files(), Pki::new());
        let authority = files.directory.path().join("clients.pem");
        std::fs::write(&authority, clients.ca()).unwrap();
        let mut paths = files.paths();
        paths.clients = Some((authority, false));
        let tls = TlsFiles::open(paths, clock.clone()).unwrap();

        let directory = tempfile::tempdir().unwrap();
        let owner = OwnerToken::open(directory.path()).unwrap();
        let tokens = Tokens::open(directory.path(), [], clock.clone()).unwrap();
        let all = [certified("ci", CI), certified("ada", "dns:ada.test")];
        let forwarding = Forwarding {
            peers: [PROXY.parse::<CertificateName>().unwrap()].into(),
            loopback_only: false,
        };
        let certificates = Certificates::new(all, forwarding);
        let identities = Identities::new(owner, tokens).with_certificates(certificates);
        let guard = Guard {
            tls: Some(Tls::new(tls.current())),
            identities: true,
        };
        let listener = Listener::guarded(&"127.0.0.1:0".parse().unwrap(), guard).await;
        let (listener, identities) = (listener.unwrap(), Arc::new(identities));
        Self {
            server: Running::on(listener, directory, Config::default(), identities),
            clients,
            files,
            clock,
        }
    }

    async fn caller(&self, shows: Option<&Pair>) -> Caller {
        let ca = std::fs::read_to_string(&self.files.ca).unwrap();
        let stream = shake(&self.server, &ca, shows).await.unwrap();
        Caller::silent_over(connect(stream).await)
    }

    async fn of(&self, uris: &[&str], names: &[&str]) -> Caller {
        self.caller(Some(&self.clients.client(uris, names))).await
    }

    /// Who it was that the application was asked by.
    fn asked(&self) -> (String, String) {
        let (caller, _options) = self.server.fake.asked();
        let principal = caller.principal;
        (principal.id.to_string(), principal.credential.to_string())
    }
}

async fn get_state(caller: &Caller) -> Status {
    caller.call(GET_STATE, &SESSION_A).await.status().await
}

#[tokio::test]
async fn c54_whoever_shows_a_configured_certificate_needs_no_token() {
    let world = World::start().await;
    let ci = world.of(&[CI], &["ada.test"]).await;
    assert_eq!(get_state(&ci).await.code(), Code::Ok);
    let (id, credential) = world.asked();
    assert_eq!(id, "ci");
    assert!(
        credential.starts_with("cert:spiffe://acme.test/ci#"),
        "{credential}"
    );
    let ada = world.of(&[], &["Ada.test"]).await;
    assert_eq!(get_state(&ada).await.code(), Code::Ok);
    assert_eq!(world.asked().0, "ada");

    for (uris, names, says) in [
        (
            &[CI, "spiffe://acme.test/x"][..],
            &[][..],
            "more than one SPIFFE id",
        ),
        (
            &["spiffe://acme.test/x"],
            &[],
            "spiffe://acme.test/x is of no principal",
        ),
        (&[], &["ada.test", "b.test"], "names nobody"),
    ] {
        let refused = get_state(&world.of(uris, names).await).await;
        assert_eq!(refused.code(), Code::Unauthenticated);
        assert!(refused.message().contains(says), "{refused:?}");
    }
    let refused = get_state(&world.caller(None).await).await;
    assert!(refused.message().contains("no bearer token"), "{refused:?}");
}

#[tokio::test]
async fn c54_a_token_that_comes_with_a_certificate_is_never_passed_over() {
    let world = World::start().await;
    let ci = world.of(&[CI], &[]).await;
    for header in ["Bearer sp_wrong", "Basic YTpi", "Bearer", "nonsense"] {
        let refused = get_state(&ci.header("authorization", header)).await;
        assert_eq!(refused.code(), Code::Unauthenticated, "{header}");
    }
    let owner = format!("Bearer {}", world.server.token);
    let refused = get_state(&ci.header("authorization", &owner)).await;
    assert!(
        refused.message().contains("send one of the two"),
        "{refused:?}"
    );
    // Over a certificate that names nobody the token says who it is.
    let mesh = world.of(&["spiffe://acme.test/mesh"], &[]).await;
    let known = get_state(&mesh.header("authorization", &owner)).await;
    assert_eq!(
        (known.code(), world.asked().0.as_str()),
        (Code::Ok, "owner")
    );
}

#[tokio::test]
async fn c54_a_forged_header_of_a_forwarded_certificate_counts_for_nothing() {
    let world = World::start().await;
    let header = format!("URI={CI}");
    let proxied = world.of(&[PROXY], &[]).await.header(FORWARDED, &header);
    assert_eq!(get_state(&proxied).await.code(), Code::Ok);
    let (id, credential) = world.asked();
    assert_eq!(
        (id.as_str(), credential),
        ("ci", format!("cert:{CI} via {PROXY}"))
    );

    let stranger = world.caller(None).await.header(FORWARDED, &header);
    let other = world.of(&["spiffe://acme.test/x"], &[]).await;
    for forger in [stranger, other.header(FORWARDED, &header)] {
        let refused = get_state(&forger).await;
        assert_eq!(refused.code(), Code::Unauthenticated);
        assert!(refused.message().contains("is not believed"), "{refused:?}");
    }
    // Who is somebody stays who they are.
    let ada = world
        .of(&[], &["ada.test"])
        .await
        .header(FORWARDED, &header);
    assert_eq!(get_state(&ada).await.code(), Code::Ok);
    assert_eq!(world.asked().0, "ada");
    let hops = [header.as_str(); 17].join(",");
    for malformed in ["x", "URI=\"", "", &hops] {
        let refused = get_state(&proxied.header(FORWARDED, malformed)).await;
        assert_eq!(refused.code(), Code::Unauthenticated, "{malformed}");
    }
}

#[tokio::test]
async fn c55_streams_of_a_certificate_end_within_five_seconds_of_its_end() {
    // The handshake goes by the machine's clock; who calls, by the server's.
    let clock = Arc::new(TokioClock::starting_at(LATE));
    let world = World::at(clock).await;
    let pair = world.clients.client_until(&[CI], &[], 3000);
    let ci = world.caller(Some(&pair)).await;
    let streams = [invoke(&ci).await, observe(&ci).await];
    world.server.fake.until_open(2).await;
    tokio::time::pause();
    world.clock.sleep(Duration::from_secs(3600)).await;
    tokio::time::resume();
    for stream in streams {
        let status = tokio::time::timeout(ENDS_WITHIN, stream.status()).await;
        let status = status.expect("in time");
        assert_eq!(
            (status.code(), told(&status)),
            (
                Code::Unauthenticated,
                ("UNAUTHENTICATED".to_owned(), "stream_ended".to_owned())
            )
        );
        assert!(status.message().contains("certificate"), "{status:?}");
    }
    let refused = get_state(&ci).await;
    assert_eq!(refused.code(), Code::Unauthenticated);
    assert!(refused.message().contains("has ended"), "{refused:?}");
}
