"""The detection of a file's format by its first lines; names and extensions do not count."""

from __future__ import annotations

import os
import re
from pathlib import Path

from faultline.checkers.importers.text import NO_HISTORY
from faultline.harness.untrusted import opened

__all__ = ["detect_format", "is_history", "looks_like_json"]

_LOOKED_AT = 1 << 16
_COMMENTS = re.compile(rb"(?:[\s,]|;[^\n]*\n)*")
_TRANSACTION = re.compile(rb':f\s+:txn\b|"f"\s*:\s*"txn"')
_PATTERNS = (
    ("porcupine-kv", re.compile(rb"\{:process \d+, :type :\w+, :f :(?:get|put|append), :key ")),
    ("faultline", re.compile(rb'\{[^\n]*"time_us"\s*:')),
    ("jepsen-json", re.compile(rb'\[?\s*\{\s*"')),
    ("jepsen-edn", re.compile(rb"[\[(]?(?:[\s,]|;[^\n]*\n)*(?:#[\w.]+\s*)?\{\s*(?:\}|[:#])")),
)
# Possessive: two adjacent runs of white space that can share one run in any way cost its square.
_JSON = re.compile(rb'\s*+\[?+\s*+\{\s*+"')
_JEPSEN_LINE = re.compile(rb"^INFO\s+jepsen\.util - ", re.MULTILINE)
_EMPTY = re.compile(rb"\[\s*\]|\(\s*\)")


def detect_format(path: Path) -> str | None:
    """Return the name of the format of a file or a folder that holds one run or campaign; None when it is none of them.

    An empty file is in every format, and is taken for `jepsen-edn`. Raise UsageError when it cannot be read.
    """
    if os.path.isdir(path):
        return "faultline" if _is_own_folder(path) else None
    beginning = _beginning(path)
    if beginning.startswith(b"PAR1"):
        return "faultline"
    if _JEPSEN_LINE.match(beginning):
        return "jepsen-log"
    comments = _COMMENTS.match(beginning)
    start = beginning[comments.end() :] if comments else beginning
    if not start or _EMPTY.match(start):
        return "jepsen-edn"
    name = next((name for name, pattern in _PATTERNS if pattern.match(start)), None)
    return "elle" if name in ("jepsen-json", "jepsen-edn") and _TRANSACTION.search(start) else name


def _is_own_folder(path: Path) -> bool:
    """Return whether the folder is a run's or a campaign's, also of one that did not end."""
    if any((path / name).is_file() for name in ("history.jsonl", "run.json", "verdict.json")):
        return True
    if (path / "plan.json").is_file() and (path / "runs").is_dir():
        return True
    return any(path.glob("part-*.parquet")) or any(path.glob("histories/part-*.parquet"))


def looks_like_json(path: Path) -> bool:
    """Return whether a history of maps is written in JSON rather than EDN."""
    return _JSON.match(_beginning(path)) is not None


def is_history(path: Path) -> bool:
    """Return whether a file among others in a folder is a history. Text for people, such as a README, is not."""
    return detect_format(path) is not None


def _beginning(path: Path) -> bytes:
    with opened(path, next_step=NO_HISTORY) as file:
        return file.read(_LOOKED_AT).removeprefix(b"\xef\xbb\xbf")
