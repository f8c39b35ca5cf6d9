"""Histories of Jepsen, Knossos and Elle: EDN as they store them, and JSON arrays as elle-cli takes them.

Transactions (`:f :txn`, or values that are lists of micro-operations) stay whole: their value is the list of
`[function, key, value]` that was asked for, their result the same list as it came back.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from faultline.checkers.importers.events import EventError, EventRecorder
from faultline.checkers.importers.imported import ImportedHistory
from faultline.checkers.importers.independent import are_tuples, split_tuples
from faultline.checkers.importers.suggest import suggested_model
from faultline.checkers.importers.text import EventReader, line_of_event, malformed, read_events
from faultline.harness.errors import UsageError

__all__ = ["finished", "read_edn", "read_elle", "read_json", "record_file"]


def read_edn(path: Path) -> ImportedHistory:
    """Read a history in EDN: maps one after another, or one vector or list of them."""
    return finished(record_file(path, _edn_reader))


def read_json(path: Path) -> ImportedHistory:
    """Read a history in JSON: an array of objects, or objects one after another."""
    return finished(record_file(path, _json_reader))


def read_elle(path: Path) -> ImportedHistory:
    """Read a history of transactions, in EDN or JSON by its first character. Raises UsageError for other histories."""
    from faultline.checkers.importers.detect import looks_like_json

    imported = read_json(path) if looks_like_json(path) else read_edn(path)
    for row, f in enumerate(imported.history.f):
        if f != "txn":
            raise UsageError(
                f"{path}, operation {row + 1}: `{f}` is no transaction.", "Let --format auto find out what it is."
            )
    return imported


def record_file(path: Path, new_reader: Callable[[], EventReader]) -> EventRecorder:
    """Record the events of a file. Raises UsageError with the line of one that cannot be."""
    recorder = EventRecorder()
    try:
        for event in read_events(path, new_reader):
            recorder.record(event)
    except EventError as error:
        line = line_of_event(path, new_reader, recorder.events)
        raise malformed(path, line, f"{error} (event {recorder.events})") from error
    return recorder


def finished(recorder: EventRecorder) -> ImportedHistory:
    """The history that `recorder` has built, with keys moved out of tuples."""
    history = recorder.history
    has_times = recorder.finish()
    from_tuples = are_tuples(history)
    if from_tuples:
        split_tuples(history)
    return ImportedHistory(
        history,
        suggested_model(history),
        "seconds" if has_times else "events",
        recorder.nemesis_events,
        "tuples" if from_tuples else "format",
    )


def _edn_reader() -> EventReader:
    from faultline.checkers.importers.edn import EdnReader

    return EdnReader(unwrap=True)


def _json_reader() -> EventReader:
    from faultline.checkers.importers.json_stream import JsonReader

    return JsonReader()
