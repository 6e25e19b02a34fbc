//! What refusals say.

use super::*;
use sessionplane_core::domain::given::Given;

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
    let steer = |text: &str| Command::Steer {
        text: text.into(),
        given: Given::default(),
    };
    assert_eq!(
        said(steer("it's late")),
        r"sessionctl steer docs --request-id r-1 'it'\''s late'"
    );
    assert_eq!(
        said(steer("--all of it")),
        "sessionctl steer docs --request-id r-1 -- '--all of it'"
    );
    let instructions = Some("-x".into());
    assert_eq!(
        said(Command::Compact { instructions }),
        "sessionctl compact docs --request-id r-1 --instructions=-x"
    );
    let text = "then".into();
    assert_eq!(
        said(Command::FollowUp {
            text,
            given: Given::default(),
        }),
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

#[test]
fn c15_an_invoke_that_began_nothing_shows_the_way_on() {
    let said = |failure| not_begun(&docs(), failure, "why");
    let words = "session_paused: why\n  let it go on: sessionctl resume docs";
    assert_eq!(said("session_paused"), words);
    let gone = "the directory \"x\" of workspace demo is not there; put it back, or move the session \
                with ChangeDirectory";
    assert_eq!(
        not_begun(&docs(), "directory_unavailable", gone),
        "directory_unavailable: the directory \"x\" of workspace demo is not there\n  \
         put it back, or move it: sessionctl cd docs DIR"
    );
    let unknown = |known: &str| {
        let told = format!(
            "no workspace demo is configured; configured are: {known}; put it back, or move the \
             session with ChangeDirectory"
        );
        not_begun(&docs(), "directory_unavailable", &told)
    };
    assert_eq!(
        unknown("tree"),
        "directory_unavailable: no workspace demo is configured; configured are: tree\n  \
         move it: sessionctl cd docs DIR --workspace tree"
    );
    assert!(unknown("a, b").ends_with("cd docs DIR --workspace WORKSPACE"));
    assert!(said("session_busy").contains("sessionctl attach docs"));
    assert_eq!(said("odd"), "odd: why");
}

#[test]
fn a_prompt_for_a_session_that_is_not_there_shows_how_to_create_it() {
    let said = |session: &SessionRef, error: CallError| {
        let stop = Stop::of(error, "none".to_owned());
        match with_creation(stop, session) {
            Stop::Failed { words, .. } => words,
            Stop::Unread => String::new(),
        }
    };
    let none = CallError::no_such_session;
    assert_eq!(
        said(&docs(), none()),
        "none\n  create it:     sessionctl invoke --new docs \"...\""
    );
    let key = SessionRef::ExternalKey("ci 7".parse().unwrap());
    assert_eq!(
        said(&key, none()),
        "none\n  create it:     sessionctl new --key 'ci 7'"
    );
    assert_eq!(said(&docs(), none().about_field("parent_session")), "none");
}

#[test]
fn near_names_stand_between_what_happened_and_what_to_do() {
    let near = ["docs", "dogs"].map(|name| name.parse().unwrap());
    let words = with_near_names("no such\n  create it".to_owned(), &near);
    assert_eq!(words, "no such\n  did you mean docs, or dogs?\n  create it");
    assert_eq!(with_near_names("no such".to_owned(), &[]), "no such");
}

#[test]
fn c53_a_change_that_was_held_up_shows_what_holds_it() {
    let rejection = |code| Rejection {
        code,
        message: "a run is active".to_owned(),
        retryable: true,
    };
    let busy = held(&docs(), &rejection(RejectionCode::SessionBusy));
    assert!(busy.contains("sessionctl wait docs") && busy.contains("sessionctl abort docs"));
    let other = held(&docs(), &rejection(RejectionCode::BoundaryCommandFailed));
    assert!(
        other.ends_with("the same command may succeed later"),
        "{other}"
    );
}
