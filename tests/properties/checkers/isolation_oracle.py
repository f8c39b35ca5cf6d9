"""Isolation levels by brute force, straight from their definitions, for histories of a few transactions.

A history here is a list of transactions `(session, micro-operations with what was read, outcome)` in real-time order.
"""

from __future__ import annotations

from itertools import permutations

from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome


def history_of(transactions):
    """The transactions, one after the other, as a history."""
    history = History()
    for number, (session, micro, outcome) in enumerate(transactions):
        asked = [[f, key, None if f == "r" else value] for f, key, value in micro]
        row = history.invoke(Operation(session, "txn", None, asked), 10 * number, session, "n")
        result = [list(step) for step in micro] if outcome == "ok" else None
        history.complete(row, Outcome(outcome, result), 10 * number + 5)
    return history


class Small:
    """The committed transactions of a small history, the initial one first, with who read whose write."""

    def __init__(self, transactions):
        written = {}
        for number, (_, micro, _) in enumerate(transactions):
            for f, key, value in micro:
                if f == "w":
                    written[key, value] = number
        seen = {
            written[key, value]
            for _, micro, outcome in transactions
            for f, key, value in micro
            if outcome == "ok" and f == "r" and (key, value) in written
        }
        kept = [
            n for n, (_, _, outcome) in enumerate(transactions) if outcome == "ok" or (outcome == "info" and n in seen)
        ]
        place = {number: index for index, number in enumerate(kept, start=1)}
        self.size = len(kept) + 1
        self.sessions = [None] + [transactions[number][0] for number in kept]
        self.writes = [None] + [{k for f, k, _ in transactions[number][1] if f == "w"} for number in kept]
        self.reads = [[]]
        self.clean = True
        for number in kept:
            self.reads.append(
                [] if transactions[number][2] == "info" else self._reads(transactions, number, written, place)
            )

    def _reads(self, transactions, number, written, place):
        own, reads = {}, []
        for f, key, value in transactions[number][1]:
            if f == "w":
                own[key] = value
            elif key in own:
                self.clean &= own[key] == value
            elif value is None:
                reads.append((key, 0))
            else:
                writer = written.get((key, value))
                finals = {} if writer is None else {k: v for f2, k, v in transactions[writer][1] if f2 == "w"}
                if writer is None or writer == number or writer not in place or finals[key] != value:
                    self.clean = False
                else:
                    reads.append((key, place[writer]))
        return reads

    def wrote(self, number, key):
        return number == 0 or key in self.writes[number]

    def before(self, first, second):
        """Session order, the initial transaction before all."""
        return first != second and (first == 0 or (first < second and self.sessions[first] == self.sessions[second]))

    def direct(self):
        """Session order and reads, as pairs."""
        pairs = {(a, b) for a in range(self.size) for b in range(1, self.size) if self.before(a, b)}
        return pairs | {(writer, reader) for reader in range(self.size) for _, writer in self.reads[reader]}


def closure(pairs, size):
    reach = set(pairs)
    for middle in range(size):
        reach |= {(a, d) for a, b in reach if b == middle for c, d in reach if c == middle}
    return reach


def _orders(small):
    return ((0, *order) for order in permutations(range(1, small.size)))


def _knows(level, small, visible, reader, place):
    """Return the transactions that the reader knows of at one of its reads, under the premise of the level's axiom."""
    if level == "rc":
        return {writer for _, writer in small.reads[reader][:place]}
    return {other for other in range(small.size) if (other, reader) in visible}


def holds(level, transactions):
    """Return whether some commit order that extends sessions and reads satisfies the axiom (Biswas & Enea 2019)."""
    small = Small(transactions)
    if not small.clean:
        return False
    direct = small.direct()
    visible = closure(direct, small.size) if level == "cc" else direct
    for order in _orders(small):
        at = {number: position for position, number in enumerate(order)}
        if any(at[a] >= at[b] for a, b in direct):
            continue
        if all(_axiom(level, small, visible, at, reader) for reader in range(1, small.size)):
            return True
    return False


def _axiom(level, small, visible, at, reader):
    for place, (key, writer) in enumerate(small.reads[reader]):
        known = _knows(level, small, visible, reader, place)
        if any(
            small.wrote(other, key) and other not in (writer, reader) and at[other] >= at[writer] for other in known
        ):
            return False
    return True


def is_serializable(transactions, session_order=False):
    """Return whether the committed transactions, run one by one in some order, read what was read."""
    small = Small(transactions)
    if not small.clean:
        return False
    for order in _orders(small):
        at = {number: position for position, number in enumerate(order)}
        if session_order and any(at[a] >= at[b] for a in order for b in order if small.before(a, b)):
            continue
        if all(_sees(small, order[: at[reader]], reader) for reader in order):
            return True
    return False


def _sees(small, earlier, reader):
    return all(
        next(other for other in reversed(earlier) if small.wrote(other, key)) == writer
        for key, writer in small.reads[reader]
    )


def is_snapshot_isolated(transactions, session_order=False):
    """Return whether some order of starts and commits, with snapshots and first committer wins, gives what was read."""
    small = Small(transactions)
    return small.clean and _interleave(small, session_order, [], set(), {}, frozenset())


def _interleave(small, session_order, committed, started, snapshots, done):
    """Depth-first over the next event: some transaction starts, or some started one commits."""
    if len(done) == small.size - 1:
        return True
    for number in range(1, small.size):
        if number in done:
            continue
        if number in started:
            since = committed[snapshots[number] :]
            if any(small.writes[number] & small.writes[other] for other in since):
                continue
            if _interleave(small, session_order, [*committed, number], started, snapshots, done | {number}):
                return True
        elif not session_order or all(other in done for other in range(1, small.size) if small.before(other, number)):
            if not _sees(small, [0, *committed], number):
                continue
            later = snapshots | {number: len(committed)}
            if _interleave(small, session_order, committed, started | {number}, later, done):
                return True
    return False
