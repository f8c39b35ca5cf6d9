-- One row per cell: how its runs ended, and what their operations came to.
SELECT
  cell,
  count(*)                                        AS runs,
  count_if(verdict = 'pass')                      AS passed,
  count_if(verdict = 'violation')                 AS violations,
  count_if(verdict = 'unknown')                   AS unknown,
  count_if(verdict = 'vacuous')                   AS vacuous,
  count_if(verdict = 'harness-error')             AS harness_errors,
  count_if(verdict_only)                          AS verdicts_only,
  coalesce(sum(counts['ok']), 0)                  AS operations_ok,
  coalesce(sum(counts['fail']), 0)                AS operations_fail,
  coalesce(sum(counts['info']), 0)                AS operations_info,
  coalesce(array_sort(collect_set(CASE WHEN verdict = 'violation' AND checker <> '' THEN checker END)), array()) AS broken_promises,
  min_by(sentence, seed) FILTER (WHERE verdict = 'harness-error') AS first_error
FROM runs
GROUP BY cell
ORDER BY cell
