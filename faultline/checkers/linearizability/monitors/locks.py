"""A near-linear monitor for a lock that only its holder can release.

Every acquire that succeeded, with the release of the same client after it, is a *hold*, and between the two no other
client can do anything: a hold is one block in any linearization. A hold must come before another when an operation of
it returned before one of the other was called; so the zone from its acquire's return to its release's call must not
overlap the zone of another hold (the zones of Gibbons & Korach, "Testing shared memories", 1997, in their simplest
form: one sort, one sweep). A hold that was never released must come last, so its zone has no end.

An acquire of unknown outcome was followed by nothing of the same client; leaving it away can only help. A release of
unknown outcome may have happened at any time after its call, and it helps to say it did. Refusals (an answer False) and
clients that do two things at once go to the search.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from faultline.checkers.linearizability.certificates import Contradiction
from faultline.checkers.linearizability.data_types import UNKNOWN, Call
from faultline.checkers.linearizability.decision import Decision, hand_over, illegal, legal
from faultline.checkers.porcupine.model import PENDING, Operation

__all__ = ["monitor_lock"]


class _Hold(NamedTuple):
    """From the return of an acquire to the call of its release (never: PENDING), with the positions of both."""

    begin: float
    end: float
    acquire: int
    release: int | None

    def operations(self) -> list[int]:
        return [self.acquire] if self.release is None else [self.acquire, self.release]


def monitor_lock(operations: Sequence[Operation[Call, Any]]) -> Decision:
    """Decide a history of acquire and release, whose argument names the client."""
    by_client: dict[Hashable, list[int]] = {}
    busy_until: dict[Hashable, float] = {}
    calls = [operation.call for operation in operations]
    for position in sorted(range(len(operations)), key=calls.__getitem__):
        operation = operations[position]
        client, answer, return_ = operation.input[1], operation.output, operation.return_
        if answer is False or (answer is UNKNOWN) != (return_ == PENDING):
            return hand_over("an acquire or release was refused, or its answer does not fit its outcome")
        if client not in by_client:
            by_client[client] = []
        elif busy_until[client] >= operation.call:
            return hand_over(f"client {client!r} does two things at once")
        by_client[client].append(position)
        busy_until[client] = return_
    holds: list[_Hold] = []
    for client, positions in by_client.items():
        found = _holds(operations, client, positions)
        if isinstance(found, Decision):
            return found
        holds += found
    # Sorted by where they begin, zones overlap somewhere exactly when two neighbours do.
    holds.sort(key=_begin)
    for number in range(1, len(holds)):
        first, second = holds[number - 1], holds[number]
        if first.end > second.begin:
            clients = operations[first.acquire].input[1], operations[second.acquire].input[1]
            core = [*first.operations(), *second.operations()]
            reason = f"clients {clients[0]!r} and {clients[1]!r} held the lock at the same time"
            return illegal(core, reason, Contradiction("two holders", (first.acquire, second.acquire)))
    # Positions of all holds, one after the other; a hold that was not released ends with its acquire.
    order = [position for hold in holds for position in (hold.acquire, hold.release)]
    return legal([position for position in order if position is not None])


def _begin(hold: _Hold) -> float:
    return hold.begin


def _holds(
    operations: Sequence[Operation[Call, Any]], client: Hashable, positions: Sequence[int]
) -> list[_Hold] | Decision:
    """Return the holds of one client, whose operations are in order of call."""
    holds: list[_Hold] = []
    acquired: int | None = None
    for position in positions:
        operation = operations[position]
        if operation.input[0] == "acquire":
            if acquired is not None and operation.return_ != PENDING:
                reason = f"client {client!r} acquired the lock twice without releasing it"
                return illegal([acquired, position], reason, Contradiction("two holders", (acquired, position)))
            # A pending acquire is left away.
            acquired = position if operation.return_ != PENDING else acquired
        elif acquired is not None:
            holds.append(_Hold(operations[acquired].return_, operation.call, acquired, position))
            acquired = None
        elif operation.return_ != PENDING:
            reason = f"client {client!r} released a lock that it did not hold"
            return illegal([position], reason, Contradiction("taken too often", (position,)))
    if acquired is not None:
        holds.append(_Hold(operations[acquired].return_, PENDING, acquired, None))
    return holds
