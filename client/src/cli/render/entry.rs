//! Durable entries: as a list with their ids, and as a conversation to read.

use sessionplane_core::domain::access::PrincipalKind;
use sessionplane_core::domain::data::{Data, DataPart};
use sessionplane_core::domain::entry::{Entry, EntryBody};
use sessionplane_core::domain::provenance::{Origin, Trust};
use sessionplane_core::domain::settings::SettingsOverride;
use sessionplane_core::domain::text::BoundedText;

use super::WIDTH;
use super::time::rfc3339;
use crate::cli::screen::Piece;
use crate::cli::visible;

/// Most lines of a tool's output that a conversation shows.
const OUTPUT_LINES: usize = 6;

/// An entry of a list: its id, kind and time, then its text, indented.
pub(crate) fn entry_lines(entry: &Entry) -> Vec<String> {
    let kind = entry.body.kind();
    let mut lines = vec![format!("{}  {kind}  {}", entry.id, rfc3339(entry.at))];
    lines.extend(body_lines(&entry.body).into_iter().map(|line| {
        if line.is_empty() {
            line
        } else {
            format!("  {line}")
        }
    }));
    lines
}

fn body_lines(body: &EntryBody) -> Vec<String> {
    let mut lines = Vec::new();
    match body {
        EntryBody::User {
            text,
            omitted_bytes,
            origin,
            input,
            data,
        } => {
            let how = input.map_or_else(String::new, |input| format!(", input {input}"));
            let trust = trust_words(origin);
            lines.push(format!("from {}{trust}{how}", origin.principal));
            omitted(*omitted_bytes, &mut lines);
            lines.extend(text.lines().map(str::to_owned));
            lines.extend(data.iter().flat_map(|data| data_lines(data)));
        }
        EntryBody::Assistant {
            text,
            thinking,
            partial,
            ..
        } => {
            if !thinking.text.is_empty() {
                lines.push("(thinking)".to_owned());
                bounded(thinking, &mut lines);
                if !text.text.is_empty() {
                    lines.push("(answer)".to_owned());
                }
            }
            bounded(text, &mut lines);
            if *partial {
                lines.push("(cut off)".to_owned());
            }
            if lines.is_empty() {
                lines.push("(no text)".to_owned());
            }
        }
        EntryBody::Tool {
            name,
            input_json,
            output,
            failed,
            ..
        } => {
            lines.push(call_words(name, input_json));
            bounded(output, &mut lines);
            if *failed {
                lines.push("(failed)".to_owned());
            }
        }
        EntryBody::Settings { chosen } => lines.push(settings_words(chosen)),
        EntryBody::Compaction { summary, .. } => {
            lines.push("(summary of what came before)".to_owned());
            bounded(summary, &mut lines);
        }
        EntryBody::Notice { code, text } => lines.push(format!("{code}: {text}")),
    }
    lines
}

/// How far a text is trusted, where no person sent it or it is none to obey. What people send needs no
/// mark: without a sandbox all of it is relayed.
pub(super) fn trust_words(origin: &Origin) -> &'static str {
    match origin.trust {
        Trust::Typed => "",
        Trust::Relayed if origin.kind == PrincipalKind::Human => "",
        Trust::Relayed => " (relayed)",
        Trust::Untrusted => " (untrusted)",
    }
}

/// A line for each part of what was given as data, which says what became of it.
pub(super) fn data_lines(data: &Data) -> Vec<String> {
    let mut lines: Vec<String> = data.parts().iter().map(part_words).collect();
    if data.on_file().is_some() {
        lines.push("(no instruction came with it; the agent got its configuration's)".to_owned());
    }
    lines
}

fn part_words(part: &DataPart) -> String {
    let name = match &*part.name {
        "" => "data",
        name => name,
    };
    let size = bytes(part.bytes);
    match part.content.artifact() {
        None => format!("[{name}: untrusted data, {size}]"),
        Some(artifact) => format!(
            "[{name}: untrusted data, {size}, whole as artifact {}]",
            artifact.id
        ),
    }
}

/// A size in the largest unit that it has one of.
fn bytes(bytes: u64) -> String {
    const KIB: u64 = 1024;
    match bytes {
        0..KIB => format!("{bytes} bytes"),
        KIB..1_048_576 => format!("{} KiB", bytes.div_ceil(KIB)),
        _ => format!("{}.{} MiB", bytes >> 20, ((bytes & 0xf_ffff) * 10) >> 20),
    }
}

fn bounded(text: &BoundedText, lines: &mut Vec<String>) {
    omitted(text.omitted_bytes, lines);
    lines.extend(text.text.lines().map(str::to_owned));
}

fn omitted(bytes: u64, lines: &mut Vec<String>) {
    lines.extend(omission(bytes));
}

