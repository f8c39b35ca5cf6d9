"""Faultline's own histories: `history.jsonl`, the folder of a run, and the Parquet files of a campaign."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from faultline.checkers.importers.events import EventError
from faultline.checkers.importers.imported import ImportedHistory
from faultline.checkers.importers.recording import imported
from faultline.checkers.importers.text import EventSource, Lines
from faultline.harness.untrusted import decoded, opened

__all__ = ["events", "read", "read_all", "streamed"]


def read_all(path: Path) -> Iterator[ImportedHistory]:
    """Yield the histories at `path`: one for a file or a run's folder, one for each run of a campaign or Parquet
    file."""
    is_folder = os.path.isdir(path)
    if not is_folder and not _is_parquet(path):
        yield read(path)
    elif (path / "history.jsonl").is_file():
        yield read(path / "history.jsonl")
    else:
        from faultline.checkers.importers.parquet import read_parquet

        folder = path / "histories" if (path / "histories").is_dir() else path
        for part in sorted(folder.glob("part-*.parquet")) if is_folder else [path]:
            yield from read_parquet(part)


def read(path: Path) -> ImportedHistory:
    """Read a history that `faultline run` wrote. A torn last line is dropped."""
    return imported(events(path), clock="seconds")


def events(path: Path) -> EventSource:
    """Return the events of `history.jsonl`."""
    return Lines(path, _event, may_be_torn=True)


def streamed(path: Path) -> EventSource | None:
    """Return the events of a file that can be split by key; None for Parquet, whose runs are read one at a time
    anyway."""
    return None if _is_parquet(path) else events(path)


def _event(line: str) -> Any:
    try:
        event = decoded(line)
    except ValueError as error:
        raise ValueError(f"not an event of a history ({error})") from error
    if isinstance(event, dict) and not ("index" in event and "time_us" in event):
        raise EventError("not an event of a history: it has no index or no time_us")
    return event


def _is_parquet(path: Path) -> bool:
    with opened(path, next_step="Name a file or folder that holds a history.") as file:
        return file.read(4) == b"PAR1"
