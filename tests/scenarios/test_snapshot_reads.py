"""Stories of reads at a time beside transactions: no locks, one time per transaction, never two answers."""

from __future__ import annotations

import pytest

from faultline.harness.errors import UsageError
from faultline.story.transaction_cluster import (
    ATHENS,
    BYZANTIUM,
    CYRENE,
    REFUSED,
    WAITS,
    Transaction,
    TransactionCluster,
)
from faultline.systems_under_test.patterns.data_partitioning.snapshot_reads import ReadBlocked
from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import PrepareTransaction, Vote
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import HybridTimestamp
from faultline.systems_under_test.patterns.distributed_time.timestamp_oracle import TimestampOracle
from faultline.systems_under_test.reference.transactional_kv.options import TransactionSettings


def at(number: int) -> HybridTimestamp:
    return HybridTimestamp(number, 0)


def waiting_for_a_decision(**options: str) -> tuple[TransactionCluster, Transaction, str, str]:
    """A transaction over two nodes whose Lamport clocks show 2 and 4, prepared at both; the votes are under way."""
    cluster = TransactionCluster(clock="lamport", **options)
    blue, green = cluster.key_on(BYZANTIUM), cluster.key_on(CYRENE)
    cluster.nodes[BYZANTIUM].times.update_to(at(2))
    cluster.nodes[CYRENE].times.update_to(at(4))
    alice = Transaction(cluster, "alice").begin(ATHENS)
    alice.write(blue, "alice")
    alice.write(green, "alice")
    alice.ask_commit()
    cluster.deliver(lambda _, __, message: isinstance(message, PrepareTransaction))
    return cluster, alice, blue, green


@pytest.mark.rows("TPC-S13", "TPC-R37", "TPC-R40", "TPC-R41", "HYC-S5", "HYC-R9", "TPC-R36")
def test_blue_prepares_at_3_green_at_5_and_both_store_at_5() -> None:
    cluster, _, blue, green = waiting_for_a_decision()
    early = cluster.read_at(blue, at(4))
    late = cluster.read_at(blue, at(6))
    assert (cluster.value("philip", early), cluster.value("philip", late)) == (WAITS, WAITS)
    cluster.deliver()
    assert (cluster.version(blue), cluster.version(green)) == (at(5), at(5))
    assert (cluster.value("philip", early), cluster.value("philip", late)) == (None, "alice")
    assert [cluster.value("philip", cluster.read_at(key, at(4))) for key in (blue, green)] == [None, None]
    assert [cluster.value("philip", cluster.read_at(key, at(5))) for key in (blue, green)] == ["alice", "alice"]
    assert cluster.broken() == []


@pytest.mark.rows("HYC-M6")
def test_with_a_time_for_each_participant_a_read_in_between_sees_half() -> None:
    cluster, _, blue, green = waiting_for_a_decision()
    bug = TransactionCluster(planted_bugs=("own-prepare-time",), clock="lamport")
    bug.nodes[BYZANTIUM].times.update_to(at(2))
    bug.nodes[CYRENE].times.update_to(at(4))
    alice = Transaction(bug, "alice").begin(ATHENS)
    alice.write(blue, "alice")
    alice.write(green, "alice")
    assert alice.commit() is True
    assert [bug.value("philip", bug.read_at(key, at(4))) for key in (blue, green)] == ["alice", None]
    assert "HYC-I5" in bug.broken()
    cluster.deliver()
    assert cluster.broken() == []


@pytest.mark.rows("TPC-S12", "TPC-R38")
def test_philip_who_reads_at_2_sees_the_past_while_alice_commits_and_blocks_no_client() -> None:
    cluster, alice, blue, green = waiting_for_a_decision()
    assert cluster.value("philip", cluster.read_at(blue, at(2))) is None
    cluster.deliver()
    assert alice.outcome() is True
    assert cluster.value("philip", cluster.read_at(blue, at(2))) is None
    assert cluster.value("philip", cluster.read_at(green, at(9))) == "alice"


