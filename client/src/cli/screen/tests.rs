//! What reaches a terminal, and what a pipe.

use std::sync::{Arc, Mutex};

use super::*;

/// What was written, both outputs in one text when both are one terminal.
#[derive(Clone, Default)]
pub(crate) struct Paper(Arc<Mutex<Vec<u8>>>);

impl Paper {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One terminal for both outputs.
pub(crate) fn terminal(colour: bool) -> (Screen, Paper) {
    let paper = Paper::default();
    let side = || Side::new(Box::new(paper.clone()), true, colour);
    (Screen::new(side(), side()), paper)
}

/// A pipe for each output.
pub(crate) fn pipes() -> (Screen, Paper, Paper) {
    let (out, err) = (Paper::default(), Paper::default());
    let side = |paper: &Paper| Side::new(Box::new(paper.clone()), false, false);
    (Screen::new(side(&out), side(&err)), out, err)
}

fn answer(text: &str) -> Piece {
    Piece::Answer(text.to_owned())
}

fn aside(text: &str) -> Piece {
    Piece::Aside(text.to_owned())
}

#[test]
fn on_one_terminal_an_aside_does_not_run_into_the_answer() {
    let (mut screen, paper) = terminal(true);
    screen
        .put_all([answer("half a"), aside("* tool\n"), answer("done\n")])
        .unwrap();
    assert_eq!(paper.text(), "half a\n\x1b[2m* tool\n\x1b[0mdone\n");
}

#[test]
fn in_pipes_the_answer_stays_untouched_by_asides() {
    let (mut screen, out, err) = pipes();
    screen
        .put_all([answer("half "), aside("* tool\n"), answer("done")])
        .unwrap();
    screen.put(&Piece::Break).unwrap();
    assert_eq!(
        (out.text().as_str(), err.text().as_str()),
        ("half done\n", "* tool\n")
    );
}

#[test]
fn in_one_pipe_an_aside_does_not_run_into_the_answer() {
    let paper = Paper::default();
    let side = || Side::new(Box::new(paper.clone()), false, false);
    let mut screen = Screen::new(side(), side());
    screen.same = true;
    screen
        .put_all([answer("half"), aside("* tool\n"), answer("done")])
        .unwrap();
    assert_eq!(paper.text(), "half\n* tool\ndone");
    let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
    let again = one.try_clone().unwrap();
    assert!(are_same(one.as_fd(), again.as_fd()));
    assert!(!are_same(one.as_fd(), other.as_fd()));
}

#[test]
fn no_color_is_honoured() {
    let plain = |no_color, term| Looks::default().under(no_color, term).plain;
    assert!(!plain("", "xterm"));
    assert!(plain("1", "xterm"));
    assert!(plain("0", "xterm"));
    assert!(plain("", "dumb"));
    assert!(Looks::default().under("1", "xterm").colourless);
    let (mut screen, paper) = terminal(false);
    screen.put(&aside("plain\n")).unwrap();
    assert_eq!(paper.text(), "plain\n");
}

#[test]
fn prose_is_laid_out_for_a_person_and_left_alone_for_all_others() {
    let prose = Piece::Prose("# Two *words*\n".to_owned());
    let (mut screen, paper) = terminal(true);
    screen.put(&prose).unwrap();
    assert!(paper.text().contains("\x1b[1m"), "{:?}", paper.text());
    let (mut screen, out, _) = pipes();
    screen.put(&prose).unwrap();
    assert_eq!(out.text(), "# Two *words*\n");
    let (mut screen, paper) = terminal(false);
    screen.looks.plain = true;
    screen.put(&prose).unwrap();
    screen.status("waiting").unwrap();
    assert_eq!(paper.text(), "# Two *words*\n");
}

#[test]
fn a_quiet_screen_shows_answers_questions_and_failures_only() {
    let (mut screen, out, err) = pipes();
    screen.looks.quiet = true;
    screen
        .put_all([aside("* tool\n"), answer("done\n")])
        .unwrap();
    screen
        .put(&Piece::Question("? Go on?\n".to_owned()))
        .unwrap();
    screen.aside("settled").unwrap();
    screen.error("no").unwrap();
    assert_eq!(out.text(), "done\n");
    assert_eq!(err.text(), "? Go on?\nerror: no\n");
}

#[test]
fn what_a_model_writes_cannot_steer_the_terminal() {
    let (mut screen, paper) = terminal(false);
    screen.put(&answer("\x1b[2Jhi\n")).unwrap();
    assert_eq!(paper.text(), "\\e[2Jhi\n");
}

#[test]
fn what_a_model_writes_into_json_cannot_steer_the_terminal_and_reads_back() {
    let (mut screen, paper) = terminal(false);
    let text = "\x1b[2J\x7f\u{9b}31m\u{202e}\u{e0041} hi 👩";
    let object = serde_json::json!({ "text": text });
    screen.json(&object).unwrap();
    let line = paper.text();
    assert_eq!(
        line,
        "{\"text\":\"\\u001b[2J\\u007f\\u009b31m\\u202e\\udb40\\udc41 hi 👩\"}\n"
    );
    assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), object);
}

