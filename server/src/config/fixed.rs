//! The limits that nobody sets: the contract fixes them, so that every server is the same to its
//! clients. Told beside those that are set, so that there is one table of limits.

use sessionplane_core::domain::data;
use sessionplane_core::domain::fleet::filter::{MAX_CONDITIONS, MAX_FILTER_BYTES};
use sessionplane_core::domain::fleet::labels;
use sessionplane_core::domain::limits as core;
use sessionplane_core::domain::place::MAX_DIRECTORY_BYTES;

use crate::grpc::{FILTER_MOST, HEALTH_QUESTION_BYTES, STRANGERS_STREAMS};

/// A limit that is fixed.
pub(crate) struct Fixed {
    pub(crate) name: &'static str,
    pub(crate) limit: u128,
    pub(crate) unit: &'static str,
    pub(crate) about: &'static str,
}

macro_rules! fixed {
    ($($name:ident, $unit:literal, $about:literal;)*) => {
        &[$(Fixed {
            name: stringify!($name),
            limit: core::$name as u128,
            unit: $unit,
            about: $about,
        }),*]
    };
}

/// The limits of the core.
pub(crate) static OF_THE_CORE: &[Fixed] = fixed! {
    MAX_TEXT_BYTES, "bytes", "A prompt, a steer or a follow-up. A longer one is refused: TOO_LARGE; send a summary, or a path that the agent can read.";
    MAX_PENDING_BYTES, "bytes", "All texts that wait in one run's queue. A further one is refused; one always finds room.";
    MAX_ENTRY_TEXT_BYTES, "bytes", "A text in one field of an entry; of a longer one the tail is kept, and the whole as an artifact where it is a tool's output.";
    MAX_EVENT_TEXT_BYTES, "bytes", "A text in one field of an event; of a longer one the tail is told.";
    MAX_EVENT_BYTES, "bytes", "An event, encoded.";
    MAX_PREVIEW_BYTES, "bytes", "The preview of a waiting input in state and events.";
    MAX_LABEL_BYTES, "bytes", "A name that an engine gives: of a tool, a message, a failure.";
    MAX_DETAIL_BYTES, "bytes", "The details of a failure, or the reason of a retry.";
    MAX_ASK_BYTES, "bytes", "The name that an engine gives a question.";
    MAX_OPEN_INTERACTIONS, "", "Questions that a run may have open at once.";
    MAX_LISTED_INTERACTIONS, "", "Questions of a run that state lists.";
    MAX_CHOICES, "", "Choices of one question, or of one field of a form.";
    MAX_FIELDS, "", "Fields of one form.";
    MAX_QUESTION_BYTES, "bytes", "All texts of one question.";
    MAX_ANSWER_BYTES, "bytes", "All texts of one answer. A longer one is refused: TOO_LARGE.";
    MAX_INSTRUCTIONS_BYTES, "bytes", "The instructions of a compaction. Longer ones are refused: TOO_LARGE.";
    MAX_OPEN_PER_RUN, "", "Messages, and tools, that an engine may have open at once in one run.";
    MAX_FINISHED_KEPT, "", "Finished messages, and tool calls, that are remembered in one run.";
    MAX_OPEN_BYTES_PER_RUN, "bytes", "Text of all open messages and tool calls of one run; beyond it the longest keep shorter tails.";
    MAX_RETURNS, "", "How often an engine may give one input back; then it is lost.";
    MAX_TOLD_UNDELIVERED, "", "Undelivered inputs that `run_settled` names; the run's record lists all.";
};

