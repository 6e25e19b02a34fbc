//! How an entry is named on a command line: whole, or by its number in a session that is named
//! beside it.

use sessionplane_core::contract::{CallOptions, SessionControl as _};
use sessionplane_core::domain::ids::{EntryId, EntrySeq, SessionRef};

use super::context::Context;
use super::exit::Stop;
use super::hint::Effect;
use super::screen::Screen;

/// An entry, as a person names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    Id(EntryId),
    Number(EntrySeq),
}

impl Place {
    /// Reads an ENTRY argument.
    ///
    /// # Errors
    /// When it is neither an id nor a number.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if let Ok(id) = text.parse() {
            return Ok(Self::Id(id));
        }
        match text.parse() {
            Ok(number) if number > 0 => Ok(Self::Number(number)),
            _ => Err("must be an entry's id (SESSION_ID-NUMBER) or its number".to_owned()),
        }
    }

    /// The entry's id. A number needs to know which session it is of.
    pub(crate) async fn id(
        self,
        session: &SessionRef,
        context: &Context,
        screen: &mut Screen,
    ) -> Result<EntryId, Stop> {
        let (seq, session) = match (self, session) {
            (Self::Id(id), _) => return Ok(id),
            (Self::Number(seq), SessionRef::Id(session)) => (seq, *session),
            (Self::Number(seq), named) => {
                let call = context
                    .client
                    .get_state(named.clone(), None, CallOptions::default());
                let state = context.patiently(screen, Effect::Reads, call).await?;
                let state =
                    state.map_err(|error| context.stop(error, Some(named), Effect::Reads))?;
                (seq, state.view.session.id)
            }
        };
        Ok(EntryId { session, seq })
    }
}

/// The id of the place that reading goes on from, if one is given.
pub(crate) async fn cursor(
    since: Option<Place>,
    session: &SessionRef,
    context: &Context,
    screen: &mut Screen,
) -> Result<Option<EntryId>, Stop> {
    match since {
        Some(place) => place.id(session, context, screen).await.map(Some),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_named_by_its_id_or_its_number() {
        assert_eq!(Place::parse("12"), Ok(Place::Number(12)));
        let id = "01K00000000000000000000001-12";
        assert_eq!(Place::parse(id), Ok(Place::Id(id.parse().unwrap())));
        for bad in ["", "0", "-1", "twelve", "01K00000000000000000000001"] {
            assert!(Place::parse(bad).is_err(), "{bad:?} was accepted");
        }
    }
}
