//! What Sessionplane promises its callers, rule by rule, as functions over [`world::Worlds`]: any
//! world that reaches a server through the contract's two traits runs the same suite.
//!
//! Each function is named after its rule and makes a world of its own, so all of them run side by
//! side. Time is real; every wait is for an event and has a deadline.

#[path = "contract/answers.rs"]
pub(crate) mod answers;
#[path = "contract/bindings.rs"]
pub(crate) mod bindings;
#[path = "contract/creation.rs"]
pub(crate) mod creation;
#[path = "contract/desk.rs"]
pub(crate) mod desk;
#[path = "contract/invokes.rs"]
pub(crate) mod invokes;
#[path = "contract/joins.rs"]
pub(crate) mod joins;
#[path = "contract/order.rs"]
pub(crate) mod order;
#[path = "contract/run.rs"]
pub(crate) mod run;
#[path = "contract/watch.rs"]
pub(crate) mod watch;
#[path = "contract/world.rs"]
pub(crate) mod world;

/// Makes one test of each function of the suite, for the worlds that an expression makes.
#[macro_export]
macro_rules! contract_conformance {
    ($name:ident, $worlds:expr) => {
        mod $name {
            use super::*;
            $crate::contract_conformance! { @tests $worlds,
                answers: c01_busy_failed_aborted_and_rejected_are_answers,
                    c01_refusals_name_the_field_the_limit_and_the_way_out,
                    c01_a_text_of_exactly_the_limit_is_taken,
                    c02_what_is_refused_did_nothing_and_its_id_is_free,
                    c17_accepted_never_means_that_the_run_succeeded,
                    c17_rejected_means_that_nothing_was_queued,
                    c18_each_code_is_told_where_it_belongs,
                    c26_what_the_capabilities_lack_is_refused_first,
                    c05_a_missing_agent_fails_the_run_not_the_call;
                bindings: c03_only_an_acceptance_binds, c03_an_id_with_another_payload_is_refused,
                    c03_concurrent_repeats_of_one_dispatch_queue_once,
                    c03_b22_a_binding_survives_a_restart, c03_ids_of_two_tenants_are_apart,
                    c03_a_rejection_is_judged_afresh_each_time;
                order: c04_an_unknown_session_is_told_before_the_payload,
                    c04_the_capability_is_judged_before_payload_and_run,
                    c04_the_payload_is_judged_before_the_run, c04_hidden_is_unknown_byte_for_byte;
                invokes: c05_there_is_one_terminal_and_nothing_after_it,
                    c06_an_observer_at_the_accepted_position_misses_nothing,
                    c07_a_busy_session_answers_in_one_event_unseen,
                    c07_of_64_concurrent_invokes_one_is_accepted,
                    c08_the_stream_is_a_projection_of_the_events,
                    c08_thinking_is_never_folded_into_text,
                    c11_after_accepted_the_prompt_is_durable,
                    c11_concurrent_calls_with_one_id_join_one_run;
                creation: c14_an_invoke_creates_by_name_and_by_key,
                    c14_must_exist_and_ids_create_nothing, c14_nothing_but_an_invoke_creates,
                    c14_an_unknown_agent_creates_nothing,
                    c14_concurrent_creations_of_a_name_make_one_session;
                joins: c12_a_repeat_joins_the_live_run_from_its_start,
                    c12_b22_a_repeat_after_a_restart_starts_no_second_run,
                    c12_32_concurrent_calls_with_one_id_give_one_run,
                    c12_a_joiner_is_told_how_much_it_missed;
            }
        }
    };
    (@tests $worlds:expr, $($group:ident: $($test:ident),+;)+) => {
        $($(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                $crate::suite::$group::$test(&$worlds).await;
            }
        )+)+
    };
}
