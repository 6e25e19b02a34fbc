//! One thing that is looked for, and how well a line matches it.

/// How well a line matches a term.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Quality {
    /// At the start of a longer word, such as `gate` in `gatekeeper`.
    Loose,
    /// As a word, a part of an identifier, or one of their forms.
    Exact,
}

/// One thing that is looked for.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Term {
    /// As it was asked for, in lower case.
    pub(super) text: String,
    /// How much it counts: 1 for what was asked, less for what earlier questions asked.
    pub(super) weight: f64,
    /// What words may begin with to match it.
    stems: Vec<String>,
    /// What else may be called so: they match loosely.
    kin: Vec<&'static str>,
    /// A phrase or an identifier: matches as it stands, anywhere.
    verbatim: bool,
}

/// Endings that leave a word the same word.
const ENDINGS: [&str; 19] = [
    "", "s", "es", "ed", "d", "r", "er", "ers", "ing", "y", "ies", "ied", "ion", "ions", "or",
    "ors", "e", "able", "ment",
];

/// The shortest stem that may stand for a word.
const SHORTEST_STEM: usize = 4;

impl Term {
    /// A word in any of its forms: `checked` also finds `check`, `checks` and `fn check_it`.
    pub(super) fn word(text: &str) -> Self {
        let text = text.to_ascii_lowercase();
        let stems = stems(&text);
        Self {
            kin: kin(&stems),
            stems,
            text,
            weight: 1.0,
            verbatim: false,
        }
    }

    /// A phrase or identifier, exactly, but for the case of letters.
    pub(super) fn verbatim(text: &str) -> Self {
        let text = text.to_ascii_lowercase();
        Self {
            stems: vec![text.clone()],
            kin: Vec::new(),
            text,
            // Who quotes or spells out an identifier means just that.
            weight: 2.0,
            verbatim: true,
        }
    }

    /// Whether a text that is already in lower case may hold the term at all.
    pub(super) fn may_be_in(&self, lower: &str) -> bool {
        let mut stems = self.stems.iter().map(String::as_str);
        stems.any(|stem| lower.contains(stem)) || self.kin.iter().any(|kin| lower.contains(kin))
    }

    /// The best match in a line. `lower` is `line` in ASCII lower case.
    pub(super) fn find(&self, line: &str, lower: &str) -> Option<Quality> {
        if self.verbatim {
            return lower.contains(&self.text).then_some(Quality::Exact);
        }
        let mut best = None;
        for stem in &self.stems {
            for (at, _) in lower.match_indices(stem.as_str()) {
                // `checked_add` and its like only add.
                let arithmetic = lower[at..].starts_with("checked_");
                if begins_word(line.as_bytes(), at) && !arithmetic {
                    best = best.max(Some(quality(line, lower, at + stem.len())));
                }
            }
        }
        let begins = |kin: &&str| {
            let mut places = lower.match_indices(*kin);
            places.any(|(at, _)| begins_word(line.as_bytes(), at))
        };
        if best.is_none() && self.kin.iter().any(begins) {
            best = Some(Quality::Loose);
        }
        best
    }
}

/// Words of a programmer's language that often stand for each other, by their stems.
const KIN: [&[&str]; 8] = [
    &["check", "verif", "valid", "ensur", "compar", "fence"],
    &["fail", "error"],
    &["stop", "abort", "cancel", "shutdown"],
    &["stor", "save", "persist", "writ"],
    &["delet", "remov"],
    &["config", "setting", "option"],
    &["authen", "login", "credential"],
    &["retr", "backoff"],
];

/// The other words of the group that a word is in.
fn kin(stems: &[String]) -> Vec<&'static str> {
    let is_in = |kin: &&str| stems.iter().any(|stem| stem.starts_with(*kin));
    let group = KIN.iter().find(|group| group.iter().any(is_in));
    let others = group.into_iter().copied().flatten().copied();
    others.filter(|kin| !is_in(kin)).collect()
}

