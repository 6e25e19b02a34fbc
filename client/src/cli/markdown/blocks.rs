//! Markdown that comes in pieces, cut where a block is whole. Values only.

/// What is held back of a block at most, in bytes; more of it is given out before its end.
const HELD_BYTES: usize = 32 * 1024;

/// How much of a text that is there as a whole is taken at once, in bytes.
const STEP_BYTES: usize = 4 * 1024;

/// Most marks of a fence. A longer line of them is text.
const FENCE_MARKS: usize = 256;

/// A text that is being written.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    /// What was not given out.
    held: String,
    /// How much of it was looked at: whole lines, and the beginning of one that was cut.
    seen: usize,
    /// How much of `held` is the fence of a code that was cut, given again.
    head: usize,
    /// The code that is open.
    fence: Option<Fence>,
    /// The last line was empty, outside of code.
    gap: bool,
    /// What is held begins within a line.
    mid_line: bool,
}

/// The fence that code began with.
#[derive(Clone, Copy, Debug)]
struct Fence {
    mark: char,
    marks: usize,
}

impl Fence {
    /// The fence that a line is which is not in code.
    fn opens(line: &str) -> Option<Self> {
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let rest = line.trim_start_matches(mark);
        let marks = line.len() - rest.len();
        // With another backtick behind them they are code within a line.
        let inline = mark == '`' && rest.contains('`');
        let opens = (3..=FENCE_MARKS).contains(&marks) && !inline;
        opens.then_some(Self { mark, marks })
    }

    /// Whether a line ends the code.
    fn closes(self, line: &str) -> bool {
        line.len() >= self.marks && line.trim_start_matches(self.mark).is_empty()
    }

    fn line(self) -> String {
        self.mark.to_string().repeat(self.marks) + "\n"
    }
}

/// A text that is there as a whole, in parts that are laid out one at a time: at a block's end
/// where one is, and never much longer than what is held back of a text that is being written.
pub(crate) fn parts(text: &str) -> impl Iterator<Item = String> {
    let mut blocks = Blocks::default();
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return blocks.finish().map(|last| vec![last]);
        }
        let mut at = rest.len().min(STEP_BYTES);
        while !rest.is_char_boundary(at) {
            at += 1;
        }
        let (step, after) = rest.split_at(at);
        rest = after;
        Some(blocks.push(step))
    })
    .flatten()
}

impl Blocks {
    /// Takes a piece; the blocks that are whole by it.
    pub(crate) fn push(&mut self, piece: &str) -> Vec<String> {
        self.held.push_str(piece);
        let mut whole = Vec::new();
        // Up to here it is given out already.
        let mut from = 0;
        loop {
            // The first character of a line tells whether the block before it goes on.
            let rest = &self.held[self.seen..];
            if self.gap && rest.starts_with(|c: char| !c.is_whitespace()) {
                self.gap = false;
                whole.push(self.held[from..self.seen].to_owned());
                from = self.seen;
            }
            let Some(end) = rest.find('\n') else { break };
            if !std::mem::take(&mut self.mid_line) {
                self.fence = line(rest[..end].trim(), self.fence);
                self.gap = self.fence.is_none() && rest[..end].trim().is_empty();
            }
            self.seen += end + 1;
        }
        self.drop_to(from);
        if self.held.len() > HELD_BYTES {
            whole.push(self.overflow());
        }
        whole
    }

    /// The text ends: what is left of it.
    pub(crate) fn finish(&mut self) -> Option<String> {
        let rest = std::mem::take(self);
        let text = &rest.held[rest.head..];
        (!text.trim().is_empty()).then_some(rest.held)
    }

    /// The last line that was begun, of what is held back; none if there is nothing.
    pub(crate) fn tail(&self) -> Option<&str> {
        let line = self.held[self.head..].trim_end().lines().last()?.trim();
        (!line.is_empty()).then_some(line)
    }

    /// Gives out what is held of a block that is too long: its whole lines, or what there is of a
    /// line that is too long itself. Code goes on as code.
    fn overflow(&mut self) -> String {
        // The line that opens the code says nothing by itself.
        let opening = self.held.find('\n').filter(|_| self.fence.is_some());
        let floor = opening.map_or(self.head, |end| end + 1);
        let at = if self.seen > floor {
            self.seen
        } else {
            self.mid_line = true;
            // A character stays back, so that no fence's marks begin what follows.
            let text = self.held.trim_end_matches(['`', '~', ' ', '\t']);
            let last = text.char_indices().next_back().map_or(0, |(at, _)| at);
            if last > floor { last } else { self.held.len() }
        };
        let out = self.held[..at].to_owned();
        self.drop_to(at);
        let fence = self.fence.map_or_else(String::new, Fence::line);
        self.held.insert_str(0, &fence);
        self.head = fence.len();
        self.seen = self.head;
        out
    }