fn row(text: &str) -> String {
    format!("{WRAP_OFF}{text}{WRAP_ON}")
}

#[test]
fn a_foot_is_below_all_output_and_a_line_that_is_typed_takes_its_place() {
    let (mut screen, paper) = terminal(false);
    screen.merge();
    screen.foot(["docs: running", "> "]).unwrap();
    screen.foot(["docs: running", "> "]).unwrap();
    let mut shown = row("docs: running\n> ");
    assert_eq!(paper.text(), shown, "drawn once while nothing changes");
    screen.put(&answer("hi\n")).unwrap();
    shown += "\r\x1b[2K\x1b[1A\x1b[2Khi\n";
    assert_eq!(paper.text(), shown);
    screen.put(&answer("begun")).unwrap();
    screen.foot(["docs: idle", "> "]).unwrap();
    shown += "begun";
    assert_eq!(paper.text(), shown, "not within a line");
    screen.put(&Piece::Break).unwrap();
    screen.foot(["docs: idle", "> "]).unwrap();
    screen.entered("use tabs").unwrap();
    shown += "\n";
    shown += &row("docs: idle\n> ");
    shown += "\x1b[1A\x1b[2K\r\x1b[2K\x1b[1A\x1b[2K> use tabs\n";
    assert_eq!(paper.text(), shown);
    screen.foot(["docs: idle"]).unwrap();
    screen.foot([]).unwrap();
    shown += &row("docs: idle");
    assert_eq!(paper.text(), shown + "\r\x1b[2K", "erased");
}

#[test]
fn a_foot_is_for_people_who_want_it() {
    for looks in [
        Looks {
            plain: true,
            ..Looks::default()
        },
        Looks {
            quiet: true,
            ..Looks::default()
        },
    ] {
        let (mut screen, paper) = terminal(false);
        screen.looks = looks;
        screen.foot(["docs: running", "> "]).unwrap();
        assert_eq!(paper.text(), "");
    }
    let (mut screen, out, err) = pipes();
    screen.foot(["docs: running", "> "]).unwrap();
    assert_eq!(out.text() + &err.text(), "");
}

#[test]
fn a_status_is_replaced_by_what_follows_and_never_seen_in_a_pipe() {
    let (mut screen, paper) = terminal(false);
    screen.status("waiting").unwrap();
    screen.status("waiting more").unwrap();
    screen.line("answer").unwrap();
    assert_eq!(
        paper.text(),
        format!(
            "{}\r\x1b[2K{}\r\x1b[2Kanswer\n",
            row("waiting"),
            row("waiting more")
        )
    );
    let (mut screen, out, err) = pipes();
    screen.status("waiting").unwrap();
    assert_eq!(out.text() + &err.text(), "");
}
