//! Questions: shown with what can be answered, answered from anywhere, once.

use std::process::Stdio;
use std::sync::Arc;

use sessionplane::v1::{self, dispatch_request::Command as Given, session_event::Payload};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::Notify;
use tonic::{Code, Status};

use super::cli::{ran, reads, sends, sessionctl, told};
use super::fake::{Fake, Stage, Step, soon};
use super::wire;

pub(crate) fn id(ordinal: u32) -> String {
    format!("{}-q{ordinal}", wire::RUN)
}

fn asked(ordinal: u32, title: &str, shape: v1::question::Shape) -> v1::Interaction {
    v1::Interaction {
        id: id(ordinal),
        question: Some(v1::Question {
            title: title.to_owned(),
            details: "make deploy\n".to_owned(),
            shape: Some(shape),
            default_answer: None,
        }),
        asked_at: Some(wire::time(1_767_225_600)),
        deadline: Some(wire::time(1_767_225_720)),
        resolution: None,
    }
}

pub(crate) fn approval(ordinal: u32) -> v1::Interaction {
    let choice = |id: &str, label: &str| v1::Choice {
        id: id.to_owned(),
        label: label.to_owned(),
    };
    let choices = vec![choice("allow", "Allow it"), choice("deny", "Deny it")];
    let mut approval = asked(
        ordinal,
        "Deploy?",
        v1::question::Shape::Approval(v1::Choices { choices }),
    );
    let default = v1::interaction_answer::Answer::Choice("deny".to_owned());
    approval.question.as_mut().unwrap().default_answer = Some(v1::InteractionAnswer {
        answer: Some(default),
    });
    approval
}

pub(crate) fn secret(ordinal: u32) -> v1::Interaction {
    let shape = v1::question::Shape::Input(v1::InputShape { secret: true });
    asked(ordinal, "Password?", shape)
}

fn form(ordinal: u32) -> v1::Interaction {
    let field = |name: &str, kind: v1::FormFieldKind| v1::FormField {
        name: name.to_owned(),
        label: name.to_owned(),
        kind: kind.into(),
        choices: Vec::new(),
        required: true,
    };
    let fields = vec![
        field("zone", v1::FormFieldKind::Text),
        field("copies", v1::FormFieldKind::Number),
    ];
    let shape = v1::question::Shape::Form(v1::FormShape { fields });
    asked(ordinal, "Where to?", shape)
}

pub(crate) fn waiting(interactions: Vec<v1::Interaction>) -> v1::SessionState {
    v1::SessionState {
        interactions,
        ..wire::state(true)
    }
}

/// A session whose run waits for answers; `times` reads of its state.
async fn asking(interactions: Vec<v1::Interaction>, times: usize) -> Fake {
    let state = v1::GetStateResponse {
        state: Some(waiting(interactions)),
    };
    Fake::start(Stage {
        states: (0..times).map(|_| Ok(state.clone())).collect(),
        dispatches: (0..times).map(|_| Ok(wire::dispatch_done())).collect(),
        ..Stage::default()
    })
    .await
}

pub(crate) fn responses(fake: &Fake) -> Vec<(String, v1::interaction_answer::Answer)> {
    let response = |request: &v1::DispatchRequest| match request.command.clone() {
        Some(Given::Respond(respond)) => {
            let answer = respond.answer.unwrap().answer.unwrap();
            Some((respond.interaction_id, answer))
        }
        _ => None,
    };
    fake.look(|stage| stage.dispatched.iter().filter_map(response).collect())
}

#[tokio::test]
async fn c25_open_questions_are_listed_with_the_way_to_answer_them() {
    let mut over = approval(1);
    over.resolution = Some(v1::Resolution {
        time: Some(wire::time(1_767_225_601)),
        cause: v1::ResolutionCause::Expired.into(),
        ..v1::Resolution::default()
    });
    let fake = asking(vec![over, approval(2), form(3), secret(4)], 4).await;
    let (code, listed, err) = ran(&fake, &["answer", "docs"]).await;
    assert_eq!((code, err.as_str()), (0, ""));
    let (_, state, _) = ran(&fake, &["state", "docs"]).await;
    insta::assert_snapshot!(format!("{listed}---\n{state}"));
    let (_, out, _) = ran(&fake, &["--json", "answer", "docs"]).await;
    let ids: Vec<_> = out
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].clone())
        .collect();
    assert_eq!(ids, [id(2), id(3), id(4)]);
}

