"""From result rows to result tables, by Spark SQL. The queries stand in `sql/`, one file per table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from faultline.campaign.histories import write_parquet
from faultline.campaign.layout import CampaignFolder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["TABLES", "aggregate", "choose_kept", "open_rows", "query"]

TABLES = ("runs", "findings", "cells", "signatures", "latency", "marks", "faults")
"""The result tables of a campaign, in the order they are computed."""


def query(name: str) -> str:
    """The text of one query."""
    return (resources.files("faultline.campaign") / "sql" / f"{name}.sql").read_text("utf-8")


def open_rows(session: SparkSession, parts: Sequence[str]) -> None:
    """Make the rows in the files `parts` the view `all_runs`."""
    session.read.parquet(*parts).createOrReplaceTempView("all_runs")


def choose_kept(session: SparkSession, keep: int) -> frozenset[str]:
    """The ids of the runs whose whole folder stays, at most `keep` and one of each kind."""
    return frozenset(_column(_collected(session, "kept", {"keep": keep}), "run_id"))


def aggregate(
    session: SparkSession, folder: CampaignFolder, kept: Iterable[str], declared: Iterable[tuple[str, str]]
) -> dict[str, pa.Table]:
    """Compute and write all result tables.

    `kept` are the runs with a folder, `declared` the marks known by name, each after the system that is to reach it.
    """
    _settle_kept(session, sorted(kept))
    arguments: dict[str, dict[str, Any]] = {"marks": {"declared": _array_of_pairs(declared)}}
    tables = {name: _collected(session, name, arguments.get(name, {})) for name in TABLES}
    for name, table in tables.items():
        write_parquet(folder.table(name), table)
    return tables


def _settle_kept(session: SparkSession, kept: list[str]) -> None:
    """The view `runs`: all runs, with `folder_kept` and `replay` as they are once the other folders are gone."""
    session.sql(
        """
        SELECT
          * EXCEPT (folder_kept, replay),
          array_contains(:kept, run_id)                                   AS folder_kept,
          CASE WHEN array_contains(:kept, run_id) THEN replay ELSE run_again END AS replay
        FROM all_runs
        """,
        args={"kept": _text_array(kept)},
    ).cache().createOrReplaceTempView("runs")


def _text_array(values: Sequence[str]) -> Any:
    """The values as an SQL array of text. The empty text leads, because an empty array would have no type."""
    from pyspark.sql import functions as F

    return F.array(*map(F.lit, ["", *values]))


def _array_of_pairs(pairs: Iterable[tuple[str, str]]) -> Any:
    """The pairs as an SQL array of structs `(system, mark)`; a pair of empty texts leads, as above."""
    from pyspark.sql import functions as F

    named = [F.struct(F.lit(system).alias("system"), F.lit(mark).alias("mark")) for system, mark in [("", ""), *pairs]]
    return F.array(*named)


def _collected(session: SparkSession, name: str, arguments: dict[str, Any]) -> pa.Table:
    return session.sql(query(name), args=arguments).toArrow()


def _column(table: pa.Table, name: str) -> list[Any]:
    values: list[Any] = table[name].to_pylist()
    return values
