use std::fs;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;
use crate::adapters::clock::TokioClock;

struct Pair {
    cert: String,
    key: String,
}

fn pair(until: i32) -> Pair {
    between(1975, until)
}

fn between(from: i32, until: i32) -> Pair {
    let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(from, 1, 1);
    params.not_after = rcgen::date_time_ymd(until, 1, 1);
    let key = rcgen::KeyPair::generate().unwrap();
    Pair {
        cert: params.self_signed(&key).unwrap().pem(),
        key: key.serialize_pem(),
    }
}

fn files(pair: &Pair) -> (tempfile::TempDir, TlsPaths) {
    let directory = tempfile::tempdir().unwrap();
    let paths = TlsPaths {
        cert: directory.path().join("cert.pem"),
        key: directory.path().join("key.pem"),
        clients: None,
        alpn: vec![b"h2".to_vec()],
    };
    fs::write(&paths.cert, &pair.cert).unwrap();
    fs::write(&paths.key, &pair.key).unwrap();
    (directory, paths)
}

fn clock(at: Timestamp) -> Arc<dyn Clock> {
    Arc::new(TokioClock::starting_at(at))
}

fn refusal(paths: &TlsPaths) -> String {
    let opened = TlsFiles::open(paths.clone(), clock(Timestamp::default()));
    opened.map(drop).unwrap_err().to_string()
}

#[test]
fn c54_what_is_wrong_with_a_file_is_told_with_its_key_and_without_its_content() {
    let (good, other) = (pair(4000), pair(4000));
    let (_directory, paths) = files(&good);
    let body = good.key.lines().nth(1).unwrap();
    for (file, content, says) in [
        (&paths.cert, String::new(), "tls.cert_file"),
        (&paths.cert, good.key.clone(), "holds no certificate"),
        (&paths.key, good.cert.clone(), "holds no private key"),
        (&paths.key, body.to_owned(), "tls.key_file"),
        (&paths.key, other.key.clone(), "must be a pair"),
        (&paths.cert, "x".repeat(2_000_000), "larger than"),
    ] {
        let before = fs::read(file).unwrap();
        fs::write(file, &content).unwrap();
        let error = refusal(&paths);
        assert!(error.contains(says), "{says}: {error}");
        assert!(!error.contains(body), "{error}");
        fs::write(file, before).unwrap();
    }
    fs::remove_file(&paths.key).unwrap();
    // Opening it would wait for somebody who writes.
    mknodat(CWD, &paths.key, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let error = refusal(&paths);
    assert!(error.contains("no regular file"), "{error}");
    fs::remove_file(&paths.key).unwrap();
    let error = refusal(&paths);
    assert!(
        error.contains("tls.key_file") && error.contains("cannot be read"),
        "{error}"
    );
    fs::write(&paths.key, &good.key).unwrap();
    let mut clients = paths.clone();
    clients.clients = Some((paths.key.clone(), true));
    assert!(refusal(&clients).contains("tls.client_ca_file"));
}

#[test]
fn the_end_of_a_certificate_is_known_and_warned_of_once_a_day() {
    let (_directory, paths) = files(&pair(2030));
    let end = Timestamp::from_millis(1_893_456_000_000);
    let before = |days: u64| Timestamp::from_millis(end.as_millis() - days * 86_400_000);
    let warned = |now: Timestamp| {
        let files = TlsFiles::open(paths.clone(), clock(now)).unwrap();
        assert_eq!(files.expires(), end);
        files.warn_of_the_end(Timestamp::default())
    };
    assert_eq!(warned(before(22)), Timestamp::default(), "not yet");
    for days in [20, 0] {
        let again = warned(before(days)).as_millis();
        let day = before(days).after(DAY).as_millis();
        assert!((day..day + 10_000).contains(&again), "{days}: {again}");
    }
    assert_eq!(in_words(before(20), end), "in 20 day(s)");
    let later = end.after(3 * DAY);
    assert!(in_words(later, end).starts_with("3 day(s) ago"));
}

#[test]
fn c54_a_pair_that_no_client_accepts_does_not_replace_one_that_is_good() {
    let now = Timestamp::from_millis(1_893_456_000_000);
    let (_directory, paths) = files(&pair(2040));
    let mut open = TlsFiles::open(paths.clone(), clock(now)).unwrap();
    let in_use = open.current().load_full();
    let take = |open: &mut TlsFiles, pair: &Pair| {
        let contents = Contents {
            cert: pair.cert.clone().into_bytes(),
            key: pair.key.clone().into_bytes(),
            clients: None,
        };
        open.take(&contents).map_err(|error| error.to_string())
    };
    for (other, says) in [
        (pair(2020), "has ended"),
        (between(2035, 2045), "not valid yet"),
    ] {
        let error = take(&mut open, &other).unwrap_err();
        assert!(
            error.contains(says) && error.contains("tls.cert_file"),
            "{error}"
        );
        assert!(Arc::ptr_eq(&in_use, &open.current().load_full()));
    }
    take(&mut open, &pair(2041)).unwrap();
    assert!(!Arc::ptr_eq(&in_use, &open.current().load_full()));

    // One that has ended itself keeps no other out.
    let mut ended = TlsFiles::open(paths, clock(now.after(4000 * DAY))).unwrap();
    take(&mut ended, &pair(2020)).unwrap();
}

#[test]
fn c54_a_certificate_tells_the_names_that_clients_may_use() {
    let names = ["sessions.example.com", "10.0.0.7", "::1"].map(str::to_owned);
    let made = rcgen::generate_simple_self_signed(names.clone()).unwrap();
    let made = Pair {
        cert: made.cert.pem(),
        key: made.signing_key.serialize_pem(),
    };
    let (_directory, paths) = files(&made);
    let opened = TlsFiles::open(paths, clock(Timestamp::default())).unwrap();
    assert_eq!(opened.names(), names);
}
