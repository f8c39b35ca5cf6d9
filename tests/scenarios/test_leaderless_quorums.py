"""Stories about quorums without a leader: LDR-S7 with its twins, QRM-S1 to S5, RWL-S1 to S8 for a whole node."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from faultline.checkers import LinearizabilityChecker
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import info, ok
from faultline.harness.plan import Plan
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult, Verdict
from faultline.harness.world.ports import NodeId
from faultline.story.log_cluster import Cluster
from faultline.systems_under_test.patterns.data_replication.file_format import LogUnusable
from faultline.systems_under_test.reference.quorum_register.coordinator import (
    NO_QUORUM_TO_ASK,
    NO_QUORUM_TO_STORE,
)
from faultline.systems_under_test.reference.quorum_register.messages import (
    CopyStored,
    QueryResponse,
    ReadValue,
    Stamp,
    StoreRequest,
    StoreResponse,
    ValueResponse,
    WriteValue,
)
from faultline.systems_under_test.reference.quorum_register.system import QuorumRegister
from faultline.testing.fake_ports import FakePorts
from faultline.testing.memory_storage import MemoryStorage

EXPIRATION_US = 200_000


class Register(Cluster):
    """A register whose clients speak to it by hand; what they saw becomes a history."""

    system_type = QuorumRegister

    def __init__(self, size: int = 3, planted_bugs: tuple[str, ...] = (), **options: str) -> None:
        super().__init__(size, planted_bugs, **options)
        self.history = History()
        self.numbers: dict[str, int] = {}
        self.rows: dict[tuple[str, int], int] = {}

    def ask(self, client: str, node: str, f: str, value: Any = None) -> int:
        """Let `client` begin an operation on x at `node`; returns its number."""
        number = self.numbers[client] = self.numbers.get(client, 0) + 1
        row = self.history.invoke(Operation(sum(map(ord, client)), f, "x", value), 0, 0, node)
        self.rows[client, number] = row
        message = ReadValue(number, "x") if f == "read" else WriteValue(number, "x", value)
        self.hand(client, node, message)
        return number

    def answers(self, client: str, number: int) -> list[ValueResponse]:
        """Return the answers to the operation of `client`, and note the first in the history."""
        heard = [message for _, message in self.inbox.get(client, []) if message.request_number == number]
        row = self.rows[client, number]
        if heard and self.history.complete_index[row] == -1:
            answer = heard[0]
            self.history.complete(row, ok(answer.value) if answer.error is None else info(answer.error), 1)
        return heard

    def perform(self, client: str, node: str, f: str, value: Any = None) -> Any:
        """An operation with everything delivered: its value, or its error."""
        number = self.ask(client, node, f, value)
        self.deliver()
        [answer] = self.answers(client, number)
        return answer.error or answer.value

    def verdict(self) -> CheckResult:
        """Check the clients' history for linearizability."""
        plan = Plan(
            system="quorum-register",
            workload="read-write",
            seed=0,
            nodes=self.members,
            workers=3,
            operations=(),
            heal_us=0,
            end_us=0,
        )
        record = RunRecord(plan=plan, world="simulated", history=self.history)
        return LinearizabilityChecker(model="cas-register").check(self.history, record)


def drop_stores_of(cluster: Register, source: str) -> None:
    cluster.drop(lambda sender, _, message: sender == source and isinstance(message, StoreRequest))


def half_a_write(**options: str) -> Register:
    """LDR-S7 until both readers have read: x=1 everywhere, x=2 on athens alone, a reader meets it, athens goes down."""
    cluster = Register(**options)
    cluster.perform("writer", "athens", "write", 1)
    cluster.ask("writer", "athens", "write", 2)
    cluster.deliver(lambda _, __, message: not isinstance(message, StoreRequest))
    drop_stores_of(cluster, "athens")
    number = cluster.ask("c1", "athens", "read")
    cluster.deliver(lambda source, target, message: "cyrene" not in (source, target))
    cluster.drop(lambda *_: True)
    assert [answer.value for answer in cluster.answers("c1", number)] == [2]
    cluster.kill("athens")
    return cluster


