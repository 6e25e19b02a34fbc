//! What a rejoined stream could not tell of a run's answer, read from its entries.

use std::io;

use sessionplane_core::domain::entry::{Entry, EntryBody};
use sessionplane_core::domain::ids::{EntryId, SessionRef};
use sessionplane_core::domain::run::RunRecord;
use sessionplane_core::domain::text::BoundedText;

use crate::cli::context::Context;
use crate::cli::exit::Stop;
use crate::cli::json;
use crate::cli::pages::Pages;
use crate::cli::screen::{Piece, Screen};
use crate::rejoin::RunStream;

/// Shows the texts of a run that its stream did not yield, as far as its entries hold them; how
/// many bytes they hold no more.
pub(super) async fn missed_text(
    run: &RunRecord,
    stream: &RunStream,
    context: &Context,
    screen: &mut Screen,
) -> Result<u64, Stop> {
    let mut missing = 0;
    let session = SessionRef::Id(run.session);
    let mut pages = Pages::new(context, &session, Some(run.first_entry.to_string()));
    while let Some(page) = pages.next(0, screen).await? {
        for entry in page
            .entries
            .iter()
            .filter(|entry| entry.run == Some(run.id))
        {
            if let Some(missed) = Missed::of(entry, |message| stream.seen_text(message)) {
                missing += missed.missing;
                missed.show(context.globals.json, screen)?;
            }
        }
        let read_to = page.next_since.and_then(|since| since.parse().ok());
        let over = |last: EntryId| run.final_entry.is_some_and(|end| last.seq >= end.seq);
        if read_to.is_some_and(over) {
            break;
        }
    }
    Ok(missing)
}

/// The end of a message's text that its stream did not yield.
struct Missed<'a> {
    entry: EntryId,
    message: &'a str,
    /// How many bytes were shown; none if that is not known, or nothing was.
    seen: Option<u64>,
    /// How many bytes after these are lost.
    missing: u64,
    /// What the entry holds of what was not shown.
    rest: &'a str,
    /// How many bytes the entry holds in all.
    kept: usize,
}

impl<'a> Missed<'a> {
    /// None if nothing was missed.
    fn of(entry: &'a Entry, seen: impl FnOnce(&str) -> Option<u64>) -> Option<Self> {
        let EntryBody::Assistant { message, text, .. } = &entry.body else {
            return None;
        };
        let seen = seen(message);
        let shown = seen.unwrap_or(0);
        let missed = Self {
            entry: entry.id,
            message,
            seen,
            missing: text.omitted_bytes.saturating_sub(shown),
            rest: rest(text, shown),
            kept: text.text.len(),
        };
        (missed.missing > 0 || !missed.rest.is_empty()).then_some(missed)
    }

    fn show(&self, json: bool, screen: &mut Screen) -> io::Result<()> {
        if json {
            let counts = (self.seen.unwrap_or(0), self.missing);
            let told = json::missed_text(self.entry, self.message, counts, self.rest);
            return screen.json(&told);
        }
        if self.seen.is_none() || self.missing > 0 {
            screen.put(&Piece::Break)?;
        }
        if self.missing > 0 {
            let (missing, entry, kept) = (self.missing, self.entry, self.kept);
            // In the answer too: who reads only that must not take it for whole.
            let hole = format!("[... {missing} bytes are not shown ...]\n");
            screen.put(&Piece::Answer(hole))?;
            screen.aside(&format!(
                "({missing} bytes are not shown; the entry {entry} keeps the last {kept})"
            ))?;
        }
        screen.put(&Piece::Answer(self.rest.to_owned()))
    }
}

/// What is kept of a text after its first `seen` bytes.
fn rest(text: &BoundedText, seen: u64) -> &str {
    let from = usize::try_from(seen.saturating_sub(text.omitted_bytes)).unwrap_or(usize::MAX);
    if from >= text.text.len() {
        return "";
    }
    // Within a character: this is another text than the one that was seen, better repeated.
    text.text.get(from..).unwrap_or(&text.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_not_seen_is_left() {
        let whole = BoundedText::new("one two", 100);
        assert_eq!(rest(&whole, 4), "two");
        assert_eq!(rest(&whole, 7), "");
        assert_eq!(rest(&whole, 9), "");
        let tail = BoundedText::new("one two", 3);
        assert_eq!(rest(&tail, 6), "o");
        assert_eq!(rest(&tail, 2), "two");
    }
}
