-- The rows of all runs, with `folder_kept` and `replay` as they are now that only the folders in `kept_runs` are whole.
SELECT
  all_runs.* EXCEPT (folder_kept, replay),
  kept_runs.run_id IS NOT NULL                                           AS folder_kept,
  CASE WHEN kept_runs.run_id IS NOT NULL THEN replay ELSE run_again END AS replay
FROM all_runs LEFT JOIN kept_runs ON all_runs.run_id = kept_runs.run_id
