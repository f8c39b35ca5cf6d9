"""Campaigns: many runs, one answer.

A campaign spreads the seeds of a matrix (systems × workloads × fault sets × planted bugs) over Spark, and aggregates
the results: which promise breaks, under which fault, and how often.

    plan → run or collect → check → aggregate → tables, report

`faultline.campaign.pipeline.run_campaign` does all of it. The packages below do not import this one, and PySpark is
imported only when a campaign starts.
"""

from __future__ import annotations
