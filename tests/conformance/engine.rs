//! What every engine must do, as functions over a [`Subject`]: a factory, what it declares, how to
//! bring it into each situation, and the promises that it makes.
//!
//! Time is virtual: every function runs on tokio's paused clock, and every wait has a deadline on
//! it. But for an engine in another process, whose time nobody can hold: it is waited for in real time,
//! for as long as its [`Patience`] says. An engine that breaks habits on purpose runs the same functions with the promises that its
//! options leave.

#[path = "engine/aborts.rs"]
pub(crate) mod aborts;
#[path = "engine/answers.rs"]
pub(crate) mod answers;
#[path = "engine/asks.rs"]
pub(crate) mod asks;
#[path = "engine/bench.rs"]
pub(crate) mod bench;
#[path = "engine/claims.rs"]
pub(crate) mod claims;
#[path = "engine/compactions.rs"]
pub(crate) mod compactions;
#[path = "engine/endings.rs"]
pub(crate) mod endings;
#[path = "engine/inputs.rs"]
pub(crate) mod inputs;

use std::sync::Arc;
use std::time::Duration;

use sessionplane_core::domain::capabilities::Capabilities;
use sessionplane_core::ports::clock::{Clock, Spawner};
use sessionplane_core::ports::engine::Engine;

/// Makes the engine under test on a clock and a spawner of the suite's.
pub(crate) type Factory = Box<dyn Fn(Arc<dyn Clock>, Arc<dyn Spawner>) -> Arc<dyn Engine>>;

/// An engine under test.
pub(crate) struct Subject {
    /// Makes it, and holds what must outlive it.
    pub(crate) factory: Factory,
    /// What it must say of itself.
    pub(crate) capabilities: Capabilities,
    /// How to bring it into each situation.
    pub(crate) prompts: Prompts,
    /// What may be relied on.
    pub(crate) promises: Promises,
    /// How long it is waited for.
    pub(crate) patience: Patience,
}

/// How long an engine is waited for where no event says that it has nothing more to say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// An engine at rest is listened to for so long.
    pub(crate) rest: Duration,
    /// One that can do nothing more, because nobody reads it, has come to that after so long.
    pub(crate) settle: Duration,
}

impl Patience {
    /// Time passes once there is nothing else to do.
    pub(crate) const VIRTUAL: Self = Self {
        rest: Duration::from_secs(30),
        settle: Duration::from_secs(120),
    };
    /// It takes its time.
    #[allow(dead_code, reason = "not every suite has an engine in another process")]
    pub(crate) const REAL: Self = Self {
        rest: Duration::from_millis(300),
        settle: Duration::from_millis(500),
    };
}

/// Prompts that bring an engine into a situation. `None`: it cannot be brought there.
#[derive(Default)]
pub(crate) struct Prompts {
    /// It answers with text and comes to its own end.
    pub(crate) plain: &'static str,
    /// It says text for a while.
    pub(crate) long_text: Option<&'static str>,
    /// It says more than its connection keeps while nobody reads.
    pub(crate) overflows: Option<&'static str>,
    /// It has a tool give back more than one event may carry.
    pub(crate) too_long: Option<&'static str>,
    /// It uses a tool for a while.
    pub(crate) long_tool: Option<&'static str>,
    /// It schedules a retry and waits.
    pub(crate) retry: Option<&'static str>,
    /// It says nothing and does not end.
    pub(crate) hang: Option<&'static str>,
    /// It goes away in the middle.
    pub(crate) crash: Option<&'static str>,
    /// It passes three boundaries at which it may be shown a steer.
    pub(crate) steerable: Option<&'static str>,
    /// It waits until it is steered.
    pub(crate) awaits_steer: Option<&'static str>,
    /// A steer.
    pub(crate) steer: &'static str,
    /// It asks, and waits for the answer.
    pub(crate) asks: Option<&'static str>,
    /// It asks three questions before it waits, and says the name of each when it is answered.
    pub(crate) asks_three: Option<&'static str>,
    /// It takes a question back that nobody answers, and comes to its own end.
    pub(crate) withdraws: Option<&'static str>,
    /// It says what it knows of the conversation.
    pub(crate) recalls: Option<&'static str>,
    /// It says with which model and level it was opened.
    pub(crate) settings: Option<&'static str>,
    /// Instructions with which a compaction fails.
    pub(crate) compaction_fails: Option<&'static str>,
    /// Instructions with which it does not end.
    pub(crate) compaction_hangs: Option<&'static str>,
    /// Instructions with which the engine goes away.
    pub(crate) compaction_crashes: Option<&'static str>,
}

