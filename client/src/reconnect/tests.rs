//! The rules, over a script and a paused clock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures_core::Stream;
use futures_util::stream;
use sessionplane_core::domain::error::Outcome;

use super::*;

/// One step of a stream.
#[derive(Clone)]
enum Step {
    Tell(Progress),
    After(Duration),
    Fail(Reason),
    Hang,
}

/// One attempt: refused, never answered, or a stream.
enum Attempt {
    Refused(CallError),
    Mute,
    Stream(Vec<Step>),
}

struct Script {
    attempts: Mutex<VecDeque<Attempt>>,
    /// What every attempt was allowed to take.
    within: Mutex<Vec<Option<Duration>>>,
    persistence: Persistence,
    /// Set once a stream was dropped.
    dropped: Arc<AtomicBool>,
}

struct Guard(Arc<AtomicBool>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn played(steps: Vec<Step>, guard: Guard) -> impl Stream<Item = Result<Progress, CallError>> {
    stream::unfold(
        (steps.into_iter(), guard),
        |(mut steps, guard)| async move {
            loop {
                let item = match steps.next()? {
                    Step::Tell(progress) => Ok(progress),
                    Step::Fail(reason) => Err(CallError::stream_ended(reason, "lost")),
                    Step::Hang => std::future::pending().await,
                    Step::After(time) => {
                        tokio::time::sleep(time).await;
                        continue;
                    }
                };
                return Some((item, (steps, guard)));
            }
        },
    )
}

impl Resume for Script {
    type Wire = Progress;
    type Item = String;

    fn open(&self, within: Option<Duration>) -> Opening<Progress> {
        self.within.lock().unwrap().push(within);
        let attempt = self.attempts.lock().unwrap().pop_front();
        let guard = Guard(self.dropped.clone());
        Box::pin(async move {
            match attempt {
                Some(Attempt::Stream(steps)) => {
                    let stream: ResultStream<Progress> = Box::pin(played(steps, guard));
                    Ok(stream)
                }
                Some(Attempt::Refused(error)) => Err(error),
                Some(Attempt::Mute) => {
                    let within = within.unwrap_or(Duration::from_secs(30));
                    tokio::time::sleep(within.min(Duration::from_secs(30))).await;
                    Err(CallError::unknown(Reason::DeadlineExceeded, "no answer"))
                }
                None => Err(CallError::unknown(Reason::Transport, "gone")),
            }
        })
    }

    fn admit(
        &mut self,
        progress: Progress,
        out: &mut VecDeque<String>,
    ) -> Result<Progress, CallError> {
        out.push_back(format!("{progress:?}"));
        Ok(progress)
    }

    fn judge(&self, mut error: CallError) -> CallError {
        error.outcome = Outcome::StreamEnded;
        error
    }

    fn lost(&mut self, attempt: u32, _: Duration, _: CallError) -> String {
        format!("lost {attempt}")
    }

    fn persistence(&self) -> Persistence {
        self.persistence
    }
}

const FEW: Persistence = Persistence {
    backoff: Backoff {
        attempts: 3,
        first: Duration::from_millis(10),
        longest: Duration::from_millis(10),
    },
    unreachable: None,
    silence: None,
};

const TWO_MINUTES: Persistence = Persistence {
    backoff: Backoff::STREAMS,
    unreachable: Some(Duration::from_secs(120)),
    silence: None,
};

fn scripted(
    persistence: Persistence,
    attempts: impl IntoIterator<Item = Attempt>,
) -> Reconnecting<Script> {
    Reconnecting::new(Script {
        attempts: Mutex::new(attempts.into_iter().collect()),
        within: Mutex::default(),
        persistence,
        dropped: Arc::default(),
    })
}

async fn next(stream: &mut Reconnecting<Script>) -> Option<Result<String, CallError>> {
    std::future::poll_fn(|context| stream.poll_item(context)).await
}

/// All items, and the error at the end.
async fn told(stream: &mut Reconnecting<Script>) -> (Vec<String>, Option<CallError>) {
    let mut items = Vec::new();
    loop {
        match next(stream).await {
            Some(Ok(item)) => items.push(item),
            Some(Err(error)) => {
                assert!(next(stream).await.is_none(), "an error is the end");
                return (items, Some(error));
            }
            None => return (items, None),
        }
    }
}

fn tells(progress: Progress) -> Attempt {
    Attempt::Stream(vec![Step::Tell(progress), Step::Fail(Reason::Transport)])
}

#[tokio::test(start_paused = true)]
async fn failures_in_a_row_are_counted_until_something_new_comes() {
    let all = [
        tells(Progress::Same),
        tells(Progress::Further),
        tells(Progress::Same),
        tells(Progress::Same),
        tells(Progress::Further),
    ];
    let (items, error) = told(&mut scripted(FEW, all)).await;
    let expected = "Same, lost 1, Further, lost 1, Same, lost 2, Same";
    assert_eq!(items.join(", "), expected);
    assert_eq!(error.map(|error| error.reason), Some(Reason::Transport));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_lasted_makes_the_next_failure_the_first() {
    let lasts = || {
        Attempt::Stream(vec![
            Step::Tell(Progress::Same),
            Step::After(GOOD_CONNECTION),
            Step::Fail(Reason::Transport),
        ])
    };
    let (items, _) = told(&mut scripted(FEW, [lasts(), lasts(), lasts(), lasts()])).await;
    let losses: Vec<_> = items.iter().filter(|item| *item != "Same").collect();
    assert_eq!(losses, ["lost 1", "lost 1", "lost 1", "lost 1", "lost 2"]);
}

#[tokio::test(start_paused = true)]
async fn who_does_not_answer_is_given_up_when_the_time_is_up_and_no_later() {
    let mute = (0..50).map(|_| Attempt::Mute);
    let mut stream = scripted(
        TWO_MINUTES,
        [tells(Progress::Further)].into_iter().chain(mute),
    );
    assert_eq!(next(&mut stream).await, Some(Ok("Further".to_owned())));
    let begun = instant();
    let (_, error) = told(&mut stream).await;
    let took = (instant() - begun).as_secs();
    assert!((118..=120).contains(&took), "{took}");
    assert_eq!(error.unwrap().outcome, Outcome::StreamEnded);
    let within = stream.resume.within.lock().unwrap().clone();
    assert_eq!(within[0], None, "patience begins with the loss");
    let within: Vec<_> = within[1..].iter().map(|within| within.unwrap()).collect();
    assert!(within.is_sorted_by(|one, next| one > next), "{within:?}");
    assert!(*within.last().unwrap() <= Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn any_message_starts_the_time_anew() {
    let mute = |count| (0..count).map(|_| Attempt::Mute);
    let all = [tells(Progress::Further)]
        .into_iter()
        .chain(mute(3))
        .chain([tells(Progress::Same)])
        .chain(mute(50));
    let begun = instant();
    told(&mut scripted(TWO_MINUTES, all)).await;
    let took = (instant() - begun).as_secs();
    assert!((90 + 118..100 + 120).contains(&took), "{took}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_more_time_than_there_is_ends_it_at_once() {
    let asks = |seconds| {
        let error = CallError::refused(Reason::ServerDraining, "drains");
        Attempt::Refused(error.retry_after(Duration::from_secs(seconds)))
    };
    let begun = instant();
    let mut stream = scripted(TWO_MINUTES, [asks(20), asks(300)]);
    let (items, error) = told(&mut stream).await;
    assert_eq!(
        (items, (instant() - begun).as_secs()),
        (vec!["lost 1".to_owned()], 20)
    );
    assert_eq!(error.unwrap().reason, Reason::ServerDraining);
}

#[tokio::test(start_paused = true)]
async fn an_error_is_judged_before_it_is_asked_whether_it_ends_all() {
    let refused = CallError::refused(Reason::PermissionDenied, "no");
    let all = [tells(Progress::Further), Attempt::Refused(refused)];
    let (items, error) = told(&mut scripted(FEW, all)).await;
    assert_eq!(items, ["Further", "lost 1"]);
    let error = error.unwrap();
    assert_eq!(
        (error.reason, error.outcome),
        (Reason::PermissionDenied, Outcome::StreamEnded)
    );
}

#[tokio::test(start_paused = true)]
async fn c33_silence_counts_as_a_loss_and_every_message_ends_it() {
    let silence = Duration::from_secs(40);
    let persistence = Persistence {
        silence: Some(silence),
        ..FEW
    };
    let almost = Step::After(Duration::from_secs(39));
    let slow = Attempt::Stream(vec![
        almost.clone(),
        Step::Tell(Progress::Same),
        almost,
        Step::Tell(Progress::Same),
        Step::Hang,
    ]);
    let begun = instant();
    let mut stream = scripted(persistence, [slow]);
    for expected in ["Same", "Same", "lost 1"] {
        assert_eq!(next(&mut stream).await, Some(Ok(expected.to_owned())));
    }
    assert_eq!((instant() - begun).as_secs(), 39 + 39 + 40);
}

#[tokio::test(start_paused = true)]
async fn the_last_message_lets_go_of_the_stream() {
    let last = Attempt::Stream(vec![Step::Tell(Progress::Last), Step::Hang]);
    let mut stream = scripted(FEW, [last]);
    assert_eq!(next(&mut stream).await, Some(Ok("Last".to_owned())));
    assert!(stream.resume.dropped.load(Ordering::SeqCst));
    assert_eq!(next(&mut stream).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_without_a_word_is_taken_up_again() {
    let all = [Attempt::Stream(Vec::new()), tells(Progress::Last)];
    let (items, error) = told(&mut scripted(FEW, all)).await;
    assert_eq!((items.join(", ").as_str(), error), ("lost 1, Last", None));
}
