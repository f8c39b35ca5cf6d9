-- Every known `sometimes` mark in every cell: how often it was reached, and in how many runs. A mark is known when
-- any run of the same system reached it, or when it was declared for that system; one with no runs was never reached.
WITH reached AS (
  SELECT cell, system, entry.key AS mark, entry.value AS times
  FROM runs LATERAL VIEW explode(map_entries(marks)) AS entry
),
known AS (
  SELECT DISTINCT cells.cell, all_marks.mark
  FROM (SELECT DISTINCT cell, system FROM runs) AS cells
  JOIN (
    SELECT system, mark FROM reached
    UNION
    SELECT system, mark FROM declared
  ) AS all_marks ON cells.system = all_marks.system
  WHERE all_marks.mark <> ''
)
SELECT known.cell, known.mark, count(times) AS runs, coalesce(sum(times), 0) AS times
FROM known LEFT JOIN reached ON known.cell = reached.cell AND known.mark = reached.mark
GROUP BY known.cell, known.mark
ORDER BY known.cell, known.mark
