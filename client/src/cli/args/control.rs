//! What the commands of the control plane take.

use std::path::PathBuf;

use clap::Args;
use sessionplane_core::domain::ids::RunId;

use super::SessionArgs;
use crate::cli::answering::Addressee;
use crate::cli::completing::{Which, names_of};
use crate::cli::place::Place;

pub(super) const ANSWER_EXAMPLES: &str = "\
Examples:
  sessionctl questions                           all that is asked, by any session
  sessionctl answer docs                         what is open, and how to answer
  sessionctl answer docs allow                   the only open question
  sessionctl answer docs q2 north                where several are open
  sessionctl answer 01K...-q1 zone=north copies=2
  pass show db | sessionctl answer docs --text-file -";

pub(super) const COMPACT_EXAMPLES: &str = "\
Examples:
  sessionctl compact docs --instructions \"keep the decisions\"
  sessionctl compact docs --wait --timeout 5m
  sessionctl abort docs                          stops it";

pub(super) const SET_MODEL_EXAMPLES: &str = "\
Examples:
  sessionctl capabilities docs                   the models that may be chosen
  sessionctl set-model docs deep
  sessionctl set-model docs --default            what its agent uses";

pub(super) const SET_THINKING_EXAMPLES: &str = "\
Examples:
  sessionctl state docs                          the levels of its model
  sessionctl set-thinking docs high
  sessionctl set-thinking docs --default";

pub(super) const NAVIGATE_EXAMPLES: &str = "\
Examples:
  sessionctl entries docs                        the entries and their ids
  sessionctl navigate docs 12
  sessionctl navigate docs 01K...-12";

/// A text, from one of three places.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct TextSource {
    /// The text, at most 1 MiB; - reads it from standard input. One that begins
    /// with a hyphen comes after --
    // Else a mistyped option would be sent as a prompt.
    #[arg(value_name = "TEXT")]
    pub(crate) text: Option<String>,
    /// Read the text from this file; - is standard input
    #[arg(long, value_name = "PATH")]
    pub(crate) text_file: Option<PathBuf>,
}

/// What is said to an agent: an instruction, data below it, or both.
#[derive(Args, Debug)]
#[group(required = true, multiple = true)]
pub(crate) struct SaidArgs {
    /// The instruction, at most 1 MiB; - gives standard input as data. One that
    /// begins with a hyphen comes after --
    // Else a mistyped option would be sent as a prompt.
    #[arg(value_name = "TEXT")]
    pub(crate) text: Option<String>,
    /// Give this file as data, which the agent is told not to obey, below TEXT or
    /// below what its configuration says of data; - is standard input. May be
    /// repeated; at most 2 MiB in all
    #[arg(long, value_name = "PATH")]
    pub(crate) text_file: Vec<PathBuf>,
}

/// `steer` and `follow-up`.
#[derive(Args, Debug)]
pub(crate) struct TextArgs {
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    #[command(flatten)]
    pub(crate) text: SaidArgs,
    /// Only if this run is the active one
    #[arg(long, value_name = "RUN_ID")]
    pub(crate) expected_run: Option<RunId>,
}

/// `abort`.
#[derive(Args, Debug)]
pub(crate) struct AbortArgs {
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    /// Only if this run is the active one
    #[arg(long, value_name = "RUN_ID")]
    pub(crate) expected_run: Option<RunId>,
}

/// `answer`.
#[derive(Args, Debug)]
pub(crate) struct AnswerArgs {
    /// A session: an id, a name, or key:TEXT; or the question's id
    #[arg(value_name = "TARGET", value_parser = Addressee::parse,
        add = names_of(Which::Asking))]
    pub(crate) target: Addressee,
    /// The answer; of a session with several open questions after qN or an id
    #[arg(value_name = "ANSWER")]
    pub(crate) answer: Vec<String>,
    /// Read the answer from this file; - is standard input. Of a form: a line
    /// NAME=VALUE for each field
    #[arg(long, value_name = "PATH")]
    pub(crate) text_file: Option<PathBuf>,
}

/// `compact`.
#[derive(Args, Debug)]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    /// What the summary should keep, at most 16 KiB
    #[arg(long, value_name = "TEXT", conflicts_with = "text_file")]
    pub(crate) instructions: Option<String>,
    /// Read the instructions from this file; - is standard input
    #[arg(long, value_name = "PATH")]
    pub(crate) text_file: Option<PathBuf>,
    /// Wait for the outcome; Ctrl-C leaves, and the compaction goes on
    #[arg(long)]
    pub(crate) wait: bool,
}

/// `set-model`.
#[derive(Args, Debug)]
pub(crate) struct SetModelArgs {
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    /// One of the models that its agent allows
    #[arg(
        value_name = "MODEL",
        required_unless_present = "default",
        conflicts_with = "default"
    )]
    pub(crate) model: Option<String>,
    /// Go back to what its agent uses
    #[arg(long)]
    pub(crate) default: bool,
}

/// `set-thinking`.
#[derive(Args, Debug)]
pub(crate) struct SetThinkingArgs {
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    /// One of the levels that its model has
    #[arg(
        value_name = "LEVEL",
        required_unless_present = "default",
        conflicts_with = "default"
    )]
    pub(crate) level: Option<String>,
    /// Go back to what its agent or model uses
    #[arg(long)]
    pub(crate) default: bool,
}

/// `navigate`.
#[derive(Args, Debug)]
pub(crate) struct NavigateArgs {
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    /// The entry to go on from: an id, or its number
    #[arg(value_name = "ENTRY", value_parser = Place::parse)]
    pub(crate) entry: Place,
}
