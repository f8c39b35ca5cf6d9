"""Stories of clocks that differ: LMC-S*, HYC-S*, CBW-S* of the requirements, in seconds.

The title is 'Before Dawn' at 1; Philip writes 'After Dawn'. athens plays Green, who keeps the title; byzantium is Blue
and cyrene is Amber. Alice reads by Amber's clock and Bob by Blue's.
"""

from __future__ import annotations

import pytest

from faultline.story.clock_cluster import SECOND_US, TITLE, ClockCluster, at, count
from faultline.systems_under_test.patterns.distributed_time.clock_bound_wait import BoundedClock
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import HybridTimestamp
from faultline.systems_under_test.reference.timestamped_kv.node import CLOCK_TOO_FAR_AHEAD

GREEN, BLUE, AMBER = "athens", "byzantium", "cyrene"
BEFORE, AFTER = "Before Dawn", "After Dawn"


def before_dawn(**options: str) -> ClockCluster:
    """The title was written long ago; all clocks show 1."""
    cluster = ClockCluster(3, forward_jump_ms="0", **options)
    cluster.nodes[GREEN].versions.put(TITLE, at(1), BEFORE)
    for node in (GREEN, BLUE, AMBER):
        cluster.set_clock(node, 1)
    return cluster


# -- without a wait ------------------------------------------------------------------------------------------------


@pytest.mark.rows("CBW-S1", "HYC-R13")
@pytest.mark.parametrize(("green", "amber", "blue"), [(2, 1, 2), (3, 2, 3)])
def test_without_a_wait_a_friend_with_a_slow_clock_reads_the_past(green: int, amber: int, blue: int) -> None:
    cluster = before_dawn()
    for node, seconds in ((GREEN, green), (AMBER, amber), (BLUE, blue)):
        cluster.set_clock(node, seconds)
    cluster.write("philip", GREEN, AFTER)
    assert cluster.stamp_of("philip") == at(green)
    assert cluster.read_via("bob", BLUE, GREEN) == AFTER
    assert cluster.read_via("alice", AMBER, GREEN) == BEFORE


def snapshot(cluster: ClockCluster, time: HybridTimestamp) -> list[object]:
    """Boston's and London's stock as of `time`."""
    answers = [cluster.read_at("auditor", *place, key=key) for key, place in stock_at(time)]
    return [answer.value for answer in answers if answer is not None]


def stock_at(time: HybridTimestamp) -> list[tuple[str, tuple[str, HybridTimestamp]]]:
    return [("boston", (GREEN, time)), ("london", (BLUE, time))]


@pytest.mark.rows("LMC-S8", "LMC-R2", "HYC-R6")
def test_a_snapshot_at_the_effects_stamp_sees_the_cause_and_one_before_it_does_not() -> None:
    cluster = ClockCluster(3, clock="lamport")
    cluster.write("transfer", GREEN, 100, key="boston")
    boston = cluster.stamp_of("transfer")
    assert boston is not None
    cluster.write("transfer", BLUE, 200, seen=boston, key="london")
    london = cluster.stamp_of("transfer")
    assert london is not None and london > boston
    assert snapshot(cluster, london) == [100, 200]
    assert snapshot(cluster, boston) == [100, None]


@pytest.mark.rows("LMC-S4", "LMC-M5")
def test_setting_wall_clocks_back_does_nothing_to_lamport_stamps() -> None:
    cluster = ClockCluster(3, clock="lamport")
    cluster.write("philip", GREEN, "one")
    for node in (GREEN, BLUE, AMBER):
        cluster.set_clock(node, -3_600)
    first = cluster.stamp_of("philip")
    cluster.write("philip", GREEN, "two")
    second = cluster.stamp_of("philip")
    assert first is not None and second is not None and second > first


@pytest.mark.rows("LMC-S5", "LMC-R8")
def test_a_server_that_restarts_goes_on_above_what_it_had_stored() -> None:
    cluster = ClockCluster(3, clock="lamport")
    cluster.write("philip", GREEN, "old", seen=count(56))
    assert cluster.stamp_of("philip") == count(57)
    cluster.restart(GREEN)
    cluster.write("stranger", GREEN, "new")
    assert cluster.stamp_of("stranger") == count(58)


