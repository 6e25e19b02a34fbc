//! What `audit` takes.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use sessionplane_core::domain::ids::SessionId;

use super::value::count_from_one;

const VERIFY_EXAMPLES: &str = "\
Examples:
  sessionctl audit verify
  sessionctl audit export --to audit.jsonl && sessionctl audit verify audit.jsonl
  sessionctl audit verify audit.jsonl --checkpoints cp.jsonl --public-key FILE

Exit codes: 0 verified; 1 a record is bad, and named; 2 the file cannot be read
as an export.";

/// `audit`.
#[derive(Args, Debug)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    pub(crate) verb: AuditVerb,
}

/// What to do with the record.
#[derive(Subcommand, Debug)]
pub(crate) enum AuditVerb {
    /// List records, the newest last
    List(ListArgs),
    /// Write the chain as lines of JSON, to be verified anywhere
    Export(ExportArgs),
    /// Verify the chain: that nothing was changed, dropped, moved or added
    ///
    /// Each record is hashed here, whatever the server says of it. A chain proves
    /// that its records belong together; that its end is not cut off, or all of it
    /// written anew, takes a witness: a checkpoint that was kept elsewhere.
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyArgs),
}

/// `audit list`.
#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Only records of this session, by its id; of a deleted one, too
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<SessionId>,
    /// Only what this principal did or wanted
    #[arg(long)]
    pub(crate) principal: Option<String>,
    /// Only records of this action, e.g. Invoke
    #[arg(long)]
    pub(crate) action: Option<String>,
    /// Only records with this decision: allow, server, deny, reject,
    /// unauthenticated or lost
    #[arg(long)]
    pub(crate) decision: Option<String>,
    /// Only records after this number
    #[arg(long, value_name = "SEQ")]
    pub(crate) after: Option<u64>,
    /// At most so many records: the newest of those that match are kept
    #[arg(long, value_name = "COUNT", value_parser = count_from_one,
        allow_negative_numbers = true, default_value_t = 50)]
    pub(crate) limit: u32,
}

/// `audit export`.
#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    /// The file to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) to: Option<PathBuf>,
    /// Only records after this number
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub(crate) after: u64,
}

/// `audit verify`.
#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// An exported file; the server's chain without one
    pub(crate) file: Option<PathBuf>,
    /// Checkpoints that were kept elsewhere, as the server wrote them
    #[arg(long, value_name = "FILE", requires = "public_key")]
    pub(crate) checkpoints: Option<PathBuf>,
    /// The key that signed them: 64 hexadecimal digits in a file
    #[arg(long, value_name = "FILE", requires = "checkpoints")]
    pub(crate) public_key: Option<PathBuf>,
}