/// Whether a word, or a part of an identifier, begins at this byte.
fn begins_word(line: &[u8], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|before| line[before]) else {
        return true;
    };
    let hump = line[at].is_ascii_uppercase() && !before.is_ascii_uppercase();
    hump || !is_letter(before)
}

/// How well a word matches whose stem ends at this byte.
fn quality(line: &str, lower: &str, end: usize) -> Quality {
    let rest = &line.as_bytes()[end..];
    let same_word = |byte: &u8| is_letter(*byte) && !byte.is_ascii_uppercase();
    let length = rest.iter().position(|byte| !same_word(byte));
    let ending = &lower[end..end + length.unwrap_or(rest.len())];
    if ENDINGS.contains(&ending) {
        Quality::Exact
    } else {
        Quality::Loose
    }
}

/// Bytes over 127 belong to letters of other scripts, as good as always.
fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80
}

/// What the forms of an English word begin with.
fn stems(word: &str) -> Vec<String> {
    if !word.is_ascii() {
        return vec![word.to_owned()];
    }
    for ending in ["ies", "ied"] {
        if let Some(stem) = word.strip_suffix(ending).filter(|stem| stem.len() >= 3) {
            return ["y", "ies", "ied"]
                .map(|end| format!("{stem}{end}"))
                .to_vec();
        }
    }
    for ending in ["ing", "ed"] {
        if let Some(stem) = word.strip_suffix(ending) {
            let doubled = stem.len() >= SHORTEST_STEM
                && stem.as_bytes()[stem.len() - 1] == stem.as_bytes()[stem.len() - 2]
                && !stem.ends_with(['l', 's', 'f', 'z']);
            if doubled {
                return vec![stem[..stem.len() - 1].to_owned()];
            }
            if stem.len() >= SHORTEST_STEM {
                return vec![stem.to_owned()];
            }
        }
    }
    let plural = word
        .strip_suffix('s')
        .filter(|stem| stem.len() >= 3 && !stem.ends_with(['s', 'u', 'i']));
    vec![plural.unwrap_or(word).to_owned()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(word: &str, line: &str) -> Option<Quality> {
        Term::word(word).find(line, &line.to_ascii_lowercase())
    }

    #[test]
    fn a_word_matches_its_forms_and_parts_of_identifiers() {
        for line in [
            "paint the gate",
            "fn paint_gate()",
            "is PAINTED here",
            "self.repaint(); GatePainter",
            "prePaint",
        ] {
            assert_eq!(find("painted", line), Some(Quality::Exact), "{line}");
        }
        assert_eq!(find("retries", "fn retry()"), Some(Quality::Exact));
        assert_eq!(find("retries", "it retried"), Some(Quality::Exact));
        assert_eq!(find("running", "run_task"), Some(Quality::Exact));
        assert_eq!(find("gates", "GateStore"), Some(Quality::Exact));
    }

    #[test]
    fn the_inside_of_another_word_is_no_match() {
        assert_eq!(find("gate", "aggregate delegates"), None);
        assert_eq!(find("art", "start part"), None);
        assert_eq!(find("gate", "gatekeeper"), Some(Quality::Loose));
        assert_eq!(find("retries", "retrieve"), None);
    }

    #[test]
    fn a_phrase_matches_as_it_stands() {
        let term = Term::verbatim("Harbour Gate");
        assert_eq!(
            term.find("the harbour gate", "the harbour gate"),
            Some(Quality::Exact)
        );
        assert_eq!(term.find("the gate harbour", "the gate harbour"), None);
    }

    #[test]
    fn other_scripts_match_without_a_panic() {
        assert_eq!(find("öl", "das Öl"), None, "case is ASCII's only");
        assert_eq!(find("größe", "die größe"), Some(Quality::Exact));
        assert_eq!(find("ключ", "ключи"), Some(Quality::Loose));
    }
}
