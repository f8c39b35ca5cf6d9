"""Histories of Jepsen, Knossos and Elle: EDN as they store them, and JSON arrays as elle-cli takes them.

Transactions (`:f :txn`, or values that are lists of micro-operations) stay whole: their value is the list of
`[function, key, value]` of the invocation, their result that of the completion.
"""

from __future__ import annotations

from pathlib import Path

from faultline.checkers.importers.imported import ImportedHistory
from faultline.checkers.importers.recording import imported
from faultline.checkers.importers.text import EventSource, FormReader, Forms
from faultline.harness.errors import UsageError

__all__ = ["edn_events", "elle_events", "json_events", "read_edn", "read_elle", "read_json"]


def read_edn(path: Path) -> ImportedHistory:
    """Read a history in EDN: maps one after another, or one vector or list of them."""
    return imported(edn_events(path), with_tuples=True)


def read_json(path: Path) -> ImportedHistory:
    """Read a history in JSON: an array of objects, or objects one after another."""
    return imported(json_events(path), with_tuples=True)


def read_elle(path: Path) -> ImportedHistory:
    """Read a history of transactions, in EDN or JSON by its first character. Raise UsageError for other histories."""
    read = imported(elle_events(path))
    for row, f in enumerate(read.history.f):
        if f != "txn":
            raise UsageError(f"{path}, operation {row + 1}: `{f}` is not a transaction.", "Use --format auto.")
    return read


def edn_events(path: Path) -> EventSource:
    """Return the events of a file in EDN."""
    return Forms(path, _edn_reader)


def json_events(path: Path) -> EventSource:
    """Return the events of a file in JSON."""
    return Forms(path, _json_reader)


def elle_events(path: Path) -> EventSource:
    """Return the events of a file in EDN or JSON."""
    from faultline.checkers.importers.detect import looks_like_json

    return json_events(path) if looks_like_json(path) else edn_events(path)


def _edn_reader() -> FormReader:
    from faultline.checkers.importers.edn import EdnReader

    return EdnReader(unwrap=True)


def _json_reader() -> FormReader:
    from faultline.checkers.importers.json_stream import JsonReader

    return JsonReader()
