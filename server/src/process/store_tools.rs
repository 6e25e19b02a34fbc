//! `sessiond store ...`: what an operator does with a data directory.
//!
//! The status is 0 where all is well, 1 where something is wrong with the data, and 2 where the tool
//! could not do what it was asked for. What is asked for goes to standard output, how it goes on to
//! standard error.

mod print;
mod work;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;

use super::ProcessError;
use crate::adapters::sled::OpenError;
use crate::adapters::sled::tools::{DumpError, LoadError};

/// What is done with the store.
#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Read everything and check it against everything else. Status 0: whole; 1: faults, each is
    /// named; 2: it could not be read. The storage engine may write to its files as at every start:
    /// copy a directory that you take for damaged first.
    Verify {
        /// One JSON object instead of text.
        #[arg(long)]
        json: bool,
    },
    /// Write everything, or some sessions, as lines of JSON (docs/store.md) with their artifacts.
    Export {
        /// The file, which must not be there yet; or - for standard output.
        #[arg(long, value_name = "FILE", default_value = "-")]
        to: PathBuf,
        /// Only this session and those that it branched off, by id; may be given several times. They
        /// have to be whole; what else there is need not be.
        #[arg(long, value_name = "ID")]
        session: Vec<String>,
        /// Every session that `verify` finds whole, and that branched off none that is not. What is
        /// left out is said; the status is 1 then.
        #[arg(long, conflicts_with = "session")]
        whole: bool,
    },
    /// Make the data directory of an export. It must be empty, or not be there yet.
    Import {
        /// The file; or - for standard input.
        from: PathBuf,
        /// One JSON object instead of text.
        #[arg(long)]
        json: bool,
    },
    /// Count what there is, by kind and by session.
    Stats {
        /// One JSON object instead of text.
        #[arg(long)]
        json: bool,
    },
    /// Write everything as of one moment to a file, whether a server has the data directory or not.
    /// The tokens are not in it.
    Backup {
        /// The file, which must not be there yet; or a directory that is there, in which it gets a name.
        #[arg(long, value_name = "FILE|DIR")]
        to: PathBuf,
        /// One JSON object instead of text.
        #[arg(long)]
        json: bool,
    },
    /// Make the data directory of a backup. It must be empty, or not be there yet.
    Restore {
        /// The file.
        from: PathBuf,
        /// One JSON object instead of text.
        #[arg(long)]
        json: bool,
    },
}

/// Why a tool did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It cannot be written out.
    #[error(transparent)]
    Dump(#[from] DumpError),
    /// It cannot be read in.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The data directory cannot be used.
    #[error(transparent)]
    Directory(#[from] ProcessError),
    /// What is to be written is there.
    #[error("{} is there already, and nothing is replaced; name another file", .path.display())]
    Taken {
        /// The file.
        path: PathBuf,
    },
    /// What is meant as a folder is none that is there.
    #[error("there is no folder {}; make it first, or name a file without / at its end", .path.display())]
    NoFolder {
        /// The folder.
        path: PathBuf,
    },
    /// A file cannot be used.
    #[error("{}: {error}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// What was found cannot be told.
    #[error("cannot write what was found: {0}")]
    Output(#[from] std::io::Error),
    /// The data cannot be read.
    #[error("{0}")]
    Data(String),
}

impl ToolError {
    /// Whether it says that something is wrong with the data.
    fn is_of_the_data(&self) -> bool {
        match self {
            Self::Open(error) => is_of_the_data(error),
            Self::Dump(error) => matches!(
                error,
                DumpError::Read(_) | DumpError::NotWhole | DumpError::Unread
            ),
            Self::Load(error) => matches!(
                error,
                LoadError::Cut { .. } | LoadError::Changed | LoadError::Line { .. }
            ),
            Self::Data(_) => true,
            _ => false,
        }
    }
}

/// Whether an opening failed for what is in the directory.
pub(super) fn is_of_the_data(error: &OpenError) -> bool {
    matches!(
        error,
        OpenError::Damaged { .. } | OpenError::Lost { .. } | OpenError::Unfinished { .. }
    )
}

/// How a tool ended that did what it was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// All is well.
    Whole,
    /// Something is wrong with the data; it was told.
    Faults,
}

/// Does what is asked for.
pub fn run(command: &StoreCommand, data_dir: &Path) -> ExitCode {
    match work::run(command, data_dir) {
        Ok(Found::Whole) => ExitCode::SUCCESS,
        Ok(Found::Faults) => ExitCode::from(1),
        Err(error) => {
            print::failed(&error);
            ExitCode::from(if error.is_of_the_data() { 1 } else { 2 })
        }
    }
}