@pytest.mark.rows("LMC-R9")
def test_who_reads_a_value_takes_over_its_stamp() -> None:
    cluster = ClockCluster(3, clock="lamport")
    cluster.write("philip", GREEN, "cause", seen=count(30))
    read = cluster.read_at("alice", GREEN, cluster.read_time("alice", AMBER))
    assert read is not None and read.stamp is not None
    cluster.write("alice", BLUE, "effect", seen=read.stamp, key="reply")
    stamp = cluster.stamp_of("alice")
    assert stamp is not None and stamp > read.stamp


@pytest.mark.rows("HYC-S7", "HYC-R10")
def test_a_server_that_restarts_with_a_slow_clock_does_not_stamp_below_its_disk() -> None:
    cluster = before_dawn()
    cluster.set_clock(GREEN, 40)
    cluster.write("philip", GREEN, AFTER)
    assert cluster.stamp_of("philip") == at(40)
    cluster.set_clock(GREEN, 10)
    cluster.restart(GREEN)
    cluster.write("bob", GREEN, "Noon")
    assert cluster.stamp_of("bob") == at(40, 1)


@pytest.mark.rows("HYC-S9", "LMC-R5")
def test_strangers_on_servers_with_different_clocks_are_ordered_by_these_clocks() -> None:
    cluster = before_dawn()
    cluster.set_clock(GREEN, 9)
    cluster.set_clock(BLUE, 3)
    cluster.write("philip", GREEN, "first in time")
    cluster.write("bob", BLUE, "second in time", key="chapter")
    first, second = cluster.stamp_of("philip"), cluster.stamp_of("bob")
    assert first is not None and second is not None and second < first
    assert cluster.broken() == []


@pytest.mark.rows("HYC-R12", "HYC-R4")
def test_a_client_from_the_future_is_refused_and_nothing_is_written() -> None:
    cluster = ClockCluster(3)
    cluster.write("marty", GREEN, AFTER, seen=at(10_000_000))
    assert cluster.error_of("marty") == CLOCK_TOO_FAR_AHEAD
    assert cluster.read_at("alice", GREEN, at(20_000_000)).value is None


# -- the writer waits ----------------------------------------------------------------------------------------------


@pytest.mark.rows("CBW-S2", "CBW-R4", "CBW-R5", "CBW-R1", "CBW-I4")
def test_the_writer_waits_until_the_slowest_clock_has_passed_the_stamp() -> None:
    cluster = before_dawn(wait="write", max_offset_ms="1000")
    cluster.set_clock(GREEN, 2)
    cluster.set_clock(BLUE, 2)
    cluster.write("philip", GREEN, AFTER)
    assert cluster.stamp_of("philip") is None
    assert cluster.read_via("bob", BLUE, GREEN) == BEFORE
    assert cluster.read_via("alice", AMBER, GREEN) == BEFORE
    cluster.pass_seconds(1.01)
    assert cluster.stamp_of("philip") == at(2)
    assert cluster.read_via("bob", BLUE, GREEN) == AFTER
    assert cluster.read_via("alice", AMBER, GREEN) == AFTER


@pytest.mark.rows("CBW-S10", "CBW-R3", "CBW-M10")
def test_a_clock_that_is_set_back_makes_the_writer_wait_on() -> None:
    cluster = before_dawn(wait="write", max_offset_ms="1000")
    cluster.set_clock(GREEN, 2)
    cluster.write("philip", GREEN, AFTER)
    cluster.set_clock(GREEN, -2)
    cluster.pass_seconds(4)
    assert cluster.stamp_of("philip") is None
    cluster.pass_seconds(1.1)
    assert cluster.stamp_of("philip") == at(2)
    assert "clock-went-back" in cluster.marks


