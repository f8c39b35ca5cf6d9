"""Stories about the end of client sessions: IDR-S7, S8, S10 and S12 of the requirements, told step by step."""

from __future__ import annotations

import pytest

from faultline.story.log_cluster import Client, Cluster
from faultline.systems_under_test.reference.raft.key_value_store import (
    REQUEST_DISCARDED,
    UNKNOWN_SESSION,
)
from faultline.systems_under_test.reference.shared.client_messages import (
    ClientRequest,
    RegisterClientRequest,
    SessionHeartbeat,
)
from faultline.systems_under_test.reference.shared.key_commands import Increment, Transfer

SECOND_US = 1_000_000
SLOW = {"heartbeat_interval_ms": "5000", "election_timeout_ms": "20000"}
"""A leader that ticks every five seconds, so that minutes can pass in few steps. Sessions live five minutes."""

SHORT = {"session_timeout_ms": "1000", "session_check_ms": "100"}


def led_by_athens(**options: str) -> tuple[Cluster, Client]:
    cluster = Cluster(**options)
    cluster.elect("athens")
    return cluster, Client(cluster, "alice").register("athens")


def sessions_of(cluster: Cluster, node: str) -> list[int]:
    ids: list[int] = cluster.nodes[node].store.sessions.client_ids()
    return ids


def increment(cluster: Cluster, client: Client, node: str) -> int:
    number = client.ask(node, Increment("x", 1))
    cluster.deliver()
    return number


@pytest.mark.rows("IDR-S7", "IDR-R13", "IDR-R16")
def test_after_more_than_five_minutes_of_silence_a_retry_is_refused_and_not_executed() -> None:
    cluster, alice = led_by_athens(**SLOW)
    number = increment(cluster, alice, "athens")
    cluster.pass_time(295 * SECOND_US)
    assert sessions_of(cluster, "athens") == [alice.client_id]
    cluster.pass_time(25 * SECOND_US)
    assert [sessions_of(cluster, name) for name in cluster.members] == [[], [], []]
    alice.ask_again("athens", number, Increment("x", 1))
    cluster.deliver()
    assert [answer.error for answer in alice.answers_to(number)] == [None, UNKNOWN_SESSION]
    assert cluster.values("athens") == {"x": 1}
    assert {"sessions-expired", "expired-session-refused"} <= set(cluster.marks)
    assert cluster.broken() == []


@pytest.mark.rows("IDR-S7", "IDR-R13", "IDR-R14")
@pytest.mark.parametrize("asked", ["athens", "byzantium"])
def test_a_client_without_requests_keeps_its_session_for_twenty_minutes_by_heartbeats(asked: str) -> None:
    """Whichever server it talks to: one that does not lead passes heartbeats on."""
    cluster, alice = led_by_athens(**SLOW)
    for _ in range(120):
        cluster.hand("alice", asked, SessionHeartbeat(alice.client_id))
        cluster.pass_time(10 * SECOND_US)
    assert sessions_of(cluster, "athens") == [alice.client_id]


@pytest.mark.rows("IDR-R14")
def test_requests_keep_a_session_as_heartbeats_do() -> None:
    cluster, alice = led_by_athens(**SHORT)
    for count in range(1, 8):
        cluster.pass_time(500_000)
        number = increment(cluster, alice, "athens")
        answer = alice.answer_to(number)
        assert answer is not None and (answer.error, answer.value) == (None, count)


@pytest.mark.rows("IDR-R15", "IDR-I3")
def test_sessions_end_by_an_entry_of_the_log_and_a_server_that_is_cut_off_keeps_them_until_it_gets_there() -> None:
    cluster, alice = led_by_athens(**SHORT)
    cluster.pass_time(100_000)
    cluster.cut("cyrene")
    cluster.pass_time(1_200_000)
    assert sessions_of(cluster, "byzantium") == []
    assert sessions_of(cluster, "cyrene") == [alice.client_id]
    cluster.heal()
    cluster.pass_time(300_000)
    assert sessions_of(cluster, "cyrene") == []


@pytest.mark.rows("IDR-S10", "IDR-R15")
def test_a_new_leader_whose_clock_ran_ahead_decides_as_the_old_one_would_have() -> None:
    """By cyrene's own clock ten minutes have passed; it grants every session a full time anew."""
    cluster, alice = led_by_athens(**SHORT)
    number = increment(cluster, alice, "athens")
    cluster.ports["cyrene"].now_us += 600 * SECOND_US
    cluster.elect("cyrene")
    cluster.pass_time(700_000)
    alice.ask_again("cyrene", number, Increment("x", 1))
    cluster.deliver()
    assert [(answer.error, answer.value) for answer in alice.answers_to(number)] == [(None, 1), (None, 1)]
    assert cluster.values("cyrene") == {"x": 1}
    assert cluster.broken() == []


