//! What the agent looks for just now and where, and how questions and steers change that.

use super::count::{endings, ends_with};
use super::files::{Listed, Listing};
use super::lines::Lines;
use super::locate;
use super::page::{shown, shown_path};
use super::question::{Form, Question, Role, Word};
use super::scan::{MOST_TERMS, Wanted};
use super::term::Term;
use super::wish::Wish;

/// How much a word of an earlier question still counts when a later one refers to it.
const EARLIER: f64 = 0.35;
/// How many of them are kept.
const MOST_EARLIER: usize = 4;

/// How many files one word may be asked about.
pub(super) const MOST_CHOICES: usize = 8;

/// A word that several files are called by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Unsure {
    /// The word.
    pub(super) word: String,
    /// The first of the files, at most eight.
    pub(super) paths: Vec<String>,
    /// How many there are.
    pub(super) count: usize,
}

/// What is looked for, and where.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Focus {
    /// What kind of answer is asked for.
    pub(super) wish: Wish,
    /// What is looked for.
    pub(super) terms: Vec<Term>,
    /// Folders or files to look in; empty: everywhere.
    pub(super) within: Vec<String>,
    /// Folders or files to leave out.
    pub(super) without: Vec<String>,
    /// Files that were named: they are read first.
    pub(super) named: Vec<String>,
    /// Words that name several files: which one is meant must be asked.
    pub(super) unsure: Vec<Unsure>,
    /// The lines of them that are meant.
    pub(super) lines: Option<Lines>,
    /// What the names of the files end with that are listed; empty: any.
    pub(super) endings: Vec<String>,
    /// It is looked for where the words are defined.
    pub(super) defines: bool,
    /// The question as it was put, where it is a sentence.
    pub(super) asked: Option<String>,
}

impl Focus {
    /// Begins with a question. `continues`: it follows up on what is in focus now. Returns what is
    /// worth telling about it, as sentences.
    pub(super) fn ask(
        &mut self,
        question: &Question,
        listing: &Listing,
        continues: bool,
    ) -> Vec<String> {
        let earlier = std::mem::take(self);
        self.wish = question.wish;
        self.lines = question.lines;
        self.defines = question.defines;
        self.asked.clone_from(&question.sentence);
        if let Some(said) = self.list_a_kind(question, listing) {
            self.terms = earlier.terms;
            return said;
        }
        if !question.wish.is_search() {
            let said = self.take(question, listing, true);
            // What was looked for before may be spoken of again.
            if question.wish != Wish::Work {
                self.terms = earlier.terms;
            }
            return said;
        }
        let seeks = |word: &&Word| word.role == Role::Seek;
        let own = question.words.iter().filter(seeks).count();
        let alone = !question.refers_back && (own > 1 || !continues);
        if alone {
            let said = self.take(question, listing, own == 0);
            self.settle_on_a_folder(question);
            return said;
        }
        let mut said = self.take(question, listing, true);
        if self.within.is_empty() && self.without.is_empty() {
            self.within = earlier.within;
            self.without = earlier.without;
        }
        let whole = self.terms.is_empty();
        let mut kept: Vec<Term> = earlier.terms;
        kept.retain(|term| !self.terms.iter().any(|own| own.text == term.text));
        kept.truncate(if whole { MOST_TERMS } else { MOST_EARLIER });
        if !kept.is_empty() && !self.names_files() {
            said.push(format!("I keep in mind what we had: {}.", quoted(&kept)));
        }
        for mut term in kept {
            if !whole {
                term.weight *= EARLIER;
            }
            self.add(term);
        }
        said
    }

