//! What every store must do, as functions over a [`Subject`]: a store that can be opened again as
//! a killed process would find it.
//!
//! Nothing waits by sleeping; what runs at the same time is joined.

#[path = "repository/atomicity.rs"]
pub(crate) mod atomicity;
#[path = "repository/bindings.rs"]
pub(crate) mod bindings;
#[path = "repository/boundary.rs"]
pub(crate) mod boundary;
#[path = "repository/deleting.rs"]
pub(crate) mod deleting;
#[path = "repository/failing.rs"]
pub(crate) mod failing;
#[path = "repository/fencing.rs"]
pub(crate) mod fencing;
#[path = "repository/finding.rs"]
pub(crate) mod finding;
#[path = "repository/fleet_script.rs"]
pub(crate) mod fleet_script;
#[path = "repository/metadata.rs"]
pub(crate) mod metadata;
#[path = "repository/model.rs"]
pub(crate) mod model;
#[path = "repository/names.rs"]
pub(crate) mod names;
#[path = "repository/reading.rs"]
pub(crate) mod reading;
#[path = "repository/recovery.rs"]
pub(crate) mod recovery;
#[path = "repository/runs.rs"]
pub(crate) mod runs;
#[path = "repository/script.rs"]
pub(crate) mod script;
#[path = "repository/sealing.rs"]
pub(crate) mod sealing;

use std::sync::Arc;

use async_trait::async_trait;
use sessionplane_core::domain::audit::AuditRecord;
use sessionplane_core::domain::ids::{RunId, SessionId};
use sessionplane_core::domain::input::InputRecord;
use sessionplane_core::ports::audit_trail::AuditTrail;
use sessionplane_core::ports::lease_store::LeaseStore;
use sessionplane_core::ports::repository::{ReadError, Repository};

/// Both ports, and the reads that no port has.
#[async_trait]
pub(crate) trait Store: Repository + LeaseStore + AuditTrail {
    /// A session's audit records.
    async fn audits(&self, session: SessionId) -> Result<Vec<AuditRecord>, ReadError>;
    /// What was done to a session's metadata.
    async fn metadata_audits(&self, session: SessionId) -> Result<Vec<AuditRecord>, ReadError>;
    /// A session's runs.
    async fn runs_of(&self, session: SessionId) -> Result<Vec<RunId>, ReadError>;
    /// A run's inputs, whatever became of them.
    async fn inputs(&self, run: RunId) -> Result<Vec<InputRecord>, ReadError>;
}

/// A store under test.
#[async_trait]
pub(crate) trait Subject: Send + Sync {
    /// The present opening.
    fn store(&self) -> Arc<dyn Store>;
    /// Opens it again as after a kill: nobody closed it.
    async fn reopen(&mut self);
    /// From now on the disk refuses every write.
    fn break_disk(&self);
    /// Looks at all that it keeps, by means of its own: nothing may be wrong with any of it.
    async fn is_whole(&mut self) {}
}

