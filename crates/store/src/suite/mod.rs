//! What every implementation of [`Store`](crate::Store) must do, as tests: one function for each promise.
//!
//! An implementation gives a [`Backend`] and stamps the whole suite on it with [`store_suite!`]. A test
//! that is written but not in the macro's list is reported as dead code.

pub(crate) mod accounts;
pub(crate) mod admission;
pub(crate) mod attempts;
pub(crate) mod channels;
pub(crate) mod claims;
pub(crate) mod codes;
pub(crate) mod connectors;
pub(crate) mod deletion;
pub(crate) mod ending;
pub(crate) mod firings;
mod flows;
pub(crate) mod inbox;
pub(crate) mod isolation;
pub(crate) mod leases;
pub(crate) mod listing;
pub(crate) mod listings;
pub(crate) mod model;
pub(crate) mod operations;
pub(crate) mod outbox;
pub(crate) mod paid;
pub(crate) mod runs;
pub(crate) mod told;
pub(crate) mod workflow_list;
pub(crate) mod workflows;
pub(crate) mod world;

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
                all_failures_fail_with_the_reasons, many_reasons_are_cut, outcomes_are_kept, routes_of_pages_are_kept_and_go_with_the_job,
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
            runs: runs_and_local_jobs_have_slots_of_their_own, a_waiting_run_without_files_is_listed_when_it_starts, only_what_is_new_or_changed_is_processed, unchanged_objects_are_counted_once, reprocessing_takes_everything, the_content_known_is_told_to_the_worker, a_failed_file_is_tried_by_the_next_run, what_is_gone_from_the_source_is_deleted, a_deletion_that_failed_is_tried_again, nothing_is_deleted_after_a_listing_that_failed, many_files_gone_are_all_deleted, failed_files_of_a_run_can_be_retried, outputs_of_a_run_without_destinations_are_kept_and_deleted, a_large_run_is_deleted_to_the_end, at_a_place_the_first_source_of_a_workflow_has_plain_names;
            firings: due_workflows_are_told_most_overdue_first, firing_starts_a_run_and_moves_on, an_instant_fires_once, of_firings_at_once_one_starts, an_overlapping_firing_is_skipped_or_allowed, a_run_by_hand_counts_as_the_last_run, a_workflow_changed_since_it_was_due_does_not_fire_as_it_was, missed_instants_are_one_firing, runs_of_allowed_overlap_delete_nothing_the_other_saw;
            channels: channels_read_back, channels_are_listed_by_scope_kind_and_enabled, a_scope_holds_fifty_channels,
                channels_of_workflows_need_the_workflow, a_change_replaces_the_definition_once,
                unverified_channels_may_not_be_changed, another_address_has_to_be_verified,
                deleting_a_channel_cancels_what_waits, disabling_cancels_and_enabling_starts_anew,
                unsubscribing_disables_with_a_reason, others_have_no_part_in_channels;
            codes: a_code_is_used_once, a_code_expires, five_wrong_tries_end_a_code,
                of_tries_at_once_five_are_compared, a_new_code_voids_the_old,
                a_code_replaced_while_it_is_sent_is_wiped, a_code_goes_out_as_a_delivery, codes_cool_down,
                codes_a_day_are_bounded, codes_of_a_workspace_are_bounded, wrong_tries_a_day_are_bounded,
                tries_survive_a_crash;
            outbox: channels_hear_what_they_chose, channels_hear_of_their_scope,
                only_enabled_channels_are_handed_events, events_and_deliveries_are_committed_together,
                an_event_is_handed_out_once, lanes_are_apart, a_receiver_holds_up_only_itself, receivers_take_turns,
                first_attempts_come_before_others, a_retry_waits_for_its_time, a_lost_lease_changes_nothing,
                a_killed_server_loses_no_delivery, deferred_deliveries_are_untried,
                what_may_not_be_sent_any_more_is_not_claimed, mails_to_one_mailbox_are_claimed_together,
                tests_are_sent_to_enabled_channels, progress_is_told_to_those_who_want_it;
            attempts: attempts_are_logged, deliveries_are_listed_page_by_page, nothing_but_failures_for_long_disables,
                a_success_clears_the_failures, failed_tests_disable_nothing, a_bounce_marks_and_disables,
                a_code_that_bounces_marks_only, workflow_channels_are_told_of_their_own_scope,
                a_delivery_is_replayed_under_its_id, all_failed_since_are_replayed, many_failed_are_all_replayed;
            inbox: every_event_is_in_the_inbox, filters_match_and_pages_join, marking_counts_what_is_new,
                many_are_marked_to_the_end, a_deleted_job_stays_in_the_inbox_without_its_files,
                what_is_old_is_forgotten;
            paid: a_checkpoint_reads_back_and_is_replaced, a_lost_lease_saves_no_checkpoint,
                success_ends_a_checkpoint_and_keeps_its_outputs, a_retry_goes_on_from_its_originals_checkpoint,
                a_checkpoints_blobs_go_with_the_last_job_that_needs_them, answers_are_kept_by_workspace,
                of_too_many_answers_the_least_recently_used_go, unused_answers_expire,
                costs_add_up_by_file_job_and_month;
            workflow_list: any_filter_matches_the_model, pages_join_to_the_whole;
        }

        #[test]
        fn random_operations_match_the_model() {
            $crate::suite::model::random_operations(|| $backend);
        }

        #[test]
        fn any_tries_at_once_match_the_model() {
            $crate::suite::codes::any_tries_at_once_match_the_model(|| $backend);
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
