//! A session's entries page by page. Goes from place to place as the server names them: a page may
//! end with entries that this client cannot read.

use sessionplane_core::contract::{
    CallOptions, EntryPage, ListEntriesRequest, SessionControl as _,
};
use sessionplane_core::domain::ids::SessionRef;

use super::context::Context;
use super::exit::{Exit, Stop};
use super::hint::Effect;
use super::screen::Screen;

/// Pages after a place.
pub(crate) struct Pages<'a> {
    context: &'a Context,
    session: &'a SessionRef,
    since: Option<String>,
    next: Next,
}

/// What follows the last page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    Page,
    Nothing,
    /// The server says that there is more, but not where.
    Nowhere,
}

impl<'a> Pages<'a> {
    /// The pages after an entry, or all of them.
    pub(crate) fn new(
        context: &'a Context,
        session: &'a SessionRef,
        since: Option<String>,
    ) -> Self {
        Self {
            context,
            session,
            since,
            next: Next::Page,
        }
    }

    /// The next page of at most `size` entries, 0 for the server's choice; none after the last.
    ///
    /// # Errors
    /// When there is no answer, or Ctrl-C was pressed.
    pub(crate) async fn next(
        &mut self,
        size: u32,
        screen: &mut Screen,
    ) -> Result<Option<EntryPage>, Stop> {
        match self.next {
            Next::Page => {}
            Next::Nothing => return Ok(None),
            Next::Nowhere => {
                let words = "the server has more entries but names no place to go on from";
                return Err(Stop::failed(Exit::Failed, words));
            }
        }
        let request = ListEntriesRequest {
            session: self.session.clone(),
            since: self.since.clone(),
            page_size: size,
        };
        let context = self.context;
        let call = context.client.list_entries(request, CallOptions::default());
        let page = context.patiently(screen, Effect::Reads, call).await?;
        let page = page.map_err(|error| context.stop(error, Some(self.session), Effect::Reads))?;
        let moves = page.next_since.is_some() && page.next_since != self.since;
        self.next = match (page.has_more, moves) {
            (false, _) => Next::Nothing,
            (true, true) => Next::Page,
            (true, false) => Next::Nowhere,
        };
        self.since.clone_from(&page.next_since);
        Ok(Some(page))
    }
}
