-- One row per kind of fault in a cell: how often it was injected and took effect, and whether it met any operation.
SELECT
  cell,
  fault.kind,
  count(*)                                     AS runs,
  sum(fault.injections)                        AS injections,
  sum(fault.not_applied)                       AS not_applied,
  sum(fault.active_us)                         AS active_us,
  sum(fault.operations_in_flight)              AS operations_in_flight,
  count_if(fault.operations_in_flight = 0)     AS runs_without_operations,
  count_if(verdict = 'violation')              AS violating_runs
FROM runs LATERAL VIEW explode(faults) AS fault
GROUP BY cell, fault.kind
ORDER BY cell, fault.kind
