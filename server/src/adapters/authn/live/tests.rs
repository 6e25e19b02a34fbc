use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use sessionplane_core::ports::authenticator::{Authenticator as _, Presented};

use super::super::{Grant, Identities, OwnerToken};
use super::*;
use crate::adapters::clock::TokioClock;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const HOUR: Duration = Duration::from_secs(3600);

fn registered(name: &str, groups: &[&str]) -> Registered {
    Registered {
        id: PrincipalId::parse(name).unwrap(),
        tenant: TenantId::parse("team").unwrap(),
        kind: PrincipalKind::Service,
        groups: groups.iter().map(ToString::to_string).collect(),
    }
}

fn grant(name: &str, groups: Option<&[&str]>, lifetime: Option<Duration>) -> Grant {
    Grant {
        holder: registered(name, &["operator", "observer"]),
        groups: groups.map(|groups| groups.iter().map(ToString::to_string).collect()),
        ceiling: Trust::Relayed,
        lifetime,
    }
}

/// A data directory with a server's view of it. Its time is the paused clock's.
struct Bench {
    directory: tempfile::TempDir,
    identities: Arc<Identities>,
    clock: Arc<TokioClock>,
}

impl Bench {
    fn over(directory: tempfile::TempDir, known: Vec<Registered>) -> Self {
        let bench = Self::unfollowed(directory, known);
        let followed = bench.identities.clone();
        tokio::spawn(async move { followed.follow().await });
        bench
    }

    /// One whose file nobody looks at again.
    fn unfollowed(directory: tempfile::TempDir, known: Vec<Registered>) -> Self {
        let clock = Arc::new(TokioClock::starting_at(NOW));
        let owner = OwnerToken::open(directory.path()).unwrap();
        let tokens = Tokens::open(directory.path(), known, clock.clone()).unwrap();
        let identities = Arc::new(Identities::new(owner, tokens));
        Self {
            directory,
            identities,
            clock,
        }
    }

    fn book(&self) -> TokenBook {
        TokenBook::of(self.directory.path())
    }

    async fn who(&self, token: &str) -> Result<Principal, String> {
        let presented = Presented {
            bearer: Some(token),
            ..Presented::default()
        };
        let known = self.identities.authenticate(presented).await;
        let known = known.map(|known| known.principal);
        known.map_err(|no| no.to_string())
    }

    async fn ended(&self, principal: &Principal) -> Unauthenticated {
        self.identities.ended(&principal.clone().into()).await
    }

    /// Lets the server look at its files.
    async fn looks(&self) {
        self.clock.sleep(2 * LOOK_EVERY).await;
    }
}

fn minted(directory: &Path, grant: &Grant) -> (TokenId, String) {
    let (record, token) = TokenBook::of(directory).create(grant, NOW).unwrap();
    (record.id, token.reveal().to_owned())
}

#[tokio::test(start_paused = true)]
async fn c54_a_token_is_its_principal_as_configured_and_its_groups_never_grow() {
    let directory = tempfile::tempdir().unwrap();
    let all = minted(directory.path(), &grant("ci", None, None)).1;
    let fewer = grant("ci", Some(&["observer", "admin"]), None);
    let fewer = minted(directory.path(), &fewer).1;
    let known = registered("ci", &["operator", "observer"]);
    let bench = Bench::over(directory, vec![known]);
    let whole = bench.who(&all).await.unwrap();
    assert_eq!(&*whole.groups, ["operator", "observer"]);
    assert_eq!(whole.ceiling, Trust::Relayed);
    let part = bench.who(&fewer).await.unwrap();
    assert_eq!(&*part.groups, ["observer"], "its principal is no admin");
    assert_eq!((&whole.id, &whole.tenant), (&part.id, &part.tenant));
    assert_ne!(whole.credential, part.credential);
    assert!(!format!("{:?}", bench.identities).contains(&all[12..]));
}

