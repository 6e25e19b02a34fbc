//! Markdown that comes in pieces, cut where a block is whole. Values only.

/// What is held back of a block at most, in bytes; more of it is given out before its end.
const HELD_BYTES: usize = 32 * 1024;

/// A text that is being written.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    /// What was not given out.
    held: String,
    /// How much of it is whole lines that were looked at.
    seen: usize,
    /// The fence of the code that is open.
    fence: Option<String>,
    /// The last line was empty, outside of code.
    gap: bool,
}

impl Blocks {
    /// Takes a piece; the blocks that are whole by it.
    pub(crate) fn push(&mut self, piece: &str) -> Vec<String> {
        self.held.push_str(piece);
        let mut whole = Vec::new();
        loop {
            // The first character of a line tells whether the block before it goes on.
            let rest = &self.held[self.seen..];
            if self.gap && rest.starts_with(|c: char| !c.is_whitespace()) {
                self.gap = false;
                whole.push(self.cut(self.seen));
                continue;
            }
            let Some(end) = rest.find('\n') else { break };
            let line = rest[..end].trim().to_owned();
            self.seen += end + 1;
            self.line(&line);
        }
        if self.held.len() > HELD_BYTES {
            let at = if self.seen > 0 {
                self.seen
            } else {
                self.held.len()
            };
            whole.push(self.cut(at));
            // Code goes on as code.
            if let Some(fence) = &self.fence {
                self.held.insert_str(0, &format!("{fence}\n"));
                self.seen = fence.len() + 1;
            }
        }
        whole
    }

    /// The text ends: what is left of it.
    pub(crate) fn finish(&mut self) -> Option<String> {
        let rest = std::mem::take(self).held;
        (!rest.trim().is_empty()).then_some(rest)
    }

    /// The last line that was begun, of what is held back; none if there is nothing.
    pub(crate) fn tail(&self) -> Option<&str> {
        let line = self.held.trim_end().lines().last()?.trim();
        (!line.is_empty()).then_some(line)
    }

    fn line(&mut self, line: &str) {
        if let Some(fence) = &self.fence {
            if line.starts_with(fence.as_str()) {
                self.fence = None;
            }
            return;
        }
        let marks = |mark| line.chars().take_while(|c| *c == mark).count();
        let fence = ['`', '~'].into_iter().find(|mark| marks(*mark) >= 3);
        self.fence = fence.map(|mark| mark.to_string().repeat(marks(mark)));
        self.gap = line.is_empty();
    }

    fn cut(&mut self, at: usize) -> String {
        let rest = self.held.split_off(at);
        self.seen = self.seen.saturating_sub(at);
        std::mem::replace(&mut self.held, rest)
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
}
