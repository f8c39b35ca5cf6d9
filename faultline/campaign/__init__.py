"""Campaigns: many runs, one answer.

A campaign spreads the seeds of a matrix (systems × workloads × fault sets × planted bugs) over Spark, and aggregates
what came back: which promise breaks, under which fault, how often.

    plan → run or collect → check → aggregate → tables, report

`faultline.campaign.pipeline.run_campaign` is the whole of it. Nothing in this package is imported by the rooms below,
and PySpark is imported only when a campaign starts.
"""

from __future__ import annotations
