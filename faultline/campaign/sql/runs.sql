-- One row per run, without the samples that only the other tables need.
SELECT
  run_id, cell, system, workload, fault_set, mutants, seed, world, verdict, sentence, signature, checker, anomaly,
  counterexample_operations, counterexample_faults, size(findings) AS findings, warnings, errors, counts, marks,
  statistics, history_sha256, plan_sha256, folder_kept, replay, verdict_only,
  covered
FROM runs
ORDER BY cell, seed