@pytest.mark.rows("CBW-S11", "CBW-R7")
def test_a_writer_that_dies_while_waiting_leaves_nothing_behind() -> None:
    cluster = before_dawn(wait="write", max_offset_ms="1000")
    cluster.write("philip", GREEN, AFTER)
    cluster.restart(GREEN)
    cluster.pass_seconds(10)
    assert cluster.stamp_of("philip") is None
    assert cluster.read_via("bob", BLUE, GREEN) == BEFORE


@pytest.mark.rows("CBW-S12")
def test_saturn_sees_what_was_written_in_boston_although_its_clock_is_five_seconds_slow() -> None:
    cluster = ClockCluster(3, wait="write", max_offset_ms="5000", forward_jump_ms="0", client_timeout_ms="9000")
    jupiter, neptune, saturn = GREEN, BLUE, AMBER
    cluster.set_clock(jupiter, 1_805)
    cluster.set_clock(neptune, 1_800)
    cluster.set_clock(saturn, 1_800)
    cluster.write("transfer", jupiter, 0, key="boston")
    cluster.pass_seconds(5.01)
    boston = cluster.stamp_of("transfer")
    assert boston == at(1_805)
    cluster.write("transfer", neptune, 183, seen=boston, key="london")
    cluster.pass_seconds(6)
    london = cluster.stamp_of("transfer")
    assert london is not None and london > boston
    answer = cluster.read_at("bob", jupiter, cluster.read_time("bob", saturn), key="boston")
    assert answer is not None and answer.value == 0


# -- the reader reads again ----------------------------------------------------------------------------------------


@pytest.mark.rows("CBW-S3", "CBW-R8", "CBW-R9", "CBW-R13")
def test_a_reader_who_cannot_place_a_version_is_told_and_reads_again_there() -> None:
    cluster = before_dawn(wait="restart", max_offset_ms="1000")
    cluster.set_clock(GREEN, 2)
    cluster.write("philip", GREEN, AFTER)
    assert cluster.stamp_of("philip") == at(2)
    time = cluster.read_time("alice", AMBER)
    assert time == at(1)
    limit_us = time.wall_us + SECOND_US
    answer = cluster.read_at("alice", GREEN, time, limit_us)
    assert answer is not None and answer.uncertain == at(2)
    again = cluster.read_at("alice", GREEN, answer.uncertain, limit_us)
    assert again is not None and again.uncertain is None and again.value == AFTER


@pytest.mark.rows("CBW-R9", "CBW-M8")
def test_neither_another_key_nor_a_version_beyond_the_limit_makes_a_reader_uncertain() -> None:
    cluster = before_dawn(wait="restart", max_offset_ms="1000")
    cluster.nodes[GREEN].versions.put("titles", at(1, 5), "another key")
    cluster.nodes[GREEN].versions.put(TITLE, at(3), "beyond the limit")
    answer = cluster.read_at("alice", GREEN, at(1), 2 * SECOND_US)
    assert answer is not None and answer.uncertain is None and answer.value == BEFORE


@pytest.mark.rows("CBW-S4", "CBW-R11", "CBW-M9")
def test_on_a_busy_key_the_limit_of_the_first_try_ends_the_restarts() -> None:
    cluster = before_dawn(wait="restart", max_offset_ms="1000")
    time, limit_us, tries = at(1), 2 * SECOND_US, 0
    while True:
        tries += 1
        stamp = HybridTimestamp(SECOND_US + tries * 400_000, 0)
        cluster.nodes[GREEN].versions.put(TITLE, stamp, tries)
        answer = cluster.read_at("alice", GREEN, time, limit_us)
        assert answer is not None
        if answer.uncertain is None:
            break
        time = answer.uncertain
    assert tries == 3
    assert answer.value == 2


# -- both wait for the bound ---------------------------------------------------------------------------------------


def with_errors(green: int, blue: int, amber: int) -> ClockCluster:
    """Clocks that are right at 4, each with its own bound."""
    cluster = before_dawn(wait="commit")
    for node, error in ((GREEN, green), (BLUE, blue), (AMBER, amber)):
        cluster.set_clock(node, 4)
        cluster.nodes[node]._waits._clock = BoundedClock(cluster.ports[node].wall_us, error * SECOND_US)
    return cluster


