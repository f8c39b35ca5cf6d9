"""Porcupine's test data, in either of its two formats."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from faultline.checkers.importers import jepsen_log, porcupine_kv
from faultline.checkers.importers.detect import detect_format
from faultline.checkers.importers.imported import ImportedHistory
from faultline.checkers.importers.text import EventSource

__all__ = ["events", "read"]


def read(path: Path) -> ImportedHistory:
    """Read a Jepsen log or a key-value history."""
    imported: ImportedHistory = _format(path).read(path)
    return imported


def events(path: Path) -> EventSource:
    """Return the events of a Jepsen log or a key-value history."""
    source: EventSource = _format(path).events(path)
    return source


def _format(path: Path) -> ModuleType:
    return porcupine_kv if detect_format(path) == "porcupine-kv" else jepsen_log