@pytest.mark.rows("TPC-R39", "TPC-R40", "TPC-I9")
@pytest.mark.parametrize("restarts", [False, True])
def test_what_was_read_at_a_time_stays_so_over_later_writes_and_a_restart(restarts: bool) -> None:
    cluster = TransactionCluster(clock="lamport")
    key = cluster.key_on(BYZANTIUM)
    assert cluster.value("philip", cluster.read_at(key, at(40))) is None
    if restarts:
        cluster.restart(BYZANTIUM)
    writer = Transaction(cluster, "alice").begin(ATHENS)
    writer.write(key, "alice")
    assert writer.commit() is True
    assert cluster.version(key) > at(40)
    assert cluster.value("philip", cluster.read_at(key, at(40))) is None
    assert cluster.broken() == []


@pytest.mark.rows("TPC-R39")
def test_a_time_from_too_far_ahead_is_refused() -> None:
    cluster = TransactionCluster()
    key = cluster.key_on(BYZANTIUM)
    now_us = cluster.ports[BYZANTIUM].wall_us()
    assert cluster.value("philip", cluster.read_at(key, HybridTimestamp(now_us + 400_000, 0))) is None
    assert cluster.value("philip", cluster.read_at(key, HybridTimestamp(now_us + 10**9, 0))) is REFUSED


@pytest.mark.rows("TPC-R41", "TPC-S17")
def test_a_read_that_may_still_get_a_write_fails_after_a_bounded_wait_and_one_below_is_answered() -> None:
    cluster, alice, blue, _ = waiting_for_a_decision()
    cluster.drop(lambda _, __, message: isinstance(message, Vote))
    cluster.cut(ATHENS, BYZANTIUM)
    blocked = cluster.participant(BYZANTIUM).snapshots.read_at(blue, at(9))
    below = cluster.participant(BYZANTIUM).snapshots.read_at(blue, at(2))
    assert below.done and not blocked.done
    cluster.pass_time(200_000)
    with pytest.raises(ReadBlocked, match="not decided"):
        blocked.result()
    assert alice.outcome() is WAITS


@pytest.mark.rows("TPC-R42", "TPC-S18")
def test_an_oracle_that_restarts_gives_out_only_larger_times() -> None:
    cluster = TransactionCluster(clock="oracle", read_only="snapshot")
    key = cluster.key_on(CYRENE)
    times = []
    for value in range(6):
        writer = Transaction(cluster, f"writer-{value}").begin(BYZANTIUM)
        writer.write(key, value)
        assert writer.commit() is True
        times.append(cluster.version(key))
        cluster.restart(ATHENS)
        cluster.deliver()
    assert times == sorted(times) and len(times) == len(set(times))


def test_an_oracle_reserves_before_it_gives_out() -> None:
    limits: list[int] = []
    oracle = TimestampOracle(limits.append)
    given = [oracle.next() for _ in range(2_500)]
    assert given == list(range(1, 2_501)) and limits == [1_000, 2_000, 3_000]
    after = TimestampOracle(limits.append)
    after.restore(limits[-1])
    assert after.next() > given[-1]


@pytest.mark.rows("TPC-R35")
def test_under_snapshot_isolation_the_first_to_commit_a_key_wins_and_skew_is_possible() -> None:
    cluster = TransactionCluster(isolation="snapshot")
    one, other = cluster.key_on(BYZANTIUM), cluster.key_on(CYRENE)
    alice, bob = Transaction(cluster, "alice").begin(ATHENS), Transaction(cluster, "bob").begin(ATHENS)
    for guest in (alice, bob):
        assert (guest.read(one), guest.read(other)) == (None, None)
    alice.write(one, 1)
    bob.write(other, 1)
    assert (alice.commit(), bob.commit()) == (True, True)
    carol, dave = Transaction(cluster, "carol").begin(ATHENS), Transaction(cluster, "dave").begin(ATHENS)
    assert (carol.read(one), dave.read(one)) == (1, 1)
    carol.write(one, 2)
    dave.write(one, 3)
    assert (carol.commit(), dave.commit()) == (True, False)


@pytest.mark.parametrize("options", [{"policy": "hope"}, {"attempts_max": "0"}, {"isolation": "x"}, {"unknown": "1"}])
def test_options_that_mean_nothing_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        TransactionSettings.read(options)
