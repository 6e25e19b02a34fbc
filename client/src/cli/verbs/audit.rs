//! `sessionctl audit`: list, export and verify the record of who did what.

mod checking;
mod listing;

use sessionplane_core::contract::CallOptions;
use sessionplane_core::contract::audit::{AuditFilter, AuditLog as _, AuditPage, ListAudit};

use crate::cli::args::{AuditArgs, AuditVerb};
use crate::cli::context::Context;
use crate::cli::exit::{Exit, Stop};
use crate::cli::hint::Effect;
use crate::cli::screen::Screen;

/// Records that are asked for at once.
const PAGE: u32 = 500;

pub(super) async fn run(
    args: AuditArgs,
    context: &Context,
    screen: &mut Screen,
) -> Result<Exit, Stop> {
    match args.verb {
        AuditVerb::List(args) => listing::list(args, context, screen).await,
        AuditVerb::Export(args) => listing::export(args, context, screen).await,
        AuditVerb::Verify(args) => checking::live(&args, context, screen).await,
    }
}

/// Verifies a file, which asks no server; none if something else is asked for.
pub(super) fn alone(
    args: &AuditArgs,
    json: bool,
    screen: &mut Screen,
) -> Option<Result<Exit, Stop>> {
    match &args.verb {
        AuditVerb::Verify(args) => {
            let file = args.file.as_deref()?;
            Some(checking::file(file, args, json, screen))
        }
        AuditVerb::List(_) | AuditVerb::Export(_) => None,
    }
}

async fn page(
    after: u64,
    page_size: u32,
    filter: AuditFilter,
    context: &Context,
    screen: &mut Screen,
) -> Result<AuditPage, Stop> {
    let request = ListAudit {
        after,
        page_size,
        filter,
    };
    let call = context.client.list_audit(request, CallOptions::default());
    let page = context.patiently(screen, Effect::Reads, call).await?;
    page.map_err(|error| context.stop(error, None, Effect::Reads))
}