/// That the beginning of a text is missing, if it is.
fn omission(bytes: u64) -> Option<String> {
    (bytes > 0).then(|| format!("({bytes} bytes before this are not shown)"))
}

/// A tool and what it is called with.
pub(super) fn call_words(name: &str, input_json: &BoundedText) -> String {
    match omission(input_json.omitted_bytes) {
        Some(omission) => format!("{name} {omission} {}", input_json.text),
        None => format!("{name} {}", input_json.text),
    }
}

/// An entry as a part of a conversation.
pub(crate) fn entry_block(entry: &Entry) -> Vec<Piece> {
    let mut pieces = vec![Piece::Break];
    match &entry.body {
        EntryBody::User {
            text,
            omitted_bytes,
            origin,
            data,
            ..
        } => {
            pieces.extend(cut_before(*omitted_bytes));
            let data = data.iter().flat_map(|data| data_lines(data));
            let said = text.trim_end().lines().map(str::to_owned);
            let text = said.chain(data).collect::<Vec<_>>().join("\n  ");
            let trust = trust_words(origin);
            pieces.push(Piece::Answer(format!(
                "{}{trust}> {text}\n",
                origin.principal
            )));
        }
        EntryBody::Assistant {
            text,
            thinking,
            partial,
            ..
        } => {
            pieces.extend(cut_before(thinking.omitted_bytes));
            if !thinking.text.trim().is_empty() {
                pieces.push(Piece::Aside(format!("{}\n", thinking.text.trim_end())));
            }
            pieces.extend(cut_before(text.omitted_bytes));
            if !text.text.is_empty() {
                pieces.push(Piece::Prose(format!("{}\n", text.text.trim_end())));
            }
            if *partial {
                pieces.push(cut_off());
            }
        }
        EntryBody::Tool {
            name,
            input_json,
            output,
            failed,
            ..
        } => {
            pieces.push(tool_line(name, input_json));
            pieces.push(tool_output(output, *failed));
        }
        EntryBody::Settings { chosen } => {
            pieces.push(Piece::Aside(format!("! {}\n", settings_words(chosen))));
        }
        EntryBody::Compaction { summary, .. } => {
            pieces.push(Piece::Aside("! summary of what came before:\n".to_owned()));
            pieces.extend(cut_before(summary.omitted_bytes));
            pieces.push(Piece::Aside(format!("{}\n", summary.text.trim_end())));
        }
        EntryBody::Notice { code, text } => {
            pieces.push(Piece::Aside(format!("! {code}: {text}\n")));
        }
    }
    pieces
}

/// What is chosen from an entry on.
pub(super) fn settings_words(chosen: &SettingsOverride) -> String {
    let model = chosen.model.as_deref().unwrap_or("the agent's default");
    match chosen.thinking_level.as_deref() {
        Some(level) => format!("model: {model}, thinking: {level}"),
        None => format!("model: {model}"),
    }
}

/// The mark of a message that has no end.
pub(super) fn cut_off() -> Piece {
    Piece::Aside("(cut off)\n".to_owned())
}

/// The mark of a text whose beginning is missing.
fn cut_before(bytes: u64) -> Option<Piece> {
    omission(bytes).map(|line| Piece::Aside(format!("{line}\n")))
}

/// A tool that begins, on one line.
pub(super) fn tool_line(name: &str, input_json: &BoundedText) -> Piece {
    let line = format!("* {}", call_words(name, input_json));
    Piece::Aside(format!("{}\n", visible::clipped(line.trim_end(), WIDTH)))
}

/// The end of what a tool returned, indented.
pub(super) fn tool_output(output: &BoundedText, failed: bool) -> Piece {
    let lines: Vec<_> = output.text.trim_end().lines().collect();
    let from = lines.len().saturating_sub(OUTPUT_LINES);
    let mut shown = Vec::new();
    shown.extend(omission(output.omitted_bytes).map(|line| format!("  {line}\n")));
    if from > 0 {
        shown.push(format!("  ({from} lines before this are not shown)\n"));
    }
    shown.extend(
        lines[from..]
            .iter()
            .map(|line| format!("  {}\n", visible::clipped(line, WIDTH - 2))),
    );
    if failed {
        shown.push("  (failed)\n".to_owned());
    }
    Piece::Aside(shown.concat())
}

#[cfg(test)]
mod tests {
    use sessionplane_core::domain::usage::Usage;

    use super::*;

    #[test]
    fn a_message_without_text_says_so() {
        let body = |partial| EntryBody::Assistant {
            message: "m-1".to_owned(),
            model: None,
            text: BoundedText::default(),
            thinking: BoundedText::default(),
            partial,
            usage: Usage::default(),
        };
        assert_eq!(body_lines(&body(false)), ["(no text)"]);
        assert_eq!(body_lines(&body(true)), ["(cut off)"]);
    }
}
