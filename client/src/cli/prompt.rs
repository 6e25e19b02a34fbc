//! Taking a text from an argument, a file or standard input, whole and within the limit.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sessionplane_core::domain::data::{MAX_DATA_BYTES, MAX_DATA_NAME_BYTES, MAX_DATA_PARTS};
use sessionplane_core::domain::given::{Given, GivenData};
use sessionplane_core::domain::limits::MAX_TEXT_BYTES;
use sessionplane_core::domain::text::head;

use super::args::{SaidArgs, TextSource};
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

/// What a command line says to an agent. Only an argument is an instruction: what comes from a file or a
/// pipe is data, whoever wrote it. And an argument is not stated to be typed: it looks the same where a
/// script, or the output of a command in the line, is in it.
///
/// # Errors
/// When it is over a limit or cannot be read. Nothing was sent.
pub(crate) fn said(source: SaidArgs, mut stdin: impl Read) -> Result<(String, Given), Stop> {
    let piped = source.text.as_deref() == Some("-");
    let files = source.text_file.into_iter();
    let sources: Vec<PathBuf> = piped
        .then(|| PathBuf::from("-"))
        .into_iter()
        .chain(files)
        .collect();
    if sources
        .iter()
        .filter(|path| path.as_os_str() == "-")
        .count()
        > 1
    {
        return Err(Stop::usage("standard input is given twice"));
    }
    if sources.len() > MAX_DATA_PARTS {
        return Err(Stop::usage(format!(
            "more than {MAX_DATA_PARTS} files; put several into one"
        )));
    }
    let mut data = Vec::new();
    let mut left = MAX_DATA_BYTES;
    for path in &sources {
        let part = if path.as_os_str() == "-" {
            part("standard input", &mut stdin, left)?
        } else {
            let name = path.display().to_string();
            let file = File::open(path).map_err(|error| unreadable(&name, &error))?;
            part(&name, file, left)?
        };
        left -= part.content.len();
        data.push(part);
    }
    let text = source.text.filter(|_| !piped).unwrap_or_default();
    if data.is_empty() || !text.is_empty() {
        checked("the text", text.clone().into_bytes())?;
    }
    let given = Given {
        data: data.into(),
        ..Given::default()
    };
    Ok((text, given))
}

/// All of a file as a part of data, at most `left` bytes.
fn part(path: &str, reader: impl Read, left: usize) -> Result<GivenData, Stop> {
    let mut content = Vec::new();
    let most = left as u64 + 1;
    let read = reader.take(most).read_to_end(&mut content);
    read.map_err(|error| unreadable(path, &error))?;
    if content.len() > left {
        return Err(Stop::usage(format!(
            "{path} makes more than 2 MiB of data ({MAX_DATA_BYTES} bytes), the limit of one call\n  \
             give the part that matters, for example: tail -c 1M {path}"
        )));
    }
    if content.is_empty() {
        return Err(Stop::usage(format!("{path} is empty")));
    }
    let is_text = std::str::from_utf8(&content).is_ok();
    let name = path.rsplit('/').next().unwrap_or(path);
    Ok(GivenData {
        name: head(name, MAX_DATA_NAME_BYTES).into(),
        media_type: if is_text { "text/plain" } else { "" }.into(),
        content: content.into(),
    })
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

    fn saying(text: Option<&str>, files: &[&Path]) -> SaidArgs {
        SaidArgs {
            text: text.map(str::to_owned),
            text_file: files.iter().map(|path| (*path).to_owned()).collect(),
        }
    }

    #[test]
    fn c57_what_is_piped_or_read_from_a_file_is_data_below_the_argument() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("build.log");
        std::fs::write(&log, b"error\xff\n").unwrap();
        let source = saying(Some("the build broke"), &[&log, Path::new("-")]);
        let (text, given) = said(source, b"piped".as_slice()).unwrap();
        assert_eq!(text, "the build broke");
        assert!(!given.typed, "an argument may be a script's");
        let parts = given.data.iter();
        let parts: Vec<_> = parts
            .map(|part| (&*part.name, &*part.media_type, &*part.content))
            .collect();
        let expected: [(&str, &str, &[u8]); 2] = [
            ("build.log", "", b"error\xff\n"),
            ("standard input", "text/plain", b"piped"),
        ];
        assert_eq!(parts, expected);
        let (text, given) = said(saying(Some("-"), &[]), b"piped".as_slice()).unwrap();
        assert_eq!((text.as_str(), given.data.len()), ("", 1));
        let (text, given) = said(saying(Some("go on"), &[]), io::empty()).unwrap();
        assert_eq!((text.as_str(), given), ("go on", Given::default()));
    }

    #[test]
    fn c60_the_limit_of_data_is_named_with_a_way_out() {
        let much = vec![b'x'; MAX_DATA_BYTES + 1];
        let refused = |source, stdin: &[u8]| match said(source, stdin) {
            Err(Stop::Failed { words, .. }) => words,
            other => panic!("not refused: {other:?}"),
        };
        let told = refused(saying(Some("-"), &[]), &much);
        assert!(told.contains("2 MiB") && told.contains("tail -c"), "{told}");
        let told = refused(saying(Some("-"), &[Path::new("-")]), b"x");
        assert_eq!(told, "standard input is given twice");
        assert_eq!(
            refused(saying(Some("-"), &[]), b""),
            "standard input is empty"
        );
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
