"""Stories about reads from followers: the seeds' title that is corrected, and readers that will not wait for it.

Athens leads; alice corrects "Nitroservices" to "Microservices" and reads at a follower. Where a story shows an anomaly,
its twin shows the mode in which it must not occur.
"""

from __future__ import annotations

from typing import Any

import pytest
from read_driver import MS, SILENCE_MS, Reader, beat, corrected, library, slow_to

from faultline.systems_under_test.reference.follower_reads.messages import (
    NOT_HEARD,
    OFFSET_NOT_AVAILABLE,
    OFFSET_OUT_OF_RANGE,
    TOO_STALE,
    WAIT_TIMEOUT,
    ReadIndexRequest,
    ReadIndexResponse,
    ReplicaPing,
    ReplicaPong,
)
from faultline.systems_under_test.reference.shared.client_messages import GetValue

WAIT_MS = 200


@pytest.mark.rows("CC-R19", "CC-S6")
@pytest.mark.rows("FR-R12", "FR-R14", "FR-S1", "FR-I1", "VVL-R3")
@pytest.mark.parametrize(("mode", "early"), [("session", []), ("plain", [("Nitroservices", None)])])
def test_a_stamp_lets_the_follower_wait_where_a_plain_read_is_stale(mode: str, early: list[Any]) -> None:
    cluster, alice = library(mode)
    stamp = corrected(cluster, alice, "byzantium")
    number = alice.read("byzantium", "title", stamp if mode == "session" else 0)
    assert alice.told(number) == early
    cluster.deliver()
    beat(cluster, "athens")
    cluster.deliver()
    assert alice.told(number) == (early or [("Microservices", None)])
    assert cluster.broken() == []


@pytest.mark.rows("CC-S7")
@pytest.mark.rows("FR-R13", "FR-S2")
def test_a_follower_that_is_cut_off_refuses_after_the_timeout_and_another_answers() -> None:
    cluster, alice = library("session")
    cluster.split("byzantium")
    number = alice.set("athens", "title", "Microservices")
    cluster.deliver()
    stamp = alice.stamp_of(number)
    cluster.pass_time(60 * MS)
    waiting = alice.read("byzantium", "title", stamp)
    cluster.pass_time((WAIT_MS - 1) * MS)
    assert alice.told(waiting) == []
    cluster.pass_time(1 * MS)
    assert alice.told(waiting) == [(None, WAIT_TIMEOUT)]
    assert alice.told(alice.read("cyrene", "title", stamp)) == [("Microservices", None)]


@pytest.mark.rows("FR-R9", "FR-S3")
def test_a_cut_off_follower_is_stale_first_then_refuses_and_resumes_after_the_heal() -> None:
    cluster, alice = library("plain", election_timeout_ms="10000")
    cluster.split("byzantium")
    alice.set("athens", "title", "Microservices")
    cluster.deliver()
    cluster.pass_time((SILENCE_MS - 100) * MS)
    assert alice.told(alice.read("byzantium", "title")) == [("Nitroservices", None)]
    cluster.pass_time(101 * MS)
    assert alice.told(alice.read("byzantium", "title")) == [(None, NOT_HEARD)]
    cluster.heal()
    cluster.pass_time(200 * MS)
    assert alice.told(alice.read("byzantium", "title")) == [("Microservices", None)]
    assert cluster.broken() == []


@pytest.mark.rows("FR-R10", "FR-S4")
def test_a_follower_that_cannot_show_its_freshness_refuses_and_says_how_far_it_lags() -> None:
    cluster, alice = library("bounded", max_staleness_ms="300")
    assert alice.told(alice.read("byzantium", "title")) == [("Nitroservices", None)]
    cluster.ports["byzantium"].now_us += 301 * MS
    assert alice.told(alice.read("byzantium", "title")) == [(None, TOO_STALE)]
    cluster.hand("alice", "byzantium", ReplicaPing(7))
    lag_us = next(answer.lag_us for answer in reversed(alice.answers()) if isinstance(answer, ReplicaPong))
    assert lag_us > 300 * MS
    cluster.pass_time(100 * MS)
    assert alice.told(alice.read("byzantium", "title")) == [("Nitroservices", None)]


