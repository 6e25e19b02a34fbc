//! Which lines of a file are meant: `a.rs:10-40`, `lines 10 to 40`, `line 12`, `first 5 lines`.

/// How many lines are shown at most, and how many unless asked otherwise.
pub(super) const MOST_LINES: usize = 120;
const HEAD: usize = 40;
/// How many lines are shown around one that is named.
const AROUND: usize = 10;

/// Lines of a file, from 1, both included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Lines {
    pub(super) from: usize,
    pub(super) to: usize,
}

impl Lines {
    /// The beginning.
    pub(super) const HEAD: Self = Self { from: 1, to: HEAD };

    fn new(from: usize, to: usize) -> Self {
        let from = from.max(1);
        let most = from.saturating_add(MOST_LINES - 1);
        Self {
            from,
            to: to.clamp(from, most),
        }
    }

    fn around(line: usize) -> Self {
        Self::new(line.saturating_sub(AROUND), line.saturating_add(AROUND))
    }

    /// Takes the lines off the end of a place: `a.rs:10-40`, `a.rs:12`, also with a column.
    pub(super) fn split(place: &str) -> (&str, Option<Self>) {
        let Some((path, first)) = place.split_once(':') else {
            return (place, None);
        };
        let names_a_file = path.contains(['.', '/']) || first.contains('-');
        match Self::range(first.split(':').next().unwrap_or(first)) {
            Some(lines) if names_a_file => (path, Some(lines)),
            _ => (place, None),
        }
    }

    /// `10-40`, or `12` for what is around it.
    fn range(text: &str) -> Option<Self> {
        let number = |text: &str| text.trim_start_matches(['L', 'l']).parse().ok();
        match text.split_once(['-', '\u{2013}']) {
            Some((from, to)) => Some(Self::new(number(from)?, number(to)?)),
            None => number(text).map(Self::around),
        }
    }

    /// `10-40` as a word of its own.
    pub(super) fn word(word: &str) -> Option<Self> {
        word.contains(['-', '\u{2013}'])
            .then(|| Self::range(word))?
    }

    /// What is meant by numbers in a text that speaks of lines.
    pub(super) fn spoken(plain: &[String], numbers: &[usize]) -> Option<Self> {
        let has = |words: &[&str]| plain.iter().any(|word| words.contains(&word.as_str()));
        if !has(&["line", "lines"]) {
            return None;
        }
        match numbers {
            [count] if has(&["first", "top", "head"]) => Some(Self::new(1, *count)),
            [line] => Some(Self::around(*line)),
            [from, to] => Some(Self::new(*from, *to)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_off_places_and_words() {
        let lines = |from, to| Some(Lines { from, to });
        assert_eq!(Lines::split("src/a.rs:10-40"), ("src/a.rs", lines(10, 40)));
        assert_eq!(Lines::split("a.rs:12:5"), ("a.rs", lines(2, 22)));
        assert_eq!(Lines::split("Makefile:1-6"), ("Makefile", lines(1, 6)));
        assert_eq!(Lines::split("a.rs:L3-L4"), ("a.rs", lines(3, 4)));
        for whole in ["a::b", "core::task", "a.rs", "x:12", "http://x", "a.rs:b"] {
            assert_eq!(Lines::split(whole), (whole, None));
        }
        assert_eq!(Lines::word("5-9"), lines(5, 9));
        assert_eq!(Lines::word("9"), None);
        assert_eq!(Lines::word("a-b"), None);
        let spoken = |text: &str, numbers: &[usize]| {
            let plain: Vec<String> = text.split(' ').map(str::to_owned).collect();
            Lines::spoken(&plain, numbers)
        };
        assert_eq!(spoken("lines to", &[10, 12]), lines(10, 12));
        assert_eq!(spoken("first lines", &[5]), lines(1, 5));
        assert_eq!(spoken("line", &[100]), lines(90, 110));
        assert_eq!(spoken("port", &[8080]), None);
    }

    #[test]
    fn odd_numbers_are_bounded() {
        let most = Lines::new(0, usize::MAX);
        assert_eq!((most.from, most.to), (1, MOST_LINES));
        assert_eq!(Lines::new(9, 3), Lines { from: 9, to: 9 });
        let far = Lines::around(usize::MAX);
        assert!(far.from <= far.to);
        assert_eq!(Lines::split("a.rs:99999999999999999999999").1, None);
    }
}
