-- The runs whose whole folder stays: the first :keep of each kind, and the smallest counterexample.
WITH candidates AS (
  SELECT
    *,
    row_number() OVER (PARTITION BY cell, verdict, signature ORDER BY seed) AS place,
    row_number() OVER (
      PARTITION BY cell, verdict, signature
      ORDER BY counterexample_operations = 0, counterexample_operations, seed
    ) AS place_by_size
  FROM all_runs
  WHERE folder_kept
)
SELECT run_id
FROM candidates
WHERE :keep > 0 AND (place <= :keep OR place_by_size = 1)
ORDER BY run_id
