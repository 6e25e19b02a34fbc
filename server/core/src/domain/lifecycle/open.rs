//! What the engine has open, a message or a tool call between its start and its finish, inside
//! bounds.

use super::state::ActiveRun;
use crate::domain::limits::MAX_OPEN_BYTES_PER_RUN;
use crate::domain::text::BoundedText;

/// Shortens the longest open texts until all of them together keep the bound: each keeps its end,
/// and says how much went.
pub(super) fn fit(run: &mut ActiveRun) {
    while run.open_bytes() > MAX_OPEN_BYTES_PER_RUN {
        let Some(longest) = texts(run).max_by_key(|text| text.text.len()) else {
            return;
        };
        *longest = longest.narrowed(longest.text.len() / 2);
    }
}

fn texts(run: &mut ActiveRun) -> impl Iterator<Item = &mut BoundedText> {
    let messages = run.messages.values_mut();
    let tools = run.tools.values_mut();
    messages
        .flat_map(|message| [&mut message.text, &mut message.thinking])
        .chain(tools.map(|tool| &mut tool.input_json))
}
