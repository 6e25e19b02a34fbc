use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn grant(name: &str, lifetime: Option<Duration>) -> Grant {
    Grant {
        holder: Registered {
            id: PrincipalId::parse(name).unwrap(),
            tenant: TenantId::parse("team").unwrap(),
            kind: PrincipalKind::Service,
            groups: [String::from("operator")].into(),
        },
        groups: None,
        ceiling: Trust::Relayed,
        lifetime,
    }
}

fn book() -> (tempfile::TempDir, TokenBook) {
    let directory = tempfile::tempdir().unwrap();
    let book = TokenBook::of(directory.path());
    (directory, book)
}

#[test]
fn c61_the_file_holds_digests_only_and_is_private() {
    let (_directory, book) = book();
    assert!(book.read().unwrap().is_empty(), "there is no file yet");
    let mut grant = grant("ci", Some(DAY));
    grant.groups = Some(vec!["observer".to_owned()]);
    grant.ceiling = Trust::Untrusted;
    let (record, token) = book.create(&grant, NOW).unwrap();
    let text = fs::read_to_string(book.path()).unwrap();
    let secret = token.reveal().rsplit_once('_').unwrap().1;
    assert!(!text.contains(secret), "{text}");
    assert!(text.contains(&hex::encode(&bearer::digest(token.reveal()))));
    let mode = fs::metadata(book.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let read = book.read().unwrap();
    let [read] = &read[..] else {
        panic!("{read:?}");
    };
    assert_eq!(format!("{read:?}"), format!("{record:?}"));
    assert_eq!((read.created, read.expires), (NOW, Some(NOW.after(DAY))));
    assert_eq!(read.groups.as_deref(), Some(&["observer".to_owned()][..]));
    assert_eq!(read.ceiling, Trust::Untrusted);
}

#[test]
fn c54_a_principal_has_two_live_tokens_at_most_and_dead_ones_do_not_count() {
    let (_directory, book) = book();
    let (first, _) = book.create(&grant("ci", None), NOW).unwrap();
    let (second, _) = book.create(&grant("ci", Some(DAY)), NOW).unwrap();
    book.create(&grant("ada", None), NOW).unwrap();
    let error = book.create(&grant("ci", None), NOW).unwrap_err();
    let words = error.to_string();
    assert!(matches!(error, BookError::TooMany { .. }), "{words}");
    assert!(
        words.contains(first.id.as_str()) && words.contains("token revoke"),
        "{words}"
    );
    // One expires, one is revoked: two places.
    let later = NOW.after(DAY);
    let (third, _) = book.create(&grant("ci", None), later).unwrap();
    assert!(book.revoke(&first.id, later).unwrap());
    assert!(!book.revoke(&first.id, later).unwrap(), "once");
    book.create(&grant("ci", None), later).unwrap();
    book.create(&grant("ci", None), later).unwrap_err();
    let states = book.read().unwrap();
    let state = |id: &TokenId| {
        let found = states.iter().find(|record| record.id == *id);
        found.unwrap().state(later)
    };
    assert_eq!(state(&first.id), State::Revoked);
    assert_eq!(state(&second.id), State::Expired);
    assert_eq!(state(&third.id), State::Live);
    let absent = TokenId::parse("00000000").unwrap();
    let error = book.revoke(&absent, later).unwrap_err();
    assert!(matches!(error, BookError::NoSuchToken(_)), "{error}");
}

#[test]
fn tokens_that_are_over_are_forgotten_in_the_end() {
    let (_directory, book) = book();
    let (first, _) = book.create(&grant("ci", Some(DAY)), NOW).unwrap();
    book.create(&grant("ci", None), NOW.after(90 * DAY))
        .unwrap();
    assert_eq!(book.read().unwrap().len(), 2);
    book.create(&grant("ada", None), NOW.after(91 * DAY))
        .unwrap();
    let left = book.read().unwrap();
    assert!(left.iter().all(|record| record.id != first.id) && left.len() == 2);
}

#[test]
fn changes_at_once_lose_nothing() {
    let (_directory, book) = book();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let book = &book;
            scope.spawn(move || {
                book.create(&grant(&format!("p{number}"), None), NOW)
                    .unwrap()
            });
        }
    });
    assert_eq!(book.read().unwrap().len(), 8);
}

