"""Stories about retries: IDR-S*, SYS-S11 of the requirements, told step by step."""

from __future__ import annotations

import pytest

from faultline.harness.outcome import CAS_MISMATCH
from faultline.story.log_cluster import ELECTION_TIMEOUT_US, Client, Cluster
from faultline.systems_under_test.reference.raft.key_value_store import (
    REQUEST_DISCARDED,
    UNKNOWN_SESSION,
)
from faultline.systems_under_test.reference.shared.client_messages import CompareAndSet, GetValue, SetValue


def led_by_athens(*planted_bugs: str) -> tuple[Cluster, Client]:
    cluster = Cluster(planted_bugs=planted_bugs)
    cluster.elect("athens")
    return cluster, Client(cluster, "alice").register("athens")


def value_of(cluster: Cluster, client: Client, node: str, key: str) -> object:
    number = client.get(node, key)
    cluster.deliver()
    answer = client.answer_to(number)
    assert answer is not None
    return answer.value


@pytest.mark.rows("IDR-R1", "IDR-R2", "IDR-I2")
def test_a_client_id_is_the_index_of_its_registration_and_unique() -> None:
    """IDR-R1, IDR-I2."""
    cluster, alice = led_by_athens()
    bob = Client(cluster, "bob").register("athens")
    assert (alice.client_id, bob.client_id) == (2, 3)


@pytest.mark.rows("IDR-R5", "IDR-R6", "IDR-S1")
def test_a_retry_after_a_lost_answer_gets_the_same_answer_and_has_no_second_effect() -> None:
    """IDR-S1: executed twice, the compare-and-set would fail the second time."""
    cluster, alice = led_by_athens()
    command = CompareAndSet("lease", None, "alice")
    number = alice.ask("athens", command)
    cluster.deliver(lambda _, target, __: target != "alice")
    cluster.drop(lambda _, target, __: target == "alice")
    alice.ask_again("athens", number, command)
    cluster.deliver()
    assert [answer.error for answer in alice.answers_to(number)] == [None]
    assert "duplicate-answered" in cluster.marks


@pytest.mark.rows("IDR-S4")
def test_without_duplicate_detection_the_owner_is_told_that_it_does_not_own() -> None:
    """IDR-S4, the planted bug."""
    cluster, alice = led_by_athens("no-duplicate-detection")
    command = CompareAndSet("lease", None, "alice")
    number = alice.ask("athens", command)
    cluster.deliver(lambda _, target, __: target != "alice")
    cluster.drop(lambda _, target, __: target == "alice")
    alice.ask_again("athens", number, command)
    cluster.deliver()
    assert [answer.error for answer in alice.answers_to(number)] == [CAS_MISMATCH]
    assert cluster.broken() == ["IDR-I1"]


@pytest.mark.rows("LDR-S12", "IDR-R2", "IDR-R6", "IDR-S2")
def test_a_new_leader_executes_the_pending_entry_and_answers_the_retry_from_its_session() -> None:
    """IDR-S2 and SYS-S11: Bob's transfer commits, the leader dies before it answers."""
    cluster, bob = led_by_athens()
    transfer = CompareAndSet("boston", None, 10)
    number = bob.ask("athens", transfer)
    cluster.deliver(lambda _, target, __: target in ("byzantium", "cyrene"))
    cluster.kill("athens")
    cluster.elect("byzantium")
    assert cluster.values("byzantium") == {"boston": 10}
    bob.ask_again("byzantium", number, transfer)
    cluster.deliver()
    assert [answer.error for answer in bob.answers_to(number)] == [None]
    assert cluster.values("byzantium") == {"boston": 10}


@pytest.mark.rows("LDR-S12", "IDR-S3")
def test_a_request_the_dead_leader_kept_to_itself_is_executed_by_the_retry() -> None:
    """IDR-S3."""
    cluster, bob = led_by_athens()
    cluster.cut("athens")
    number = bob.set("athens", "boston", 10)
    cluster.kill("athens")
    cluster.elect("byzantium")
    bob.ask_again("byzantium", number, SetValue("boston", 10))
    cluster.deliver()
    assert len(bob.answers_to(number)) == 1
    assert cluster.values("byzantium") == {"boston": 10}


@pytest.mark.rows("WAL-S7")
@pytest.mark.rows("IDR-R8", "IDR-S5")
def test_a_late_retry_of_a_plain_write_does_not_undo_another_clients_write() -> None:
    """IDR-S5."""
    cluster, first = led_by_athens()
    second = Client(cluster, "bob").register("athens")
    number = first.set("athens", "x", 1)
    cluster.deliver(lambda _, target, __: target != "alice")
    cluster.drop(lambda _, target, __: target == "alice")
    second.set("athens", "x", 2)
    cluster.deliver()
    first.ask_again("athens", number, SetValue("x", 1))
    cluster.deliver()
    assert [answer.error for answer in first.answers_to(number)] == [None]
    assert value_of(cluster, second, "athens", "x") == 2