@pytest.mark.rows("LDR-S7")
@pytest.mark.rows("QRM-R6")
@pytest.mark.parametrize("write_back", ["off", "on"])
def test_quorum_reads_alone_let_time_run_backwards_and_the_write_back_does_not(write_back: str) -> None:
    cluster = half_a_write(write_back=write_back)
    seen = cluster.perform("c2", "byzantium", "read")
    assert seen == {"off": 1, "on": 2}[write_back]
    result = cluster.verdict()
    assert result.verdict is (Verdict.VIOLATION if write_back == "off" else Verdict.PASS)
    assert [finding.anomaly for finding in result.findings] == (["stale-read"] if write_back == "off" else [])


@pytest.mark.rows("LDR-S7")
def test_when_the_lost_replica_returns_the_new_value_is_read_again() -> None:
    cluster = half_a_write(write_back="off")
    assert cluster.perform("c2", "byzantium", "read") == 1
    cluster.restart("athens")
    assert cluster.perform("c2", "athens", "read") == 2


@pytest.mark.parametrize(("write_back", "copies"), [("off", [2, 1, 1]), ("later", [2, 2, 2]), ("on", [2, 2, 2])])
def test_reads_make_replicas_equal_where_they_write_back_at_all(write_back: str, copies: list[int]) -> None:
    cluster = half_a_write(write_back=write_back)
    cluster.restart("athens")
    cluster.ask("c2", "athens", "read")
    cluster.deliver(lambda source, target, message: "byzantium" not in (source, target))
    cluster.deliver()
    assert [cluster.nodes[name].copies.get("x").value for name in cluster.members] == copies


def test_read_repair_after_the_answer_comes_too_late_for_the_next_reader() -> None:
    cluster = Register(write_back="later")
    cluster.perform("writer", "athens", "write", 1)
    cluster.ask("writer", "athens", "write", 2)
    cluster.deliver(lambda _, __, message: not isinstance(message, StoreRequest))
    drop_stores_of(cluster, "athens")
    number = cluster.ask("c1", "athens", "read")
    cluster.drop(lambda _, target, __: target == "cyrene")
    cluster.deliver(lambda _, __, message: not isinstance(message, StoreRequest))
    assert [answer.value for answer in cluster.answers("c1", number)] == [2]
    cluster.cut("athens")
    assert cluster.perform("c2", "byzantium", "read") == 1
    assert cluster.verdict().verdict is Verdict.VIOLATION


def test_quorums_that_do_not_overlap_read_old_values() -> None:
    cluster = Register(write_quorum="2", read_quorum="1")
    cluster.cut("cyrene")
    assert cluster.perform("alice", "athens", "write", 1) is None
    assert cluster.perform("bob", "cyrene", "read") is None
    assert cluster.verdict().verdict is Verdict.VIOLATION


# -- quorums ----------------------------------------------------------------------------------------------------------


@pytest.mark.rows("QRM-R5", "QRM-S1", "QRM-S2")
@pytest.mark.parametrize(
    ("size", "side"), [(5, ("athens", "byzantium")), (4, ("athens", "byzantium")), (2, ("athens",))]
)
def test_a_side_without_a_majority_acknowledges_nothing(size: int, side: tuple[str, ...]) -> None:
    cluster = Register(size)
    cluster.split(*side)
    number = cluster.ask("alice", "athens", "write", 1)
    cluster.pass_time(10 * EXPIRATION_US)
    assert [answer.error for answer in cluster.answers("alice", number)] == [NO_QUORUM_TO_ASK]


@pytest.mark.rows("QRM-S1")
def test_the_side_with_a_majority_goes_on() -> None:
    cluster = Register(5)
    cluster.split("athens", "byzantium")
    assert cluster.perform("alice", "cyrene", "write", 1) is None
    assert cluster.perform("bob", "ephesus", "read") == 1


