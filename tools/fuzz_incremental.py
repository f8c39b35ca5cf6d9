"""Random small histories, judged event by event by incremental checkers: at each prefix they must know what is known.

    python tools/fuzz_incremental.py --seeds 0..99999 --processes 2
    python tools/fuzz_incremental.py --seeds 0..99999 --model read-write

Each seed is one history of an object that a few clients use at once. Operations crash before or after their effect, or
fail; some answers are wrong. After each completion the prefix of the history is judged anew by a checker that sees all
of it: for registers by the port of Porcupine. The incremental checker must be certain of a violation exactly at the
first prefix that has one, and the checker of the whole history must still find one. The first difference is printed
with its seed, and the program ends with 1.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from judged_seeds import judge_seeds, options
from things_in_use import Bank, GrowingSet, Ids, Number, Queue, Register, Thing, Version
from things_of_clients import Day, Lease, Lists, Lock, Versions
from things_of_replicas import Accounts, Group, Pair, Replicas, WatchedKeys, WrittenOnce

from faultline.checkers.bookings import BookingsChecker
from faultline.checkers.causal_pairs import CausalPairsChecker
from faultline.checkers.classic.bank import BankChecker
from faultline.checkers.classic.causal_reverse import CausalReverseChecker
from faultline.checkers.classic.counter import CounterChecker
from faultline.checkers.classic.lock import LockChecker
from faultline.checkers.classic.long_fork import LongForkChecker
from faultline.checkers.classic.monotonic import MonotonicChecker
from faultline.checkers.classic.queues import QueueChecker
from faultline.checkers.classic.sessions import SessionsChecker
from faultline.checkers.classic.set_full import SetFullChecker
from faultline.checkers.classic.transfers import TransfersChecker
from faultline.checkers.classic.unique_ids import UniqueIdsChecker
from faultline.checkers.follower_reads import FollowerReadsChecker
from faultline.checkers.incremental.registers import IncrementalRegisters
from faultline.checkers.leased_lock import LeasedLockChecker
from faultline.checkers.linearizability.models import referee_operations, register_model
from faultline.checkers.linearizability.operations import register_operations
from faultline.checkers.porcupine import check_operations
from faultline.checkers.transactions.checker import ListAppendChecker
from faultline.checkers.watches import WatchesChecker
from faultline.harness.history import History
from faultline.harness.incremental import IncrementalChecker
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, fail, info
from faultline.harness.verdict import Verdict
from faultline.testing.checker_checks import CheckerSubject

__all__ = ["MODELS", "differences", "random_events"]

OPERATIONS_MAX = 13

Event = tuple[int, Operation | Outcome]
"""A row with its invocation or its completion."""


class Model(NamedTuple):
    """A kind of object: how one is made, its incremental checker, and whether the checker of histories refutes one."""

    thing: Callable[[random.Random], Thing]
    incremental: Callable[[], IncrementalChecker]
    refutes: Callable[[History], bool]
    is_exact: bool = True
    """False when the incremental checker leaves some violations of a prefix for the end."""
    is_lasting: bool = True
    """False when the checker of histories may refute a prefix and not the whole."""


def _port_refutes(history: History) -> bool:
    """Return whether the port of Porcupine finds no order."""
    operations = register_operations(history, range(len(history)))
    return check_operations(register_model(), referee_operations(operations)) is False


def _by_checker(
    thing: Callable[[random.Random], Thing], checker: Any, *, is_exact: bool = True, is_lasting: bool = True
) -> Model:
    """Return the model that `checker` judges, whole and by its twin."""

    judged = CheckerSubject(make=lambda: checker, accepts=(), refuses=())

    def refutes(history: History) -> bool:
        if hasattr(checker, "refutes"):
            return bool(checker.refutes(history, None))
        return judged.result(history).verdict is Verdict.VIOLATION

    return Model(thing, checker.incremental, refutes, is_exact, is_lasting)


MODELS: Mapping[str, Model] = {
    "cas-register": Model(partial(Register, with_cas=True), IncrementalRegisters, _port_refutes),
    "read-write": Model(partial(Register, with_cas=False), IncrementalRegisters, _port_refutes),
    "set": _by_checker(GrowingSet, SetFullChecker(linearizable=True)),
    "eventual-set": _by_checker(GrowingSet, SetFullChecker(), is_exact=False),
    "counter": _by_checker(Number, CounterChecker(), is_exact=False),
    "queue": _by_checker(Queue, QueueChecker()),
    "monotonic": _by_checker(Version, MonotonicChecker(scope="process")),
    "global-order": _by_checker(Version, MonotonicChecker(scope="global")),
    "bank": _by_checker(Bank, BankChecker()),
    "unique-ids": _by_checker(Ids, UniqueIdsChecker()),
    "booking": _by_checker(Day, BookingsChecker(), is_exact=False),
    "lock": _by_checker(Lock, LockChecker(), is_exact=False),
    "leased-lock": _by_checker(Lease, LeasedLockChecker()),
    "sessions": _by_checker(Versions, SessionsChecker()),
    "follower-reads": _by_checker(Replicas, FollowerReadsChecker(), is_exact=False),
    # A value that is written again later makes the check say nothing about reads of it.
    "read-your-writes": _by_checker(
        partial(Replicas, repeats=True), FollowerReadsChecker(monotonic_reads=False), is_exact=False, is_lasting=False
    ),
    "watches": _by_checker(WatchedKeys, WatchesChecker(), is_exact=False),
    "causal-pairs": _by_checker(Pair, CausalPairsChecker()),
    "causal-reverse": _by_checker(WrittenOnce, CausalReverseChecker()),
    "long-fork": _by_checker(Group, LongForkChecker()),
    "transfers": _by_checker(Accounts, TransfersChecker(opening={"a": 5, "b": 5}), is_exact=False),
    "lists": _by_checker(Lists, ListAppendChecker(), is_exact=False),
    "session-lists": _by_checker(Lists, ListAppendChecker("strong-session-serializable"), is_exact=False),
    "serializable-lists": _by_checker(Lists, ListAppendChecker("serializable"), is_exact=False),
}


def random_events(model: str, seed: int) -> Iterator[Event]:
    """Yield the events of the history that `seed` draws, in order; some operations never complete."""
    rng = random.Random(f"{model} {seed}")
    thing = MODELS[model].thing(rng)
    size, clients = 1 + int(rng.random() * OPERATIONS_MAX), 1 + int(rng.random() * 5)
    crashes, corruption = rng.random() * 0.3, (0.0, 0.05, 0.2)[int(rng.random() * 3)]
    processes = list(range(clients))
    under_way: dict[int, tuple[int, Operation, Outcome | None]] = {}
    begun = 0
    while begun < size or (under_way and rng.random() < 0.97):
        client = int(rng.random() * clients)
        thing.process = processes[client]
        if client not in under_way:
            if begun < size:
                f, value = thing.call()
                operation = Operation(processes[client], f, thing.key, value)
                under_way[client] = (begun, operation, None)
                yield begun, operation
                begun += 1
            continue
        row, operation, outcome = under_way.pop(client)
        thing.key, f, value = operation.key or "", operation.f, operation.value
        if rng.random() < crashes:
            # A read that ends so tells nothing; a change may have happened, or not, or certainly not.
            yield row, info("timeout") if outcome is not None or rng.random() < 0.6 else fail("refused")
            processes[client] += clients
        elif outcome is None:
            under_way[client] = (row, operation, thing.effect(f, value))
        else:
            yield row, thing.wrong(f, value, outcome) if rng.random() < corruption else outcome


def differences(model: str, seeds: Iterable[int], counts: Counter[str]) -> list[str]:
    """Return the differences between the incremental checker and the one that sees each prefix, in words.

    `counts` counts histories by the verdict of the incremental checker, those with a prefix that the other one refutes
    before, and those of which a part was left to the check afterwards.
    """
    complaints: list[str] = []
    for seed in seeds:
        history, checker = History(), MODELS[model].incremental()
        verdict, is_late = "legal", False
        for row, event in random_events(model, seed):
            if isinstance(event, Operation):
                history.invoke(event, 0, event.process, "athens")
                checker.invoke(row, event)
                continue
            history.complete(row, event, 0)
            rows = checker.complete(row, event)
            refuted = MODELS[model].refutes(history)
            is_late |= refuted and not rows
            if bool(rows) != refuted and (rows or MODELS[model].is_exact):
                told = f"certain by rows {rows}" if rows else "not certain"
                complaints.append(f"{model}, seed {seed}: {told} at row {row}, unlike the check of that prefix")
                break
            if rows:
                verdict = "illegal"
                break
        if verdict == "illegal" and MODELS[model].is_lasting and not MODELS[model].refutes(_whole(model, seed)):
            complaints.append(f"{model}, seed {seed}: certain by rows {rows}, unlike the check of the whole history")
        counts[verdict] += 1
        counts["found later"] += is_late
        counts["left"] += bool(getattr(checker, "left", ()))
    return complaints


def _whole(model: str, seed: int) -> History:
    """Return the whole history that `seed` draws."""
    history = History()
    for row, event in random_events(model, seed):
        if isinstance(event, Operation):
            history.invoke(event, 0, event.process, "athens")
        else:
            history.complete(row, event, 0)
    return history


def _judge(model: str, seeds: range) -> tuple[list[str], Counter[str]]:
    counts: Counter[str] = Counter()
    return differences(model, seeds, counts), counts


def main() -> int:
    """Judge the histories of all seeds."""
    parser = options(__doc__)
    parser.add_argument("--model", choices=tuple(MODELS), default="cas-register")
    asked = parser.parse_args()
    return judge_seeds(partial(_judge, asked.model), asked)


if __name__ == "__main__":
    sys.exit(main())
