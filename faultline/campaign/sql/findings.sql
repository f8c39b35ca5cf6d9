-- One row per finding of every run, the most important of a run first.
SELECT run_id, cell, seed, verdict, place, finding.*
FROM runs LATERAL VIEW posexplode(findings) AS place, finding
ORDER BY cell, seed, place