@pytest.mark.rows("FR-R3")
def test_servers_publish_their_regions() -> None:
    cluster, alice = library("plain")
    for node in cluster.members:
        cluster.hand("alice", node, ReplicaPing(1))
    pongs = [answer for answer in alice.answers() if isinstance(answer, ReplicaPong)]
    assert [pong.region for pong in pongs] == ["us-west", "us-east", "eu-west"]


@pytest.mark.rows("FR-R15", "FR-S7")
def test_two_clients_that_wait_for_one_stamp_at_one_follower_are_both_answered() -> None:
    cluster, alice = library("session")
    bob = Reader(cluster, "bob")
    stamp = corrected(cluster, alice, "byzantium")
    numbers = (alice.read("byzantium", "title", stamp), bob.read("byzantium", "title", stamp))
    cluster.deliver()
    beat(cluster, "athens")
    cluster.deliver()
    assert alice.told(numbers[0]) == bob.told(numbers[1]) == [("Microservices", None)]


@pytest.mark.rows("FR-R16", "FR-S8")
def test_a_stamp_of_a_write_to_another_key_brings_the_key_that_was_asked_for() -> None:
    cluster, alice = library("session")
    number = alice.set("athens", "author", "unknown")
    cluster.deliver(slow_to("byzantium"))
    waiting = alice.read("byzantium", "title", alice.stamp_of(number))
    cluster.deliver()
    beat(cluster, "athens")
    cluster.deliver()
    assert alice.told(waiting) == [("Nitroservices", None)]


@pytest.mark.rows("FR-R14", "FR-S9")
def test_a_follower_that_gets_many_entries_at_once_answers_everyone_who_waited_for_any() -> None:
    cluster, alice = library("session")
    bob = Reader(cluster, "bob")
    stamps = []
    for number in range(1, 9):
        asked = alice.set("athens", "title", f"edition {number}")
        cluster.deliver(slow_to("byzantium"))
        stamps.append(alice.stamp_of(asked))
    waiting = [bob.read("byzantium", "title", stamps[place]) for place in (1, 5)]
    cluster.deliver()
    beat(cluster, "athens")
    cluster.deliver()
    seen = [bob.told(number) for number in waiting]
    assert all(len(answers) == 1 and answers[0][1] is None for answers in seen)
    assert seen[0][0][0] >= "edition 2"
    assert seen[1][0][0] >= "edition 6"


@pytest.mark.rows("FR-R18", "FR-R19", "FR-S10", "VVL-S4", "VVL-R17")
def test_a_stamp_stays_valid_when_the_leader_dies_while_the_reader_waits() -> None:
    cluster, alice = library("session")
    stamp = corrected(cluster, alice, "byzantium")
    waiting = alice.read("byzantium", "title", stamp)
    before = cluster.nodes["athens"].store.current.versions.versions("title")
    assert before[-1] == stamp
    cluster.kill("athens")
    cluster.drop(lambda source, *_: source == "athens")
    cluster.elect("cyrene")
    beat(cluster, "cyrene")
    cluster.deliver()
    assert alice.told(waiting) == [("Microservices", None)]
    alice.register("cyrene")
    after = alice.set("cyrene", "title", "after the crash")
    cluster.deliver()
    cluster.pass_time(100 * MS)
    assert alice.stamp_of(after) > stamp
    assert [cluster.nodes[name].store.current.versions.versions("title") for name in ("byzantium", "cyrene")] == [
        [*before, alice.stamp_of(after)]
    ] * 2
    assert cluster.broken() == []


@pytest.mark.rows("FR-R18", "FR-S10")
def test_a_reader_that_waits_at_a_candidate_is_refused_in_time() -> None:
    cluster, alice = library("session")
    stamp = corrected(cluster, alice, "byzantium")
    waiting = alice.read("byzantium", "title", stamp)
    cluster.split("byzantium")
    cluster.time_out("byzantium")
    assert alice.told(waiting) in ([], [(None, WAIT_TIMEOUT)])
    cluster.pass_time(WAIT_MS * MS)
    assert alice.told(waiting) == [(None, WAIT_TIMEOUT)]


