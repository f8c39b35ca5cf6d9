"""Porcupine's test data, whichever of its two formats a file is in."""

from __future__ import annotations

from pathlib import Path

from faultline.checkers.importers import jepsen_log, porcupine_kv
from faultline.checkers.importers.detect import detect_format
from faultline.checkers.importers.imported import ImportedHistory

__all__ = ["read"]


def read(path: Path) -> ImportedHistory:
    """Read a Jepsen log or a key-value history."""
    if detect_format(path) == "porcupine-kv":
        return porcupine_kv.read(path)
    return jepsen_log.read(path)
