"""The part of a promise that all systems with transactions have in common."""

from __future__ import annotations

from faultline.harness.promises import Asked

__all__ = ["STRICT", "reason_of_forgotten_transactions"]

STRICT = frozenset({"txn-append", "txn-register", "lost-update", "write-skew", "predicates", "booking"})
"""The workloads that are strictly serializable only if no read misses what was committed before it began."""

_REMEMBERED_WHERE_STALE_MIN = 1_000
"""The fewest transactions that a server must remember where messages come seconds late: more than end meanwhile."""

_REMEMBERED_WHERE_REPEATED_MIN = 100
"""The same where messages come again within 40 ms."""


def reason_of_forgotten_transactions(asked: Asked) -> str | None:
    """Return a clause that says how a message may be of a transaction that is forgotten; None when none can be."""
    remembered = asked.number("transactions_remembered")
    if asked.weather.stale and remembered < _REMEMBERED_WHERE_STALE_MIN:
        message, least = "a stale message", _REMEMBERED_WHERE_STALE_MIN
    elif _repeats_messages(asked) and remembered < _REMEMBERED_WHERE_REPEATED_MIN:
        message, least = "a message that comes again", _REMEMBERED_WHERE_REPEATED_MIN
    else:
        return None
    return (
        f"{message} may be of a transaction that is forgotten, and begin it anew, with"
        f" transactions_remembered below {least}"
    )


def _repeats_messages(asked: Asked) -> bool:
    return asked.weather.duplicate > 0 or "packet-duplicate" in asked.fault_kinds
