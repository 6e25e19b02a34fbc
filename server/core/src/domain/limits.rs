//! Limits that the domain itself relies on. Those an operator may change live in the server's
//! configuration and arrive as [`Limits`].

use std::time::Duration;

/// Longest prompt, steer or follow-up text, in bytes.
pub const MAX_TEXT_BYTES: usize = 1024 * 1024;
/// Most text, in bytes, that waits in one run's queue, so that its end, which settles every input in
/// one commit, keeps nobody waiting. One text always finds room.
pub const MAX_PENDING_BYTES: usize = 8 * 1024 * 1024;
/// Longest text that one field of an entry keeps, in bytes; of longer ones the tail.
pub const MAX_ENTRY_TEXT_BYTES: usize = 1024 * 1024;
/// Longest text that one field of an event carries, in bytes, so that an encoded event with two
/// such fields stays under [`MAX_EVENT_BYTES`].
pub const MAX_EVENT_TEXT_BYTES: usize = 24 * 1024;
/// Largest encoded event, in bytes.
pub const MAX_EVENT_BYTES: usize = 64 * 1024;
/// Longest preview of a pending input's text in state and events, in bytes.
pub const MAX_PREVIEW_BYTES: usize = 256;
/// Longest engine-given identifier or label (tool name, message id, failure code), in bytes.
pub const MAX_LABEL_BYTES: usize = 256;
/// Longest human-readable detail text (failure details, retry reason), in bytes.
pub const MAX_DETAIL_BYTES: usize = 4096;
/// Longest name that an engine may give a question, in bytes. One that is longer than a label is told
/// that nobody answers, under the name that it has.
pub const MAX_ASK_BYTES: usize = 64 * 1024;
/// Most questions that a run may have open at once.
pub const MAX_OPEN_INTERACTIONS: usize = 16;
/// Interactions of a run that state lists at most: all open ones, and the newest resolved ones.
pub const MAX_LISTED_INTERACTIONS: usize = 32;
/// Most choices of one question, or of one field of a form.
pub const MAX_CHOICES: usize = 64;
/// Most fields of one form.
pub const MAX_FIELDS: usize = 32;
/// All texts of one question together, in bytes, so that it stays an event.
pub const MAX_QUESTION_BYTES: usize = 24 * 1024;
/// All texts of one answer to an interaction together, in bytes, so that it stays an event.
pub const MAX_ANSWER_BYTES: usize = 16 * 1024;
/// Longest instructions of a compaction, in bytes.
pub const MAX_INSTRUCTIONS_BYTES: usize = 16 * 1024;
/// Most messages, and most tools, that an engine may have open at once in one run.
pub const MAX_OPEN_PER_RUN: usize = 64;
/// Ids of finished messages, and of finished tool calls, that are remembered in one run.
pub const MAX_FINISHED_KEPT: usize = 64;
/// Most text, in bytes, that is kept of all messages and tool calls that an engine has open in one
/// run; beyond it the longest keep shorter tails.
pub const MAX_OPEN_BYTES_PER_RUN: usize = 16 * 1024 * 1024;
/// How often an engine may give one input back; then the input is lost.
pub const MAX_RETURNS: u32 = 8;
/// Undelivered inputs that `run_settled` names at most, so that it stays an event; each was told by
/// an `input_discarded` of its own, and the run's record lists them all.
pub const MAX_TOLD_UNDELIVERED: usize = 256;
/// At most one conflated event (tool progress, usage) per this time and tool.
pub const CONFLATION_INTERVAL: Duration = Duration::from_millis(100);

/// Limits and delays that an operator may set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Most inputs that wait in one run's queue.
    pub max_pending_inputs: usize,
    /// How long a CANCEL run whose last caller vanished waits for a rejoin.
    pub cancel_grace: Duration,
    /// How long such a run waits when it was the server that ended the stream.
    pub rejoin_grace: Duration,
    /// How long an engine may take to stop after an abort before it is killed.
    pub abort_grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_pending_inputs: 256,
            cancel_grace: Duration::from_secs(10),
            rejoin_grace: Duration::from_secs(60),
            abort_grace: Duration::from_secs(5),
        }
    }
}
