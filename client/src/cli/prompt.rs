//! Taking a text from an argument, a file or standard input, whole and within the limit.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sessionplane_core::domain::limits::MAX_TEXT_BYTES;

use super::args::TextSource;
use super::exit::Stop;

/// Reads the text that a command line gives.
///
/// # Errors
/// When it is empty, over the limit, not UTF-8 or cannot be read. Nothing was sent.
pub(crate) fn read(source: TextSource, stdin: impl Read) -> Result<String, Stop> {
    match source {
        TextSource {
            text_file: Some(path),
            ..
        } if path.as_os_str() != "-" => from_file(&path),
        TextSource {
            text: Some(text), ..
        } if text != "-" => checked("the text", text.into_bytes()),
        TextSource { .. } => from_reader("standard input", stdin),
    }
}

fn from_file(path: &Path) -> Result<String, Stop> {
    let name = path.display().to_string();
    match File::open(path) {
        Ok(file) => from_reader(&name, file),
        Err(error) => Err(unreadable(&name, &error)),
    }
}

fn from_reader(name: &str, reader: impl Read) -> Result<String, Stop> {
    let mut bytes = Vec::new();
    // One byte more than the limit tells that there is too much without reading it all.
    let most = MAX_TEXT_BYTES as u64 + 1;
    match reader.take(most).read_to_end(&mut bytes) {
        Ok(_) => checked(name, bytes),
        Err(error) => Err(unreadable(name, &error)),
    }
}

fn checked(name: &str, bytes: Vec<u8>) -> Result<String, Stop> {
    if bytes.len() > MAX_TEXT_BYTES {
        return Err(Stop::usage(format!(
            "{name} is longer than 1 MiB ({MAX_TEXT_BYTES} bytes), the limit of one text\n  \
             put it into a file that the agent can read, and name the file"
        )));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let byte = error.as_bytes().get(at).copied().unwrap_or_default();
        Stop::usage(format!(
            "{name} is not UTF-8: byte 0x{byte:02x} at offset {at}"
        ))
    })?;
    if text.is_empty() {
        return Err(Stop::usage(format!("{name} is empty")));
    }
    Ok(text)
}

fn unreadable(name: &str, error: &io::Error) -> Stop {
    Stop::usage(format!("cannot read {name}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::exit::Exit;

    fn stdin(bytes: &[u8]) -> Result<String, Stop> {
        let source = TextSource {
            text: Some("-".to_owned()),
            text_file: None,
        };
        read(source, bytes)
    }

    fn words(result: Result<String, Stop>) -> String {
        match result {
            Err(Stop::Failed { exit, words, .. }) => {
                assert_eq!(exit, Exit::Usage);
                words
            }
            other => panic!("not refused: {other:?}"),
        }
    }

    #[test]
    fn a_text_is_taken_as_it_is() {
        assert_eq!(
            stdin("zwei\nZeilen ✓\n".as_bytes()).unwrap(),
            "zwei\nZeilen ✓\n"
        );
        let argument = TextSource {
            text: Some("go on".to_owned()),
            text_file: None,
        };
        assert_eq!(read(argument, io::empty()).unwrap(), "go on");
    }

    #[test]
    fn a_dash_is_standard_input_in_both_places() {
        let source = TextSource {
            text: None,
            text_file: Some("-".into()),
        };
        assert_eq!(read(source, b"piped".as_slice()).unwrap(), "piped");
    }

    #[test]
    fn what_is_not_utf8_is_refused_with_its_offset() {
        let refused = words(stdin(b"abc\xff\xfe"));
        assert_eq!(
            refused,
            "standard input is not UTF-8: byte 0xff at offset 3"
        );
    }

    #[test]
    fn c60_the_limit_is_named() {
        assert!(stdin(&vec![b'a'; MAX_TEXT_BYTES]).is_ok());
        let refused = words(stdin(&vec![b'a'; MAX_TEXT_BYTES + 1]));
        assert!(refused.contains("1 MiB"), "{refused}");
    }

    #[test]
    fn an_empty_or_missing_file_is_named() {
        assert_eq!(words(stdin(b"")), "standard input is empty");
        let source = TextSource {
            text: None,
            text_file: Some("/nonexistent/prompt.txt".into()),
        };
        let refused = words(read(source, io::empty()));
        assert!(
            refused.starts_with("cannot read /nonexistent/prompt.txt: "),
            "{refused}"
        );
    }
}
