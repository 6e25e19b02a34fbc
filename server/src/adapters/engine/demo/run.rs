//! A run from its prompt to its answer: list, search, read, ask, tell; between any two of these it
//! can be steered.

use std::sync::Arc;

use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::ids::InputId;
use sessionplane_core::domain::provenance::Channel;
use sessionplane_core::domain::rendering::read;
use sessionplane_core::ports::engine::{EngineEvent, StopReason};

use super::about::{ABOUT, EMPTY, PLAIN};
use super::answer::{self, Introduction};
use super::files::{Folder, Listing};
use super::focus::{Focus, Unsure, quoted};
use super::lines::Lines;
use super::page::{shown, shown_path};
use super::question::Question;
use super::voice::{Chosen, Stop, Voice};
use super::wish::Wish;
use super::{count, git, tools, tree};
use crate::adapters::engine::link::Prompt;
use crate::adapters::engine::memory::Memory;

pub(super) struct Agent {
    voice: Voice,
    folder: Folder,
    /// What earlier runs were about, until the first prompt of this connection.
    memory: Memory,
    focus: Focus,
}

impl Agent {
    pub(super) fn new(voice: Voice, folder: Folder, memory: Memory) -> Self {
        Self {
            voice,
            folder,
            memory,
            focus: Focus::default(),
        }
    }

    /// Answers every prompt that comes, until nobody is there.
    pub(super) async fn run(mut self) {
        while let Some(prompt) = self.voice.link.next_prompt().await {
            let reason = match self.answer(prompt).await {
                Ok(()) => StopReason::Completed,
                Err(stop) => match stop.reason() {
                    Some(reason) => reason,
                    None => return,
                },
            };
            if self.voice.link.stop(reason).await.is_err() {
                return;
            }
        }
    }

    async fn answer(&mut self, prompt: Prompt) -> Result<(), Stop> {
        tracing::debug!(run = %prompt.run, input = ?prompt.input, "answers a prompt");
        if let Some(input) = prompt.input {
            self.emit(EngineEvent::InputShown { input }).await?;
        }
        self.emit(EngineEvent::TurnStarted).await?;
        let mut question = Question::read(&read(&prompt.text).instruction);
        self.think(&plan(&question)).await?;
        let listing = tools::list(&mut self.voice, &self.folder).await?;
        tools::look_up(&mut self.voice, &self.folder, &mut question).await?;
        self.recall(&listing);
        let said = self.focus.ask(&question, &listing, prompt.input.is_some());
        self.tell(&said).await?;
        loop {
            let answer = loop {
                self.steered(&listing).await?;
                if let Some(answer) = self.gather(&listing).await? {
                    break answer;
                }
            };
            self.emit(EngineEvent::TurnFinished).await?;
            self.emit(EngineEvent::TurnStarted).await?;
            self.voice.say(OutputChannel::Text, &answer).await?;
            self.emit(EngineEvent::TurnFinished).await?;
            // What was handed over while the answer was written is answered as well.
            if !self.show_steers(&listing, false).await? {
                return Ok(());
            }
        }
    }

    /// Does the work for an answer. `None`: it was steered on the way, and must look again.
    async fn gather(&mut self, listing: &Listing) -> Result<Option<String>, Stop> {
        let answer = match self.focus.wish {
            Wish::Search | Wish::Show | Wish::Overview | Wish::Tree | Wish::Count
                if listing.is_empty() && !self.focus.names_files() =>
            {
                EMPTY.to_owned()
            }
            Wish::Search | Wish::Show => return self.look(listing).await,
            Wish::Overview => return self.overview(listing).await,
            Wish::About => ABOUT.to_owned(),
            Wish::Work => answer::no_work(&self.focus),
            Wish::Tree => tree::answer(&self.focus, listing),
            Wish::Count => {
                let counting =
                    tools::count_files(&mut self.voice, &self.folder, &self.focus, listing);
                count::answer(&self.focus, &counting.await?)
            }
            Wish::Branch => match git::branch(&mut self.voice, &self.folder).await? {
                Ok(tip) => git::branch_words(&tip),
                Err(error) => git::unread(&error),
            },
            Wish::Status => match git::status(&mut self.voice, &self.folder).await? {
                Ok((status, commit)) => git::status_words(&status, commit.as_ref()),
                Err(error) => git::unread(&error),
            },
            Wish::Log(most) => match git::log(&mut self.voice, &self.folder, most).await? {
                Ok((head, log)) => git::log_words(&head, &log),
                Err(error) => git::unread(&error),
            },
        };
        let steered = self.steered(listing).await?;
        Ok((!steered).then_some(answer))
    }

