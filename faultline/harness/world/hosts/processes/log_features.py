"""The features that a real store has entered, from the logs of its members during a run.

The logs are read once, at the end, line by line. What was logged before the cluster served for the first time tells of
its founding, in which a first leader is elected every time, and is skipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from faultline.harness.feature import Feature

__all__ = ["LINE_BYTES_MAX", "features_in_log"]

LINE_BYTES_MAX = 64 * 1024
"""A longer line is looked at in pieces."""


def features_in_log(log: Path, features: Iterable[Feature], skipped_lines: int) -> Counter[str]:
    """Count the lines of `log` after the first `skipped_lines` that tell of each of `features`.

    A log that is not there, because its host could not be reached any more, tells nothing.
    """
    counted = Counter[str]()
    told = [feature for feature in features if feature.log]
    with suppress(OSError), log.open("rb") as file:
        for line in _lines_after(file, skipped_lines):
            counted.update(feature.name for feature in told if feature.is_told_by(line))
    return counted


def _lines_after(file: BinaryIO, skipped_lines: int) -> Iterator[str]:
    while skipped_lines > 0 and (piece := file.readline(LINE_BYTES_MAX)):
        skipped_lines -= piece.endswith(b"\n")
    while piece := file.readline(LINE_BYTES_MAX):
        yield piece.decode("utf-8", "replace")