/// Makes one test of each function of the suite.
macro_rules! repository_conformance {
    ($subject:ident, $make:expr) => {
        mod $subject {
            super::suite::repository_conformance!(@tests $make;
                atomicity: a_commit_is_visible_after_its_answer_and_whole,
                atomicity: a_reader_never_sees_half_a_commit,
                atomicity: a_refused_commit_leaves_nothing,
                atomicity: refusals_never_disturb_their_neighbours,
                atomicity: a_commit_decided_on_an_old_head_is_refused,
                atomicity: a_malformed_commit_is_refused,
                fencing: c41_a_writer_that_lost_its_lease_cannot_write,
                fencing: c44_a_cut_run_is_not_forgotten_for_the_next_one,
                fencing: c40_every_record_is_written_only_under_the_token,
                fencing: a_held_session_is_not_taken_by_another,
                fencing: c41_b34_b36_b52_a_former_token_never_takes_a_session_again,
                fencing: one_of_many_takes_a_session,
                fencing: b34_the_holder_is_known_while_it_holds,
                failing: a_store_that_failed_changes_nothing_more_and_is_still_read,
                names: one_of_many_gets_a_name,
                names: one_of_many_gets_an_external_key,
                names: addresses_resolve_in_their_tenant_only,
                names: odd_keys_are_told_apart,
                bindings: c03_one_of_many_binds_a_request_id,
                bindings: c03_a_binding_is_found_by_every_part_of_its_key,
                bindings: c03_a_sweep_keeps_what_an_active_run_needs,
                bindings: c03_a_sweep_gets_past_any_number_of_active_runs,
                bindings: c03_a_sweep_takes_no_more_than_it_is_told_oldest_first,
                bindings: c03_a_binding_without_a_run_is_kept_by_its_age_alone,
                boundary: c22_a_cut_compaction_is_told_and_given_up_and_has_left_nothing,
                boundary: c22_a_change_between_runs_is_fenced_while_the_session_is_held,
                boundary: c22_what_changes_between_runs_never_creates_a_session,
                boundary: c23_c24_settings_follow_the_leaf_wherever_it_moves,
                reading: entries_come_whole_at_every_page_size,
                reading: a_page_is_bounded_in_bytes_and_never_empty,
                reading: every_kind_of_record_reads_back_as_it_was_written,
                reading: long_texts_read_back_and_are_replaced,
                reading: b41_odd_texts_read_back,
                reading: inputs_come_in_order_of_acceptance,
                reading: what_is_not_there_is_nothing_and_not_an_error,
                runs: c16_runs_are_listed_newest_first_whatever_the_clock_did,
                runs: c16_a_page_of_runs_goes_on_where_the_one_before_ended,
                runs: one_entry_is_read_alone,
                runs: c25_interactions_are_kept_and_overwritten,
                metadata: c40_a_change_of_metadata_is_compared_and_set,
                metadata: c40_changes_of_metadata_and_a_run_never_disturb_each_other,
                metadata: c45_a_rename_frees_the_old_name_in_the_same_step,
                metadata: one_of_many_takes_a_name_by_renaming,
                metadata: a_change_of_metadata_is_bound_like_a_commit,
                metadata: c03_what_a_change_decided_is_kept_as_long_as_its_binding,
                deleting: a_deletion_is_refused_while_anything_holds_the_session,
                deleting: a_session_is_not_deleted_before_those_that_branch_off_it,
                deleting: nothing_finds_a_deleted_session,
                deleting: a_deleted_session_is_erased_in_steps_over_openings,
                deleting: c61_what_changes_decided_is_erased_with_their_session,
                deleting: what_binds_requests_to_a_deleted_session_goes_by_its_age,
                finding: sessions_are_found_by_each_term_in_both_directions,
                finding: c47_a_search_goes_on_after_a_place_that_is_gone,
                finding: a_session_is_found_by_what_it_is_now,
                finding: no_tenant_finds_the_sessions_of_another,
                finding: more_sessions_than_a_page_are_found_one_by_one,
                finding: c44_sessions_are_found_with_their_leases_among_many_that_run,
                recovery: c44_an_unreleased_lease_is_orphaned_after_a_crash,
                recovery: c44_recovery_settles_once,
                recovery: c41_all_leases_are_void_at_open,
                recovery: c41_tokens_grow_across_openings,
                recovery: c39_everything_acknowledged_is_there_after_a_crash,
                recovery: a_run_admitted_and_settled_at_once_leaves_no_lease,
                sealing: c56_each_record_is_the_next_link_of_its_chain,
                sealing: c56_what_is_not_kept_is_not_sealed,
                sealing: c56_commits_at_one_time_are_links_one_after_the_other,
                sealing: c56_refusals_are_links_of_their_tenants_chain,
                sealing: c61_a_chain_outlives_the_sessions_that_it_tells_of,
            );
        }
    };
    (@tests $make:expr; $($module:ident: $name:ident,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let mut subject = $make;
                super::suite::$module::$name(&mut subject).await;
            }
        )*
    };
}
pub(crate) use repository_conformance;