@pytest.mark.rows("FR-R20", "FR-S11", "FR-I2")
@pytest.mark.parametrize(("carried", "told"), [(True, []), (False, [("Nitroservices", None)])])
def test_a_session_that_carries_what_it_has_seen_does_not_go_back_at_another_follower(
    carried: bool, told: list[Any]
) -> None:
    cluster, alice = library("session")
    corrected(cluster, alice, "byzantium")
    beat(cluster, "athens")
    cluster.deliver(slow_to("byzantium"))
    seen = alice.read("cyrene", "title")
    assert alice.told(seen) == [("Microservices", None)]
    assert alice.told(alice.read("byzantium", "title", alice.stamp_of(seen) if carried else 0)) == told


@pytest.mark.rows("CC-R21", "CC-S8", "CC-I3")
@pytest.mark.rows("FR-R21", "FR-S12", "FR-R1")
def test_an_isolated_leader_answers_no_linearizable_read_and_a_follower_redirects_it() -> None:
    cluster, alice = library("session")
    cluster.split("athens")
    number = alice.get("athens", "title")
    cluster.deliver()
    assert alice.told(number) == []
    elsewhere = alice.ask("byzantium", GetValue("title"))
    written = alice.set("byzantium", "title", "at a follower")
    cluster.deliver()
    assert alice.told(elsewhere) == alice.told(written) == []
    assert [redirect.leader_id for redirect in alice.redirects()] == ["athens", "athens"]


@pytest.mark.rows("FR-R2", "FR-I3")
def test_a_follower_does_not_show_what_is_in_its_log_above_its_mark() -> None:
    cluster, alice = library("plain")
    alice.set("athens", "title", "Microservices")
    cluster.deliver(lambda source, _, __: source == "athens")
    node = cluster.nodes["byzantium"]
    assert node.wal.last_index > node.log.high_water_mark.value
    assert alice.told(alice.read("byzantium", "title")) == [("Nitroservices", None)]


@pytest.mark.rows("FR-R11")
def test_a_follower_that_does_not_wait_tells_late_from_unknown() -> None:
    cluster, alice = library("no-wait")
    number = alice.set("athens", "title", "Microservices")
    cluster.deliver(lambda source, target, _: "cyrene" not in (source, target))
    stamp = alice.stamp_of(number)
    node = cluster.nodes["byzantium"]
    assert node.wal.last_index == stamp > node.log.high_water_mark.value
    assert alice.told(alice.read("byzantium", "title", stamp)) == [(None, OFFSET_NOT_AVAILABLE)]
    assert alice.told(alice.read("byzantium", "title", stamp + 1)) == [(None, OFFSET_OUT_OF_RANGE)]
    beat(cluster, "athens")
    cluster.deliver()
    assert alice.told(alice.read("byzantium", "title", stamp)) == [("Microservices", None)]


@pytest.mark.rows("FR-R17", "VVL-R12")
def test_a_read_at_a_stamp_shows_that_version_and_a_session_read_the_newest() -> None:
    told = {}
    for mode in ("at-stamp", "session"):
        cluster, alice = library(mode)
        wrong = alice.stamp_of(alice.read("byzantium", "title"))
        corrected(cluster, alice)
        beat(cluster, "athens")
        cluster.deliver()
        told[mode] = alice.told(alice.read("byzantium", "title", wrong))
    assert told == {"at-stamp": [("Nitroservices", None)], "session": [("Microservices", None)]}


@pytest.mark.rows("CC-R23")
@pytest.mark.rows("FR-R23", "FR-I5")
def test_a_follower_with_a_read_index_answers_only_when_it_has_what_the_leader_had_committed() -> None:
    cluster, alice = library("read-index")
    corrected(cluster, alice, "byzantium")
    number = alice.read("byzantium", "title")
    cluster.deliver(slow_to("byzantium"))
    assert alice.told(number) == []
    cluster.deliver()
    beat(cluster, "athens")
    cluster.deliver()
    assert alice.told(number) == [("Microservices", None)]