#[tokio::test]
async fn c25_an_answer_is_read_by_the_kind_of_its_question() {
    use v1::interaction_answer::Answer;
    let fake = asking(vec![approval(1), form(2)], 4).await;
    let (code, out, err) = ran(&fake, &["answer", &id(1), "allow"]).await;
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(out, format!("answered {}\n", id(1)));
    let (code, out, _) = ran(
        &fake,
        &["--json", "answer", &id(2), "zone=far north", "copies=2"],
    )
    .await;
    assert_eq!(code, 0);
    assert!(out.starts_with("{\"accepted\""), "{out}");
    let fields = [("zone", "far north"), ("copies", "2")];
    let fields = fields.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let fields = fields.into_iter().collect();
    assert_eq!(
        responses(&fake),
        [
            (id(1), Answer::Choice("allow".to_owned())),
            (id(2), Answer::Form(v1::FormAnswer { fields })),
        ]
    );
    let (code, _, err) = ran(&fake, &["answer", &id(1), "perhaps"]).await;
    assert_eq!(code, 2, "nothing was sent");
    assert!(
        err.contains("allow, deny") && err.contains("Deploy?"),
        "{err}"
    );
    let (code, _, err) = ran(&fake, &["answer", "docs", "allow"]).await;
    assert_eq!(code, 4, "two are open");
    assert!(
        err.contains(" docs q1 ") && err.contains(" docs q2 "),
        "{err}"
    );
    assert_eq!(responses(&fake).len(), 2);
}