    fn drop_to(&mut self, at: usize) {
        self.held.drain(..at);
        self.head = self.head.saturating_sub(at);
        self.seen = self.seen.saturating_sub(at);
    }
}

/// The code that is open after a line.
fn line(line: &str, fence: Option<Fence>) -> Option<Fence> {
    match fence {
        Some(fence) if fence.closes(line) => None,
        Some(fence) => Some(fence),
        None => Fence::opens(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes out piece by piece, and what is left.
    fn blocks(pieces: &[&str]) -> (Vec<String>, Option<String>) {
        let mut blocks = Blocks::default();
        let whole = pieces.iter().flat_map(|piece| blocks.push(piece)).collect();
        (whole, blocks.finish())
    }

    #[test]
    fn a_block_is_whole_when_the_next_one_begins() {
        let text = "One\nmore.\n\n- a\n\n  still a\n\nEnd";
        for size in [1, 3, text.len()] {
            let bytes: Vec<_> = text.as_bytes().chunks(size).collect();
            let pieces: Vec<_> = bytes
                .iter()
                .map(|b| std::str::from_utf8(b).unwrap())
                .collect();
            let (whole, rest) = blocks(&pieces);
            assert_eq!(whole, ["One\nmore.\n\n", "- a\n\n  still a\n\n"], "{size}");
            assert_eq!(rest.as_deref(), Some("End"));
        }
    }

    #[test]
    fn code_is_one_block_whatever_is_in_it() {
        let code = "```\na\n\nb\n~~~\n```\n\n";
        let (whole, rest) = blocks(&[code, "End"]);
        assert_eq!(
            (whole, rest.as_deref()),
            (vec![code.to_owned()], Some("End"))
        );
    }

    #[test]
    fn what_is_held_back_is_bounded_and_nothing_is_lost() {
        let line = "x".repeat(99) + "\n";
        let mut blocks = Blocks::default();
        let mut out = blocks.push("```\n").concat();
        for _ in 0..2000 {
            out += &blocks.push(&line).concat();
            assert!(blocks.held.len() <= HELD_BYTES + 100);
        }
        out += &blocks.finish().unwrap_or_default();
        assert_eq!(out.matches('x').count(), 99 * 2000);
        assert!(out.matches("```").count() > 2, "each part is code");
        assert_eq!(blocks.tail(), None);
    }

    #[test]
    fn a_long_line_of_code_is_given_out_as_it_grows_and_stays_code() {
        let mut blocks = Blocks::default();
        let mut parts = blocks.push("```\n");
        for _ in 0..1000 {
            let out = blocks.push(&"x".repeat(99));
            assert!(blocks.held.len() <= HELD_BYTES + 100);
            assert!(
                out.iter().all(|part| part.len() > HELD_BYTES / 2),
                "{}",
                out.len()
            );
            parts.extend(out);
        }
        assert_eq!(parts.len(), 3, "each time all that there is");
        parts.extend(blocks.push("```\n```\nafter\n\nEnd"));
        parts.extend(blocks.finish());
        let all = parts.concat();
        assert_eq!(all.matches('x').count(), 99 * 1000);
        let marks = |part: &String| part.matches("```").count();
        let last = &parts[parts.len() - 2];
        assert!(
            last.ends_with("```\n```\nafter\n\n"),
            "marks in a line end no code"
        );
        assert!(
            parts[..3].iter().all(|part| marks(part) == 1),
            "each part is code"
        );
    }

    #[test]
    fn what_a_long_line_goes_on_with_is_no_fence() {
        let mut blocks = Blocks::default();
        let mut parts = blocks.push(&"x".repeat(HELD_BYTES + 1));
        parts.extend(blocks.push("```\none\n\ntwo\n\n"));
        parts.extend(blocks.push("End"));
        assert_eq!(parts[1..], ["x```\none\n\n", "two\n\n"]);
    }

    #[test]
    fn code_within_a_line_opens_no_block() {
        let (whole, rest) = blocks(&["```x``` text\n\n", "two\n\nEnd"]);
        assert_eq!(whole, ["```x``` text\n\n", "two\n\n"]);
        assert_eq!(rest.as_deref(), Some("End"));
        let (whole, _) = blocks(&["````\na\n\n```` no end\n\n```\n\n`````\n\nEnd"]);
        assert_eq!(whole.len(), 1, "{whole:?}");
    }

    #[test]
    fn a_whole_text_comes_in_parts_and_none_of_it_is_lost() {
        for text in [
            "ä\n\n".repeat(30_000),
            "é".repeat(100_000),
            "a\n".repeat(50_000),
        ] {
            let parts: Vec<_> = parts(&text).collect();
            assert!(
                parts
                    .iter()
                    .all(|part| part.len() <= HELD_BYTES + STEP_BYTES)
            );
            assert_eq!(parts.concat(), text);
        }
    }
}
