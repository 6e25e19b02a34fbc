//! Pages of what is read: how large they may be asked for, and that each brings its reader on.

use sessionplane_core::domain::entry::Entry;
use sessionplane_core::domain::error::CallError;
use sessionplane_core::domain::ids::{EntryId, SessionId};
use sessionplane_core::ports::repository::{EntryRange, ReadError};

use super::context::Context;

/// A page's size, in items: 0 asks for the default.
///
/// # Errors
/// When more is asked for than a page may hold.
pub(crate) fn size(asked: u32, default: usize, max: usize) -> Result<usize, CallError> {
    match asked as usize {
        0 => Ok(default),
        size if size <= max => Ok(size),
        size => Err(CallError::invalid(
            "page_size",
            format!("is {size}; the limit is {max}; ask for less and follow the pages"),
        )),
    }
}

/// The entries of a range: at least one, unless the range is empty.
///
/// # Errors
/// When they cannot be read, or are counted and not there: a reader would ask for the same page
/// again for ever.
pub(crate) async fn entries(
    context: &Context,
    session: SessionId,
    range: EntryRange,
) -> Result<Vec<Entry>, ReadError> {
    if range.after >= range.up_to {
        return Ok(Vec::new());
    }
    let entries = context.ports.repository.entries(session, range).await?;
    if entries.is_empty() {
        let seq = range.after + 1;
        return Err(ReadError::Damaged {
            key: format!("entry {}", EntryId { session, seq }),
            problem: format!("it is not there, and the session counts {}", range.up_to),
        });
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c64_a_page_size_is_the_default_what_was_asked_for_or_refused() {
        assert_eq!(size(0, 50, 500), Ok(50));
        assert_eq!(size(500, 50, 500), Ok(500));
        let error = size(501, 50, 500).unwrap_err();
        assert_eq!(error.violations[0].field, "page_size");
        assert!(error.message.contains("the limit is 500"), "{error}");
    }
}
