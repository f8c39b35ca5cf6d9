"""The rows of a campaign in Spark: read by the cluster from the files that tasks left."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SparkRows"]


class SparkRows:
    """The rows in the files `parts`, as an SQL engine."""

    def __init__(self, session: SparkSession, parts: Sequence[Path]) -> None:
        self._session = session
        session.read.parquet(*map(_as_pattern, parts)).createOrReplaceTempView("all_runs")

    def add_table(self, name: str, table: pa.Table) -> None:
        """Register `table` under `name`."""
        self._session.createDataFrame(table).createOrReplaceTempView(name)

    def keep_answer(self, name: str, text: str) -> None:
        """Register the answer to the query `text` under `name`, computed once."""
        self._session.sql(text).cache().createOrReplaceTempView(name)

    def answer(self, text: str, arguments: Mapping[str, Any]) -> pa.Table:
        """Return the answer to the query `text`, with `arguments` in place of its parameters."""
        return self._session.sql(text, args=dict(arguments)).toArrow()


def _as_pattern(path: Path) -> str:
    """Return the pattern that matches `path` alone: Spark takes paths for glob patterns, as Hadoop has them, and the
    name of a campaign may have brackets."""
    return re.sub(r"([\\\[\]{}*?^,])", r"\\\1", str(path))
