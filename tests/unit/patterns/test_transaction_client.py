"""The client's half of two-phase commit: what it asks of whom, what it tries again, and when it knows nothing."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.harness.operation import Operation
from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.data_partitioning.transaction_client import (
    Answer,
    Call,
    Pause,
    Refused,
    TransactionAborted,
    TransactionExecutor,
    Verb,
)
from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import TransactionId, TransactionRef
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import HybridTimestamp
from faultline.systems_under_test.reference.transactions.programs import program_of

TIME = HybridTimestamp(7, 0)


class Servers:
    """Answers an executor's requests; `refuse` says for which verbs the next so many are refused."""

    def __init__(self, **refuse: int) -> None:
        self.refuse = refuse
        self.asked: list[tuple[str, str]] = []
        self.begun: list[Any] = []
        self.pauses = 0

    def answer(self, call: Call) -> Answer:
        self.asked.append((call.verb, call.node))
        verb = call.verb.replace("-", "_")
        refused = self.refuse.get(verb, 0) > 0
        self.refuse[verb] = self.refuse.get(verb, 0) - 1
        if call.verb == Verb.BEGIN:
            self.begun.append(call.arguments[0])
            name, start = TransactionId(len(self.begun), call.node), HybridTimestamp(len(self.begun), 0)
            first = call.arguments[0]
            return Answer(None, ref=TransactionRef(name, start, first.first_start if first else start, name))
        if call.verb == Verb.COMMIT:
            return Answer(None, value=not refused, time=TIME)
        return Answer("refused" if refused else None, time=TIME)

    def run(self, executor: TransactionExecutor, operation: Operation, *, snapshot: bool = False) -> Any:
        program = program_of(operation)
        assert program is not None
        steps = (executor.read_at_one_time if snapshot else executor.execute)(program)
        answer: Answer | None = None
        while True:
            try:
                step = steps.send(answer)  # type: ignore[arg-type]  # None starts it and ends a pause
            except StopIteration as end:
                return end.value
            self.pauses += isinstance(step, Pause)
            answer = None if isinstance(step, Pause) else self.answer(step)


def executor(attempts: int = 3) -> TransactionExecutor:
    return TransactionExecutor(lambda key: NodeId(f"host-of-{key[0]}"), attempts)


APPEND = Operation(0, "txn", None, [["r", "a", None], ["w", "b", 1], ["r", "a", None]])


@pytest.mark.rows("TPC-R1", "TPC-R4", "TPC-R6", "TPC-S1")
def test_the_first_keys_server_coordinates_and_hears_of_each_key_once_before_it_is_touched() -> None:
    servers = Servers()
    servers.run(executor(), APPEND)
    assert servers.asked == [
        ("begin", "host-of-a"),
        ("add-key", "host-of-a"),
        ("get", "host-of-a"),
        ("add-key", "host-of-a"),
        ("put", "host-of-b"),
        ("get", "host-of-a"),
        ("commit", "host-of-a"),
    ]


@pytest.mark.rows("TPC-R20")
@pytest.mark.parametrize("verb", ["get", "put", "add_key", "commit"])
def test_a_conflict_or_a_vote_of_no_is_rolled_back_and_tried_again_at_the_old_age(verb: str) -> None:
    servers, client = Servers(**{verb: 1}), executor()
    servers.run(client, APPEND)
    assert [first if first is None else first.id.number for first in servers.begun] == [None, 1]
    assert ("roll-back", "host-of-a") in servers.asked
    assert servers.pauses == 1
    assert client.seen == TIME and not client.in_doubt


@pytest.mark.rows("TPC-R20")
def test_when_all_attempts_are_used_up_nothing_has_happened() -> None:
    servers, client = Servers(commit=99), executor(attempts=3)
    with pytest.raises(TransactionAborted):
        servers.run(client, APPEND)
    assert len(servers.begun) == 3 and not client.in_doubt


def test_a_program_that_refuses_is_rolled_back_and_not_tried_again() -> None:
    value = {"from": "a", "to": "b", "amount": 11, "opening": 10}
    servers = Servers()
    with pytest.raises(Refused, match="insufficient-balance"):
        servers.run(executor(), Operation(0, "transfer", None, value))
    assert servers.asked[-1] == ("roll-back", "host-of-a") and len(servers.begun) == 1


@pytest.mark.rows("TPC-R20")
def test_between_asking_for_the_commit_and_its_answer_the_client_is_in_doubt_and_only_then() -> None:
    client, servers = executor(), Servers()
    program = program_of(APPEND)
    assert program is not None
    steps = client.execute(program)
    answer: Answer | None = None
    doubts = []
    while not (doubts and doubts[-1][0] == Verb.COMMIT):
        step = steps.send(answer)  # type: ignore[arg-type]  # None starts it
        assert isinstance(step, Call)
        doubts.append((step.verb, client.in_doubt))
        answer = servers.answer(step)
    assert [verb for verb, in_doubt in doubts if in_doubt] == [Verb.COMMIT]


@pytest.mark.rows("TPC-R38")
def test_reading_at_one_time_takes_no_locks_and_uses_the_one_time_for_all_keys() -> None:
    servers = Servers(read_at=1)
    operation = Operation(0, "balances", None, {"accounts": ["a", "b"]})
    assert servers.run(executor(), operation, snapshot=True) == {"a": None, "b": None}
    assert [verb for verb, _ in servers.asked] == ["read-time", "read-at", "read-time", "read-at", "read-at"]
    always = Servers(read_at=99)
    with pytest.raises(TransactionAborted):
        always.run(executor(), operation, snapshot=True)