#[tokio::test]
async fn c25_a_secret_comes_from_a_pipe_without_its_line_end() {
    let fake = asking(vec![secret(1)], 1).await;
    let mut command = sessionctl(&fake, &["answer", "docs", "--text-file", "-"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"hunter2\n").await.unwrap();
    drop(stdin);
    let (code, out, err) = told(soon(child.wait_with_output()).await.unwrap());
    assert_eq!(code, 0, "{err}");
    assert!(!(out + &err).contains("hunter2"));
    let text = v1::interaction_answer::Answer::Text("hunter2".to_owned());
    assert_eq!(responses(&fake), [(id(1), text)]);
}

#[tokio::test]
async fn c25_b31_a_question_that_is_gone_is_told_as_such() {
    let fake = asking(vec![approval(1)], 2).await;
    let no = wire::dispatch_no(v1::RejectionCode::NoSuchInteraction);
    fake.stage.lock().unwrap().dispatches = [Ok(no)].into();
    let (code, _, err) = ran(&fake, &["answer", &id(1), "allow"]).await;
    assert_eq!(code, 1, "somebody was faster");
    assert!(err.contains("no_such_interaction"), "{err}");
    assert!(err.contains("what is open: sessionctl answer"), "{err}");
    let (code, _, err) = ran(&fake, &["answer", &id(7), "allow"]).await;
    assert_eq!(code, 1, "{err}");
    assert!(
        err.contains(&format!("no question {} is open", id(7))),
        "{err}"
    );
}

/// A question that was answered under a request id.
fn answered(ordinal: u32, request_id: &str) -> v1::Interaction {
    let mut over = approval(ordinal);
    over.resolution = Some(v1::Resolution {
        time: Some(wire::time(1_767_225_601)),
        cause: v1::ResolutionCause::Answered.into(),
        answer: None,
        origin: Some(v1::Origin {
            request_id: request_id.to_owned(),
            ..wire::origin()
        }),
    });
    over
}

#[tokio::test]
async fn c03_c25_a_repeated_answer_goes_to_the_question_it_was_given_to() {
    let all = vec![answered(1, "r-0"), answered(2, "r-1"), approval(3)];
    let fake = asking(all, 3).await;
    for (target, id) in [("docs", "r-1"), ("docs", "r-2"), (&id(2), "r-1")] {
        let words = ["answer", target, "allow", "--request-id", id];
        let (code, out, err) = ran(&fake, &words).await;
        assert_eq!((code, err.as_str()), (0, ""), "{out}");
    }
    let asked: Vec<_> = responses(&fake).into_iter().map(|(id, _)| id).collect();
    assert_eq!(asked, [id(2), id(3), id(2)], "one that is new is answered");
}

#[tokio::test]
async fn c03_c25_a_repeated_answer_is_found_out_though_its_question_is_listed_no_more() {
    use v1::interaction_answer::Answer;
    let other = || {
        Err(wire::ours(
            Code::AlreadyExists,
            "REQUEST_ID_REUSED",
            "refused",
        ))
    };
    let words = ["answer", &id(1), "yes", "--request-id", "r-1"];
    let fake = asking(Vec::new(), 1).await;
    fake.stage.lock().unwrap().dispatches = [other(), other(), Ok(wire::dispatch_done())].into();
    let (code, out, err) = ran(&fake, &words).await;
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(out, format!("answered {}\n", id(1)));
    let (_, last) = responses(&fake).pop().unwrap();
    assert_eq!(last, Answer::Confirmed(true));
    for (answers, exit, told) in [
        ([other(), other(), other()], 3, "was taken for a command"),
        (
            [(); 3].map(|()| Ok(wire::dispatch_no(v1::RejectionCode::NoSuchInteraction))),
            1,
            "no_such_interaction",
        ),
    ] {
        let fake = asking(Vec::new(), 1).await;
        fake.stage.lock().unwrap().dispatches = answers.into();
        let (code, out, err) = ran(&fake, &words).await;
        assert_eq!((code, out.as_str()), (exit, ""), "{err}");
        assert!(err.contains(told), "{err}");
    }
    let fake = asking(Vec::new(), 1).await;
    let words = ["answer", "docs", "allow", "--request-id", "r-1"];
    let (code, _, err) = ran(&fake, &words).await;
    assert_eq!(code, 3, "whether it was answered nobody knows");
    assert!(err.contains("answer QUESTION --request-id r-1"), "{err}");
}

#[tokio::test]
async fn c02_an_answer_of_unknown_outcome_is_repeated_to_its_own_question() {
    let fake = asking(vec![approval(1)], 1).await;
    fake.stage.lock().unwrap().dispatches = (0..4)
        .map(|_| Err(Status::unavailable("a proxy")))
        .collect();
    let words = ["answer", "docs", "allow", "--request-id", "r-1"];
    let (code, _, err) = ran(&fake, &words).await;
    assert_eq!(code, 3, "{err}");
    let repeat = format!("sessionctl answer {} --request-id r-1", id(1));
    assert!(err.contains(&repeat), "{err}");
}

#[tokio::test]
async fn a_hint_holds_the_flags_that_say_which_server_is_meant() {
    let fake = asking(vec![approval(1), approval(2)], 2).await;
    let url = fake.url();
    let words = [
        "--address",
        &url,
        "--data-dir",
        "/no where",
        "answer",
        "docs",
    ];
    let mut command = sessionctl(&fake, &words);
    command.env("SESSIONPLANE_ADDRESS", "127.0.0.1:1");
    let (code, out, err) = told(soon(command.output()).await.unwrap());
    assert_eq!((code, err.as_str()), (0, ""));
    let way = format!(
        "answer: sessionctl --address {url} --data-dir '/no where' answer docs q1 allow|deny"
    );
    assert!(out.contains(&way), "{out}");
    let mut command = sessionctl(&fake, &["--json", "answer", "docs", "allow"]);
    command.env("SESSIONPLANE_DATA_DIR", "/nowhere");
    let (_, _, err) = told(soon(command.output()).await.unwrap());
    let way = "\n  sessionctl answer docs q2 ...";
    assert!(
        err.contains(way),
        "the environment is there the next time too: {err}"
    );
}

pub(crate) fn requested(seq: u64, interaction: v1::Interaction) -> v1::EventsResponse {
    let requested = v1::InteractionRequested {
        interaction: Some(interaction),
    };
    wire::event(seq, Payload::InteractionRequested(requested))
}

fn resolved(seq: u64, ordinal: u32) -> v1::EventsResponse {
    let answer = v1::interaction_answer::Answer::Choice("allow".to_owned());
    let resolved = v1::InteractionResolved {
        interaction_id: id(ordinal),
        resolution: Some(v1::Resolution {
            time: Some(wire::time(1_767_225_601)),
            cause: v1::ResolutionCause::Answered.into(),
            answer: Some(v1::InteractionAnswer {
                answer: Some(answer),
            }),
            origin: None,
        }),
    };
    wire::event(seq, Payload::InteractionResolved(resolved))
}

#[tokio::test]
async fn c25_a_question_is_answered_from_a_second_terminal_after_the_first_died() {
    let answered = Arc::new(Notify::new());
    let invoked = v1::invoke_event::Event::InteractionRequested(v1::InteractionRequested {
        interaction: Some(approval(1)),
    });
    let steps = vec![
        Step::Send(wire::accepted(false)),
        Step::Send(wire::invoked(invoked)),
        Step::Hang,
    ];
    let mut watched = sends([
        wire::subscribed(false, false),
        wire::snapshot_of(waiting(vec![approval(1)])),
    ]);
    watched.push(Step::Wait(answered.clone()));
    watched.extend(sends([resolved(6, 1)]));
    watched.push(Step::Hang);
    let state = v1::GetStateResponse {
        state: Some(waiting(vec![approval(1)])),
    };
    let fake = Fake::start(Stage {
        invokes: [Ok(steps)].into(),
        states: [Ok(state)].into(),
        events: [Ok(watched)].into(),
        dispatches: [Ok(wire::dispatch_done())].into(),
        on_dispatch: Some(answered),
        ..Stage::default()
    })
    .await;
    let mut first = sessionctl(&fake, &["invoke", "docs", "deploy"])
        .spawn()
        .unwrap();
    let mut err = first.stderr.take().unwrap();
    super::cli::reads_from(&mut err, "answer: sessionctl answer docs q1 allow|deny").await;
    first.kill().await.unwrap();
    let mut command = sessionctl(&fake, &["attach", "docs"]);
    let mut second = command.stdin(Stdio::piped()).spawn().unwrap();
    let shown = reads(&mut second, "answer: /answer q1 allow|deny").await;
    assert!(shown.contains("? Deploy?\n    make deploy\n"), "{shown}");
    assert!(shown.contains("within 2 min 0 s"), "{shown}");
    let mut stdin = second.stdin.take().unwrap();
    stdin.write_all(b"/answer allow\n").await.unwrap();
    reads(&mut second, "answered: allow").await;
    drop(stdin);
    let (code, _, err) = told(soon(second.wait_with_output()).await.unwrap());
    assert_eq!((code, err.as_str()), (0, ""));
    let allow = v1::interaction_answer::Answer::Choice("allow".to_owned());
    assert_eq!(responses(&fake), [(id(1), allow)]);
}
