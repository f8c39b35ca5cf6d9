"""Telling a write that was lost from a read that was served old state.

Both look alike where they are first seen: what began after a write was acknowledged shows what was there before that
write. What happens afterwards tells them apart, so the whole history of the key is asked.

An operation *misses* a write W when it began after W was acknowledged, and shows a value that only writes which had
ended before W began have written. A compare-and-set that was refused misses the W whose value it expected, if nothing
may have overwritten that by then; alone it proves no loss, as it shows no value. W is *lost* when some operation misses
it and, from then on, nothing shows W again, or another write that had been acknowledged after W began. Otherwise the
store still had it: a stale read.

Another write may come before anyone has looked again. What is seen after that tells nothing about W, so the misses
themselves must tell. W is lost if

- two clients at two nodes miss it: one node alone may just be behind; or
- a compare-and-set put its new value in the place of the old state, and that value was seen; or
- the store *went on without W*: it is missed by the node that had acknowledged it, or by the node that acknowledged
  the next write of the key itself, while the former one answered nothing in between. And it is not just the last write
  before a leader was elected, which that may have and not have applied yet: two acknowledged writes of the key were
  missed, or the node that misses W had acknowledged another write since.

If nothing of this is so, it is not known whether W was lost, and the weaker name is given, as a stale read was seen.

Whether a store went on is seen from outside only. A node that takes over the range of a key, and answers before it has
the data, looks like one that lost them.

Where no other write comes, the last operations of a key have the last word: a W that all of them miss is lost, even if
it is only one. Runs of Faultline end with reads of all clients after the heal. A write that was never acknowledged, and
that a read has shown, is not called lost: its loss shows as a stale read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from faultline.checkers.linearizability.operations import (
    AVOID,
    INFINITY,
    OBSERVE,
    SWAP,
    WRITE,
    RegisterOperation,
    Value,
)
from faultline.harness.history import History

__all__ = ["Loss", "find_loss"]

_CANDIDATES_MAX = 64
"""The number of missed writes of a key that are looked at, the latest ones: each costs a walk over the key."""


class Loss(NamedTuple):
    """A lost write, and the operation that misses it."""

    write: RegisterOperation
    missed_by: RegisterOperation


def find_loss(history: History, operations: Sequence[RegisterOperation], refused: RegisterOperation) -> Loss | None:
    """Return a write that was lost from the register of these `operations`, one that `refused` misses if there is one.

    None when no loss is certain.
    """
    key = _Key(history, operations)
    candidates = key.missed_writes()[-_CANDIDATES_MAX:]
    losses = [loss for write in candidates if (loss := key.loss_of(write, refused)) is not None]
    shown = (loss for loss in losses if loss.missed_by.row == refused.row)
    return next(shown, losses[0] if losses else None)


class _Key:
    """One key: the writers of each value, and the operations that show a value, by success or by refusal."""

    def __init__(self, history: History, operations: Sequence[RegisterOperation]) -> None:
        self._history = history
        self._writes = [operation for operation in operations if operation.kind >= WRITE]
        self._acknowledged = sorted((each for each in self._writes if each.return_ != INFINITY), key=_by_return)
        self._witnesses = sorted((each for each in operations if _is_witness(each)), key=_by_call)
        self._writers: dict[Value, list[RegisterOperation]] = {}
        for write in self._writes:
            self._writers.setdefault(write.produce, []).append(write)

    def missed_writes(self) -> list[RegisterOperation]:
        """Return, of the acknowledged writes that each operation misses, the latest, in order of acknowledgement."""
        missed: dict[int, RegisterOperation] = {}
        ended = 0
        for witness in self._witnesses:
            while ended < len(self._acknowledged) and self._acknowledged[ended].return_ < witness.call:
                ended += 1
            last = next((write for write in self._newest_first(ended, witness) if self._misses(witness, write)), None)
            if last is not None:
                missed[last.row] = last
        return sorted(missed.values(), key=_by_return)

    def _newest_first(self, ended: int, witness: RegisterOperation) -> Iterator[RegisterOperation]:
        """Return the first `ended` acknowledged writes backwards, as far back as `witness` may miss one of them."""
        if witness.kind == AVOID:
            return (write for write in self._writers.get(witness.demand, ()) if write.return_ < witness.call)
        written = self._written(witness.demand)
        return (write for write in reversed(self._acknowledged[:ended]) if write.call > written)

    def loss_of(self, write: RegisterOperation, preferred: RegisterOperation) -> Loss | None:
        """Return the loss of `write`, told by `preferred` if that misses it for good; None when it is not certain."""
        missed_by = [witness for witness in self._witnesses if self._misses(witness, write)]
        last = missed_by[-1]
        seen_until = max((each.return_ for each in self._witnesses if self._shows(each, write, last)), default=-1)
        for_good = [witness for witness in missed_by if witness.call > seen_until]
        if all(each.kind == AVOID for each in for_good):
            return None
        if not self._has_last_word(write, last) and not self._is_certain(write, for_good):
            return None
        return Loss(write, next((each for each in for_good if each.row == preferred.row), for_good[0]))

    def _misses(self, witness: RegisterOperation, write: RegisterOperation) -> bool:
        if witness.call < write.return_ or witness.row == write.row:
            return False
        if witness.kind == AVOID:
            return witness.demand == write.produce and not any(
                other.return_ >= write.call and other.call < witness.return_ and other.row != write.row
                for other in self._writes
            )
        return self._written(witness.demand) < write.call

    def _written(self, value: Value) -> int:
        """Return the time by which all writes of `value` had ended."""
        return max((writer.return_ for writer in self._writers.get(value, ())), default=-1)

    def _shows(self, witness: RegisterOperation, write: RegisterOperation, last: RegisterOperation) -> bool:
        """Return whether `witness` shows `write`, or a later one that was acknowledged before `last` missed both."""
        return witness.kind != AVOID and any(
            writer.row == write.row or write.call <= writer.return_ < last.call
            for writer in self._writers.get(witness.demand, ())
        )

    def _has_last_word(self, write: RegisterOperation, last: RegisterOperation) -> bool:
        """Return whether no other write may have taken effect after `last` looked."""
        return all(other.row in (write.row, last.row) or other.return_ < last.call for other in self._writes)

    def _is_certain(self, write: RegisterOperation, missed_by: Sequence[RegisterOperation]) -> bool:
        """Return whether `missed_by`, which another write may have followed, show that `write` was lost."""
        nodes = {self._history.node[each.row] for each in missed_by}
        processes = {self._history.process[each.row] for each in missed_by}
        if len(processes) > 1 and len(nodes) > 1:
            return True
        return any(
            self._is_built_on(each) or (self._went_on_without(write, each) and self._is_no_beginner(write, each))
            for each in missed_by
        )

    def _is_built_on(self, missed_by: RegisterOperation) -> bool:
        """Return whether `missed_by` put a new value in the place of the old one, and another operation saw that."""
        return missed_by.kind == SWAP and any(
            witness.kind != AVOID and witness.demand == missed_by.produce for witness in self._witnesses
        )

    def _went_on_without(self, write: RegisterOperation, missed_by: RegisterOperation) -> bool:
        """Return whether `missed_by` was answered by the node of `write`, or by the one that took over from it."""
        node, before = self._history.node[missed_by.row], self._history.node[write.row]
        if not node or node == before:
            return bool(node)
        following = next((each for each in self._acknowledged if each.call > missed_by.return_), None)
        if following is None or self._history.node[following.row] != node:
            return False
        return not any(
            call > missed_by.return_ and return_ <= following.return_
            for call, return_, _ in self._answers.get(before, ())
        )

    def _is_no_beginner(self, write: RegisterOperation, missed_by: RegisterOperation) -> bool:
        """Return whether the node of `missed_by` cannot just be a new leader with one more write to apply."""
        if sum(self._misses(missed_by, other) for other in self._acknowledged) > 1:
            return True
        return any(
            is_change and call > write.return_ and return_ < missed_by.return_
            for call, return_, is_change in self._answers.get(self._history.node[missed_by.row], ())
        )

    @cached_property
    def _answers(self) -> dict[str, list[tuple[int, int, bool]]]:
        """The operations that each node answered, of all keys: when they began and ended, and if they were changes."""
        answers: dict[str, list[tuple[int, int, bool]]] = {}
        history = self._history
        columns = zip(history.node, history.outcome, history.invoke_index, history.complete_index, history.f)
        for node, outcome, call, return_, f in columns:
            if outcome == "ok":
                answers.setdefault(node, []).append((call, return_, f in ("write", "cas")))
        return answers


def _is_witness(operation: RegisterOperation) -> bool:
    return operation.kind in (OBSERVE, AVOID) or (operation.kind == SWAP and operation.return_ != INFINITY)


def _by_call(operation: RegisterOperation) -> int:
    return operation.call


def _by_return(operation: RegisterOperation) -> int:
    return operation.return_