    /// Reads what was named, and searches for what was not.
    async fn look(&mut self, listing: &Listing) -> Result<Option<String>, Stop> {
        while let Some(unsure) = self.focus.unsure.first().cloned() {
            if !self.settle(unsure, listing).await? {
                return Ok(None);
            }
        }
        let mut answer = String::new();
        let lines = self.focus.lines.unwrap_or(Lines::HEAD);
        for path in self.focus.named.clone() {
            let page = tools::read_lines(&mut self.voice, &self.folder, &path, lines).await?;
            if self.steered(listing).await? {
                return Ok(None);
            }
            answer.push_str(&answer::lines(&path, &page));
        }
        if self.focus.terms.is_empty() || (self.focus.wish == Wish::Show && !answer.is_empty()) {
            return match (answer.is_empty(), self.focus.within.is_empty()) {
                (true, true) => self.overview(listing).await,
                (true, false) => Ok(Some(tree::answer(&self.focus, listing))),
                (false, _) => Ok(Some(answer + PLAIN)),
            };
        }
        let search = tools::search(&mut self.voice, &self.folder, &self.focus, listing);
        let (found, sights) = search.await?;
        if self.steered(listing).await? {
            return Ok(None);
        }
        for sight in sights.iter().take(answer::SHOWN) {
            tools::read_place(&mut self.voice, sight).await?;
            if self.steered(listing).await? {
                return Ok(None);
            }
        }
        answer.push_str(&answer::found(&self.focus, &found, &sights));
        Ok(Some(answer))
    }

    /// Asks which of several files is meant. `false`: it was steered meanwhile.
    async fn settle(&mut self, unsure: Unsure, listing: &Listing) -> Result<bool, Stop> {
        let word = shown(&unsure.word);
        let title = format!("Which `{word}` do you mean?");
        let left = unsure.count - unsure.paths.len();
        let details = match left {
            0 => format!("{} files are called so.", unsure.count),
            _ => format!("{} files are called so; these are the first.", unsure.count),
        };
        let labels: Vec<String> = unsure.paths.iter().map(|path| shown_path(path)).collect();
        let chosen = match self.voice.choose(title, details, &labels).await? {
            Chosen::This(at) => at,
            Chosen::Nobody => {
                let first = format!("Nobody said which, so I take `{}`.", labels[0]);
                self.tell(&[first]).await?;
                0
            }
            Chosen::Steered => {
                self.steered(listing).await?;
                return Ok(false);
            }
        };
        self.focus.unsure.remove(0);
        self.focus.named.push(unsure.paths[chosen].clone());
        Ok(!self.steered(listing).await?)
    }

    /// Tells what the folder is: there is nothing to look for.
    async fn overview(&mut self, listing: &Listing) -> Result<Option<String>, Stop> {
        let mut introduction = Introduction::default();
        if let Some(path) = first(listing, &["readme"]) {
            introduction.readme = self.page(&path).await?;
            if self.steered(listing).await? {
                return Ok(None);
            }
        }
        if let Some(path) = first(listing, &MANIFESTS) {
            introduction.manifest = self.page(&path).await?;
            if self.steered(listing).await? {
                return Ok(None);
            }
        }
        let tip = git::branch(&mut self.voice, &self.folder).await?;
        introduction.tip = tip.ok().map(|tip| git::standing(&tip.0, tip.1.as_ref()));
        if self.steered(listing).await? {
            return Ok(None);
        }
        Ok(Some(answer::overview(listing, &introduction)))
    }