@pytest.mark.rows("CBW-S5", "CBW-R17", "CBW-R18", "CBW-R21", "CBW-I4")
def test_a_write_is_shown_when_its_stamp_is_past_for_certain() -> None:
    cluster = with_errors(green=1, blue=2, amber=3)
    cluster.write("philip", GREEN, AFTER)
    cluster.pass_seconds(2)
    assert cluster.stamp_of("philip") is None, "at 6 the bound is [5, 7], and 5 is not past"
    cluster.pass_seconds(0.1)
    stamp = cluster.stamp_of("philip")
    assert stamp is not None and stamp.wall_us == 5 * SECOND_US
    for reader, node in (("bob", BLUE), ("alice", AMBER)):
        time = cluster.read_time(reader, node)
        assert time > stamp
        cluster.read_at(reader, GREEN, time)
    cluster.pass_seconds(5)
    assert [cluster.last_read(reader).value for reader in ("bob", "alice")] == [AFTER, AFTER]


@pytest.mark.rows("CBW-S6", "CBW-R23", "CBW-I5")
def test_a_larger_error_makes_a_longer_wait_and_nothing_else() -> None:
    cluster = with_errors(green=3, blue=2, amber=1)
    cluster.write("philip", GREEN, AFTER)
    cluster.pass_seconds(6)
    assert cluster.stamp_of("philip") is None
    cluster.pass_seconds(0.1)
    stamp = cluster.stamp_of("philip")
    assert stamp is not None and stamp.wall_us == 7 * SECOND_US


@pytest.mark.rows("CBW-S7", "CBW-R19", "CBW-R22", "CBW-M6", "CBW-M7")
def test_a_reader_in_the_future_waits_for_the_clock_and_for_what_is_pending() -> None:
    cluster = with_errors(green=1, blue=2, amber=3)
    cluster.write("philip", GREEN, AFTER)
    time = cluster.read_time("alice", AMBER)
    assert time.wall_us == 7 * SECOND_US
    assert cluster.read_at("alice", GREEN, time) is None
    cluster.pass_seconds(3.9)
    assert cluster.last_read("alice") is None, "Green is not certain that 7 is past before 8"
    cluster.pass_seconds(0.2)
    assert cluster.last_read("alice").value == AFTER
    assert cluster.broken() == []


@pytest.mark.rows("CBW-S8", "CBW-R20")
def test_two_writes_in_one_instant_get_two_stamps_and_both_are_kept() -> None:
    cluster = with_errors(green=1, blue=2, amber=3)
    cluster.write("philip", GREEN, AFTER)
    cluster.write("bob", GREEN, "Noon")
    cluster.pass_seconds(3)
    stamps = {cluster.stamp_of("philip"), cluster.stamp_of("bob")}
    assert len(stamps) == 2
    assert len(cluster.nodes[GREEN].versions.stamps(TITLE)) == 3


@pytest.mark.rows("CBW-R24", "CBW-S11")
def test_after_the_writer_died_no_reader_waits_for_its_pending_stamp() -> None:
    cluster = with_errors(green=1, blue=2, amber=3)
    cluster.write("philip", GREEN, AFTER)
    cluster.restart(GREEN)
    cluster.pass_seconds(8)
    answer = cluster.read_at("alice", GREEN, at(7))
    assert answer is not None and answer.value == BEFORE


@pytest.mark.rows("CBW-S13", "CBW-I1")
@pytest.mark.parametrize("wait", ["write", "commit"])
def test_a_phone_call_between_two_writers_is_seen_in_the_stamps(wait: str) -> None:
    cluster = before_dawn(
        wait=wait, max_offset_ms="1000", error_bound_ms="1000", request_timeout_ms="5000", client_timeout_ms="9000"
    )
    cluster.set_clock(GREEN, 2)
    cluster.write("a", GREEN, "first")
    cluster.pass_seconds(3)
    first = cluster.stamp_of("a")
    assert first is not None
    cluster.write("b", BLUE, "second", key="chapter")
    cluster.pass_seconds(3)
    second = cluster.stamp_of("b")
    assert second is not None and second > first
