"""The entry of a log, as messages carry it and state machines execute it; `write_ahead_log` stores it.

Sources: Patterns of Distributed Systems ch. 3, class WALEntry; Ongaro and Ousterhout (2014), figure 6.
"""

from __future__ import annotations

import msgspec

__all__ = ["COMPACTED", "DATA", "NO_OP", "LogEntry"]

DATA = 0
"""The kind of an entry that carries a client's command."""

NO_OP = 1
"""The kind of the entry by which a new leader learns which entries are committed."""

COMPACTED = -2
"""In the place of a generation: the entry was discarded below the low-water mark, and is not known here any more."""


class LogEntry(msgspec.Struct, frozen=True, array_like=True):
    """One entry: its index, the generation of the leader that made it, its kind, the command, wall time at append."""

    index: int
    generation: int
    kind: int
    data: bytes
    time_us: int = 0