#[test]
fn c54_what_a_killed_change_left_goes_with_the_next_one_or_with_a_start() {
    let (directory, book) = book();
    let (token, _) = book.create(&grant("ci", None), NOW).unwrap();
    let left = |name: &str| {
        let path = directory.path().join(name);
        fs::write(&path, "digests").unwrap();
        path
    };
    let others = [".tokens.json.swp", ".tokens.used.json.0123456789abcdef"].map(left);
    let mine = left(".tokens.json.0123456789abcdef");
    let busy = book.alone().unwrap();
    book.tidy();
    assert!(mine.exists(), "another change may be at it");
    drop(busy);
    book.tidy();
    assert!(!mine.exists(), "a start leaves it");
    left(".tokens.json.0123456789abcdef");
    book.revoke(&token.id, NOW).unwrap();
    assert!(!mine.exists(), "a change leaves it");
    assert!(others.iter().all(|other| other.exists()), "it is not ours");
}

#[test]
fn c54_a_file_that_takes_no_token_more_takes_every_revocation() {
    let (_directory, book) = book();
    let (first, _) = book.create(&grant("ci", None), NOW).unwrap();
    let others = (0..).map(|number| TokenRecord {
        id: TokenId::parse(&format!("{number:08}")).unwrap(),
        ..first.clone()
    });
    let two = [first.clone(), first.clone()];
    let one = encode(&two).len() - encode(&two[..1]).len();
    let others = others.take(FULL_AT_BYTES / one + 1);
    let mut records: Vec<_> = std::iter::once(first.clone()).chain(others).collect();
    private_file::replace(book.path(), &encode(&records)).unwrap();
    let error = book.create(&grant("ada", None), NOW).unwrap_err();
    assert!(error.to_string().contains("is full"), "{error}");
    assert!(book.revoke(&first.id, NOW).unwrap());
    for record in &mut records {
        record.revoked = Some(NOW);
    }
    assert!(encode(&records).len() < MAX_FILE_BYTES, "all of them fit");
}

#[test]
fn c54_a_file_that_others_could_have_written_or_that_is_damaged_is_refused_unspoken() {
    let (_directory, book) = book();
    book.create(&grant("ci", None), NOW).unwrap();
    let whole = fs::read_to_string(book.path()).unwrap();
    fs::set_permissions(book.path(), Permissions::from_mode(0o620)).unwrap();
    let error = book.read().unwrap_err().to_string();
    assert!(
        error.contains("mode 620") && error.contains("chmod 600"),
        "{error}"
    );
    fs::set_permissions(book.path(), Permissions::from_mode(0o600)).unwrap();
    for (damaged, says) in [
        (whole[..whole.len() / 2].to_owned(), "damaged"),
        (
            whole.replace("\"version\": 1", "\"version\": 2"),
            "another release",
        ),
        (whole.replace("relayed", "shouted"), "damaged"),
        (whole.replace("sha256\": \"", "sha256\": \"zz"), "number 1"),
        (whole.replace("team", "TEAM X"), "number 1"),
        (whole.replace("\"trust\"", "\"thrust\""), "damaged"),
        (String::new(), "damaged"),
    ] {
        fs::write(book.path(), &damaged).unwrap();
        let error = book.read().unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("backup"), "{error}");
        assert!(!error.contains("TEAM"), "{error}");
        // Nothing is made over what cannot be read.
        book.create(&grant("ada", None), NOW).unwrap_err();
        assert_eq!(fs::read_to_string(book.path()).unwrap(), damaged);
    }
    fs::write(book.path(), " ".repeat(MAX_FILE_BYTES + 1)).unwrap();
    let error = book.read().unwrap_err().to_string();
    assert!(error.contains("larger"), "{error}");
}
