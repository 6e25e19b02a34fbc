//! What refusals say.

use sessionplane_core::domain::ids::SessionName;

use super::*;

fn docs() -> SessionRef {
    SessionRef::Name(SessionName::parse("docs").unwrap())
}

fn said(error: &CallError, effect: Effect) -> String {
    let setting = Setting {
        address: "http://127.0.0.1:50051".to_owned(),
        token: "the token came from SESSIONPLANE_TOKEN",
        request_id: "01K0000000000000000000000A",
        patience: Duration::from_secs(15),
    };
    let session = docs();
    let about = match error.reason {
        Reason::NoSuchRun => About::Run("01K0000000000000000000000B".parse().unwrap()),
        _ => About::Session(&session),
    };
    words(error, about, effect, &setting)
}

#[test]
fn refusals_say_what_to_do_next() {
    let refused = CallError::refused;
    let errors = [
        (CallError::no_such_session(), Effect::Reads),
        (
            CallError::no_such_session().about_field("parent_session"),
            Effect::Writes,
        ),
        (
            CallError::unknown(Reason::Transport, "connection reset"),
            Effect::Reads,
        ),
        (
            refused(Reason::Transport, "Connection refused"),
            Effect::Writes,
        ),
        (
            CallError::unknown(
                Reason::Unimplemented,
                "something else than a Sessionplane server answers there: HTTP 404",
            ),
            Effect::Reads,
        ),
        (refused(Reason::NoSuchRun, "no such run"), Effect::Reads),
        (
            CallError::unknown(Reason::DeadlineExceeded, "no answer within 30s"),
            Effect::Writes,
        ),
        (
            refused(Reason::Unauthenticated, "no credential"),
            Effect::Reads,
        ),
        (
            refused(Reason::Overloaded, "too much is waiting")
                .retry_after(Duration::from_millis(1500)),
            Effect::Writes,
        ),
        (
            refused(
                Reason::RequestIdReused,
                "the request id was used with another text",
            ),
            Effect::Writes,
        ),
        (
            CallError::too_large("prompt.text", 2_000_000, 1_048_576, "use a file"),
            Effect::Writes,
        ),
    ];
    let all: Vec<_> = errors
        .iter()
        .map(|(error, effect)| format!("error: {}\n", said(error, *effect)))
        .collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn c03_a_command_is_repeated_by_its_id_and_its_very_text() {
    let id = RequestId::parse("r-1").unwrap();
    let said = |command| repeat(&docs(), &command, &id);
    let steer = |text: &str| Command::Steer { text: text.into() };
    assert_eq!(
        said(steer("it's late")),
        r"sessionctl steer docs --request-id r-1 'it'\''s late'"
    );
    let text = "then".into();
    assert_eq!(
        said(Command::FollowUp { text }),
        "sessionctl follow-up docs --request-id r-1 then"
    );
    assert_eq!(
        said(Command::Abort),
        "sessionctl abort docs --request-id r-1"
    );
    for text in ["-", "a\u{1b}b", &"x".repeat(1000)] {
        assert!(said(steer(text)).ends_with(" '... the same text ...'"));
    }
}

#[test]
fn a_busy_session_shows_the_ways_in() {
    insta::assert_snapshot!(busy(&docs(), "run 01K0000000000000000000000B is active"));
    let compacting = "the session is being compacted; wait until it is over, or abort it";
    let told = busy(&docs(), compacting);
    assert!(told.contains("sessionctl wait docs"), "{told}");
    assert!(
        !told.contains("steer") && !told.contains("follow-up"),
        "{told}"
    );
}

#[test]
fn a_rejection_shows_its_code_and_the_way_on() {
    let rejection = |code| Rejection {
        code,
        message: "nothing is running; start a run with invoke".to_owned(),
        retryable: false,
    };
    let said = [
        (CommandKind::Steer, RejectionCode::NoActiveRun),
        (CommandKind::Abort, RejectionCode::NoActiveRun),
        (CommandKind::Abort, RejectionCode::RunCommandFailed),
        (CommandKind::FollowUp, RejectionCode::UnsupportedCapability),
        (CommandKind::Steer, RejectionCode::InvalidCommand),
    ];
    let said = said.map(|(kind, code)| rejected(&docs(), kind, &rejection(code)));
    insta::assert_snapshot!(said.join("\n"));
}
