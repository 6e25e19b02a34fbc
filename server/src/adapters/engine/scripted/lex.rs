//! A scenario line as words, quoted texts and JSON objects, and how a verb takes them one by one.

use std::collections::VecDeque;
use std::time::Duration;

/// The largest size that a scenario may ask for: 64 MiB.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// The longest delay that a scenario may ask for: a day.
const MAX_DELAY: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Clone, PartialEq, Eq, Debug)]
enum Token {
    Word(String),
    Text(String),
    Json(String),
}

impl Token {
    fn describe(&self) -> String {
        match self {
            Self::Word(word) => format!("`{word}`"),
            Self::Text(text) => format!("{text:?}"),
            Self::Json(json) => format!("`{json}`"),
        }
    }
}

/// A line's words, to be taken from left to right. Errors are texts that name the verb.
pub(super) struct Line {
    pub(super) verb: String,
    rest: VecDeque<Token>,
}

impl Line {
    /// Splits a line that is neither blank nor a comment.
    pub(super) fn split(line: &str) -> Result<Self, String> {
        let line = line.trim();
        let (verb, mut rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let mut tokens = VecDeque::new();
        loop {
            rest = rest.trim_start();
            let (token, after) = match rest.chars().next() {
                None => break,
                Some('"') => quoted(rest)?,
                Some('{') => json(rest)?,
                Some(_) => word(rest)?,
            };
            tokens.push_back(token);
            rest = after;
        }
        Ok(Self {
            verb: verb.to_owned(),
            rest: tokens,
        })
    }

    /// Takes the next word if it is this one.
    pub(super) fn keyword(&mut self, word: &str) -> bool {
        let is_next = matches!(self.rest.front(), Some(Token::Word(next)) if next == word);
        if is_next {
            self.rest.pop_front();
        }
        is_next
    }

    /// Takes this very word, or explains that it is missing.
    pub(super) fn expect_keyword(&mut self, word: &str) -> Result<(), String> {
        if self.keyword(word) {
            return Ok(());
        }
        Err(self.wrong(&format!("the word `{word}`")))
    }

    pub(super) fn word(&mut self, what: &str) -> Result<String, String> {
        match self.rest.pop_front() {
            Some(Token::Word(word)) => Ok(word),
            other => Err(self.mismatch(what, other)),
        }
    }

    pub(super) fn text(&mut self, what: &str) -> Result<String, String> {
        match self.rest.pop_front() {
            Some(Token::Text(text)) => Ok(text),
            other => Err(self.mismatch(&format!("{what} in double quotes"), other)),
        }
    }

    pub(super) fn json(&mut self) -> Option<String> {
        match self.rest.pop_front() {
            Some(Token::Json(json)) => Some(json),
            Some(other) => {
                self.rest.push_front(other);
                None
            }
            None => None,
        }
    }

    pub(super) fn number<N: std::str::FromStr>(&mut self, what: &str) -> Result<N, String> {
        let word = self.word(what)?;
        word.parse()
            .map_err(|_| format!("`{}`: `{word}` is not {what}", self.verb))
    }

    /// A size such as `10MiB`, `64KiB`, `500B` or `500`.
    pub(super) fn size(&mut self) -> Result<u64, String> {
        let word = self.word("a size such as `10MiB`")?;
        let units = [("MiB", 1024 * 1024), ("KiB", 1024), ("B", 1)];
        let (digits, unit) = units
            .iter()
            .find_map(|(name, unit)| Some((word.strip_suffix(name)?, *unit)))
            .unwrap_or((&word, 1));
        digits
            .parse::<u64>()
            .ok()
            .and_then(|count| count.checked_mul(unit))
            .filter(|bytes| *bytes <= MAX_BYTES)
            .ok_or_else(|| {
                format!(
                    "`{}`: `{word}` is not a size up to 64MiB (`10MiB`, `64KiB`, `500B`)",
                    self.verb
                )
            })
    }

    /// A delay such as `20ms`, `2s`, `500us` or `1m`.
    pub(super) fn delay(&mut self) -> Result<Duration, String> {
        let word = self.word("a delay such as `20ms`")?;
        parse_delay(&word).ok_or_else(|| {
            format!(
                "`{}`: `{word}` is not a delay up to a day (`500us`, `20ms`, `2s`, `1m`)",
                self.verb
            )
        })
    }

    /// An optional `every DELAY`; without it there is no delay.
    pub(super) fn every(&mut self) -> Result<Duration, String> {
        if self.keyword("every") {
            self.delay()
        } else {
            Ok(Duration::ZERO)
        }
    }

    /// The next `key=value` word, if there is one.
    pub(super) fn pair(&mut self) -> Result<Option<(String, String)>, String> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let word = self.word("a pair such as `in=10`")?;
        match word.split_once('=') {
            Some((key, value)) => Ok(Some((key.to_owned(), value.to_owned()))),
            None => Err(format!(
                "`{}`: `{word}` is not a pair such as `in=10`",
                self.verb
            )),
        }
    }