@pytest.mark.rows("FR-R23")
def test_a_deposed_leader_tells_no_read_index() -> None:
    cluster, alice = library("read-index")
    cluster.split("athens")
    cluster.elect("cyrene", lambda *_: True)
    cluster.hand("byzantium", "athens", ReadIndexRequest(1))
    cluster.deliver()
    assert [message for _, _, message in cluster.queue if isinstance(message, ReadIndexResponse)] == []
    assert alice.told(alice.read("byzantium", "title")) == []
    cluster.deliver()
    beat(cluster, "cyrene")
    cluster.deliver()
    assert alice.told(alice.number) == [("Nitroservices", None)]


@pytest.mark.rows("CC-I4")
@pytest.mark.rows("FR-I4")
def test_a_restarted_follower_shows_nothing_before_it_has_caught_up_with_what_it_had_shown() -> None:
    cluster, alice = library("plain")
    corrected(cluster, alice)
    beat(cluster, "athens")
    cluster.deliver()
    assert alice.told(alice.read("byzantium", "title")) == [("Microservices", None)]
    cluster.restart("byzantium")
    assert alice.told(alice.read("byzantium", "title")) == [(None, NOT_HEARD)]
    beat(cluster, "athens")
    old = cluster.take(lambda _, target, __: target == "byzantium")
    cluster.hand(*old[0])
    assert alice.told(alice.read("byzantium", "title")) == [(None, NOT_HEARD)]
    cluster.pass_time(100 * MS)
    assert alice.told(alice.read("byzantium", "title")) == [("Microservices", None)]
    assert cluster.broken() == []


@pytest.mark.rows("VVL-S5", "VVL-R2", "VVL-I2", "LMC-R7")
def test_versions_are_the_same_on_all_servers_and_after_a_restart() -> None:
    cluster, alice = library("session")
    for number in range(5):
        alice.set("athens", "title", f"edition {number}")
    cluster.deliver()
    cluster.pass_time(100 * MS)
    stores = {name: list(node.store.current.versions.entries()) for name, node in cluster.nodes.items()}
    assert len(stores["athens"]) == 6
    assert stores["athens"] == stores["byzantium"] == stores["cyrene"]
    cluster.restart("cyrene")
    cluster.pass_time(100 * MS)
    assert list(cluster.nodes["cyrene"].store.current.versions.entries()) == stores["cyrene"]


@pytest.mark.rows("FR-R15", "FR-S9")
def test_a_snapshot_that_is_installed_wakes_all_readers_that_waited_for_its_entries() -> None:
    small = {"snapshot_every_entries": "4", "segment_size_bytes": "1", "log_cleaning_interval_ms": "10"}
    cluster, alice = library("session", follower_wait_timeout_ms="1000", **small)
    bob = Reader(cluster, "bob")
    cluster.split("byzantium")
    stamps = []
    for number in range(1, 21):
        asked = alice.set("athens", "title", f"edition {number}")
        cluster.deliver()
        stamps.append(alice.stamp_of(asked))
    cluster.pass_time(100 * MS)
    waiting = [bob.read("byzantium", "title", stamps[place]) for place in (1, 5)]
    cluster.heal()
    cluster.pass_time(900 * MS)
    assert "snapshot-installed" in cluster.marks
    assert [bob.told(number) for number in waiting] == [[("edition 17", None)]] * 2
    assert cluster.broken() == []


@pytest.mark.rows("FR-R9", "FR-R23")
def test_a_follower_that_slept_has_heard_its_leader_by_the_answer_to_its_own_question() -> None:
    cluster, alice = library("read-index", follower_wait_timeout_ms="2000")
    number = alice.read("byzantium", "title")
    cluster.deliver(lambda source, target, _: (source, target) != ("athens", "byzantium"))
    answers = cluster.take(lambda _, __, message: isinstance(message, ReadIndexResponse))
    assert alice.told(number) == []
    cluster.ports["byzantium"].now_us += (SILENCE_MS + 100) * MS
    for answer in answers:
        cluster.hand(*answer)
    cluster.deliver()
    assert alice.told(number) == [("Nitroservices", None)]
    assert cluster.broken() == []
