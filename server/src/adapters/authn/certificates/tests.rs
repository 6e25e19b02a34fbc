use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sessionplane_core::domain::access::PrincipalKind;
use sessionplane_core::domain::ids::{PrincipalId, TenantId};
use sessionplane_core::ports::authenticator::Authenticator as _;
use sessionplane_core::ports::clock::Clock as _;

use super::super::{Grant, Identities, OwnerToken, TokenBook, Tokens};
use super::*;
use crate::adapters::clock::TokioClock;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const CI: &str = "spiffe://acme.test/ci";
const PROXY: &str = "spiffe://acme.test/proxy";

fn registered(name: &str) -> Registered {
    Registered {
        id: PrincipalId::parse(name).unwrap(),
        tenant: TenantId::parse("team").unwrap(),
        kind: PrincipalKind::Service,
        groups: ["operator", "observer"].map(str::to_owned).into(),
    }
}

fn peer(name: &str) -> PeerCertificate {
    PeerCertificate {
        name: Ok(name.parse().unwrap()),
        ends: NOW.after(Duration::from_secs(3600)),
        fingerprint: [0xab; 8],
    }
}

fn nameless(problem: NameProblem) -> PeerCertificate {
    PeerCertificate {
        name: Err(problem),
        ..peer(CI)
    }
}

/// `ci` and `ada`, each with a certificate and tokens.
struct Bench {
    directory: tempfile::TempDir,
    identities: Identities,
    clock: Arc<TokioClock>,
    token: String,
}

impl Bench {
    fn new(forwarding: Forwarding) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let token = minted(directory.path(), "ci");
        let clock = Arc::new(TokioClock::starting_at(NOW));
        let all = ["ci", "ada"].map(registered);
        let tokens = Tokens::open(directory.path(), all.clone(), clock.clone()).unwrap();
        let owner = OwnerToken::open(directory.path()).unwrap();
        let [ci, ada] = all;
        let certified = [(ci, CI), (ada, "dns:ada.test")].map(|(holder, name)| Certified {
            holder,
            ceiling: Trust::Relayed,
            names: vec![name.parse().unwrap()],
        });
        let certificates = Certificates::new(certified, forwarding);
        Self {
            identities: Identities::new(owner, tokens).with_certificates(certificates),
            directory,
            clock,
            token,
        }
    }

    fn believing(peer: &str) -> Self {
        Self::new(Forwarding {
            peers: [peer.parse().unwrap()].into(),
            loopback_only: false,
        })
    }

    async fn asked(
        &self,
        peer: Option<&PeerCertificate>,
        bearer: Option<&str>,
        forwarded: Option<&str>,
    ) -> Result<Known, String> {
        let presented = Presented {
            bearer,
            certificate: peer,
            forwarded: forwarded.map_or(Forwarded::Absent, |text| Forwarded::Once(text.as_bytes())),
        };
        let known = self.identities.authenticate(presented).await;
        known.map_err(|no| no.to_string())
    }

    /// Who it is, and by which credential.
    async fn who(
        &self,
        peer: Option<&PeerCertificate>,
        bearer: Option<&str>,
        forwarded: Option<&str>,
    ) -> Result<(String, String), String> {
        let known = self.asked(peer, bearer, forwarded).await?;
        let principal = known.principal;
        Ok((principal.id.to_string(), principal.credential.to_string()))
    }
}

fn minted(directory: &Path, name: &str) -> String {
    let grant = Grant {
        holder: registered(name),
        groups: Some(vec!["observer".to_owned()]),
        ceiling: Trust::Untrusted,
        lifetime: None,
    };
    let (_, token) = TokenBook::of(directory).create(&grant, NOW).unwrap();
    token.reveal().to_owned()
}