@pytest.mark.rows("QRM-R5", "QRM-S3")
def test_with_a_majority_down_nothing_succeeds_until_one_is_back() -> None:
    cluster = Register()
    cluster.kill("byzantium")
    cluster.kill("cyrene")
    number = cluster.ask("alice", "athens", "write", 1)
    cluster.pass_time(3 * EXPIRATION_US)
    assert [answer.error for answer in cluster.answers("alice", number)] == [NO_QUORUM_TO_ASK]
    cluster.restart("cyrene")
    assert cluster.perform("alice", "athens", "write", 2) is None


# -- the request waiting list -----------------------------------------------------------------------------------------


def begin_store(cluster: Register, value: int = 1) -> int:
    """A write at athens whose first phase is over; its stores wait in the queue."""
    number = cluster.ask("alice", "athens", "write", value)
    cluster.deliver(lambda _, __, message: not isinstance(message, StoreRequest | StoreResponse))
    return number


@pytest.mark.rows("RWL-R1", "RWL-R5", "RWL-S1")
def test_the_second_acknowledgement_answers_and_the_third_changes_nothing() -> None:
    cluster = Register()
    number = begin_store(cluster)
    assert cluster.answers("alice", number) == []
    cluster.deliver(lambda source, target, _: "cyrene" not in (source, target))
    assert [answer.error for answer in cluster.answers("alice", number)] == [None]
    assert [len(cluster.nodes[name].waiting) for name in cluster.members] == [1, 0, 0]
    cluster.deliver()
    assert len(cluster.answers("alice", number)) == 1
    assert len(cluster.nodes["athens"].waiting) == 0


@pytest.mark.rows("RWL-S2")
def test_a_silent_replica_leaves_nothing_behind_after_the_sweep() -> None:
    cluster = Register()
    cluster.cut("cyrene")
    number = begin_store(cluster)
    cluster.deliver()
    cluster.pass_time(3 * EXPIRATION_US)
    assert len(cluster.answers("alice", number)) == 1
    assert len(cluster.nodes["athens"].waiting) == 0


@pytest.mark.rows("QRM-R7", "RWL-R15", "RWL-S3")
def test_a_write_without_a_quorum_ends_with_one_indefinite_answer() -> None:
    cluster = Register()
    number = begin_store(cluster)
    cluster.cut("athens")
    cluster.pass_time(3 * EXPIRATION_US)
    assert [answer.error for answer in cluster.answers("alice", number)] == [NO_QUORUM_TO_STORE]
    cluster.heal()
    assert cluster.perform("bob", "athens", "read") == 1


def repeated_answer(planted_bugs: tuple[str, ...]) -> list[ValueResponse]:
    """RWL-S6 with five replicas: athens and byzantium have the value, and byzantium's answer comes twice."""
    cluster = Register(5, planted_bugs, write_quorum="3", read_quorum="3")
    number = begin_store(cluster)
    cluster.drop(lambda _, target, __: target in ("cyrene", "delphi", "ephesus"))
    cluster.step(lambda _, target, __: target == "byzantium")
    [answer] = cluster.take(lambda source, _, message: source == "byzantium" and isinstance(message, StoreResponse))
    cluster.hand(*answer)
    cluster.hand(*answer)
    return cluster.answers("alice", number)


@pytest.mark.rows("QRM-S5", "QRM-R7", "RWL-S6")
def test_an_answer_that_comes_twice_is_counted_once() -> None:
    assert repeated_answer(()) == []


def test_the_planted_bug_count_duplicate_answers_takes_it_for_two() -> None:
    cluster = Register(3, ("count-duplicate-answers",))
    number = begin_store(cluster)
    cluster.drop(lambda _, target, __: target == "cyrene")
    cluster.step(lambda _, target, __: target == "byzantium")
    [answer] = cluster.take(lambda *item: isinstance(item[2], StoreResponse))
    cluster.hand(*answer)
    cluster.hand(*answer)
    cluster.deliver()
    assert [answer.error for answer in cluster.answers("alice", number)] == [None]
    assert sorted(breach.invariant for breach in cluster.breaches) == ["QRM-I2", "QRM-I3"]


