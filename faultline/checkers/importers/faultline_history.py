"""Faultline's own histories: `history.jsonl`, the folder of a run, and the Parquet files of a campaign."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from faultline.checkers.importers.events import EventError, EventRecorder
from faultline.checkers.importers.imported import ImportedHistory
from faultline.checkers.importers.suggest import suggested_model
from faultline.checkers.importers.text import malformed, numbered_lines
from faultline.harness.errors import UsageError

__all__ = ["read", "read_all"]


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
    recorder = EventRecorder()
    torn: msgspec.DecodeError | None = None
    place = 0
    for number, line in numbered_lines(path):
        if torn is not None:
            raise malformed(path, place, f"not an event of a history ({torn})") from torn
        place = number
        try:
            recorder.record(_event(line))
        except msgspec.DecodeError as error:
            torn = error
        except EventError as error:
            raise malformed(path, number, str(error)) from error
    recorder.finish()
    return ImportedHistory(recorder.history, suggested_model(recorder.history), "seconds", recorder.nemesis_events)


def _event(line: str) -> Any:
    event = msgspec.json.decode(line)
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