@pytest.mark.rows("IDR-S10", "IDR-R15", "IDR-R16")
def test_what_has_expired_under_one_leader_stays_so_under_the_next_whose_clock_stood_still() -> None:
    cluster, alice = led_by_athens(**SHORT)
    number = increment(cluster, alice, "athens")
    cluster.pass_time(1_300_000)
    cluster.ports["byzantium"].now_us -= SECOND_US
    cluster.elect("byzantium")
    alice.ask_again("byzantium", number, Increment("x", 1))
    cluster.deliver()
    assert [answer.error for answer in alice.answers_to(number)] == [None, UNKNOWN_SESSION]
    assert cluster.values("byzantium") == {"x": 1}


@pytest.mark.rows("IDR-R19")
def test_a_registration_that_was_repeated_leaves_a_session_behind_which_dies() -> None:
    cluster, alice = led_by_athens(**SHORT)
    orphan = alice.client_id
    alice.register("athens")
    assert sessions_of(cluster, "athens") == [orphan, alice.client_id]
    for _ in range(4):
        cluster.pass_time(400_000)
        increment(cluster, alice, "athens")
    assert sessions_of(cluster, "athens") == [alice.client_id]


@pytest.mark.parametrize("linger_ms", ["0", "20"])
def test_a_registration_that_is_repeated_while_it_waits_is_one_entry_with_one_answer(linger_ms: str) -> None:
    """A log that is slower than the repetitions would otherwise fall behind for ever."""
    cluster = Cluster(batch_linger_ms=linger_ms)
    cluster.elect("athens")
    for client in ("alice", "alice", "bob", "alice"):
        cluster.hand(client, "athens", RegisterClientRequest(0))
    cluster.pass_time(20_000)
    cluster.deliver()
    assert len(sessions_of(cluster, "athens")) == 2
    assert [len(Client(cluster, name).answers()) for name in ("alice", "bob")] == [1, 1]
    assert cluster.broken() == []


def test_a_client_that_was_sent_away_before_its_session_was_in_the_log_can_register_at_that_server_again() -> None:
    cluster = Cluster()
    cluster.elect("athens")
    cluster.hand("alice", "athens", RegisterClientRequest(0))
    cluster.take(lambda source, _, __: source == "athens")
    cluster.elect("byzantium", lambda source, target, _: "athens" not in (source, target))
    cluster.deliver()
    alice = Client(cluster, "alice")
    assert [redirect.leader_id for redirect in alice.redirects()] == [None]
    cluster.elect("athens")
    assert alice.register("athens").client_id in sessions_of(cluster, "athens")


@pytest.mark.rows("IDR-R17", "IDR-S8")
def test_a_client_that_restarts_and_asks_again_is_executed_again_under_its_new_id() -> None:
    """Allowed: to the servers it is another client."""
    cluster, alice = led_by_athens()
    increment(cluster, alice, "athens")
    reborn = Client(cluster, "alice").register("athens")
    assert reborn.client_id != alice.client_id
    increment(cluster, reborn, "athens")
    assert cluster.values("athens") == {"x": 2}
    assert cluster.broken() == []


@pytest.mark.rows("IDR-R9")
def test_a_request_without_a_client_id_is_executed_as_often_as_it_arrives() -> None:
    cluster, _ = led_by_athens()
    for _ in range(2):
        cluster.hand("stranger", "athens", ClientRequest(0, 1, Increment("x", 1)))
    cluster.deliver()
    assert cluster.values("athens") == {"x": 2}
    assert cluster.broken() == []


@pytest.mark.rows("IDR-S2", "IDR-S12", "IDR-R10", "IDR-R12")
def test_bobs_forty_widgets_are_moved_once_whatever_becomes_of_the_leader() -> None:
    """Boston has 50 widgets and Pune 75; the transfer commits, and the leader dies before it answers."""
    cluster, bob = led_by_athens(discard_policy="acknowledged")
    bob.set("athens", "widgets", {"boston": 50, "pune": 75})
    cluster.deliver()
    transfer = Transfer("widgets", "boston", "pune", 40)
    number = bob.ask("athens", transfer)
    cluster.deliver(lambda _, target, __: target in ("byzantium", "cyrene"))
    cluster.kill("athens")
    cluster.elect("byzantium")
    bob.ask_again("byzantium", number, transfer)
    cluster.deliver()
    assert [answer.error for answer in bob.answers_to(number)] == [None]
    assert cluster.values("byzantium") == {"widgets": {"boston": 10, "pune": 115}}
    cluster.hand("alice", "byzantium", ClientRequest(bob.client_id, number + 3, Increment("x", 1), number + 1))
    bob.ask_again("byzantium", number, transfer)
    cluster.deliver()
    assert bob.answers_to(number)[-1].error == REQUEST_DISCARDED
    assert cluster.values("byzantium")["widgets"] == {"boston": 10, "pune": 115}