    /// Adds to, narrows or replaces what is looked for. Returns what changed, as sentences.
    pub(super) fn steer(&mut self, question: &Question, listing: &Listing) -> Vec<String> {
        let mut new = Self {
            wish: question.wish,
            ..Self::default()
        };
        if question.wish == Wish::Work {
            return vec!["I only read, and cannot do that, so I go on as before.".to_owned()];
        }
        let mut said = new.take(question, listing, true);
        if !question.wish.is_search() {
            said.insert(0, format!("I turn to {}.", question.wish.words()));
            self.wish = question.wish;
            self.within = new.within;
            self.endings.clear();
            return said;
        }
        if new.is_nothing() {
            said.push("I see nothing in that to look for, so I go on as before.".to_owned());
            return said;
        }
        let brings = !new.terms.is_empty() || new.names_files();
        if brings && (question.replaces || !self.wish.is_search()) {
            self.terms.clear();
            self.named.clear();
            self.unsure.clear();
            if !new.terms.is_empty() {
                said.push(format!("I look for {} instead.", quoted(&new.terms)));
            }
        } else if !new.terms.is_empty() {
            said.push(format!("I also look for {}.", quoted(&new.terms)));
        }
        if brings {
            self.wish = question.wish;
            self.endings.clear();
            self.lines = question.lines.or(self.lines);
            self.defines |= question.defines;
        }
        // What somebody adds on the way matters to them more than what was there.
        for mut term in new.terms.into_iter().rev() {
            term.weight *= 1.5;
            self.terms.retain(|known| known.text != term.text);
            self.terms.insert(0, term);
        }
        self.terms.truncate(MOST_TERMS);
        if !new.within.is_empty() {
            self.within = new.within;
        }
        self.without.extend(new.without);
        self.named.extend(new.named);
        self.unsure.extend(new.unsure);
        said
    }

    /// `list the proto files`: the files of one kind, where the only thing that is asked for is one.
    fn list_a_kind(&mut self, question: &Question, listing: &Listing) -> Option<Vec<String>> {
        let mut question = question.clone();
        let seeks = |word: &Word| word.role == Role::Seek;
        let at = question.words.iter().position(seeks)?;
        let kind = question.words.remove(at);
        let more = question.words.iter().any(seeks);
        let endings = endings(&kind.text, &listing.files);
        let is_kind = kind.form != Form::Quoted && !endings.is_empty();
        if !question.lists_files || !question.wish.is_search() || more || !is_kind {
            return None;
        }
        self.wish = Wish::Tree;
        self.endings = endings;
        Some(self.take(&question, listing, true))
    }

    fn is_nothing(&self) -> bool {
        let places = self.within.is_empty() && self.without.is_empty();
        places && self.terms.is_empty() && !self.names_files()
    }

    /// Files were named that are read first.
    pub(super) fn names_files(&self) -> bool {
        !self.named.is_empty() || !self.unsure.is_empty()
    }

    /// Who names a folder and nothing else wants to know what is in it.
    fn settle_on_a_folder(&mut self, question: &Question) {
        let nothing_else = self.terms.is_empty() && !self.names_files();
        if nothing_else && !self.within.is_empty() && !question.words.is_empty() {
            self.wish = Wish::Tree;
        }
    }

    /// What to search for.
    pub(super) fn wanted(&self) -> Wanted {
        Wanted {
            terms: self.terms.clone(),
            asked: self.asked.clone(),
            defines: self.defines,
            instructs: self.asked.as_deref().is_some_and(instructs),
            locates: self.asked.as_deref().is_some_and(locate::asks),
        }
    }

    /// The files to look in.
    pub(super) fn files(&self, listing: &Listing) -> Vec<Listed> {
        let admitted = |file: &&Listed| self.admits(&file.path);
        listing.files.iter().filter(admitted).cloned().collect()
    }

    fn admits(&self, path: &str) -> bool {
        let in_any = |places: &[String]| places.iter().any(|place| lies_in(path, place));
        let of_kind = |ending: &String| ends_with(path, ending);
        (self.within.is_empty() || in_any(&self.within))
            && !in_any(&self.without)
            && (self.endings.is_empty() || self.endings.iter().any(of_kind))
    }