#[tokio::test(start_paused = true)]
async fn c54_a_certificate_is_the_principal_that_is_configured_for_its_name() {
    let bench = Bench::new(Forwarding::default());
    let known = bench.asked(Some(&peer(CI)), None, None).await.unwrap();
    assert_eq!(known.principal.id.as_str(), "ci");
    assert_eq!(
        &*known.principal.credential,
        "cert:spiffe://acme.test/ci#abababababababab"
    );
    assert_eq!(known.principal.ceiling, Trust::Relayed);
    assert_eq!(known.until, Some(peer(CI).ends));
    let ada = bench.who(Some(&peer("dns:ada.test")), None, None).await;
    assert_eq!(ada.unwrap().0, "ada");
    let other = peer("spiffe://acme.test/ci2");
    let refused = bench.asked(Some(&other), None, None).await.unwrap_err();
    assert!(
        refused.contains("spiffe://acme.test/ci2 is of no principal"),
        "{refused}"
    );
    assert!(refused.contains("Bearer"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn c54_a_certificate_and_a_token_must_both_be_good_and_of_one_principal() {
    let bench = Bench::new(Forwarding::default());
    let ci = peer(CI);
    let known = bench.asked(Some(&ci), Some(&bench.token), None).await;
    let known = known.unwrap();
    // The token says what it may do, and the certificate ends it, too.
    assert_eq!(&*known.principal.groups, ["observer"]);
    assert_eq!(known.principal.ceiling, Trust::Untrusted);
    assert!(known.principal.credential.starts_with("token:"));
    assert_eq!(known.until, Some(ci.ends));
    for wrong in ["x", &bench.token[1..], "eyJh.e30.x"] {
        let refused = bench.asked(Some(&ci), Some(wrong), None).await.unwrap_err();
        assert!(refused.contains("is not known"), "{refused}");
    }
    let owner = std::fs::read_to_string(bench.directory.path().join("owner.token")).unwrap();
    let others = minted(bench.directory.path(), "ada");
    for other in [owner.trim_end(), &others] {
        let refused = bench.asked(Some(&ci), Some(other), None).await;
        refused.unwrap_err();
    }
    // A certificate that names nobody here is no more than the way to the server.
    let mesh = peer("spiffe://acme.test/mesh");
    let owned = bench.who(Some(&mesh), Some(owner.trim_end()), None).await;
    assert_eq!(owned.unwrap().0, "owner");
}

#[tokio::test(start_paused = true)]
async fn c54_a_certificate_that_is_not_as_it_must_be_is_refused_whatever_token_comes_with_it() {
    let bench = Bench::new(Forwarding::default());
    for problem in [
        NameProblem::SeveralSpiffeIds,
        NameProblem::NoSpiffeId,
        NameProblem::Unreadable,
    ] {
        let bad = nameless(problem);
        for token in [None, Some(bench.token.as_str())] {
            let refused = bench.asked(Some(&bad), token, None).await.unwrap_err();
            assert!(refused.contains("certificate is refused"), "{refused}");
        }
    }
    for problem in [NameProblem::SeveralDnsNames, NameProblem::Nameless] {
        let plain = nameless(problem);
        let refused = bench.asked(Some(&plain), None, None).await.unwrap_err();
        assert!(refused.contains("names nobody"), "{refused}");
        let known = bench.who(Some(&plain), Some(&bench.token), None).await;
        assert_eq!(known.unwrap().0, "ci");
    }
}

#[tokio::test(start_paused = true)]
async fn c55_a_certificate_that_ends_is_refused_and_ends_what_goes_on() {
    let bench = Bench::new(Forwarding::default());
    let ci = peer(CI);
    let alone = bench.asked(Some(&ci), None, None).await.unwrap();
    let both = bench
        .asked(Some(&ci), Some(&bench.token), None)
        .await
        .unwrap();
    bench.clock.sleep(Duration::from_secs(3599)).await;
    let within = Duration::from_secs(5);
    for known in [&alone, &both] {
        let ended = tokio::time::timeout(within, bench.identities.ended(known)).await;
        assert!(ended.unwrap().to_string().contains("has ended"));
    }
    for token in [None, Some(bench.token.as_str())] {
        let refused = bench.asked(Some(&ci), token, None).await.unwrap_err();
        assert!(refused.contains("has ended"), "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn c54_a_forwarded_certificate_is_believed_from_the_configured_peer_and_from_nobody_else() {
    let header = "By=spiffe://acme.test/proxy;Hash=ab;URI=spiffe://acme.test/ci";
    let proxy = peer(PROXY);
    let bench = Bench::believing(PROXY);
    let known = bench.asked(Some(&proxy), None, Some(header)).await.unwrap();
    let credential = &*known.principal.credential;
    assert_eq!(known.principal.id.as_str(), "ci");
    assert_eq!(
        credential,
        "cert:spiffe://acme.test/ci via spiffe://acme.test/proxy"
    );
    assert_eq!(known.until, Some(proxy.ends));
    // What others send is as if it were not there.
    let ada = peer("dns:ada.test");
    let other = bench.who(Some(&ada), None, Some(header)).await.unwrap();
    assert_eq!(other.0, "ada");
    for (peer, token) in [
        (None, None),
        (Some(peer("spiffe://acme.test/x")), None),
        (None, Some("x")),
    ] {
        let refused = bench
            .asked(peer.as_ref(), token, Some(header))
            .await
            .unwrap_err();
        assert!(
            token.is_some() || refused.contains("is not believed"),
            "{refused}"
        );
    }
    let unconfigured = Bench::new(Forwarding::default());
    let refused = unconfigured.asked(Some(&proxy), None, Some(header)).await;
    assert!(refused.unwrap_err().contains("is not believed"));
}

#[tokio::test(start_paused = true)]
async fn c54_a_proxy_is_nobody_itself_and_what_it_forwards_must_be_whole_and_come_once() {
    let bench = Bench::believing(CI);
    let proxy = peer(CI);
    // Its own name is a principal's, and it says of nobody that it calls for them.
    let refused = bench.asked(Some(&proxy), None, None).await.unwrap_err();
    assert!(refused.contains("was shown no certificate"), "{refused}");
    let token = bench
        .who(Some(&proxy), Some(&bench.token), None)
        .await
        .unwrap();
    assert!(token.1.starts_with("token:"));
    for malformed in [
        "",
        "x",
        "URI=spiffe://acme.test/ci,",
        "URI=spiffe://a/b;URI=spiffe://a/c",
    ] {
        for token in [None, Some(bench.token.as_str())] {
            let refused = bench.asked(Some(&proxy), token, Some(malformed)).await;
            refused.unwrap_err();
        }
    }
    let presented = Presented {
        bearer: Some(&bench.token),
        certificate: Some(&proxy),
        forwarded: Forwarded::Repeated,
    };
    let refused = bench.identities.authenticate(presented).await.unwrap_err();
    assert!(refused.to_string().contains("more than once"), "{refused}");
    // The last hop is whom the proxy has seen.
    let hops = "URI=spiffe://acme.test/ci,DNS=ada.test";
    assert_eq!(
        bench.who(Some(&proxy), None, Some(hops)).await.unwrap().0,
        "ada"
    );
}

#[tokio::test(start_paused = true)]
async fn c54_behind_a_sidecar_the_header_is_believed_without_a_certificate() {
    let bench = Bench::new(Forwarding {
        peers: BTreeSet::new(),
        loopback_only: true,
    });
    let header = "URI=spiffe://acme.test/ci";
    let (id, credential) = bench.who(None, None, Some(header)).await.unwrap();
    assert_eq!(
        (&*id, &*credential),
        ("ci", "cert:spiffe://acme.test/ci via loopback")
    );
    let refused = bench
        .asked(None, Some("x"), Some(header))
        .await
        .unwrap_err();
    assert!(refused.contains("is not known"), "{refused}");
    assert_eq!(
        bench.who(None, Some(&bench.token), None).await.unwrap().0,
        "ci"
    );
}
