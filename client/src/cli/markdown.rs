//! Markdown as a terminal shows it: laid out by lines, styled where colour is allowed, readable
//! where it is not. What others wrote is made safe here, after entities became characters.

mod blocks;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::visible;
use super::wrap::wrapped;

pub(crate) use blocks::{Blocks, parts};

const BOLD: &str = "\x1b[1m";
const ITALIC: &str = "\x1b[3m";
const UNDERLINE: &str = "\x1b[4m";
const CODE: &str = "\x1b[36m";
const DIM: &str = "\x1b[2m";
const RESET: &str = "\x1b[0m";

/// Deepest list and deepest quote that a line's margin shows. What a model writes may be nested as
/// deep as it is long, each level on a line of its own.
const MARGIN_DEPTH: usize = 16;

/// Most lists and quotes that one line may open. The time to read those after it grows with them.
const OPENED_BY_LINE: usize = 100;

/// Lays out whole blocks for a terminal of `width` columns: prose is broken between words, code
/// stays as it is, and so does what is nested beyond reason. Ends with a line feed unless there is
/// nothing.
pub(crate) fn laid_out(text: &str, colour: bool, width: usize) -> String {
    if text.lines().any(|line| opened(line) > OPENED_BY_LINE) {
        let end = if text.ends_with('\n') { "" } else { "\n" };
        return visible::lines(text).into_owned() + end;
    }
    let mut page = Page {
        colour,
        width,
        ..Page::default()
    };
    for event in Parser::new_ext(text, Options::ENABLE_STRIKETHROUGH) {
        page.event(event);
    }
    page.end_line();
    // The empty line that parts it from what follows is its own.
    if text.ends_with("\n\n") && !page.out.is_empty() {
        page.out.push('\n');
    }
    page.out
}

/// How many lists and quotes the marks at the beginning of a line open, at most.
fn opened(line: &str) -> usize {
    let marks = |c: &char| matches!(c, '>' | '+' | '-' | '*' | '.' | ')');
    let margin = line
        .chars()
        .take_while(|c| marks(c) || c.is_whitespace() || c.is_ascii_digit());
    let mut opened = 0;
    let mut after_mark = false;
    for c in margin {
        // But for a quote's, a mark is one only with a space behind it.
        opened += usize::from(c == '>' || after_mark && c.is_whitespace());
        after_mark = c != '>' && marks(&c);
    }
    opened
}

/// What is being laid out.
#[derive(Default)]
struct Page {
    out: String,
    colour: bool,
    width: usize,
    /// The styles that hold, outermost first.
    styles: Vec<&'static str>,
    /// What each list that is open counts; none for a list of bullets.
    lists: Vec<Option<u64>>,
    quotes: usize,
    /// The block that is open is code.
    code: bool,
    /// The cursor is in a line that has its margin.
    in_line: bool,
    /// Where the words of that line begin, and in which column.
    words: (usize, usize),
    /// The item's mark, until its first line begins.
    mark: Option<String>,
    /// Where the links that are open lead.
    links: Vec<String>,
}

