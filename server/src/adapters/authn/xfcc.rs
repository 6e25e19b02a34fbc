//! `x-forwarded-client-cert`, as Envoy writes it: an element for each hop, separated by commas; in
//! each, `key=value` pairs, separated by semicolons; a value that has one of these in it is quoted.
//!
//! Read strictly: what is not exactly that is refused whole. What must never enter: who is believed.

use sessionplane_core::domain::certificate::Names;

/// Longest header that is read, in bytes.
const HEADER_BYTES: usize = 16 * 1024;
/// Most hops.
const ELEMENTS_AT_MOST: usize = 16;
/// Most pairs of a hop.
const PAIRS_AT_MOST: usize = 64;

/// Why a header is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("x-forwarded-client-cert is malformed: {0}")]
pub struct Malformed(&'static str);

/// The names of the certificate that the last hop was shown. What hops before it say of each other
/// counts for nothing: the sender of the header has seen the last one only.
///
/// # Errors
/// When any part of the header is not as it should be, whichever hop it is of.
pub fn last(header: &[u8]) -> Result<Names, Malformed> {
    if header.len() > HEADER_BYTES {
        return Err(Malformed("it has more than 16 KiB"));
    }
    let text = std::str::from_utf8(header).map_err(|_| Malformed("it is no text"))?;
    if text.contains(char::is_control) {
        return Err(Malformed("it has a control character"));
    }
    let (mut rest, mut hops, mut last) = (Some(text), 0, Names::default());
    while let Some(text) = rest {
        hops += 1;
        if hops > ELEMENTS_AT_MOST {
            return Err(Malformed("it has more than 16 elements"));
        }
        (last, rest) = element(text)?;
    }
    Ok(last)
}

/// One element, and what follows its comma.
fn element(text: &str) -> Result<(Names, Option<&str>), Malformed> {
    let (mut names, mut rest, mut has_subject) = (Names::default(), text, false);
    for _ in 0..PAIRS_AT_MOST {
        let (key, after) = rest.split_once('=').ok_or(Malformed("a pair has no ="))?;
        let (value, after) = value(after)?;
        match key.trim_start_matches(' ').to_ascii_lowercase().as_str() {
            "uri" if !value.is_empty() => names.uris.push(value),
            "dns" if !value.is_empty() => names.dns.push(value),
            "subject" if has_subject => return Err(Malformed("an element has two subjects")),
            "subject" => (names.subject, has_subject) = (value, true),
            // What the proxy is itself, and what says no name.
            "by" | "hash" | "cert" | "chain" | "uri" | "dns" => {}
            _ => return Err(Malformed("it has a key that is none")),
        }
        match after.chars().next() {
            None => return Ok((names, None)),
            Some(',') => return Ok((names, Some(&after[1..]))),
            Some(';') => rest = &after[1..],
            Some(_) => return Err(Malformed("something follows a quoted value")),
        }
    }
    Err(Malformed("an element has more than 64 pairs"))
}

/// A value without its quotes, and what follows it.
fn value(text: &str) -> Result<(String, &str), Malformed> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ';']).unwrap_or(text.len());
        let (value, after) = text.split_at(end);
        if value.contains(['"', '=']) {
            return Err(Malformed("a value that must be quoted is not"));
        }
        return Ok((value.to_owned(), after));
    };
    let (mut value, mut escaped) = (String::new(), false);
    for (at, character) in quoted.char_indices() {
        match character {
            '"' if escaped => value.push('"'),
            '"' => return Ok((value, &quoted[at + 1..])),
            '\\' if !escaped => {
                escaped = true;
                continue;
            }
            // Only a quote is escaped; any other backslash is one, as in a subject.
            other => value.extend(escaped.then_some('\\').into_iter().chain([other])),
        }
        escaped = false;
    }
    Err(Malformed("a quote is not closed"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(uris: &[&str], dns: &[&str], subject: &str) -> Names {
        Names {
            uris: uris.iter().map(ToString::to_string).collect(),
            dns: dns.iter().map(ToString::to_string).collect(),
            subject: subject.to_owned(),
        }
    }

    #[test]
    fn c54_a_forwarded_certificate_is_read_as_envoy_writes_it() {
        for (header, read) in [
            (
                "By=spiffe://a/p;Hash=468e;Subject=\"CN=ci,O=ac\\\"me\";URI=spiffe://a/ci;DNS=a.b;DNS=c.d",
                names(&["spiffe://a/ci"], &["a.b", "c.d"], "CN=ci,O=ac\"me"),
            ),
            ("by=;HASH=1;uri=\"x=,;y\"", names(&["x=,;y"], &[], "")),
            ("Subject=\"CN=a\\, b\"", names(&[], &[], "CN=a\\, b")),
            ("Subject=\"\";URI=;Cert=\"-----BEGIN%20\"", Names::default()),
        ] {
            assert_eq!(last(header.as_bytes()).unwrap(), read, "{header}");
        }
    }

    #[test]
    fn c54_of_several_hops_the_last_one_counts_and_no_quote_moves_the_border() {
        let two = "URI=spiffe://a/one,By=x;URI=spiffe://a/two";
        assert_eq!(last(two.as_bytes()).unwrap().uris, ["spiffe://a/two"]);
        let forged = "Subject=\"CN=x,URI=spiffe://a/admin\";URI=spiffe://a/ci";
        assert_eq!(last(forged.as_bytes()).unwrap().uris, ["spiffe://a/ci"]);
        let spaced = "URI=a, URI=b";
        assert_eq!(last(spaced.as_bytes()).unwrap().uris, ["b"]);
    }

    #[test]
    fn c54_a_header_that_is_malformed_anywhere_is_none() {
        let long = "a".repeat(HEADER_BYTES);
        let hops = ["URI=a"; ELEMENTS_AT_MOST + 1].join(",");
        let pairs = ["DNS=a"; PAIRS_AT_MOST + 1].join(";");
        for header in [
            "",
            "x",
            ",",
            "URI=a,",
            "URI=a;",
            ",URI=a",
            "x,URI=a",
            "URI=a;;DNS=b",
            "Role=admin",
            "URI=\"a",
            "URI=\"a\"b",
            "URI=a\"b",
            "URI=a=b",
            "Subject=\"a\";Subject=\"b\"",
            "URI =a",
            "URI=a\tb",
            &format!("URI={long}"),
            &hops,
            &pairs,
        ] {
            assert!(last(header.as_bytes()).is_err(), "{header:?}");
        }
        assert!(last(b"URI=\xff").is_err());
    }

    proptest! {
        #[test]
        fn c54_no_header_takes_the_reader_down(header in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _read = last(&header);
        }

        #[test]
        fn c54_a_quoted_subject_never_makes_another_name(subject in "[ -~]{0,40}") {
            let quoted = subject.replace('"', "\\\"");
            prop_assume!(!subject.ends_with('\\') && !subject.contains("\\\"") && !subject.contains("\\\\"));
            let read = last(format!("Subject=\"{quoted}\";URI=spiffe://a/ci").as_bytes()).unwrap();
            prop_assert_eq!(read.uris, ["spiffe://a/ci"]);
            prop_assert!(read.dns.is_empty());
        }
    }
}