    /// Takes the next word if it is a pair such as `key=value`.
    pub(super) fn next_pair(&mut self) -> Option<(String, String)> {
        let Some(Token::Word(word)) = self.rest.front() else {
            return None;
        };
        let (key, value) = word.split_once('=')?;
        let pair = (key.to_owned(), value.to_owned());
        self.rest.pop_front();
        Some(pair)
    }

    /// Whether nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Explains what stands where something else should.
    pub(super) fn wrong(&self, wanted: &str) -> String {
        self.mismatch(wanted, self.rest.front().cloned())
    }

    fn mismatch(&self, wanted: &str, found: Option<Token>) -> String {
        let verb = &self.verb;
        match found {
            Some(token) => format!("`{verb}` wants {wanted}, not {}", token.describe()),
            None => format!("`{verb}` wants {wanted}"),
        }
    }
}

fn parse_delay(word: &str) -> Option<Duration> {
    let units = [
        ("us", 1),
        ("ms", 1_000),
        ("s", 1_000_000),
        ("m", 60_000_000),
    ];
    let (digits, unit) = units
        .iter()
        .find_map(|(name, unit)| Some((word.strip_suffix(name)?, *unit)))?;
    let micros = digits.parse::<u64>().ok()?.checked_mul(unit)?;
    Some(Duration::from_micros(micros)).filter(|delay| *delay <= MAX_DELAY)
}

/// A word at the start of `rest`, and what follows it. The value of a pair may be quoted.
fn word(rest: &str) -> Result<(Token, &str), String> {
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let Some(equals) = rest[..end].find("=\"") else {
        return Ok((Token::Word(rest[..end].to_owned()), &rest[end..]));
    };
    let (key, value) = rest.split_at(equals + 1);
    let (value, after) = text(value)?;
    Ok((Token::Word(format!("{key}{value}")), after))
}

/// A quoted text at the start of `rest`, and what follows it.
fn quoted(rest: &str) -> Result<(Token, &str), String> {
    let (text, after) = text(rest)?;
    Ok((Token::Text(text), after))
}

/// What a quoted text at the start of `rest` says, and what follows it. The escapes are JSON's.
fn text(rest: &str) -> Result<(String, &str), String> {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => {
                let (text, after) = rest.split_at(at + 1);
                return match serde_json::from_str(text) {
                    Ok(text) => Ok((text, after)),
                    Err(error) => Err(format!("the text {text} has a bad escape: {error}")),
                };
            }
            _ => {}
        }
    }
    Err(format!("the text {rest} has no closing quote"))
}

/// A JSON object at the start of `rest`, and what follows it.
fn json(rest: &str) -> Result<(Token, &str), String> {
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<serde_json::Value>();
    match values.next() {
        Some(Ok(_)) => {
            let (json, after) = rest.split_at(values.byte_offset());
            Ok((Token::Json(json.to_owned()), after))
        }
        Some(Err(error)) => Err(format!("`{rest}` is not a JSON object: {error}")),
        None => Err(format!("`{rest}` is not a JSON object")),
    }
}