/// The limits of data that goes with a text.
pub(crate) static OF_DATA: &[Fixed] = &[
    Fixed {
        name: "MAX_DATA_PARTS",
        limit: data::MAX_DATA_PARTS as u128,
        unit: "",
        about: "Parts of data that go with one text. More are refused: INVALID_ARGUMENT; put several into one.",
    },
    Fixed {
        name: "MAX_DATA_BYTES",
        limit: data::MAX_DATA_BYTES as u128,
        unit: "bytes",
        about: "All data that goes with one text. More is refused: TOO_LARGE; send the part that matters.",
    },
    Fixed {
        name: "INLINE_DATA_BYTES",
        limit: data::INLINE_DATA_BYTES as u128,
        unit: "bytes",
        about: "All data that goes with one text, as far as entries and the model carry it; of more both ends, and the whole as an artifact.",
    },
    Fixed {
        name: "MAX_DATA_NAME_BYTES",
        limit: data::MAX_DATA_NAME_BYTES as u128,
        unit: "bytes",
        about: "The name of a part of data. A longer one is refused: TOO_LARGE.",
    },
    Fixed {
        name: "MAX_MEDIA_TYPE_BYTES",
        limit: data::MAX_MEDIA_TYPE_BYTES as u128,
        unit: "bytes",
        about: "The media type of a part of data. A longer one is refused: TOO_LARGE.",
    },
    Fixed {
        name: "MAX_ON_FILE_BYTES",
        limit: data::MAX_ON_FILE_BYTES as u128,
        unit: "bytes",
        about: "An agent's `on_file`.",
    },
];

/// The limits of pages and questions.
pub(crate) static OF_CALLS: &[Fixed] = &[
    Fixed {
        name: "ListEntriesRequest.page_size",
        limit: crate::app::MAX_ENTRIES_PAGE as u128,
        unit: "",
        about: "Entries in one page; fewer where they are large. Go on with `next_since`.",
    },
    Fixed {
        name: "ListRunsRequest.page_size",
        limit: crate::app::MAX_RUNS_PAGE as u128,
        unit: "",
        about: "Runs in one page. Go on with `next_page_token`.",
    },
    Fixed {
        name: "ListSessionsRequest.page_size",
        limit: crate::app::MAX_SESSIONS_PAGE as u128,
        unit: "",
        about: "Sessions in one page, and questions in one of `ListInteractions`. Go on with `next_page_token`.",
    },
    Fixed {
        name: "ListSessionsRequest.filter",
        limit: MAX_FILTER_BYTES as u128,
        unit: "bytes",
        about: "A filter of sessions. A longer one is refused: INVALID_ARGUMENT; filter by a label instead.",
    },
    Fixed {
        name: "conditions of a filter",
        limit: MAX_CONDITIONS as u128,
        unit: "",
        about: "What a filter of sessions compares.",
    },
    Fixed {
        name: "labels",
        limit: labels::MAX_LABELS as u128,
        unit: "",
        about: "Labels of a session.",
    },
    Fixed {
        name: "the key of a label",
        limit: labels::MAX_KEY_BYTES as u128,
        unit: "bytes",
        about: "Of a-z, 0-9 and inner `.`, `_`, `-` and `/`.",
    },
    Fixed {
        name: "the value of a label",
        limit: labels::MAX_VALUE_BYTES as u128,
        unit: "bytes",
        about: "Text without control characters; it may be empty.",
    },
    Fixed {
        name: "a directory of a session",
        limit: MAX_DIRECTORY_BYTES as u128,
        unit: "bytes",
        about: "Relative to its workspace. A longer one is refused: TOO_LARGE.",
    },
    Fixed {
        name: "a page",
        limit: crate::app::MAX_PAGE_BYTES as u128,
        unit: "bytes",
        about: "What one page has at most, unless its first item alone has more.",
    },
    Fixed {
        name: "EventsRequest.filter",
        limit: FILTER_MOST as u128,
        unit: "",
        about: "Names in each list of a filter.",
    },
    Fixed {
        name: "a question to grpc.health.v1",
        limit: HEALTH_QUESTION_BYTES as u128,
        unit: "bytes",
        about: "Anybody may ask, so that nobody's memory is taken with long ones.",
    },
    Fixed {
        name: "streams without a token",
        limit: STRANGERS_STREAMS as u128,
        unit: "",
        about: "Watches of health, and reflection where it is open, of all callers together. A further one is refused: OVERLOADED; ask with `Check`.",
    },
];
