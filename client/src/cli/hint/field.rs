//! The words of the API in a refusal, as the words that a person typed. Words only.

/// What is typed for a field. The longer of two that begin alike comes first.
const TYPED: [(&str, &str); 29] = [
    ("external_key", "--key"),
    ("branch_hints.from_entry_id", "--from"),
    ("branch_hints", "--from"),
    ("parent_session", "--parent"),
    ("prompt.text", "the text"),
    ("steer.text", "the text"),
    ("follow_up.text", "the text"),
    ("compact.instructions", "the instructions"),
    ("set_model.model", "MODEL"),
    ("set_thinking.level", "LEVEL"),
    ("navigate.entry_id", "ENTRY"),
    ("respond.interaction_id", "the question's id"),
    ("respond.answer", "the answer"),
    ("expected_run_id", "--expected-run"),
    ("request_id", "--request-id"),
    ("entries_since", "--since"),
    ("since", "--since"),
    ("page_token", "--before"),
    ("page_size", "--limit"),
    ("filter.types", "--filter"),
    ("run_id", "RUN_ID"),
    ("agent", "--agent"),
    ("from_entry_id", "--from"),
    ("worktree_branch", "--worktree"),
    ("labels", "the labels"),
    ("workspace", "--workspace"),
    ("directory", "the directory"),
    ("filter", "--filter"),
    ("name", "NAME"),
];

/// What a server advises in the API's words, and the verb that does it.
const ADVICE: [(&str, &str); 4] = [
    (
        "put it back, or move the session with ChangeDirectory",
        "cd",
    ),
    ("list them with ListEntries", "entries"),
    ("see GetCapabilities", "capabilities"),
    ("see ListCommands", "commands"),
];

/// A field, as what is typed for it.
pub(super) fn typed(field: &str) -> &str {
    let known = TYPED.iter().find(|(name, _)| *name == field);
    known.map_or(field, |(_, typed)| typed)
}

/// A server's words without the names of fields that nobody typed, and without what it advises in
/// the words of the API; the verb that does what was advised.
pub(super) fn said(message: &str) -> (String, Option<&'static str>) {
    let advised = ADVICE.iter().find_map(|(words, verb)| {
        let said = message.strip_suffix(words)?;
        Some((said.trim_end_matches([' ', ';', ',', '.']), *verb))
    });
    let (message, verb) = match advised {
        Some((said, verb)) => (said, Some(verb)),
        None => (message, None),
    };
    let (first, rest) = message.split_once(' ').unwrap_or((message, ""));
    // In a filter the words of the API are those that are typed.
    if first.trim_end_matches(':') == "filter" {
        return (message.replacen("filter", typed("filter"), 1), verb);
    }
    let mut words = vec![match first.strip_suffix(':') {
        Some(field) => format!("{}:", typed(field)),
        None if is_path(first) => typed(first).to_owned(),
        None => first.to_owned(),
    }];
    words.extend(rest.split(' ').filter(|_| !rest.is_empty()).map(|word| {
        let name = word.trim_end_matches([':', ';', ',', '.']);
        if is_path(name) {
            format!("{}{}", typed(name), &word[name.len()..])
        } else {
            word.to_owned()
        }
    }));
    (words.join(" "), verb)
}

/// Whether a word is a name that is written in the API only.
fn is_path(word: &str) -> bool {
    word.contains(['_', '.'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_what_was_typed() {
        for (message, words, verb) in [
            (
                "branch_hints.from_entry_id: names no entry of parent_session; list them with \
                 ListEntries",
                "--from: names no entry of --parent",
                Some("entries"),
            ),
            (
                "page_token: names no run of this session; start without",
                "--before: names no run of this session; start without",
                None,
            ),
            (
                "prompt.text has 3 bytes; the limit is 2 bytes; use a file",
                "the text has 3 bytes; the limit is 2 bytes; use a file",
                None,
            ),
            ("agent: is no name", "--agent: is no name", None),
            (
                "filter: has no field `nam`; there are name, external_key, parent",
                "--filter: has no field `nam`; there are name, external_key, parent",
                None,
            ),
            (
                "filter has external_key twice",
                "--filter has external_key twice",
                None,
            ),
            (
                "the agent failed. since 1.5 s",
                "the agent failed. since 1.5 s",
                None,
            ),
            (
                "the session's agent does not support compaction; see GetCapabilities",
                "the session's agent does not support compaction",
                Some("capabilities"),
            ),
            ("", "", None),
        ] {
            assert_eq!(said(message), (words.to_owned(), verb));
        }
    }
}
