"""The client's half of two-phase commit: the form of a transaction, its execution, and its retries.

A transaction is a generator. It yields the reads and writes that it wants, is sent the values that were read, and
returns its answer:

    def transfer(source, target, amount):
        left = (yield Read(source)) - amount
        if left < 0:
            raise Refused("insufficient-balance")
        yield Write(source, left)
        yield Write(target, (yield Read(target)) + amount)

`TransactionExecutor` runs it against the servers. The server of the first key becomes the coordinator. It is told each
key, and makes it durable, before the key is touched; reads and writes then go straight to the servers that hold the
keys. An attempt that met a conflict is rolled back and retried after a random wait, as a new transaction of the old
age, so that it does not starve. An attempt with a commit request that was not answered is *not* retried: it may have
committed. A transaction that only reads needs locks too, because they show that all values it read belong together; or
it reads at one time and locks nothing (`read_only=snapshot`).

The executor is a generator as well, of requests to servers: it knows neither timers nor sockets.

Source: Patterns of Distributed Systems ch. 21.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple

from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import TransactionRef
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import BEFORE_ALL, HybridTimestamp

__all__ = [
    "Answer",
    "Call",
    "OutcomeUnknown",
    "Pause",
    "Program",
    "Read",
    "Refused",
    "TransactionAborted",
    "TransactionExecutor",
    "Verb",
    "Write",
]


class Read(NamedTuple):
    """Step of a program: read the value of `key`."""

    key: str


class Write(NamedTuple):
    """Step of a program: set `key` to `value`."""

    key: str
    value: Any


Program = Generator[Read | Write, Any, Any]
"""A transaction, as the text of this module describes it."""


class Refused(Exception):
    """A program gives up, because of the values that it read; none of its writes happens."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class TransactionAborted(Exception):
    """An attempt cannot commit, or none of many did: none of its writes happened."""


class OutcomeUnknown(Exception):
    """The commit was asked for, and the coordinator no longer remembers the outcome."""


class Verb:
    """The requests to a server, as the first part of a `Call`."""

    BEGIN = "begin"
    ADD_KEY = "add-key"
    GET = "get"
    PUT = "put"
    COMMIT = "commit"
    ROLL_BACK = "roll-back"
    READ_TIME = "read-time"
    READ_AT = "read-at"


class Call(NamedTuple):
    """A request to `node`, repeated until it answers."""

    node: NodeId
    verb: str
    arguments: tuple[Any, ...]


class Pause(NamedTuple):
    """A random wait; it grows with the number of attempts that failed."""

    failed_attempts: int


class Answer(NamedTuple):
    """The answer of a server: an error, or a value, a reference, a time."""

    error: str | None
    value: Any = None
    ref: TransactionRef | None = None
    time: HybridTimestamp | None = None


_Steps = Generator[Call | Pause, Answer, Any]


class TransactionExecutor:
    """The executor of one client's transactions, one after the other; `seen` is the largest time that it knows of."""

    def __init__(self, host_of: Callable[[str], NodeId], attempts_max: int, time_server: NodeId | None = None) -> None:
        """Ask `time_server` for the time of a snapshot; None stands for the server of the first key."""
        self._host_of = host_of
        self._attempts_max = attempts_max
        self._time_server = time_server
        self.seen = BEFORE_ALL
        self.ref: TransactionRef | None = None
        self.in_doubt = False

    def execute(self, program: Callable[[], Program]) -> _Steps:
        """Carry out a transaction under locks, and return its answer.

        Raises Refused or TransactionAborted when it did not happen, OutcomeUnknown when it may have.
        """
        first: TransactionRef | None = None
        for failed in range(1, self._attempts_max + 1):
            self.ref, self.in_doubt = None, False
            try:
                return (yield from self._attempt(program(), first))
            except TransactionAborted:
                # The age of the first attempt, so that a transaction that keeps losing becomes the oldest and wins.
                first = first or self.ref
                yield from self._roll_back()
                yield Pause(failed)
            except Refused:
                yield from self._roll_back()
                raise
        raise TransactionAborted

    def read_at_one_time(self, program: Callable[[], Program]) -> _Steps:
        """Carry out a transaction that only reads, without locks, at one time, and return its answer."""
        self.ref, self.in_doubt = None, False
        for failed in range(1, self._attempts_max + 1):
            try:
                return (yield from self._snapshot(program()))
            except TransactionAborted:
                yield Pause(failed)
        raise TransactionAborted

    def _attempt(self, program: Program, first: TransactionRef | None) -> _Steps:
        positions: dict[NodeId, int] = {}
        known: dict[str, None] = {}
        step, answer = _advanced(program, None)
        while step is not None:
            host = self._host_of(step.key)
            if self.ref is None:
                yield from self._begin(host, first)
            if step.key not in known:
                known[step.key] = None
                # Before the key is touched: a coordinator that does not know a participant could not tell it the
                # decision.
                yield from self._add_key(step.key)
            position = positions.get(host, 0)
            positions[host] = position + 1
            value = yield from self._perform(host, step, position)
            step, answer = _advanced(program, value)
        if self.ref is not None:
            yield from self._commit()
        return answer

    def _begin(self, host: NodeId, first: TransactionRef | None) -> _Steps:
        answer = yield from self._ask(host, Verb.BEGIN, first, self.seen)
        self.ref = answer.ref

    def _add_key(self, key: str) -> _Steps:
        assert self.ref is not None
        yield from self._ask(NodeId(self.ref.id.server), Verb.ADD_KEY, self.ref.id, key)

    def _perform(self, host: NodeId, step: Read | Write, position: int) -> _Steps:
        if isinstance(step, Read):
            answer = yield from self._ask(host, Verb.GET, self.ref, step.key, position)
            return answer.value
        yield from self._ask(host, Verb.PUT, self.ref, step.key, step.value, position)
        return None

    def _commit(self) -> _Steps:
        assert self.ref is not None
        # From here on it may have happened: no error and no silence is a proof that it has not.
        self.in_doubt = True
        answer: Answer = yield Call(NodeId(self.ref.id.server), Verb.COMMIT, (self.ref.id,))
        if answer.error is not None:
            raise OutcomeUnknown
        self.in_doubt = False
        if not answer.value:
            raise TransactionAborted
        self._note(answer.time)

    def _roll_back(self) -> _Steps:
        if self.ref is not None:
            yield Call(NodeId(self.ref.id.server), Verb.ROLL_BACK, (self.ref.id,))

    def _snapshot(self, program: Program) -> _Steps:
        time: HybridTimestamp | None = None
        step, answer = _advanced(program, None)
        while step is not None:
            host = self._host_of(step.key)
            if time is None:
                told = yield from self._ask(self._time_server or host, Verb.READ_TIME, self.seen)
                time = told.time
                self._note(time)
            read = yield from self._ask(host, Verb.READ_AT, step.key, time)
            step, answer = _advanced(program, read.value)
        return answer

    def _ask(self, node: NodeId, verb: str, *arguments: Any) -> _Steps:
        answer: Answer = yield Call(node, verb, arguments)
        if answer.error is not None:
            raise TransactionAborted
        return answer

    def _note(self, time: HybridTimestamp | None) -> None:
        if time is not None:
            self.seen = max(self.seen, time)


def _advanced(program: Program, value: Any) -> tuple[Read | Write | None, Any]:
    """Return the next step of `program`, or None and its answer."""
    try:
        return program.send(value), None
    except StopIteration as end:
        return None, end.value