@pytest.mark.rows("IDR-R10", "IDR-R12", "IDR-S6")
def test_five_requests_in_flight_are_all_answered_again_and_a_sixth_discards_the_first() -> None:
    """IDR-S6."""
    cluster, alice = led_by_athens()
    numbers = [alice.set("athens", f"key{value}", value) for value in range(5)]
    cluster.deliver()
    for number in numbers:
        alice.ask_again("athens", number, SetValue("x", "executed again"))
    cluster.deliver()
    assert [[answer.error for answer in alice.answers_to(number)] for number in numbers] == [[None, None]] * 5
    alice.set("athens", "key5", 5)
    alice.ask_again("athens", numbers[0], SetValue("x", "executed again"))
    cluster.deliver()
    assert alice.answers_to(numbers[0])[-1].error == REQUEST_DISCARDED
    assert value_of(cluster, alice, "athens", "x") is None


@pytest.mark.rows("WAL-R11", "WAL-S6")
@pytest.mark.rows("IDR-R4", "IDR-S9")
def test_original_and_retry_both_in_the_log_are_one_execution() -> None:
    """IDR-S9."""
    cluster, alice = led_by_athens()
    number = alice.set("athens", "x", 1)
    alice.ask_again("athens", number, SetValue("x", 1))
    cluster.deliver()
    assert [answer.error for answer in alice.answers_to(number)] == [None, None]
    assert "duplicate-answered" in cluster.marks
    assert cluster.broken() == []


@pytest.mark.rows("IDR-R7")
def test_an_error_is_remembered_like_any_answer() -> None:
    """IDR-R7: meanwhile the compare-and-set would succeed; the retry is told what the first attempt was told."""
    cluster, alice = led_by_athens()
    bob = Client(cluster, "bob").register("athens")
    command = CompareAndSet("x", 1, 2)
    number = alice.ask("athens", command)
    bob.set("athens", "x", 1)
    alice.ask_again("athens", number, command)
    cluster.deliver()
    assert [answer.error for answer in alice.answers_to(number)] == [CAS_MISMATCH, CAS_MISMATCH]


@pytest.mark.rows("IDR-R20", "IDR-S11")
def test_all_servers_restart_and_still_know_the_answer() -> None:
    """IDR-S11."""
    cluster, alice = led_by_athens()
    command = CompareAndSet("x", None, 1)
    number = alice.ask("athens", command)
    cluster.deliver()
    for name in cluster.members:
        cluster.restart(name)
    cluster.elect("cyrene")
    alice.ask_again("cyrene", number, command)
    cluster.deliver()
    assert [answer.error for answer in alice.answers_to(number)] == [None, None]


@pytest.mark.rows("IDR-R16")
def test_an_unregistered_client_is_refused_and_nothing_is_executed() -> None:
    """IDR-R16."""
    cluster = Cluster()
    cluster.elect("athens")
    mallory = Client(cluster, "mallory")
    mallory.client_id = 77
    number = mallory.set("athens", "x", 1)
    cluster.deliver()
    assert [answer.error for answer in mallory.answers_to(number)] == [UNKNOWN_SESSION]
    assert cluster.values("athens") == {}


@pytest.mark.rows("LDR-R3", "RWL-R17", "RWL-R18", "RWL-S9")
def test_a_leader_that_steps_down_sends_waiting_clients_away_and_never_answers_them_with_another_entry() -> None:
    """LOG-M16: another command takes the index; the client of the first must not hear of a success."""
    cluster, alice = led_by_athens()
    bob = Client(cluster, "bob").register("athens")
    cluster.cut("athens")
    number = alice.set("athens", "x", "lost")
    cluster.elect("byzantium")
    bob.set("byzantium", "y", "kept")
    cluster.deliver()
    cluster.heal()
    cluster.pass_time(2 * ELECTION_TIMEOUT_US)
    assert alice.answers_to(number) == []
    assert [redirect.correlation_id for redirect in alice.redirects()] == [number]
    assert cluster.values("athens") == {"y": "kept"}


@pytest.mark.rows("CC-R8", "CC-S2")
@pytest.mark.rows("LDR-R3")
def test_a_follower_names_the_leader_it_knows() -> None:
    """CC-R9."""
    _, alice = led_by_athens()
    alice.ask("cyrene", GetValue("x"))
    assert [redirect.leader_id for redirect in alice.redirects()] == ["athens"]
