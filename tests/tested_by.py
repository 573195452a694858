"""Where a module is tested that has no test at its own path: one test that needs the module to do its part.

What shows over HTTP, with several workers or through a neighbour is tested there. tests/test_layout.py holds this table against
the modules and the tests; a module that gets a test at its own path leaves it.
"""

from __future__ import annotations

TESTED_BY = {
    "__main__.py": "test_cli.py::test_version",
    "main.py": "docs/test_reference.py::test_every_route_is_documented",
    "randomness.py": "api/test_assignments.py::test_an_assignment",
    "settings.py": "docs/test_reference.py::test_every_setting_is_documented_with_its_default",
    # -- application: commands ---------------------------------------------------------------------------------------------
    "application/context.py": "live/test_model.py::test_the_service_follows_the_model_through_any_traffic",
    "application/commands/arms.py": "api/test_arms.py::test_an_added_arm_is_drawn_next",
    "application/commands/ask.py": "api/test_assignments.py::test_a_sticky_unit_keeps_its_assignment",
    "application/commands/conclude.py": "api/test_certainty.py::test_an_experiment_concludes_by_itself_once",
    "application/commands/experiments.py": "api/test_experiments.py::test_a_patch_changes_what_it_names",
    "application/commands/expire.py": "live/test_mass_expiry.py::test_a_window_of_silence_expires_exactly_once_while_asks_go_on",
    "application/commands/idempotency.py": "live/test_keys_of_asks.py::test_a_known_and_a_new_unit_cannot_share_a_key",
    "application/commands/lifecycle.py": "api/test_experiments.py::test_the_moves_of_a_life",
    "application/commands/observations.py": "api/test_observations.py::test_a_correction_is_exact",
    "application/commands/tell.py": "api/test_rewards.py::test_a_correction_replaces_and_a_void_removes",
    # -- application: live and reads ---------------------------------------------------------------------------------------
    "application/live/cached_reads.py": "api/test_recommendation.py::test_an_etag_is_good_until_something_changes",
    "application/live/reader.py": "application/live/test_lanes.py::test_a_read_has_a_process_of_its_own",
    "application/live/reader_process.py": "application/live/test_lanes.py::test_a_killed_process_is_replaced",
    "application/live/version_cache.py": "web/dashboard/test_many_viewers.py::test_every_viewer_sees_the_newest_state",
    "application/live/watcher.py": "web/dashboard/test_many_viewers.py::test_a_reconnect_gets_the_newest_state_at_once",
    "application/reads/assignments.py": "api/test_assignments.py::test_the_list_filters_and_pages",
    "application/reads/audit_log.py": "api/test_audit_log.py::test_every_entry_is_in_the_contract_s_words",
    "application/reads/experiment_descriptions.py": (
        "api/test_answer_sizes.py::test_a_page_of_experiments_ends_where_it_has_too_many_arms"
    ),
    "application/reads/forecast.py": "api/test_forecast.py::test_a_forecast_tells_draws_times_and_what_waiting_is_worth",
    "application/reads/observation_list.py": "api/test_observations.py::test_they_are_read",
    "application/reads/overview.py": "web/dashboard/test_live.py::test_the_list_moves_within_two_seconds",
    "application/reads/readiness.py": "web/test_problems.py::test_health_and_readiness",
    "application/reads/recommendation.py": "api/test_recommendation.py::test_after_some_rewards",
    "application/reads/time_window.py": "api/test_lists.py::test_assignments_and_events_of_a_time",
    # -- domain ------------------------------------------------------------------------------------------------------------
    "domain/assignment.py": "domain/test_transitions.py::test_a_window_closes_by_expiry_or_maturity_and_stays_closed",
    "domain/changes.py": "engine/test_ledger.py::test_an_arm_that_was_drawn_and_rewarded_is_handed_over_once",
    "domain/event_details.py": "application/reads/test_replay.py::test_an_edited_event_is_found_and_named",
    "domain/events.py": "domain/test_transitions.py::test_every_step_is_an_event_of_that_family",
    "domain/experiment.py": "api/test_experiments.py::test_the_moves_of_a_life",
    "domain/limits.py": "api/test_openapi.py::test_limits_are_part_of_the_document",
    "domain/lookups.py": "engine/test_lookahead.py::test_what_was_in_mind_when_it_was_looked_at_is_still_there",
    # -- engine ------------------------------------------------------------------------------------------------------------
    "engine/allocator.py": "live/test_spread.py::test_a_thousand_simultaneous_asks_split_as_the_targets_say",
    "engine/clock.py": "api/test_assignments.py::test_an_assignment",
    "engine/contention.py": "engine/test_change_log.py::test_two_workers_agree_whatever_comes",
    "engine/engine_metrics.py": "web/test_request_metrics.py::test_asks_and_tells_are_counted_over_all_workers",
    "engine/ledger_cache.py": "engine/test_lookahead.py::test_decisions_ahead_of_an_outrun_group_are_made_anew",
    "engine/queue.py": "engine/test_writer.py::test_nobody_joins_a_request_that_cannot_be_written",
    "engine/snapshots.py": "application/reads/test_course.py::test_snapshots_thin_out_as_they_grow",
    # -- inference ---------------------------------------------------------------------------------------------------------
    "inference/binary.py": "inference/test_intervals.py::test_binary_bounds_lie_where_the_evidence_reaches_the_level",
    "inference/bounded.py": "inference/test_intervals.py::test_bounded_intervals_hold_their_mean_and_stay_in_bounds",
    "inference/cells.py": "inference/test_binary_pairs.py::test_many_pairs_at_once_are_the_pairs_one_by_one",
    "inference/pairs.py": "inference/test_separation.py::test_separation_agrees_with_a_fine_grid_of_common_means",
    "inference/real.py": "inference/test_intervals.py::test_real_bounds_lie_where_the_evidence_reaches_the_level",
    "inference/samples.py": "inference/test_intervals.py::test_large_offsets_do_not_cost_precision",
    "inference/solving.py": "inference/test_intervals.py::test_binary_bounds_lie_where_the_evidence_reaches_the_level",
    # -- policy ------------------------------------------------------------------------------------------------------------
    "policy/base.py": "policy/test_policy_contract.py::test_a_choice_is_an_arm_and_changes_no_evidence",
    "policy/interpolation.py": "policy/test_fast_weights.py::test_worst_single_summand_bounds_every_sum",
    "policy/memory.py": "policy/test_fast_weights.py::test_a_memory_is_a_value",
    "policy/plan.py": "policy/test_almost_tracking.py::test_draws_are_handed_out_in_passes_over_the_positions",
    "policy/registry.py": "policy/test_policy_contract.py::test_targets_are_shares_above_the_floors",
    "policy/simple_tracking.py": "api/test_arm_for_arm.py::test_the_service_draws_what_the_paper_draws",
    "policy/uniform.py": "policy/test_policy_contract.py::test_uniform_is_a_round_robin",
    # -- simulation --------------------------------------------------------------------------------------------------------
    "simulation/figures.py": "simulation/test_simulation_commands.py::test_simulate_writes_its_results",
    "simulation/policy_comparison.py": "simulation/test_simulation_commands.py::test_simulate_writes_its_results",
    "simulation/result_files.py": "simulation/test_simulation_commands.py::test_an_unwritable_folder_is_refused",
    "simulation/sample_size.py": "simulation/test_simulation_commands.py::test_plan_answers",
    "simulation/simulation_options.py": "simulation/test_simulation_commands.py::test_bad_input_exits_with_2_and_a_sentence",
    "simulation/kernels/almost_tracking_kernel.py": "studies/test_production_equality.py::test_same_arms_as_production",
    "simulation/kernels/continuous_rejects.py": (
        "simulation/kernels/test_elimination.py::test_continuous_rejects_start_after_theta0"
    ),
    "simulation/kernels/doubling_epochs.py": "simulation/kernels/test_elimination.py::test_doubling_forgets",
    "simulation/kernels/doubling_sequential_halving.py": (
        "simulation/kernels/test_elimination.py::test_doubling_recommends_the_last_finished_epoch"
    ),
    "simulation/kernels/doubling_successive_rejects.py": (
        "simulation/kernels/test_elimination.py::test_doubling_recommends_the_last_finished_epoch"
    ),
    "simulation/kernels/eb_tc.py": "simulation/kernels/test_top_two.py::test_transport_costs",
    "simulation/kernels/eb_tc_eps0.py": "simulation/kernels/test_top_two.py::test_eps0_draws_the_leader_exactly_in_turn",
    "simulation/kernels/elimination_stages.py": (
        "simulation/kernels/test_elimination.py::test_drawing_a_stage_at_once_changes_no_probability"
    ),
    "simulation/kernels/normals.py": "simulation/kernels/test_top_two.py::test_bulk_normals_are_normal",
    "simulation/kernels/pooled_allocation.py": "simulation/kernels/test_top_two.py::test_pooled_draws_one_arm_a_batch_first",
    "simulation/kernels/sequential_halving.py": "simulation/kernels/test_elimination.py::test_sh_halves",
    "simulation/kernels/simple_tracking_kernel.py": (
        "simulation/kernels/test_weights_kernel.py::test_ties_and_mixtures_agree_with_production"
    ),
    "simulation/kernels/successive_rejects.py": "simulation/kernels/test_elimination.py::test_sr_draws_its_phases",
    "simulation/kernels/ts_tc.py": "simulation/kernels/test_top_two.py::test_half_of_the_draws_go_to_the_leader",
    "simulation/kernels/uniform_kernel.py": "simulation/kernels/test_elimination.py::test_uniform_is_a_round_robin",
    # -- storage -----------------------------------------------------------------------------------------------------------
    "storage/column_groups.py": "api/test_group_commit.py::test_rows_travel_by_types_that_fit_the_tables",
    "storage/creation.py": "api/test_concurrency.py::test_creating_the_same_experiment_at_once",
    "storage/database.py": "api/test_group_commit.py::test_cut_connections_lose_nothing_and_repeat_nothing",
    "storage/settings_rows.py": "api/test_experiments.py::test_everything_given_is_kept",
    "storage/groups/lookup_queries.py": (
        "engine/test_lookahead.py::test_what_is_read_ahead_is_not_older_than_what_is_being_written"
    ),
    "storage/groups/postgres.py": "api/test_group_commit.py::test_cut_connections_lose_nothing_and_repeat_nothing",
    "storage/groups/sqlite.py": "engine/test_writer.py::test_a_database_that_another_process_writes",
    "storage/groups/statements.py": "api/test_group_commit.py::test_a_column_added_under_a_running_service",
    "storage/groups/writes.py": "engine/test_writer.py::test_a_group_without_a_draw_took_effect_only_if_all_of_it_did",
    "storage/queries/experiment_list.py": "storage/test_tables.py::test_lists_of_experiments_are_carried_by_indexes",
    "storage/queries/stored_assignments.py": "storage/test_tables.py::test_filters_of_assignments_are_carried_by_indexes",
    "storage/queries/stored_experiments.py": "storage/test_tables.py::test_a_page_has_the_newest",
    "storage/queries/stored_history.py": "storage/test_tables.py::test_the_audit_log_is_carried_by_its_index",
    "storage/queries/stored_observations.py": "api/test_observations.py::test_they_are_read",
    "storage/queries/stored_replies.py": "api/test_experiments.py::test_creating_is_idempotent",
    # -- web ---------------------------------------------------------------------------------------------------------------
    "web/etags.py": "api/test_lost_updates.py::test_a_patch_on_what_was_read",
    "web/problem_schema.py": "api/test_openapi.py::test_an_operation_documents_its_errors",
    "web/request_context.py": "web/test_problems.py::test_a_sane_request_id_is_kept",
    "web/response_pieces.py": "api/test_answer_sizes.py::test_a_large_answer_says_how_long_it_is",
    "web/api/answer_schemas.py": "api/test_openapi.py::test_an_experiment_is_of_the_documented_shape",
    "web/api/assignment_routes.py": "api/test_assignments.py::test_an_assignment",
    "web/api/audit_views.py": "api/test_audit_log.py::test_every_entry_is_in_the_contract_s_words",
    "web/api/content_etags.py": "api/test_lost_updates.py::test_traffic_is_no_change_of_settings",
    "web/api/experiment_routes.py": "api/test_experiments.py::test_everything_given_is_kept",
    "web/api/listings.py": "api/test_answer_sizes.py::test_a_page_ends_where_it_would_be_too_long",
    "web/api/observation_routes.py": "api/test_observations.py::test_any_id_can_be_named",
    "web/api/operations_routes.py": "web/test_problems.py::test_health_and_readiness",
    "web/api/parameters.py": "api/test_bad_input.py::test_an_idempotency_key_is_printable",
    "web/api/rendered_experiments.py": "api/test_answer_sizes.py::test_large_experiments_are_found_and_guarded_as_small_ones_are",
    "web/api/request_schemas.py": "api/test_bad_input.py::test_a_bad_experiment_is_refused",
    "web/api/reward_routes.py": "api/test_rewards.py::test_a_batch_of_rewards",
    "web/api/views.py": "api/test_recommendation.py::test_after_some_rewards",
    "web/charts/certainty_chart.py": "web/dashboard/test_many_viewers.py::test_pictures_have_etags",
    "web/charts/frame.py": "web/dashboard/test_many_viewers.py::test_pictures_have_etags",
    "web/charts/means_chart.py": "web/dashboard/test_many_viewers.py::test_pictures_have_etags",
    "web/charts/scales.py": "web/dashboard/test_many_viewers.py::test_pictures_have_etags",
    "web/charts/style.py": "web/dashboard/test_many_viewers.py::test_pictures_have_etags",
    "web/charts/svg.py": "web/dashboard/test_craft.py::test_markup_is_shown_as_text",
    "web/charts/traffic_chart.py": "web/dashboard/test_many_viewers.py::test_pictures_have_etags",
    "web/dashboard/overview_page.py": "web/dashboard/test_live.py::test_the_list_moves_within_two_seconds",
    "web/dashboard/overview_routes.py": "web/dashboard/test_craft.py::test_a_thousand_experiments_are_found_by_search_and_pages",
    "web/dashboard/pages.py": "web/dashboard/test_craft.py::test_pages_carry_the_strict_policy",
    "web/live/chart_routes.py": "api/test_fresh_charts.py::test_no_304_after_a_write",
    "web/live/heavy_reads.py": "api/test_load.py::test_expensive_reads_do_not_delay_cheap_requests",
    "web/live/recommendation_routes.py": "api/test_recommendation.py::test_an_etag_is_good_until_something_changes",
    "web/live/rendered_recommendation.py": "web/dashboard/test_many_viewers.py::test_every_viewer_sees_the_newest_state",
    "web/live/stop_signal.py": "test_cli.py::test_a_stop_finishes_the_requests_in_flight",
    "web/live/stream_routes.py": "web/dashboard/test_many_viewers.py::test_a_reconnect_gets_the_newest_state_at_once",
    "web/middleware/head_requests.py": "api/test_http.py::test_head_is_get_without_its_body",
    "web/middleware/known_host.py": "api/test_http.py::test_a_loopback_service_answers_to_loopback_names",
    "web/middleware/not_modified.py": "api/test_http.py::test_what_has_not_changed_is_not_modified_for_head_either",
    "web/middleware/request_id.py": "web/test_problems.py::test_a_strange_request_id_is_replaced",
    "web/middleware/request_timing.py": "web/test_request_metrics.py::test_both_ways_of_an_ask_count_under_one_name",
    "web/middleware/same_origin.py": "web/dashboard/test_craft.py::test_another_site_cannot_change_anything",
}