impl Page {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::FootnoteReference(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text) => self.text(&text),
            Event::Code(text) => {
                self.open(CODE, "`");
                self.text(&text);
                self.close("`");
            }
            Event::SoftBreak | Event::HardBreak => self.text("\n"),
            Event::Rule => {
                self.block();
                self.text("---\n");
            }
            Event::TaskListMarker(done) => self.text(if done { "[x] " } else { "[ ] " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.block();
                let marks = "#".repeat(level as usize);
                self.open(BOLD, "");
                self.text(&format!("{marks} "));
            }
            Tag::BlockQuote(_) => {
                self.block();
                self.quotes += 1;
            }
            Tag::CodeBlock(kind) => {
                self.block();
                if let CodeBlockKind::Fenced(language) = kind
                    && !language.is_empty()
                {
                    self.open(DIM, "");
                    self.text(&format!("{language}:\n"));
                    self.close("");
                }
                self.code = true;
                self.open(CODE, "");
            }
            Tag::List(first) => {
                if self.lists.is_empty() {
                    self.block();
                } else {
                    self.end_line();
                }
                self.lists.push(first);
            }
            Tag::Item => self.item(),
            Tag::Emphasis => self.open(ITALIC, "*"),
            Tag::Strong => self.open(BOLD, "**"),
            Tag::Strikethrough => self.open(DIM, "~~"),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push(dest_url.into_string());
                self.open(UNDERLINE, "");
            }
            _ if self.mark.is_none() => self.block(),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                self.close("");
                self.end_line();
            }
            TagEnd::BlockQuote(_) => {
                self.end_line();
                self.quotes = self.quotes.saturating_sub(1);
            }
            TagEnd::CodeBlock => {
                self.close("");
                self.end_line();
                self.code = false;
            }
            TagEnd::List(_) => {
                self.end_line();
                self.lists.pop();
            }
            TagEnd::Emphasis => self.close("*"),
            TagEnd::Strong => self.close("**"),
            TagEnd::Strikethrough => self.close("~~"),
            TagEnd::Link | TagEnd::Image => {
                self.close("");
                let leads = self.links.pop().unwrap_or_default();
                if !self.out.ends_with(&leads) {
                    self.text(&format!(" ({leads})"));
                }
            }
            _ => self.end_line(),
        }
    }

    /// A block begins: after another one there is an empty line, but not within a list.
    fn block(&mut self) {
        self.end_line();
        if !self.out.is_empty() && self.lists.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    fn item(&mut self) {
        self.end_line();
        self.mark = Some(match self.lists.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{number}. ");
                *number = number.saturating_add(1);
                mark
            }
            _ => "- ".to_owned(),
        });
    }

    /// A style begins; without colour its mark says so.
    fn open(&mut self, style: &'static str, mark: &str) {
        self.styles.push(style);
        if self.colour {
            if self.in_line {
                self.out.push_str(style);
            }
        } else {
            self.text(mark);
        }
    }

    fn close(&mut self, mark: &str) {
        self.styles.pop();
        if !self.colour {
            return self.text(mark);
        }
        if self.in_line {
            self.out.push_str(RESET);
            self.restyle();
        }
    }

    fn restyle(&mut self) {
        // Each once, however deep it is nested.
        for (at, style) in self.styles.iter().enumerate() {
            if at < MARGIN_DEPTH && !self.styles[..at].contains(style) {
                self.out.push_str(style);
            }
        }
    }

    fn text(&mut self, text: &str) {
        for piece in visible::lines(text).split_inclusive('\n') {
            let (words, ends) = match piece.strip_suffix('\n') {
                Some(words) => (words, true),
                None => (piece, false),
            };
            if !words.is_empty() {
                self.begin_line();
                self.out.push_str(words);
            }
            if ends && words.is_empty() && !self.in_line {
                self.out.push('\n');
            } else if ends {
                self.end_line();
            }
        }
    }

    /// The margin of a line: quotes, the item's place in its list, the indentation of code.
    fn begin_line(&mut self) {
        if std::mem::replace(&mut self.in_line, true) {
            return;
        }
        let begin = self.out.len();
        self.out
            .push_str(&"> ".repeat(self.quotes.min(MARGIN_DEPTH)));
        let depth = self.lists.len().min(MARGIN_DEPTH);
        match self.mark.take() {
            Some(mark) => {
                self.out.push_str(&"  ".repeat(depth.saturating_sub(1)));
                self.out.push_str(&mark);
            }
            None => self.out.push_str(&"  ".repeat(depth)),
        }
        if self.code {
            self.out.push_str("    ");
        }
        // A margin is of characters of one byte.
        self.words = (self.out.len(), self.out.len() - begin);
        if self.colour {
            self.restyle();
        }
    }

    fn end_line(&mut self) {
        if let Some(mark) = self.mark.take() {
            // An item without a text.
            self.mark = Some(mark);
            self.begin_line();
        }
        if std::mem::take(&mut self.in_line) {
            if self.colour && !self.styles.is_empty() {
                self.out.push_str(RESET);
            }
            if !self.code {
                self.wrap();
            }
            self.out.push('\n');
        }
    }

    /// Breaks the line that ends where it is too long.
    fn wrap(&mut self) {
        let (begin, column) = self.words;
        let margin = "> ".repeat(self.quotes.min(MARGIN_DEPTH))
            + &"  ".repeat(self.lists.len().min(MARGIN_DEPTH));
        let words = self.out.split_off(begin);
        self.out
            .push_str(&wrapped(&words, column, self.width, &margin));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As wide as it takes.
    fn laid_out(text: &str, colour: bool) -> String {
        super::laid_out(text, colour, usize::MAX)
    }

    #[test]
    fn prose_is_broken_between_words_and_code_is_not() {
        let line = "the lease `token` is checked here";
        for colour in [false, true] {
            let text = format!("{line}\n\n- {line}\n\n```\n{line}\n```\n");
            let mut out = super::laid_out(&text, colour, 24);
            for style in [CODE, RESET] {
                out = out.replace(style, "");
            }
            let out = out.replace('`', "");
            let line = line.replace('`', "");
            assert_eq!(
                out.lines().collect::<Vec<_>>(),
                [
                    "the lease token is",
                    "checked here",
                    "",
                    "- the lease token is",
                    "  checked here",
                    "",
                    "    the lease token is checked here",
                ],
                "{line}"
            );
        }
    }

    const TEXT: &str = "# A title\n\nSome *soft* and **loud** `code`,\nsee [here](http://a.b).\n\n\
        - one\n- two\n  1. deep\n  2. deeper\n\n> said\n\n```rust\nfn main() {\n\n}\n```\nend\n";

    #[test]
    fn without_colour_all_of_it_reads_as_text() {
        insta::assert_snapshot!(laid_out(TEXT, false));
    }

    #[test]
    fn styles_end_where_their_text_ends() {
        let styled = laid_out(TEXT, true);
        assert!(styled.contains("\x1b[1m# A title\x1b[0m\n"), "{styled:?}");
        assert!(styled.contains("\x1b[3msoft\x1b[0m and"), "{styled:?}");
        assert!(
            styled.contains("    \x1b[36mfn main() {\x1b[0m\n\n"),
            "{styled:?}"
        );
        for line in styled.lines() {
            let last = line.rsplit("\x1b[").next().unwrap_or_default();
            assert!(last.starts_with("0m") || !line.contains('\x1b'), "{line:?}");
        }
    }

    #[test]
    fn no_spelling_of_an_escape_reaches_the_terminal() {
        for text in [
            "a\x1b[2Jb",
            "a&#27;[2Jb",
            "a&#x1b;[2Jb",
            "`\x1b]0;t\x07`",
            "[x](http://a/&#27;[2J)",
            "```\x1b[2J\nx\n```",
            "a&#8238;b",
        ] {
            let out = laid_out(text, false);
            let steers = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
            assert!(!out.contains(steers), "{out:?}");
        }
    }

    #[test]
    fn what_is_nested_without_end_takes_little_more_room_than_its_text() {
        let nested = |open: &str, close: &str| {
            let times = 32 * 1024 / (open.len() + close.len());
            open.repeat(times) + "x" + &close.repeat(times)
        };
        for text in [
            (nested("+ ", "").split_inclusive(' '))
                .collect::<Vec<_>>()
                .chunks(99)
                .map(|line| line.concat() + "\n")
                .collect(),
            nested("*a\n", "*"),
            nested("[a](b) ", ""),
        ] {
            for colour in [false, true] {
                let out = laid_out(&text, colour);
                assert!(out.len() < 30 * text.len(), "{} bytes", out.len());
            }
        }
    }

    #[test]
    fn what_one_line_nests_beyond_reason_stays_as_it_is() {
        let line = |mark: &str, times| mark.repeat(times) + "x\n";
        for mark in ["+ ", "> ", ">", "1. ", "- > "] {
            let deep = line(mark, OPENED_BY_LINE + 1);
            assert_eq!(laid_out(&deep, true), deep);
            let fair = line(mark, OPENED_BY_LINE / 2);
            assert_ne!(laid_out(&fair, true), fair);
        }
        let rule = "-".repeat(200);
        assert_eq!(laid_out(&rule, false), "---\n");
    }
}
