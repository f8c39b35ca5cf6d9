"""The cycles that each level forbids, and the rules it keeps: what verifying a certificate trusts of the theory.

Sources: Adya, *Weak Consistency* (MIT 1999), of the cycles; Cerone and Gotsman (PODC 2016), of those that snapshots
forbid; Daudjee and Salem (ICDE 2004, VLDB 2006), of sessions and real time. `models` says the same in the terms of
anomalies, for all models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["INTERNAL", "LEVELS", "LOST_UPDATE", "Level"]

INTERNAL, LOST_UPDATE = "internal", "lost-update"


class Level(NamedTuple):
    """A level: which cycles it forbids, told by the kinds of their edges; and "process" or "realtime" if it has that
    order.

    `keeps` names the rules that it keeps beside those of all that read committed. A level `has_versions_in_order` if no
    transaction of its order uses an older version than an earlier one.
    """

    forbids: Callable[[Sequence[str]], bool]
    order: str = ""
    keeps: tuple[str, ...] = ()
    reads_committed: bool = True
    has_versions_in_order: bool = False

    @property
    def is_serial(self) -> bool:
        """True when the transactions run one by one."""
        return self.has_versions_in_order and self.forbids is _any_cycle

    @property
    def sees_causes(self) -> bool:
        """True when a transaction that is seen is seen with all that its writes are on top of."""
        return self.forbids is not _half_seen


def _writes_only(kinds: Sequence[str]) -> bool:
    return not {"wr", "rw"} & {*kinds}


def _no_miss(kinds: Sequence[str]) -> bool:
    return "rw" not in kinds


def _half_seen(kinds: Sequence[str]) -> bool:
    return _no_miss(kinds) or sorted(kinds) == ["rw", "wr"]


def _one_miss(kinds: Sequence[str]) -> bool:
    return kinds.count("rw") <= 1


def _no_two_misses_in_a_row(kinds: Sequence[str]) -> bool:
    return not any(one == other == "rw" for one, other in zip(kinds, [*kinds[1:], kinds[0]], strict=True))


def _any_cycle(_kinds: Sequence[str]) -> bool:
    return True


def _in_orders(name: str, **level: Any) -> dict[str, Level]:
    """Return a level alone, with the order of sessions and with real time."""
    whole = "strict-serializable" if name == "serializable" else f"strong-{name}"
    orders = {name: "", f"strong-session-{name}": "process", whole: "realtime"}
    return {each: Level(order=order, **level) for each, order in orders.items()}


_ATOMIC = (INTERNAL,)
_SAFE = (INTERNAL, LOST_UPDATE)

LEVELS: Mapping[str, Level] = {
    **_in_orders("read-uncommitted", forbids=_writes_only, reads_committed=False),
    **_in_orders("read-committed", forbids=_no_miss),
    **dict.fromkeys(("monotonic-view", "monotonic-atomic-view", "monotonic-snapshot-read"), Level(_no_miss)),
    "cursor-stability": Level(_no_miss, keeps=(LOST_UPDATE,)),
    **dict.fromkeys(("read-atomic", "causal-cerone", "prefix"), Level(_half_seen, keeps=_ATOMIC)),
    **dict.fromkeys(("update-atomic", "parallel-snapshot-isolation"), Level(_half_seen, keeps=_SAFE)),
    **dict.fromkeys(("consistent-view", "forward-consistent-view"), Level(_one_miss, keeps=(LOST_UPDATE,))),
    "update-serializable": Level(_one_miss, keeps=(LOST_UPDATE,)),
    "repeatable-read": Level(_any_cycle, keeps=(LOST_UPDATE,)),
    **_in_orders("snapshot-isolation", forbids=_no_two_misses_in_a_row, keeps=_SAFE, has_versions_in_order=True),
    **_in_orders("serializable", forbids=_any_cycle, keeps=_SAFE, has_versions_in_order=True),
}
"""The levels by name, each with the cycles that it forbids."""