    /// Takes a question's words as terms and places. `steers`: plain words after `in` are places
    /// too, where there are such.
    fn take(&mut self, question: &Question, listing: &Listing, steers: bool) -> Vec<String> {
        let mut said = Vec::new();
        for word in &question.words {
            if !self.take_place(word, listing, steers, &mut said) {
                self.take_terms(word);
            }
        }
        said
    }

    fn take_place(
        &mut self,
        word: &Word,
        listing: &Listing,
        steers: bool,
        said: &mut Vec<String>,
    ) -> bool {
        let shows = self.wish == Wish::Show;
        let lists = matches!(self.wish, Wish::Tree | Wish::Count);
        let plain_place = (steers && word.role != Role::Seek) || shows;
        if word.form != Form::Path && !(plain_place && word.form != Form::Quoted) {
            return false;
        }
        // What stands at this very path is meant, and who asks to see it is told why it is not shown.
        if shows && word.stands && listing.folder(&word.text).is_none() {
            self.named.push(word.text.clone());
            return true;
        }
        let folder = listing.folder(&word.text);
        let files = match word.form {
            _ if shows && word.role == Role::Seek => called(listing, &word.text),
            _ => listing.named(&word.text),
        };
        let is_sought = word.role == Role::Seek && !lists;
        match (&folder, files.as_slice()) {
            (_, [file]) if is_sought => self.named.push(file.path.clone()),
            (None, [_, ..]) if is_sought => self.be_unsure(word, &files),
            (Some(folder), _) => self.take_folder(word, folder, said),
            (None, [file, ..]) => {
                let path = file.path.clone();
                self.take_folder(word, &path, said);
            }
            // Who asks to see a file is told why it is not shown.
            (None, []) if shows && is_sought && word.form == Form::Path => {
                self.named.push(word.text.clone());
            }
            (None, []) => return Self::no_place(word, lists, said),
        }
        true
    }

    fn take_folder(&mut self, word: &Word, place: &str, said: &mut Vec<String>) {
        if word.role == Role::Without {
            said.push(format!("I leave out `{}`.", shown_path(place)));
            self.without.push(place.to_owned());
            return;
        }
        if self.wish.is_search() && self.wish != Wish::Show {
            said.push(format!("I look only in `{}`.", shown_path(place)));
        }
        self.within.push(place.to_owned());
    }

    fn be_unsure(&mut self, word: &Word, files: &[&Listed]) {
        let paths = files.iter().take(MOST_CHOICES);
        self.unsure.push(Unsure {
            word: word.text.clone(),
            paths: paths.map(|file| file.path.clone()).collect(),
            count: files.len(),
        });
    }

    /// A path that is not there is looked for as text; a place that is not there is told.
    fn no_place(word: &Word, lists: bool, said: &mut Vec<String>) -> bool {
        if (word.form == Form::Path || lists) && word.role != Role::Seek {
            let word = shown(&word.text);
            said.push(format!("There is no `{word}` among the files that I list."));
        }
        word.role == Role::Without || lists
    }

    fn take_terms(&mut self, word: &Word) {
        match word.form {
            Form::Plain => self.add(Term::word(&word.text)),
            Form::Quoted | Form::Path => self.add(Term::verbatim(&word.text)),
            Form::Code => {
                self.add(Term::verbatim(&word.text));
                for part in parts(&word.text) {
                    let mut term = Term::word(&part);
                    term.weight = 0.4;
                    self.add(term);
                }
            }
        }
    }

    fn add(&mut self, term: Term) {
        let known = self.terms.iter().any(|known| known.text == term.text);
        if !known && self.terms.len() < MOST_TERMS {
            self.terms.push(term);
        }
    }
}

/// The files that a person calls so: by a path, or by a name.
fn called<'a>(listing: &'a Listing, word: &str) -> Vec<&'a Listed> {
    let named = listing.named(word);
    if named.is_empty() && !word.contains('/') {
        return listing.called(word);
    }
    named
}

