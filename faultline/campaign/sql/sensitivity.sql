-- One row per anomaly in a cell: how many were inserted into histories of runs that passed, and how many shown.
SELECT
  cell,
  figure.anomaly,
  count(*)             AS runs,
  sum(figure.inserted) AS inserted,
  sum(figure.shown)    AS shown,
  max(figure.limit)    AS limit_text
FROM runs LATERAL VIEW explode(sensitivity) AS figure
GROUP BY cell, figure.anomaly
ORDER BY cell, figure.anomaly
