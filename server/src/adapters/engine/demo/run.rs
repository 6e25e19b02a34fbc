//! A run from its prompt to its answer: list, search, read, tell; between any two of these it can
//! be steered.

use std::sync::Arc;

use sessionplane_core::domain::event::OutputChannel;
use sessionplane_core::domain::ids::InputId;
use sessionplane_core::domain::provenance::Channel;
use sessionplane_core::ports::engine::{EngineEvent, StopReason};

use super::answer;
use super::files::{Folder, Listing};
use super::focus::{Focus, quoted};
use super::question::Question;
use super::tools;
use super::voice::{Stop, Voice};
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
        let question = Question::read(&prompt.text);
        self.think(&plan(&question)).await?;
        let listing = tools::list_files(&mut self.voice, &self.folder).await?;
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
        let mut answer = String::new();
        for path in self.focus.named.clone() {
            let text = tools::read_head(&mut self.voice, &self.folder, &path).await?;
            if self.steered(listing).await? {
                return Ok(None);
            }
            answer.push_str(&answer::head(&path, text.as_deref()));
        }
        if self.focus.terms.is_empty() {
            if answer.is_empty() {
                return self.overview(listing).await;
            }
            return Ok(Some(answer + "I am no language model: I read files.\n"));
        }
        let search = tools::search(&mut self.voice, &self.folder, &self.focus, listing);
        let (found, sights) = search.await?;
        if self.steered(listing).await? {
            return Ok(None);
        }
        for sight in sights.iter().take(answer::SHOWN) {
            tools::read_file(&mut self.voice, sight).await?;
            if self.steered(listing).await? {
                return Ok(None);
            }
        }
        answer.push_str(&answer::found(&self.focus, &found, &sights));
        Ok(Some(answer))
    }

    /// Tells what the folder is: there is nothing to look for.
    async fn overview(&mut self, listing: &Listing) -> Result<Option<String>, Stop> {
        let introduces = |path: &str| {
            let name = path.to_ascii_lowercase();
            name == "readme" || name.starts_with("readme.")
        };
        let readme = listing.files.iter().find(|file| introduces(&file.path));
        let mut introduction = None;
        if let Some(file) = readme {
            let text = tools::read_head(&mut self.voice, &self.folder, &file.path).await?;
            introduction = text.map(|text| (file.path.as_str(), text));
            if self.steered(listing).await? {
                return Ok(None);
            }
        }
        let introduction = introduction
            .as_ref()
            .map(|(path, text)| (*path, text.as_str()));
        Ok(Some(answer::overview(listing, introduction)))
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
        let said = self.focus.steer(&Question::read(text), listing);
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

/// What it is going to do, before it knows the folder.
fn plan(question: &Question) -> String {
    let words: Vec<_> = question
        .words
        .iter()
        .map(|word| super::term::Term::verbatim(&word.text))
        .collect();
    if words.is_empty() {
        return "There is no word to look for, so I give an overview: first the list of files, then \
                what introduces them."
            .to_owned();
    }
    format!(
        "The words that matter are {}. I list the files, search them, and read the best places; \
         rare words count more, and lines that hold several count most.",
        quoted(&words)
    )
}
