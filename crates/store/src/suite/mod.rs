//! What every implementation of [`Store`](crate::Store) must do, as tests: one function for each promise.
//!
//! An implementation gives a [`Backend`] and stamps the whole suite on it with [`store_suite!`]. A test
//! that is written but not in the macro's list is reported as dead code.

pub(crate) mod accounts;
pub(crate) mod admission;
pub(crate) mod claims;
pub(crate) mod deletion;
pub(crate) mod ending;
pub(crate) mod isolation;
pub(crate) mod leases;
pub(crate) mod listing;
pub(crate) mod model;
pub(crate) mod operations;
mod world;

pub(crate) use world::{Backend, World};

/// Stamps the suite on a backend: `store_suite!(MyBackend::new())`. The expression is evaluated once for
/// each test and has to give an empty store of its own.
macro_rules! store_suite {
    ($backend:expr) => {
        $crate::suite::store_suite! { @tests $backend;
            accounts: names_are_taken_once, keys_open_their_workspace, unknown_keys_open_nothing,
                revoked_keys_close_at_once, revoking_by_prefix, keys_are_listed_oldest_first,
                the_last_use_never_goes_back;
            admission: gate_lets_one_through_in_a_gap, gate_lets_one_of_many_at_once_through,
                gate_counts_accounts_apart, gate_opens_when_the_clock_was_set_back,
                the_sixth_job_waits, waiting_jobs_start_in_order_of_arrival, a_slot_is_freed_by_success,
                a_slot_is_freed_by_failure, a_slot_is_freed_by_stopping, a_slot_is_freed_by_recovery,
                a_stopped_waiting_job_never_starts, accounts_have_slots_of_their_own,
                workspaces_of_an_account_share_its_slots, limit_holds_under_parallel_creation,
                no_limit_starts_everything, a_raised_limit_starts_more, a_job_without_files_ends_by_settling,
                a_waiting_job_without_files_ends_as_it_starts;
            claims: nothing_ready_claims_nothing, a_claim_carries_what_the_worker_needs,
                first_come_first_served, many_claimers_share_without_doubles, fewest_running_comes_first,
                equals_take_turns, a_late_workspace_is_not_kept_waiting, not_before_is_respected,
                at_most_max_are_claimed;
            leases: tokens_grow, renewal_extends, a_lost_lease_is_reported, a_stale_token_changes_nothing,
                two_workers_one_result, finishing_twice_is_refused, release_charges_no_attempt,
                a_stale_release_changes_nothing, expired_leases_are_recovered,
                live_leases_are_left_alone, a_boot_recovers_everything_running, a_clock_that_was_wrong_holds_nothing_up,
                exhausted_attempts_fail_the_file_and_end_the_job, retry_returns_the_file;
            ending: a_job_ends_with_its_last_file, some_failures_complete_with_a_message,
                all_failures_fail_with_the_reasons, many_reasons_are_cut, outcomes_are_kept,
                each_transition_has_one_event, events_after_a_sequence, stop_ends_what_has_not_ended,
                stop_in_each_state, ended_jobs_never_change, finishing_a_stopped_file_is_refused;
            listing: jobs_newest_first, filters_and_limit, jobs_carry_files_and_outputs,
                files_in_order_of_upload, the_default_output_is_the_last_nodes, a_job_reads_back;
            deletion: only_ended_jobs_go, deletion_leaves_garbage, garbage_is_forgotten_when_told,
                a_retrys_blobs_stay, the_last_holder_frees_the_blobs, no_retry_of_a_deleted_job,
                retries_and_deletions_at_once, no_retry_with_strange_blobs, old_jobs_expire_oldest_first,
                unreferenced_blobs_are_found;
            isolation: another_workspace_sees_nothing, another_workspace_changes_nothing;
            operations: stats_count, the_store_says_it_is_writable, everything_acknowledged_survives_reopening,
                every_claim_and_lease_survives_reopening;
        }

        #[test]
        fn random_operations_match_the_model() {
            $crate::suite::model::random_operations(|| $backend);
        }
    };
    (@tests $backend:expr; $($module:ident: $($test:ident),+ $(,)?;)+) => {$(
        mod $module {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test() {
                    $crate::suite::$module::$test($crate::suite::World::new($backend).await).await;
                }
            )+
        }
    )+};
}
pub(crate) use store_suite;
