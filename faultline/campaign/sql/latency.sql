-- Latency quantiles of completed operations by function, outcome and whether a fault was in force.
-- Samples carry three significant digits, so that few different ones have to be counted. A quantile between two of them
-- has two decimals at most; rounding to three removes the error of floating-point numbers.
WITH samples AS (
  SELECT cell, part.f, part.outcome, part.during_fault, part.max_us, part.latency_us
  FROM runs LATERAL VIEW explode(latency) AS part
),
longest AS (
  SELECT cell, f, outcome, during_fault, max(max_us) AS max_us
  FROM samples
  GROUP BY cell, f, outcome, during_fault
),
quantiles AS (
  SELECT
    cell, f, outcome, during_fault,
    count(*)                                             AS operations,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY bin_us)  AS p50_us,
    percentile_cont(0.95) WITHIN GROUP (ORDER BY bin_us) AS p95_us,
    percentile_cont(0.99) WITHIN GROUP (ORDER BY bin_us) AS p99_us
  FROM samples LATERAL VIEW explode(latency_us) AS bin_us
  GROUP BY cell, f, outcome, during_fault
)
SELECT
  cell, f, outcome,
  CASE WHEN during_fault THEN 'inside' ELSE 'outside' END AS window,
  operations AS count,
  CAST(round(round(p50_us, 3)) AS BIGINT) AS p50_us,
  CAST(round(round(p95_us, 3)) AS BIGINT) AS p95_us,
  CAST(round(round(p99_us, 3)) AS BIGINT) AS p99_us,
  max_us
FROM quantiles JOIN longest USING (cell, f, outcome, during_fault)
ORDER BY cell, f, outcome, window
