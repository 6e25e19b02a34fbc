//! What a rejoined stream could not tell of a run's answer, read from its entries.

use sessionplane_core::contract::{CallOptions, ListEntriesRequest, SessionControl as _};
use sessionplane_core::domain::entry::{Entry, EntryBody};
use sessionplane_core::domain::ids::SessionRef;
use sessionplane_core::domain::run::RunRecord;
use sessionplane_core::domain::text::BoundedText;

use crate::cli::context::Context;
use crate::cli::exit::Stop;
use crate::cli::hint::Effect;
use crate::cli::screen::{Piece, Screen};
use crate::rejoin::RunStream;

/// Shows the texts of a run that its stream did not yield.
pub(super) async fn missed_text(
    run: &RunRecord,
    stream: &RunStream,
    context: &Context,
    screen: &mut Screen,
) -> Result<(), Stop> {
    if context.globals.json {
        return Ok(());
    }
    let session = SessionRef::Id(run.session);
    let mut since = run.first_entry.to_string();
    loop {
        let request = ListEntriesRequest {
            session: session.clone(),
            since: Some(since),
            page_size: 0,
        };
        let call = context.client.list_entries(request, CallOptions::default());
        let page = context.patiently(screen, Effect::Reads, call).await?;
        let page = page.map_err(|error| context.stop(error, Some(&session), Effect::Reads))?;
        for entry in page.entries.iter().filter(|entry| entry.run == run.id) {
            screen.put_all(missed(entry, stream))?;
        }
        match page.entries.last() {
            Some(last) if page.has_more && last.id.seq < run.final_entry.seq => {
                since = last.id.to_string();
            }
            _ => return Ok(()),
        }
    }
}

fn missed(entry: &Entry, stream: &RunStream) -> Vec<Piece> {
    let EntryBody::Assistant { message, text, .. } = &entry.body else {
        return Vec::new();
    };
    match stream.seen_text(message) {
        None => vec![Piece::Break, Piece::Answer(text.text.clone())],
        Some(seen) => vec![Piece::Answer(rest(text, seen).to_owned())],
    }
}

/// A text after its first `seen` bytes.
fn rest(text: &BoundedText, seen: u64) -> &str {
    let from = usize::try_from(seen.saturating_sub(text.omitted_bytes));
    from.ok()
        .and_then(|from| text.text.get(from..))
        .unwrap_or_default()
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