/// Whether a question, in lower case, asks how somebody is to do something.
fn instructs(asked: &str) -> bool {
    let begins = [
        "how do i ",
        "how do we ",
        "how can i ",
        "how to ",
        "how should i ",
    ];
    begins.iter().any(|words| asked.starts_with(words))
}

/// Terms as a sentence names them.
pub(super) fn quoted(terms: &[Term]) -> String {
    let texts: Vec<String> = terms
        .iter()
        .map(|term| format!("`{}`", shown(&term.text)))
        .collect();
    match texts.as_slice() {
        [] => "nothing".to_owned(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

fn lies_in(path: &str, place: &str) -> bool {
    path.strip_prefix(place)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The words of an identifier.
fn parts(identifier: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut before = ' ';
    for c in identifier.chars() {
        let begins = !c.is_alphanumeric() || (c.is_uppercase() && before.is_lowercase());
        if begins {
            parts.push(String::new());
        }
        if let Some(last) = parts.last_mut().filter(|_| c.is_alphanumeric()) {
            last.extend(c.to_lowercase());
        }
        before = c;
    }
    parts.retain(|part| part.len() >= 3);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing() -> Listing {
        let file = |path: &str| Listed {
            path: path.to_owned(),
            bytes: 1,
        };
        let paths = [
            "docs/a.md",
            "server/core/src/harbour.rs",
            "server/src/main.rs",
            "tests/a.rs",
        ];
        Listing {
            files: paths.map(file).to_vec(),
            ..Listing::default()
        }
    }

    fn paths(focus: &Focus) -> Vec<String> {
        focus
            .files(&listing())
            .into_iter()
            .map(|file| file.path)
            .collect()
    }

    fn texts(focus: &Focus) -> Vec<&str> {
        focus.terms.iter().map(|term| term.text.as_str()).collect()
    }

    #[test]
    fn a_steer_narrows_adds_and_says_so() {
        let mut focus = Focus::default();
        focus.ask(
            &Question::read("where is the harbour gate painted?"),
            &listing(),
            false,
        );
        assert_eq!(texts(&focus), ["harbour", "gate", "painted"]);
        let said = focus.steer(&Question::read("look in server/core"), &listing());
        assert_eq!(said, ["I look only in `server/core`."]);
        assert_eq!(paths(&focus), ["server/core/src/harbour.rs"]);
        let said = focus.steer(&Question::read("also retries"), &listing());
        assert_eq!(said, ["I also look for `retries`."]);
        assert_eq!(texts(&focus), ["retries", "harbour", "gate", "painted"]);
        let said = focus.steer(&Question::read("look in docs, not in tests"), &listing());
        assert_eq!(said, ["I look only in `docs`.", "I leave out `tests`."]);
        let said = focus.steer(&Question::read("sled instead"), &listing());
        assert_eq!(said, ["I look for `sled` instead."]);
        assert_eq!(texts(&focus), ["sled"]);
        let said = focus.steer(&Question::read("hm, ok"), &listing());
        assert_eq!(said.len(), 1);
    }

    #[test]
    fn a_follow_up_keeps_earlier_words_in_mind() {
        let mut focus = Focus::default();
        focus.ask(
            &Question::read("where is the harbour painted?"),
            &listing(),
            false,
        );
        focus.ask(
            &Question::read("and where is it renewed?"),
            &listing(),
            true,
        );
        assert_eq!(texts(&focus), ["renewed", "harbour", "painted"]);
        assert!(focus.terms[1].weight < focus.terms[0].weight);
        focus.ask(&Question::read("Show the sled adapter"), &listing(), false);
        assert_eq!(texts(&focus), ["sled", "adapter"]);
    }

    #[test]
    fn a_named_file_is_read_and_an_identifier_is_taken_apart() {
        let mut focus = Focus::default();
        focus.ask(
            &Question::read("what does main.rs do with HarbourGate?"),
            &listing(),
            false,
        );
        assert_eq!(focus.named, ["server/src/main.rs"]);
        assert_eq!(texts(&focus), ["harbourgate", "harbour", "gate"]);
    }
}
