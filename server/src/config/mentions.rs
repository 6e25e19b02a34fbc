//! Whoever is told of a setting at night looks for it: each that a message names is one.

use std::fs;
use std::path::Path;

use super::declared::DECLARED;

/// Sections whose settings messages name. The others are words that code has as well.
const SECTIONS: [&str; 4] = ["drain.", "limits.", "store.", "tls."];

#[test]
fn every_setting_that_a_message_names_is_one() {
    let mut named = 0;
    sources(
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")),
        &mut |path, text| {
            for key in SECTIONS.iter().flat_map(|section| mentioned(text, section)) {
                let known = DECLARED.iter().any(|setting| setting.key == key);
                assert!(known, "{} names {key}, which is no setting", path.display());
                named += 1;
            }
        },
    );
    assert!(named > 50, "only {named} were found: is the search right?");
}

#[test]
fn what_is_in_quotes_is_a_message_and_what_is_not_is_code() {
    let text = r#"let c = '"'; self.store.export(x, "raise limits.a_b, or \\"tls.c\\"");"#;
    let found = |section| mentioned(text, section).collect::<Vec<_>>();
    assert_eq!(found("limits."), ["limits.a_b"]);
    assert_eq!(found("tls."), ["tls.c"]);
    assert_eq!(found("store."), [""; 0]);
}

/// The keys of a section that stand in the string literals of a source.
fn mentioned<'t>(text: &'t str, section: &'t str) -> impl Iterator<Item = String> + 't {
    let plain = text.replace("'\"'", "").replace("\\\"", " ");
    let quoted: Vec<String> = plain
        .split('"')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect();
    quoted
        .into_iter()
        .flat_map(move |literal| keys(&literal, section))
}

fn keys(literal: &str, section: &str) -> Vec<String> {
    let word = |c: char| c.is_ascii_lowercase() || c == '_';
    let found = literal.match_indices(section).filter_map(|(at, _)| {
        let rest = &literal[at + section.len()..];
        let end = rest.find(|c| !word(c)).unwrap_or(rest.len());
        let alone = !literal[..at].ends_with(|c: char| word(c) || c == '.');
        // What follows may be the ending of a file's name.
        (alone && end > 0 && &rest[..end] != "rs").then(|| format!("{section}{}", &rest[..end]))
    });
    found.collect()
}

/// Calls with each source that is no test.
fn sources(folder: &Path, each: &mut impl FnMut(&Path, &str)) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            sources(&path, each);
        } else if path.extension().is_some_and(|ending| ending == "rs")
            && !["tests.rs", "hostile.rs", "mentions.rs"].contains(&&*name)
        {
            let text = fs::read_to_string(&path).unwrap();
            // Unit tests come last in their file.
            each(&path, text.split("#[cfg(test)]").next().unwrap());
        }
    }
}
