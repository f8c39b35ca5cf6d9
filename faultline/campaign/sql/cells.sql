-- One row per cell: how its runs and operations ended.
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
  coalesce(sum(exposure['operations']), 0)        AS exposure_operations,
  coalesce(sum(exposure['answered']), 0)          AS exposure_answered,
  coalesce(sum(exposure['refused']), 0)           AS exposure_refused,
  coalesce(sum(exposure['faults_planned']), 0)    AS exposure_faults_planned,
  coalesce(sum(exposure['faults_applied']), 0)    AS exposure_faults_applied,
  coalesce(sum(exposure['faults_struck']), 0)     AS exposure_faults_struck,
  coalesce(sum(exposure['objects_written']), 0)   AS exposure_objects_written,
  coalesce(sum(exposure['objects_read_after_heal']), 0)AS exposure_objects_read_after_heal,
  coalesce(array_sort(collect_set(CASE WHEN verdict = 'violation' AND checker <> '' THEN checker END)), array()) AS broken_promises,
  min_by(sentence, seed) FILTER (WHERE verdict = 'harness-error') AS first_error
FROM runs
GROUP BY cell
ORDER BY cell
