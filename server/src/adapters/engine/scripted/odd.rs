//! Texts that something along the way is likely to mishandle, and texts of a size.

/// How long the single line is that `odd` ends with, in bytes.
const LINE_BYTES: u64 = 1024 * 1024;

/// The pieces of an odd message. Joined, they are what the whole message says.
pub(super) fn pieces() -> impl Iterator<Item = String> {
    let short = [
        // Control characters: NUL, bell, backspace, a terminal colour, a title change, DEL, C1.
        "nul[\0] bell[\u{7}] back[\u{8}] ",
        "\u{1b}[31mred\u{1b}[0m \u{1b}]0;title\u{7} del[\u{7f}] c1[\u{9b}31m] ",
        // Line ends of every kind, and a tab.
        "cr\r lf\n crlf\r\n tab\t vt\u{b} ff\u{c} nel\u{85} ls\u{2028} ps\u{2029} ",
        // Text that displays in another order than it is stored.
        "bidi[\u{202e}gnp.exe\u{202c}] isolate[\u{2066}abc\u{2069}] ",
        // Invisible characters: zero width, a byte order mark, tags.
        "zero[\u{200b}\u{200d}\u{feff}] tag[\u{e0041}\u{e007f}] ",
        // What a lone surrogate becomes on its way into UTF-8.
        "lone[\u{fffd}\u{fffd}] last[\u{10ffff}] non[\u{ffff}] ",
        // One visible character in three pieces, and a letter apart from its accent.
        "family[\u{1f469}\u{200d}",
        "\u{1f469}\u{200d}",
        "\u{1f467}] accent[e",
        "\u{301}] ",
    ];
    short.into_iter().map(str::to_owned).chain(line_pieces())
}

/// One line of a mebibyte whose characters have one to four bytes.
fn line_pieces() -> impl Iterator<Item = String> {
    Filler::new("a\u{e9}\u{20ac}\u{1d11e}", LINE_BYTES)
}

/// Text of exactly so many bytes in pieces of 16 KiB, made of readable numbered lines.
pub(super) fn filler(bytes: u64) -> impl Iterator<Item = String> {
    Filler::new(
        "0123456789 abcdefghijklmnopqrstuvwxyz 0123456789 ABCDEFGHIJKLMN\n",
        bytes,
    )
}

/// Repeats a pattern; a remainder that would cut a character is filled with dots.
struct Filler {
    pattern: &'static str,
    left: u64,
}

/// The size of a piece. Small, so that what waits to be read stays small.
const PIECE_BYTES: u64 = 16 * 1024;

impl Filler {
    fn new(pattern: &'static str, bytes: u64) -> Self {
        Self {
            pattern,
            left: bytes,
        }
    }
}

impl Iterator for Filler {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        if self.left == 0 {
            return None;
        }
        let size = self.left.min(PIECE_BYTES);
        self.left -= size;
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let mut piece = self.pattern.repeat(size / self.pattern.len());
        let rest = size - piece.len();
        piece.extend(std::iter::repeat_n('.', rest));
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filler_has_exactly_the_size_asked_for() {
        for bytes in [0_u64, 1, 63, 64, 65, 16_384, 16_385, 100_000] {
            let text: String = filler(bytes).collect();
            assert_eq!(text.len() as u64, bytes);
        }
    }

    #[test]
    fn the_odd_message_ends_in_one_long_line() {
        let text: String = pieces().collect();
        let line = text.rsplit(['\n', '\u{2029}']).next().expect("a last line");
        assert!(line.len() as u64 >= LINE_BYTES);
    }
}