@pytest.mark.rows("RWL-S7")
def test_with_four_replicas_two_answers_and_two_errors_end_the_wait() -> None:
    cluster = Register(4)
    number = begin_store(cluster)
    cluster.drop(lambda _, target, __: target in ("cyrene", "delphi"))
    cluster.pass_time(3 * EXPIRATION_US)
    assert [answer.error for answer in cluster.answers("alice", number)] == [NO_QUORUM_TO_STORE]


def answer_to_the_former_self(*planted_bugs: str) -> tuple[Register, list[ValueResponse]]:
    """RWL-S8: athens dies with an answer of byzantium under way, comes back, and stores another value."""
    cluster = Register(3, planted_bugs)
    begin_store(cluster, 1)
    cluster.step(lambda _, target, __: target == "byzantium")
    late = cluster.take(lambda *item: isinstance(item[2], StoreResponse))
    cluster.kill("athens")
    cluster.ports["byzantium"].storage.fsync("")
    cluster.start("athens")
    cluster.numbers["alice"] = 0
    number = begin_store(cluster, 2)
    cluster.drop(lambda _, __, message: isinstance(message, StoreRequest))
    for item in late:
        cluster.hand(*item)
    cluster.deliver()
    return cluster, cluster.answers("alice", number)


@pytest.mark.rows("RWL-R16", "RWL-S8")
def test_an_answer_to_the_former_incarnation_is_ignored() -> None:
    cluster, answers = answer_to_the_former_self()
    assert answers == []
    assert cluster.breaches == []


def test_the_planted_bug_restarted_correlation_ids_takes_it_for_its_own() -> None:
    cluster, answers = answer_to_the_former_self("restarted-correlation-ids")
    assert [answer.error for answer in answers] == [None]
    assert [breach.invariant for breach in cluster.breaches] == ["QRM-I2"]


def test_a_request_that_the_network_repeats_is_carried_out_once() -> None:
    cluster = Register()
    number = cluster.ask("alice", "athens", "write", 1)
    cluster.hand("alice", "athens", WriteValue(number, "x", 1))
    cluster.deliver()
    assert len(cluster.answers("alice", number)) == 1
    assert cluster.nodes["athens"].copies.get("x").stamp.counter == 1


def test_a_read_while_all_servers_are_up_is_answered_by_queries_of_a_majority() -> None:
    cluster = Register()
    number = cluster.ask("alice", "athens", "read")
    cluster.step(lambda _, target, __: target == "byzantium")
    assert cluster.answers("alice", number) == []
    cluster.step(lambda source, _, message: source == "byzantium" and isinstance(message, QueryResponse))
    cluster.deliver(lambda _, target, __: target == "alice")
    assert [answer.value for answer in cluster.answers("alice", number)] == [None]


class _FailsOnce(MemoryStorage):
    """A disk whose first fsync of a log writes nothing down and is answered with an error."""

    fails = True

    def fsync(self, file: str) -> None:
        if file.startswith("wal") and self.fails:
            self.fails = False
            raise OSError(errno.EIO, "Input/output error", file)
        super().fsync(file)


@pytest.mark.rows("QRM-I2")
@pytest.mark.parametrize("counter", [1, 2])
def test_a_replica_tells_of_a_copy_that_a_failed_sync_had_left_when_it_acknowledges_that_or_an_older_one(
    counter: int,
) -> None:
    storage, store = _FailsOnce(), StoreRequest(1, "x", Stamp(2, "byzantium", 1), 7)
    replicas = [FakePorts("athens", storage) for _ in range(2)]
    nodes = [QuorumRegister().node(ports, ("athens", "byzantium"), {}, frozenset()) for ports in replicas]
    nodes[0].start()
    with pytest.raises(LogUnusable):
        nodes[0].receive(NodeId("byzantium"), store)
    nodes[1].start()
    nodes[1].receive(NodeId("byzantium"), StoreRequest(1, "x", Stamp(counter, "byzantium", 1), 7))
    assert [message for _, message in replicas[1].sent] == [StoreResponse(1)]
    assert [event.stamp for event in replicas[1].events if isinstance(event, CopyStored)] == [store.stamp]
