//! What Sessionplane promises its callers, rule by rule, as functions over [`world::Worlds`]: any
//! world that reaches a server through the contract's two traits runs the same suite.
//!
//! Each function is named after its rule and makes a world of its own, so all of them run side by
//! side. Time is real; every wait is for an event and has a deadline.

#[path = "contract/aborts.rs"]
pub(crate) mod aborts;
#[path = "contract/answers.rs"]
pub(crate) mod answers;
#[path = "contract/bindings.rs"]
pub(crate) mod bindings;
#[path = "contract/capabilities.rs"]
pub(crate) mod capabilities;
#[path = "contract/compaction.rs"]
pub(crate) mod compaction;
#[path = "contract/creation.rs"]
pub(crate) mod creation;
#[path = "contract/desk.rs"]
pub(crate) mod desk;
#[path = "contract/disconnects.rs"]
pub(crate) mod disconnects;
#[path = "contract/entries.rs"]
pub(crate) mod entries;
#[path = "contract/events.rs"]
pub(crate) mod events;
#[path = "contract/fates.rs"]
pub(crate) mod fates;
#[path = "contract/filters.rs"]
pub(crate) mod filters;
#[path = "contract/fleet.rs"]
pub(crate) mod fleet;
#[path = "contract/hands.rs"]
pub(crate) mod hands;
#[path = "contract/hostile.rs"]
pub(crate) mod hostile;
#[path = "contract/interactions.rs"]
pub(crate) mod interactions;
#[path = "contract/invokes.rs"]
pub(crate) mod invokes;
#[path = "contract/joins.rs"]
pub(crate) mod joins;
#[path = "contract/keeping.rs"]
pub(crate) mod keeping;
#[path = "contract/lineage.rs"]
pub(crate) mod lineage;
#[path = "contract/navigation.rs"]
pub(crate) mod navigation;
#[path = "contract/observing.rs"]
pub(crate) mod observing;
#[path = "contract/order.rs"]
pub(crate) mod order;
#[path = "contract/overflow.rs"]
pub(crate) mod overflow;
#[path = "contract/restarts.rs"]
pub(crate) mod restarts;
#[path = "contract/resumes.rs"]
pub(crate) mod resumes;
#[path = "contract/run.rs"]
pub(crate) mod run;
#[path = "contract/runs.rs"]
pub(crate) mod runs;
#[path = "contract/settings.rs"]
pub(crate) mod settings;
#[path = "contract/settlement.rs"]
pub(crate) mod settlement;
#[path = "contract/state.rs"]
pub(crate) mod state;
#[path = "contract/steering.rs"]
pub(crate) mod steering;
#[path = "contract/unanswered.rs"]
pub(crate) mod unanswered;
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
                    c01_b38_a_text_of_exactly_the_limit_is_taken,
                    c02_what_is_refused_did_nothing_and_its_id_is_free,
                    c17_accepted_never_means_that_the_run_succeeded,
                    c17_rejected_means_that_nothing_was_queued,
                    c18_each_code_is_told_where_it_belongs,
                    c26_what_the_capabilities_lack_is_refused_first,
                    c05_a_missing_agent_fails_the_run_not_the_call,
                    c02_a_session_that_falls_asleep_loses_no_call;
                bindings: c03_a_repeat_returns_the_first_answer_with_its_present_fate,
                    c03_only_an_acceptance_binds, c03_an_id_with_another_payload_is_refused,
                    c03_concurrent_repeats_of_one_dispatch_queue_once,
                    c03_b22_a_binding_survives_a_restart, c03_ids_of_two_tenants_are_apart,
                    c03_a_rejection_is_judged_afresh_each_time;
                order: c04_an_unknown_session_is_told_before_the_payload,
                    c04_the_capability_is_judged_before_payload_and_run,
                    c04_the_payload_is_judged_before_the_run,
                    c04_a_bound_answer_is_compared_before_capability_and_payload,
                    c04_hidden_is_unknown_byte_for_byte;
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
                settlement: c09_an_abort_is_an_outcome_that_nothing_replays,
                    c10_the_window_spans_what_joined,
                    c10_an_unshown_input_does_not_hold_the_window_open,
                    c10_b06_the_terminal_comes_after_the_state_flipped,
                    c10_no_later_run_publishes_before_the_settlement,
                    c16_a_run_record_tells_everything,
                    c16_a_failure_is_kept_as_the_engine_told_it,
                    c07_c09_c36_an_agent_cannot_claim_our_codes,
                    c10_everything_of_the_run_is_told_before_its_settlement;
                joins: c12_a_repeat_joins_the_live_run_from_its_start,
                    c12_after_the_settlement_a_repeat_gets_the_recorded_terminal,
                    c12_b22_a_repeat_after_a_restart_starts_no_second_run,
                    c12_32_concurrent_calls_with_one_id_give_one_run,
                    c12_a_joiner_is_told_how_much_it_missed;
                disconnects: c13_b15_a_caller_that_vanishes_in_a_tool_wedges_nothing,
                    c13_cancel_with_an_id_waits_for_a_rejoin,
                    c13_cancel_with_an_id_is_aborted_after_its_grace,
                    c13_detach_outlives_its_callers, c13_a_detach_join_makes_the_run_detached,
                    c13_only_the_last_stream_counts,
                    c13_a_joiner_that_does_not_detach_changes_nothing,
                    c13_a_stream_that_the_server_ended_is_no_cancellation,
                    c13_without_a_rejoin_the_ended_stream_s_run_is_aborted;
                steering: c19_a_steer_reaches_the_model_after_the_tool,
                    c19_steers_go_one_at_a_time_and_first_come_first_served,
                    c19_follow_ups_come_at_the_end_in_order,
                    c19_what_waits_is_visible_in_state_and_events,
                    c19_accepted_delivered_and_completed_are_three_moments,
                    c19_an_expected_run_guards_against_a_later_one,
                    c19_a_full_queue_refuses_and_names_the_limit,
                    c19_c60_a_queue_is_bounded_in_bytes_too;
                fates: c20_a_failed_run_ends_its_inputs_as_failed,
                    c20_b18_an_agent_that_dies_leaves_a_trace_of_each_input,
                    c20_a_crash_ends_inputs_as_interrupted,
                    c20_b16_200_inputs_to_runs_that_settle_at_random,
                    c20_what_was_discarded_is_never_sent_again;
                aborts: c21_b14_abort_before_the_first_token, c21_b14_abort_in_the_middle_of_text,
                    c21_b14_abort_in_the_middle_of_a_tool, c21_b14_abort_in_a_retry_delay,
                    c21_b14_abort_while_hanging, c21_abort_ends_what_was_queued,
                    c21_abort_on_an_idle_session_finds_no_run,
                    c21_an_agent_that_hears_nothing_is_dropped_at_the_deadline,
                    c21_b12_an_abort_by_somebody_who_came_later,
                    c21_an_abort_that_races_with_the_end_settles_once;
                state: c27_b06_state_is_never_older_than_an_event_seen,
                    c27_b06_reads_in_the_instant_of_an_event_are_never_behind,
                    c27_state_is_never_idle_while_an_invoke_is_busy,
                    c27_state_is_running_from_the_acceptance_on,
                    c27_min_position_is_waited_for_or_refused, c27_usage_and_last_run_are_told,
                    c27_the_snapshot_and_the_events_fold_to_the_state;
                entries: c29_every_page_size_reads_the_same_conversation,
                    c29_an_unknown_cursor_is_a_full_backfill, c29_pages_are_bounded_by_bytes_too,
                    c29_a_page_size_over_the_limit_is_refused,
                    c29_the_leaf_is_among_the_entries_while_they_grow;
                events: c30_numbers_grow_by_one_and_are_the_same_for_all,
                    c30_b41_large_and_odd_output_is_told_in_bounded_events,
                    c30_progress_is_conflated_and_ends_with_the_newest,
                    c31_a_stream_begins_with_entries_and_a_snapshot,
                    c31_long_conversations_are_backfilled_in_pages,
                    c31_subscribe_then_invoke_misses_nothing,
                    c31_one_call_reconnects_after_a_restart,
                    c31_appends_that_race_with_subscriptions_are_told_once,
                    c33_a_heartbeat_carries_the_position_that_was_sent,
                    c34_an_entry_is_told_once_it_can_be_listed, c37_a_run_is_told_in_this_order,
                    c30_an_epoch_names_the_serving_incarnation;
                resumes: c32_b01_a_resumed_stream_has_every_event_once,
                    c32_a_place_that_is_gone_is_told_as_a_gap,
                    c35_b08_a_stalled_observer_is_cut_and_nobody_else,
                    c35_an_unread_invoke_stream_is_cut_and_can_rejoin;
                restarts: c15_any_server_serves_the_next_invoke,
                    c36_a_cut_run_is_interrupted_wherever_it_is_told,
                    c36_each_start_has_one_settlement,
                    c44_b27_no_session_is_stuck_busy_after_a_crash,
                    c44_b27_crashes_at_random_moments_lose_and_double_nothing;
                filters: c32_a_filter_leaves_out_what_is_not_wanted_and_nothing_else,
                    c32_b04_a_resumed_stream_carries_the_same_kinds_of_events,
                    c32_what_is_wanted_is_found_behind_thousands_that_are_not,
                    c33_an_observer_that_wants_nothing_of_a_busy_session_hears_how_far_it_came,
                    c31_c32_a_filtered_observer_comes_back_after_eviction_and_restart;
                observing: c33_a_quiet_stream_answers_within_50_ms;
                runs: c16_runs_are_listed_newest_first_by_pages_of_any_size,
                    c16_paging_returns_each_run_once_while_runs_are_added,
                    c16_a_bad_place_or_size_is_refused,
                    c16_everyone_who_waits_is_given_the_record,
                    c16_a_wait_sees_the_end_whatever_moment_it_begins,
                    c16_a_wait_ends_at_its_deadline_and_the_run_goes_on,
                    c16_runs_of_others_are_unknown,
                    c16_b27_a_wait_across_a_restart_finds_the_end;
                settings: c23_one_resolution_feeds_state_check_and_run,
                    c23_what_is_not_allowed_changes_nothing,
                    c23_overrides_survive_a_restart,
                    c22_boundary_verbs_are_busy_while_something_holds_the_session,
                    c22_boundary_verbs_create_no_session,
                    c22_c03_b22_a_repeat_applies_once,
                    c23_a_choice_is_told_and_kept_on_the_path,
                    c22_a_dormant_session_takes_a_choice,
                    c22_racing_choices_are_applied_one_after_another;
                navigation: c24_a_run_goes_on_from_where_the_leaf_was_moved,
                    c24_a_moved_leaf_survives_a_restart,
                    c24_settings_follow_the_active_path,
                    c24_to_where_it_is_it_writes_and_tells_nothing,
                    c24_an_entry_that_is_not_the_session_s_is_invalid,
                    c24_a_path_without_its_compaction_has_the_whole_past;
                compaction: c22_compact_accepts_fast_and_tells_its_outcome,
                    c22_c07_an_invoke_during_a_compaction_is_busy,
                    c21_b14_an_abort_ends_a_compaction,
                    c21_an_abort_that_races_with_a_compaction_ends_it_once,
                    c22_b50_a_failed_compaction_leaves_the_transcript_as_it_was,
                    c22_b50_a_killed_compaction_leaves_the_transcript_as_it_was,
                    c22_b50_kills_at_random_moments_leave_the_old_leaf_or_the_new,
                    c22_nothing_to_compact_is_told,
                    c22_b20_inputs_during_a_compaction_are_rejected,
                    c22_growth_is_linear_over_50_compactions,
                    c22_what_was_kept_is_read_after_the_summary,
                    c21_b14_a_deaf_agent_s_compaction_is_aborted_at_the_deadline,
                    c22_a_missing_agent_fails_the_compaction_not_the_call;
                keeping: c22_what_is_kept_again_is_read_as_it_was_read_before,
                    c22_two_compactions_of_a_run_keep_what_its_agent_kept,
                    c22_c24_a_branch_keeps_what_it_took_over,
                    c24_a_long_line_of_branches_has_its_whole_past;
                overflow: c20_b20_inputs_at_each_step_of_a_compaction_end_once,
                    c27_a_compaction_within_a_run_reports_running,
                    c21_b14_abort_in_a_compaction_within_a_run;
                interactions: c25_each_kind_is_asked_answered_and_heard,
                    c25_a_secret_answer_is_nowhere_to_be_read,
                    c25_several_wait_and_are_answered_in_any_order,
                    c25_another_client_answers_when_the_first_is_gone,
                    c25_of_16_racing_answers_one_is_delivered,
                    c25_an_answer_of_another_shape_leaves_it_open,
                    c25_queued_text_never_answers,
                    c25_an_answer_needs_no_room_in_the_queue;
                unanswered: c25_a_deadline_passes_with_its_default_or_without,
                    c25_b31_what_is_not_open_is_no_such_interaction,
                    c21_c25_an_abort_closes_open_questions,
                    c25_an_engine_that_dies_leaves_its_questions_unanswered,
                    c25_b31_a_restart_ends_open_questions_and_lists_them,
                    c25_b33_after_50_answered_questions_none_is_open_for_anybody;
                capabilities: c26_every_agent_is_honest_about_every_command,
                    c26_a_running_session_refuses_the_same,
                    c26_the_report_says_what_there_is,
                    c26_c25_a_kind_that_is_not_claimed_is_never_asked,
                    c26_what_a_composer_may_offer_is_listed;
                lineage: c16_c24_a_branch_goes_on_from_its_parents_path,
                    c24_a_branch_and_its_parent_go_their_own_ways,
                    c04_an_unknown_or_hidden_parent_is_no_such_session,
                    c14_a_branch_has_its_parents_agent,
                    c01_an_entry_that_is_not_the_parents_is_refused,
                    c14_a_parent_is_read_only_at_creation;
                hostile: c36_c22_hostile_agents_break_nothing;
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