/// What may be relied on. A tame engine promises all of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Promises {
    /// It says each thing once, in order, about things it named before, and nothing at rest.
    pub(crate) orderly: bool,
    /// It shows every input that it is given as a prompt.
    pub(crate) shows_follow_ups: bool,
    /// It stops, or is gone, so soon after an abort. `None`: perhaps never.
    pub(crate) stops_within: Option<Duration>,
    /// It never goes away by itself.
    pub(crate) lives: bool,
}

impl Promises {
    /// All of it.
    pub(crate) const ALL: Self = Self {
        orderly: true,
        shows_follow_ups: true,
        stops_within: Some(Duration::from_secs(1)),
        lives: true,
    };
}

/// Makes one test of each function of the suite, for the subject that an expression makes.
#[macro_export]
macro_rules! engine_conformance {
    ($name:ident, $subject:expr) => {
        $crate::engine_conformance! { @all $name, $subject, [tokio::test(start_paused = true)] }
    };
    ($name:ident, $subject:expr, in real time) => {
        $crate::engine_conformance! { @all $name, $subject, [tokio::test] }
    };
    (@all $name:ident, $subject:expr, $attribute:tt) => {
        mod $name {
            use super::*;
            $crate::engine_conformance! { @tests $subject, $attribute,
                answers: describes_itself, answers_and_rests, cuts_what_is_too_long, ids_are_unique_and_events_in_order,
                    whole_texts_are_the_deltas, a_slow_reader_loses_nothing,
                    sessions_do_not_mix, reopens_with_a_transcript;
                inputs: steers_are_shown_once_and_in_order, a_late_steer_wedges_nothing,
                    a_follow_up_is_shown_first;
                aborts: before_the_first_output, in_the_middle_of_text, in_the_middle_of_a_tool,
                    in_a_retry_delay, while_hanging, with_a_steer_handed_over,
                    at_a_boundary_that_waits_for_a_steer, with_a_follow_up_that_is_not_shown_yet,
                    while_nobody_reads, at_rest, c21_while_a_question_is_open;
                asks: c25_it_is_told_the_answer, c25_it_is_told_that_nobody_answers,
                    c25_several_questions_are_answered_in_another_order,
                    c25_a_withdrawn_question_takes_no_answer;
                compactions: c22_a_compaction_yields_a_summary,
                    c22_a_failed_compaction_loses_nothing,
                    c22_a_crashed_compaction_loses_nothing,
                    c21_c22_an_aborted_compaction_loses_nothing,
                    c21_an_abort_that_crosses_with_a_summary_stops_nothing_later;
                claims: c26_it_does_nothing_that_it_does_not_claim,
                    c26_what_it_claims_of_models_is_in_its_list,
                    c23_it_uses_the_model_and_the_level_that_it_was_given;
                endings: a_gone_engine_takes_no_command, an_unread_engine_goes,
                    dropping_the_commands_ends_it_at_rest, dropping_the_commands_ends_it_at_work;
            }
        }
    };
    (@tests $subject:expr, $attribute:tt, $($group:ident: $($test:ident),+;)+) => {
        $($($crate::engine_conformance! { @test $subject, $attribute, $group, $test })+)+
    };
    (@test $subject:expr, [$($attribute:tt)+], $group:ident, $test:ident) => {
        #[$($attribute)+]
        async fn $test() {
            $crate::suite::$group::$test($subject).await;
        }
    };
}
