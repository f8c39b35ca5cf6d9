"""Faultline's own histories: `history.jsonl`, the folder of a run, and the Parquet files of a campaign."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from faultline.checkers.importers.events import EventError
from faultline.checkers.importers.imported import ImportedHistory
from faultline.checkers.importers.recording import imported
from faultline.checkers.importers.text import EventSource, Lines
from faultline.harness.errors import UsageError

__all__ = ["events", "read", "read_all", "streamed"]


def read_all(path: Path) -> Iterator[ImportedHistory]:
    """The histories at `path`: one for a file or a run's folder, one for each run of a campaign or Parquet file."""
    if path.is_file() and not _is_parquet(path):
        yield read(path)
    elif (path / "history.jsonl").is_file():
        yield read(path / "history.jsonl")
    else:
        from faultline.checkers.importers.parquet import read_parquet

        folder = path / "histories" if (path / "histories").is_dir() else path
        for part in [path] if path.is_file() else sorted(folder.glob("part-*.parquet")):
            yield from read_parquet(part)


def read(path: Path) -> ImportedHistory:
    """Read a history that `faultline run` wrote. A torn last line is dropped."""
    return imported(events(path), clock="seconds")


def events(path: Path) -> EventSource:
    """The events of `history.jsonl`."""
    return Lines(path, _event, may_be_torn=True)


def streamed(path: Path) -> EventSource | None:
    """The events of a file that can be split by key; None for Parquet, whose runs are read one at a time anyway."""
    return None if _is_parquet(path) else events(path)


def _event(line: str) -> Any:
    try:
        event = msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        raise ValueError(f"not an event of a history ({error})") from error
    if isinstance(event, dict) and not ("index" in event and "time_us" in event):
        raise EventError("not an event of a history: it has no index or no time_us")
    return event


def _is_parquet(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PAR1"
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}.", "Name a file or folder that holds a history."
        ) from error
