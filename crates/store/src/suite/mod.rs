//! What every implementation of [`Store`](crate::Store) must do, as tests: one function for each promise.
//!
//! An implementation gives a [`Backend`] and stamps the whole suite on it with [`store_suite!`]. A test
//! that is written but not in the macro's list is reported as dead code.

pub(crate) mod accounts;
pub(crate) mod admission;
pub(crate) mod claims;
pub(crate) mod connectors;
pub(crate) mod deletion;
pub(crate) mod ending;
pub(crate) mod firings;
mod flows;
pub(crate) mod isolation;
pub(crate) mod leases;
pub(crate) mod listing;
pub(crate) mod listings;
pub(crate) mod model;
pub(crate) mod operations;
pub(crate) mod runs;
pub(crate) mod workflow_list;
pub(crate) mod workflows;
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
            connectors: a_connector_reads_back_by_id_and_slug, a_slug_asked_for_is_taken_once_in_a_role, free_slugs_are_found_by_number, slugs_made_at_once_differ, connectors_are_listed_oldest_first, settings_are_replaced, a_connector_in_use_stays, the_latest_check_counts, open_checks_are_abandoned;
            workflows: a_workflow_reads_back_by_id_and_slug, slugs_are_unique_among_live_workflows, connectors_of_a_workflow_must_exist_in_their_role, a_change_replaces_the_definition, a_change_of_something_else_than_was_read_is_refused, of_changes_at_once_one_wins, a_deleted_workflow_is_gone_but_listed_as_deleted, deleting_a_workflow_stops_its_jobs, only_a_live_active_workflow_runs, one_run_with_sources_at_a_time, another_workspace_has_no_part_in_workflows;
            listings: a_started_run_is_listed_once, listed_objects_become_files, an_object_the_run_has_is_left_alone, a_listing_goes_on_where_it_was, a_listing_that_fails_for_now_waits, a_run_does_not_end_while_it_is_listed, a_run_over_nothing_completes, the_last_file_ends_a_listed_run, a_failed_listing_is_told, stopping_a_run_ends_its_listing, listers_at_once_share_runs, files_and_pages_at_once_add_up, files_of_a_run_are_read_page_by_page;
            runs: runs_and_local_jobs_have_slots_of_their_own, a_waiting_run_without_files_is_listed_when_it_starts, only_what_is_new_or_changed_is_processed, unchanged_objects_are_counted_once, reprocessing_takes_everything, the_content_known_is_told_to_the_worker, a_failed_file_is_tried_by_the_next_run, what_is_gone_from_the_source_is_deleted, a_deletion_that_failed_is_tried_again, nothing_is_deleted_after_a_listing_that_failed, many_files_gone_are_all_deleted, failed_files_of_a_run_can_be_retried, outputs_of_a_run_without_destinations_are_kept_and_deleted, a_large_run_is_deleted_to_the_end;
            firings: due_workflows_are_told_most_overdue_first, firing_starts_a_run_and_moves_on, an_instant_fires_once, of_firings_at_once_one_starts, an_overlapping_firing_is_skipped_or_allowed, a_run_by_hand_counts_as_the_last_run, a_workflow_changed_since_it_was_due_does_not_fire_as_it_was, missed_instants_are_one_firing, runs_of_allowed_overlap_delete_nothing_the_other_saw;
            workflow_list: any_filter_matches_the_model, pages_join_to_the_whole;
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
