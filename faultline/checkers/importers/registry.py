"""The formats that can be read, by name. Each importer is a module of its own, imported when its format is met."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faultline.checkers.importers.detect import detect_format
from faultline.harness.errors import UsageError

if TYPE_CHECKING:
    from faultline.checkers.importers.imported import ImportedHistory
    from faultline.checkers.importers.text import EventSource

__all__ = ["AUTO", "FORMATS", "FormatDescription", "format_named", "format_of"]

AUTO = "auto"
"""The name for the format that the content of the file shows."""


@dataclass(frozen=True, slots=True)
class FormatDescription:
    """A format by name: one line about it, the models of its histories, and the functions that read it.

    `reader` returns whole histories, `event_source` the events of a file one by one.
    """

    name: str
    summary: str
    models: str
    reader: str
    event_source: str

    def read(self, path: Path) -> ImportedHistory:
        """Return the history in `path`, which holds one. Raise UsageError for what cannot be read."""
        return next(self.read_all(path))

    def read_all(self, path: Path) -> Iterator[ImportedHistory]:
        """Return all histories in `path`; more than one only for the folder of a campaign."""
        found = _imported(self.reader)(path)
        return found if self.reader.endswith(":read_all") else iter((found,))

    def events(self, path: Path) -> EventSource | None:
        """Return the events of the file `path`, without keeping them; None when it does not hold events one by one."""
        source: EventSource | None = _imported(self.event_source)(path)
        return source


def _imported(name: str) -> Any:
    module_name, _, function = name.partition(":")
    return getattr(importlib.import_module(f"faultline.checkers.importers.{module_name}"), function)


_BY_FUNCTIONS = "by its functions"

FORMATS: Mapping[str, FormatDescription] = {
    description.name: description
    for description in (
        FormatDescription(
            "faultline",
            "history.jsonl, the folder of a run, the histories/part-*.parquet of a campaign",
            _BY_FUNCTIONS,
            "faultline_history:read_all",
            "faultline_history:streamed",
        ),
        FormatDescription(
            "jepsen-edn", "history.edn of Jepsen and Knossos", _BY_FUNCTIONS, "jepsen:read_edn", "jepsen:edn_events"
        ),
        FormatDescription(
            "jepsen-json",
            "the same in JSON, as elle-cli reads it",
            _BY_FUNCTIONS,
            "jepsen:read_json",
            "jepsen:json_events",
        ),
        FormatDescription(
            "elle",
            "transactions of Elle in EDN or JSON: list-append, rw-register",
            "strict-serializable",
            "jepsen:read_elle",
            "jepsen:elle_events",
        ),
        FormatDescription(
            "jepsen-log", "logs of Jepsen's etcd register test", "cas-register", "jepsen_log:read", "jepsen_log:events"
        ),
        FormatDescription(
            "porcupine-kv", "Porcupine's key-value test data", "kv", "porcupine_kv:read", "porcupine_kv:events"
        ),
        FormatDescription(
            "porcupine", "either of the two above, by content", "as above", "porcupine:read", "porcupine:events"
        ),
    )
}


def format_named(name: str) -> FormatDescription:
    """Return the format called `name`; raise UsageError when there is none."""
    if name not in FORMATS:
        raise UsageError(
            f"There is no history format called `{name}`.", f"Choose one of {', '.join((AUTO, *FORMATS))}."
        )
    return FORMATS[name]


def format_of(path: Path, name: str = AUTO) -> FormatDescription:
    """Return the format called `name`, or for `auto` that of the file. Raise UsageError when it shows none."""
    if name != AUTO:
        return format_named(name)
    found = detect_format(path)
    if found is None:
        raise UsageError(f"{path} is in no known format.", f"Name it with --format: one of {', '.join(FORMATS)}.")
    return FORMATS[found]
