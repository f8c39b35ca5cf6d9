-- Latency quantiles of completed operations by function, outcome and whether a fault was on meanwhile.
-- Samples carry three significant digits, so the histogram that quantiles are read from stays small.
WITH samples AS (
  SELECT cell, part.f, part.outcome, part.during_fault, part.max_us, part.latency_us
  FROM runs LATERAL VIEW explode(latency) AS part
),
histogram AS (
  SELECT cell, f, outcome, during_fault, bin_us, count(*) AS operations
  FROM samples LATERAL VIEW explode(latency_us) AS bin_us
  GROUP BY cell, f, outcome, during_fault, bin_us
),
longest AS (
  SELECT cell, f, outcome, during_fault, max(max_us) AS max_us
  FROM samples
  GROUP BY cell, f, outcome, during_fault
),
quantiles AS (
  SELECT
    cell, f, outcome, during_fault,
    sum(operations)                                                       AS operations,
    percentile(bin_us, array(0.5D, 0.95D, 0.99D), operations)             AS quantile
  FROM histogram
  GROUP BY cell, f, outcome, during_fault
)
SELECT
  cell, f, outcome,
  CASE WHEN during_fault THEN 'inside' ELSE 'outside' END AS window,
  operations AS count,
  CAST(round(quantile[0]) AS BIGINT) AS p50_us,
  CAST(round(quantile[1]) AS BIGINT) AS p95_us,
  CAST(round(quantile[2]) AS BIGINT) AS p99_us,
  max_us
FROM quantiles JOIN longest USING (cell, f, outcome, during_fault)
ORDER BY cell, f, outcome, window
