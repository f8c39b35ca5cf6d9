"""Faultline's own `history.jsonl`."""

from __future__ import annotations

from pathlib import Path

from faultline.checkers.importers.imported import ImportedHistory, read_lines
from faultline.harness.history import History

__all__ = ["read"]


def read(path: Path) -> ImportedHistory:
    """Read a history that `faultline run` wrote; a torn last line is dropped. A run's folder stands for its history."""
    file = path / "history.jsonl" if path.is_dir() else path
    lines = [line for _, line in read_lines(file)]
    return ImportedHistory(History.from_jsonl(lines, str(file)), "cas-register", "seconds")
