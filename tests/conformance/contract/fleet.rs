//! What the fleet promises, rule by rule, as functions over [`FleetWorlds`]: any world that reaches a
//! server through the contract's `Fleet` runs the same suite.

#[path = "fleet/crew.rs"]
pub(crate) mod crew;
#[path = "fleet/deleting.rs"]
pub(crate) mod deleting;
#[path = "fleet/lists.rs"]
pub(crate) mod lists;
#[path = "fleet/metadata.rs"]
pub(crate) mod metadata;
#[path = "fleet/names.rs"]
pub(crate) mod names;
#[path = "fleet/pauses.rs"]
pub(crate) mod pauses;
#[path = "fleet/repeats.rs"]
pub(crate) mod repeats;
#[path = "fleet/watches.rs"]
pub(crate) mod watches;

use std::sync::Arc;

use async_trait::async_trait;
use sessionplane_core::contract::fleet::Fleet;
use sessionplane_server::app::config::AppConfig;

use super::world::World;

/// A world whose fleet can be reached.
pub(crate) trait FleetWorld: World {
    /// The owner's handle on the fleet of the server that runs now.
    fn fleet(&self) -> Arc<dyn Fleet>;
    /// That of a principal of another tenant.
    fn strangers_fleet(&self) -> Option<Arc<dyn Fleet>>;
    /// The same world, for who works at one session.
    fn as_world(self: Arc<Self>) -> Arc<dyn World>;
}

/// Makes them.
#[async_trait]
pub(crate) trait FleetWorlds: Send + Sync {
    /// A fresh, empty world under this configuration.
    async fn make_fleet(&self, config: AppConfig) -> Arc<dyn FleetWorld>;
}

/// Makes one test of each function of the suite, for the worlds that an expression makes.
#[macro_export]
macro_rules! fleet_conformance {
    ($name:ident, $worlds:expr) => {
        mod $name {
            use super::*;
            $crate::fleet_conformance! { @tests $worlds,
                names: c04_a_name_or_key_that_is_taken_is_refused,
                    c04_c60_a_reserved_name_is_refused_wherever_one_is_given,
                    c46_a_rename_keeps_id_history_and_every_stream,
                    c03_b22_a_request_id_outlives_the_name_that_it_was_used_with,
                    c03_a_repeated_creation_makes_one_session,
                    c04_what_is_hidden_is_unknown_to_the_fleet;
                metadata: c45_what_was_set_is_there_after_a_restart,
                    c40_a_change_expects_the_revision_that_was_seen,
                    c40_changes_at_the_same_time_are_all_kept_and_no_run_notices,
                    c60_too_many_labels_are_refused_and_nothing_changes;
                pauses: c15_a_paused_session_begins_nothing_and_goes_on_when_resumed,
                    c46_a_pause_lets_the_run_settle_and_is_seen_from_then_on,
                    c15_a_paused_session_is_not_compacted_until_it_is_resumed;
                repeats: c03_a_repeat_returns_what_the_call_decided_whatever_came_after_it,
                    c03_a_repeated_creation_is_answered_as_the_first_one,
                    c03_a_repeat_without_anything_in_between_is_the_session_as_it_is,
                    c03_c61_a_repeat_about_a_deleted_session_says_that_it_was_accepted;
                deleting: c61_a_deleted_session_is_unknown_to_everybody,
                    c61_a_session_at_work_is_deleted_only_if_that_is_said,
                    c61_a_session_that_others_branch_off_stays,
                    c61_c02_a_deletion_that_is_refused_aborts_nothing;
                lists: c47_b43_every_page_size_lists_each_session_once,
                    c47_what_comes_and_goes_between_pages_doubles_nothing,
                    c47_a_filter_finds_what_it_says_by_every_term,
                    c64_a_token_is_good_for_its_own_question_only,
                    c46_who_needs_people_is_listed_first;
                watches: c47_a_watch_tells_what_there_is_and_then_what_changes,
                    c47_a_bookmark_goes_on_where_it_was_given,
                    c47_a_bookmark_of_another_start_begins_anew,
                    c46_b25_an_open_question_is_seen_by_everybody_at_once,
                    c25_c64_open_questions_are_paged_in_the_order_in_which_they_were_asked;
            }
        }
    };
    (@tests $worlds:expr, $($group:ident: $($test:ident),+;)+) => {
        $($(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                $crate::suite::fleet::$group::$test(&$worlds).await;
            }
        )+)+
    };
}