    async fn page(&mut self, path: &str) -> Result<Option<super::files::Page>, Stop> {
        let read = tools::read_lines(&mut self.voice, &self.folder, path, Lines::HEAD);
        Ok(read.await?.ok())
    }

    /// A boundary between two tools. Returns whether anything was shown.
    async fn steered(&mut self, listing: &Listing) -> Result<bool, Stop> {
        self.show_steers(listing, true).await
    }

    /// Shows all that was handed over, each in a turn of its own that stays open.
    async fn show_steers(&mut self, listing: &Listing, mut in_turn: bool) -> Result<bool, Stop> {
        let mut shown = false;
        while let Some(steer) = self.voice.link.next_steer()? {
            if in_turn {
                self.emit(EngineEvent::TurnFinished).await?;
            }
            self.show(steer.input, &steer.text, listing).await?;
            in_turn = true;
            shown = true;
        }
        Ok(shown)
    }

    /// Shows a steer, begins a turn with it, and says what it changes.
    async fn show(
        &mut self,
        input: InputId,
        text: &Arc<str>,
        listing: &Listing,
    ) -> Result<(), Stop> {
        self.emit(EngineEvent::InputShown { input }).await?;
        self.emit(EngineEvent::TurnStarted).await?;
        let mut question = Question::read(&read(text).instruction);
        tools::look_up(&mut self.voice, &self.folder, &mut question).await?;
        let said = self.focus.steer(&question, listing);
        self.tell(&said).await
    }

    /// Takes up what the durable conversation was about, once.
    fn recall(&mut self, listing: &Listing) {
        for said in std::mem::take(&mut self.memory.texts) {
            let question = Question::read(&said.text);
            match said.channel {
                // It compacts nothing itself; but a session may go on from another agent's, whose
                // summary says what all before it was about.
                Channel::Invoke | Channel::Control => self.focus.ask(&question, listing, false),
                Channel::FollowUp => self.focus.ask(&question, listing, true),
                Channel::Steer => self.focus.steer(&question, listing),
                // It never asks.
                Channel::Respond => continue,
            };
        }
    }

    async fn think(&mut self, text: &str) -> Result<(), Stop> {
        self.voice.say(OutputChannel::Thinking, text).await
    }

    async fn tell(&mut self, sentences: &[String]) -> Result<(), Stop> {
        if sentences.is_empty() {
            return Ok(());
        }
        let text = sentences.join(" ") + "\n";
        self.voice.say(OutputChannel::Text, &text).await
    }

    async fn emit(&mut self, event: EngineEvent) -> Result<(), Stop> {
        Ok(self.voice.link.emit(event).await?)
    }
}

/// What tools build a project by, with what it says of itself.
const MANIFESTS: [&str; 6] = [
    "cargo.toml",
    "package.json",
    "pyproject.toml",
    "go.mod",
    "composer.json",
    "pubspec.yaml",
];

/// The first file at the top that is called so, by its whole name or by what is before the dot.
fn first(listing: &Listing, names: &[&str]) -> Option<String> {
    let is_called = |path: &str, name: &str| {
        let lower = path.to_ascii_lowercase();
        lower == *name || lower.split('.').next() == Some(name)
    };
    names.iter().find_map(|name| {
        let file = listing
            .files
            .iter()
            .find(|file| is_called(&file.path, name));
        file.map(|file| file.path.clone())
    })
}

/// What it is going to do, before it knows the folder.
fn plan(question: &Question) -> String {
    let words: Vec<_> = question
        .words
        .iter()
        .map(|word| super::term::Term::verbatim(&word.text))
        .collect();
    match question.wish {
        Wish::Search if words.is_empty() => "No word to look for: an overview.".to_owned(),
        Wish::Search => format!("Looking for {}: list, search, read.", quoted(&words)),
        Wish::Show => format!("Looking for {} to show.", quoted(&words)),
        wish => format!("Asked for {}.", wish.words()),
    }
}
