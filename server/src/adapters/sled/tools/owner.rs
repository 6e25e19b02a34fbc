//! Whose a record is.

use sessionplane_core::domain::binding::Binding;
use sessionplane_core::domain::ids::{RunId, SessionId};
use sessionplane_core::domain::run::RunRecord;
use sessionplane_core::ports::repository::ReadError;

use crate::adapters::sled::convert::Address;
use crate::adapters::sled::frame::Source;
use crate::adapters::sled::keys::{self, Named};
use crate::adapters::sled::round::{decode, fetch};

/// Tells whose records are. Runs come in a row, so the last one is remembered.
#[derive(Default)]
pub(super) struct Owners {
    last: Option<(RunId, Option<SessionId>)>,
}

impl Owners {
    /// The session that a record belongs to; none for the store's own, for pieces, and for what
    /// leads nowhere.
    pub(super) fn of(
        &mut self,
        source: &impl Source,
        key: &[u8],
        payload: &[u8],
    ) -> Result<Option<SessionId>, ReadError> {
        let Some(named) = keys::named(key) else {
            return Ok(None);
        };
        Ok(match named {
            Named::Meta | Named::Round | Named::Piece(_) | Named::Chain(_) | Named::ChainEnd => {
                None
            }
            Named::Session(id)
            | Named::Head(id)
            | Named::Lease(id)
            | Named::Deleted(id)
            | Named::Index(id)
            | Named::Answer(id)
            | Named::Audit(id, _)
            | Named::MetadataAudit(id, _) => Some(id),
            Named::Entry(id) => Some(id.session),
            Named::RunOfSession { session, .. } => Some(session),
            Named::Name | Named::ExternalKey => {
                let Address(id) = decode(key, payload)?;
                Some(id)
            }
            Named::Run(_) => {
                let run: RunRecord = decode(key, payload)?;
                Some(run.session)
            }
            Named::Binding => {
                let binding: Binding = decode(key, payload)?;
                Some(binding.session)
            }
            Named::BindingByTime(_) => match keys::marked_binding(key) {
                Some(binding) => {
                    let binding: Option<Binding> = fetch(source, &binding)?;
                    binding.map(|binding| binding.session)
                }
                None => None,
            },
            Named::Input(id) => self.of_run(source, id.run)?,
            Named::Interaction(id) => self.of_run(source, id.run)?,
        })
    }

    fn of_run(&mut self, source: &impl Source, id: RunId) -> Result<Option<SessionId>, ReadError> {
        if let Some((last, session)) = self.last
            && last == id
        {
            return Ok(session);
        }
        let run: Option<RunRecord> = fetch(source, &keys::run(id))?;
        let session = run.map(|run| run.session);
        self.last = Some((id, session));
        Ok(session)
    }
}
