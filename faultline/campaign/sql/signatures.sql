-- One row per kind of violation in a cell. The smallest counterexample has the fewest operations; one without
-- operations (an invariant inside the system broke) comes last; equal ones are decided by the lowest seed.
WITH violations AS (
  SELECT
    *,
    struct(counterexample_operations = 0 AS shows_none, counterexample_operations AS operations, seed AS seed) AS size
  FROM runs
  WHERE verdict = 'violation'
)
SELECT
  cell,
  signature,
  min_by(checker, size)                   AS checker,
  min_by(anomaly, size)                   AS anomaly,
  count(*)                                AS count,
  min(seed)                               AS first_seed,
  min_by(seed, size)                      AS seed,
  min_by(counterexample_operations, size) AS operations,
  min_by(counterexample_faults, size)     AS fault_kinds,
  min_by(run_id, size)                    AS run_id,
  min_by(sentence, size)                  AS example,
  min_by(replay, size)                    AS replay,
  min_by(run_again, size)                 AS run_again,
  count_if(folder_kept)                   AS folders_kept,
  NOT min_by(verdict_only, size)          AS faults_known
FROM violations
GROUP BY cell, signature
ORDER BY cell, count DESC, signature