#[tokio::test(start_paused = true)]
async fn c54_a_token_of_a_principal_that_is_another_one_now_lets_nobody_in() {
    let mut moved = registered("ci", &["operator"]);
    moved.tenant = TenantId::parse("others").unwrap();
    let mut changed = registered("ci", &["operator"]);
    changed.kind = PrincipalKind::Human;
    for known in [
        vec![],
        vec![registered("cd", &["operator"])],
        vec![moved],
        vec![changed],
    ] {
        let directory = tempfile::tempdir().unwrap();
        let token = minted(directory.path(), &grant("ci", None, None)).1;
        let bench = Bench::over(directory, known);
        let error = bench.who(&token).await.unwrap_err();
        assert!(error.contains("is not known"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn c54_expiry_is_enforced_at_the_call_and_revocation_is_read_live() {
    let directory = tempfile::tempdir().unwrap();
    let (_, short) = minted(directory.path(), &grant("ci", None, Some(HOUR)));
    let (id, long) = minted(directory.path(), &grant("ci", None, None));
    let bench = Bench::over(directory, vec![registered("ci", &["operator"])]);
    bench.clock.sleep(Duration::from_millis(3_599_999)).await;
    bench.who(&short).await.unwrap();
    bench.clock.sleep(Duration::from_millis(1)).await;
    let error = bench.who(&short).await.unwrap_err();
    assert!(error.contains("has expired"), "{error}");

    bench.who(&long).await.unwrap();
    bench.book().revoke(&id, NOW).unwrap();
    bench.looks().await;
    let error = bench.who(&long).await.unwrap_err();
    assert!(
        error.contains("was revoked") && !error.contains(&long),
        "{error}"
    );
    // Who does not have the secret learns nothing of it.
    let wrong = format!(
        "{}{}",
        &long[..54],
        if long.ends_with('x') { 'y' } else { 'x' }
    );
    let unknown = bench.who(&wrong).await.unwrap_err();
    assert_eq!(unknown, bench.who("nonsense").await.unwrap_err());
}

#[tokio::test(start_paused = true)]
async fn c55_the_end_of_a_credential_is_told_within_five_seconds() {
    let directory = tempfile::tempdir().unwrap();
    let (id, revoked) = minted(directory.path(), &grant("ci", None, None));
    let (_, expires) = minted(directory.path(), &grant("ci", None, Some(HOUR)));
    let bench = Bench::over(directory, vec![registered("ci", &["operator"])]);
    let owner = fs::read_to_string(bench.directory.path().join("owner.token")).unwrap();
    let [revoked, expires, owner] = [
        bench.who(&revoked).await.unwrap(),
        bench.who(&expires).await.unwrap(),
        bench.who(owner.trim_end()).await.unwrap(),
    ];
    let within = Duration::from_secs(5);
    let still = |principal| tokio::time::timeout(within, bench.ended(principal));
    for principal in [&revoked, &expires, &owner] {
        assert!(still(principal).await.is_err());
    }
    bench.book().revoke(&id, NOW).unwrap();
    let told = still(&revoked).await.unwrap().to_string();
    assert!(told.contains("was revoked"), "{told}");
    bench.clock.sleep(HOUR).await;
    let told = still(&expires).await.unwrap().to_string();
    assert!(told.contains("has expired"), "{told}");
    assert!(still(&owner).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn c54_a_damaged_file_keeps_what_was_known_and_a_removed_one_lets_nobody_in() {
    let directory = tempfile::tempdir().unwrap();
    let (_, token) = minted(directory.path(), &grant("ci", None, None));
    let bench = Bench::over(directory, vec![registered("ci", &["operator"])]);
    let path = bench.book().path().to_owned();
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[1..]).unwrap();
    bench.looks().await;
    bench.who(&token).await.unwrap();
    let principal = bench.who(&token).await.unwrap();
    fs::remove_file(&path).unwrap();
    bench.looks().await;
    bench.who(&token).await.unwrap_err();
    let ended = tokio::time::timeout(LOOK_EVERY, bench.ended(&principal));
    assert!(ended.await.is_ok());
    // Put back, it counts again.
    fs::write(&path, &whole).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    bench.looks().await;
    bench.who(&token).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn c54_a_revocation_that_could_not_be_read_at_once_is_read_later() {
    let directory = tempfile::tempdir().unwrap();
    let (id, token) = minted(directory.path(), &grant("ci", None, None));
    let bench = Bench::unfollowed(directory, vec![registered("ci", &["operator"])]);
    let (book, tokens) = (bench.book(), &bench.identities.tokens);
    book.revoke(&id, NOW).unwrap();
    let stamp = Stamp::of(book.path());
    let failed = || BookError::Io {
        path: book.path().to_owned(),
        what: "read",
        error: std::io::Error::from_raw_os_error(24),
    };
    let mut seen = Seen::default();
    for _ in 0..2 {
        tokens.look(&mut seen, stamp, Err(failed()));
        bench.who(&token).await.unwrap();
        assert!(seen.stamp != Some(stamp), "it is not taken for read");
    }
    tokens.look(&mut seen, stamp, book.read());
    bench.who(&token).await.unwrap_err();
    assert!(seen.stamp == Some(stamp), "it is not read every second");
}

/// What is written of the tokens' uses once a minute has passed.
async fn uses(bench: &Bench) -> Uses {
    // The file is written by another thread, for which the paused clock waits.
    bench.clock.sleep(WRITE_EVERY + 2 * LOOK_EVERY).await;
    bench.book().uses()
}

#[tokio::test(start_paused = true)]
async fn when_a_token_was_used_last_is_known_a_minute_later_and_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let (id, used) = minted(directory.path(), &grant("ci", None, None));
    let (_, unused) = minted(directory.path(), &grant("ci", None, None));
    let known = || vec![registered("ci", &["operator"])];
    let bench = Bench::over(directory, known());
    assert_eq!(uses(&bench).await, Uses::new());
    let at = bench.clock.now();
    let principal = bench.who(&used).await.unwrap();
    bench.who(&unused.replace("sp_", "sp-")).await.unwrap_err();
    assert_eq!(uses(&bench).await, Uses::from([(id.clone(), at)]));
    // A table that is read anew knows it still.
    minted(bench.directory.path(), &grant("ada", None, None));
    assert_eq!(uses(&bench).await, Uses::from([(id.clone(), at)]));

    // A stream uses it for as long as it goes on.
    let stream = {
        let identities = bench.identities.clone();
        tokio::spawn(async move { identities.ended(&principal.into()).await })
    };
    uses(&bench).await;
    let during = uses(&bench).await[&id];
    assert!(during > at.after(WRITE_EVERY), "{during:?}");
    stream.abort();
    let after = uses(&bench).await[&id];
    assert_eq!(uses(&bench).await[&id], after);

    let again = Bench::over(bench.directory, known());
    again.who(&unused).await.unwrap();
    let uses = uses(&again).await;
    assert_eq!((uses[&id], uses.len()), (after, 2));
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_the_times_of_use_keeps_nobody_out() {
    let directory = tempfile::tempdir().unwrap();
    let (id, token) = minted(directory.path(), &grant("ci", None, None));
    let file = directory.path().join("tokens.used.json");
    fs::write(&file, "{").unwrap();
    let bench = Bench::over(directory, vec![registered("ci", &["operator"])]);
    bench.who(&token).await.unwrap();
    assert!(uses(&bench).await.contains_key(&id), "it is made anew");
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // Nor that it cannot be written.
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    fs::write(file.join("in-the-way"), "").unwrap();
    bench.who(&token).await.unwrap();
    assert_eq!(uses(&bench).await, Uses::new());
    bench.who(&token).await.unwrap();
}

#[test]
fn c54_a_damaged_file_stops_the_start() {
    let directory = tempfile::tempdir().unwrap();
    minted(directory.path(), &grant("ci", None, None));
    let book = TokenBook::of(directory.path());
    fs::write(book.path(), "{").unwrap();
    let clock = Arc::new(TokioClock::starting_at(NOW));
    let error = Tokens::open(directory.path(), [], clock).unwrap_err();
    assert!(error.to_string().contains("damaged"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn c57_a_token_says_of_a_text_that_it_was_typed_only_where_no_agent_can_read_it() {
    let typed = |name: &str, kind| {
        let mut grant = grant(name, None, None);
        (grant.ceiling, grant.holder.kind) = (Trust::Typed, kind);
        grant
    };
    let known = [
        ("ada", PrincipalKind::Human),
        ("ci", PrincipalKind::Service),
    ];
    let known = known.map(|(name, kind)| typed(name, kind).holder);
    for (most, ada) in [
        (Trust::Relayed, Trust::Relayed),
        (Trust::Typed, Trust::Typed),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let ada_s = minted(directory.path(), &typed("ada", PrincipalKind::Human)).1;
        let ci_s = minted(directory.path(), &typed("ci", PrincipalKind::Service)).1;
        let clock = Arc::new(TokioClock::starting_at(NOW));
        let owner = OwnerToken::open(directory.path()).unwrap();
        let tokens = Tokens::open(directory.path(), known.clone(), clock.clone()).unwrap();
        let identities = Identities::new(owner, tokens).with_local_trust(most);
        let bench = Bench {
            identities: Arc::new(identities),
            directory,
            clock,
        };
        assert_eq!(bench.who(&ada_s).await.unwrap().ceiling, ada);
        assert_eq!(bench.who(&ci_s).await.unwrap().ceiling, Trust::Relayed);
        let owner = fs::read_to_string(bench.directory.path().join("owner.token")).unwrap();
        assert_eq!(bench.who(owner.trim_end()).await.unwrap().ceiling, ada);
    }
}
