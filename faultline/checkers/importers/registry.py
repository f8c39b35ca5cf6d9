"""The formats that can be read, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from faultline.checkers.importers import faultline_history, jepsen_log, porcupine_kv
from faultline.checkers.importers.imported import ImportedHistory
from faultline.harness.errors import UsageError

__all__ = ["FORMATS", "FormatDescription", "format_named"]


@dataclass(frozen=True, slots=True)
class FormatDescription:
    """A format by name: one line about it, the model its histories are for, and how to read it."""

    name: str
    summary: str
    model: str
    read: Callable[[Path], ImportedHistory]


FORMATS: Mapping[str, FormatDescription] = {
    description.name: description
    for description in (
        FormatDescription(
            "faultline", "history.jsonl as `faultline run` writes it", "cas-register", faultline_history.read
        ),
        FormatDescription("jepsen-log", "logs of Jepsen's etcd register test", "cas-register", jepsen_log.read),
        FormatDescription("porcupine-kv", "Porcupine's key-value test data", "kv", porcupine_kv.read),
    )
}


def format_named(name: str) -> FormatDescription:
    """The format called `name`; raises UsageError when there is none."""
    if name not in FORMATS:
        raise UsageError(f"There is no history format called `{name}`.", f"Choose one of {', '.join(FORMATS)}.")
    return FORMATS[name]
