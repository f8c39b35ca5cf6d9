"""Stories about the replicated log and its high-water mark: LOG-S*, HWM-S* of the requirements, told step by step."""

from __future__ import annotations

import pytest

from faultline.story.log_cluster import ELECTION_TIMEOUT_US, Client, Cluster
from faultline.systems_under_test.patterns.data_replication.replicated_log import (
    ReplicationRequest,
    ReplicationResponse,
)
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import NO_OP, LogEntry, LogUnusable


def entries(*generations: int, start: int = 1) -> list[LogEntry]:
    return [LogEntry(start + offset, generation, NO_OP, b"") for offset, generation in enumerate(generations)]


def lead_from_outside(
    cluster: Cluster, generation: int, prev: tuple[int, int], new: list[LogEntry], mark: int = 0
) -> ReplicationResponse:
    """Play the leader byzantium of `generation` against athens; the answer."""
    request = ReplicationRequest("byzantium", generation, 1, 0, prev[0], prev[1], mark, new)
    cluster.hand("byzantium", "athens", request)
    answer = cluster.take(lambda source, _, __: source == "athens")[-1][2]
    assert isinstance(answer, ReplicationResponse)
    return answer


def test_the_planted_bug_keeps_the_conflicting_suffix() -> None:
    cluster = Cluster(planted_bugs=("no-truncate-on-conflict",))
    lead_from_outside(cluster, 4, (0, 0), entries(1, 2, 2))
    lead_from_outside(cluster, 5, (1, 1), entries(3, start=2))
    assert cluster.log("athens") == [1, 2, 2]


@pytest.mark.rows("LOG-R13", "LOG-R8")
def test_lost_requests_are_sent_again_from_the_first_that_was_not_acknowledged() -> None:
    cluster = Cluster()
    cluster.elect("athens")
    alice = Client(cluster, "alice").register("athens")
    for value in range(8):
        alice.set("athens", "title", value)
    to_cyrene = [message for _, target, message in cluster.queue if target == "cyrene"]
    assert len(to_cyrene) == 5
    cluster.drop(lambda _, target, __: target == "cyrene")
    cluster.deliver()
    cluster.pass_time(ELECTION_TIMEOUT_US)
    assert cluster.log("cyrene") == cluster.log("athens")
    assert "in-flight-go-back" in cluster.marks


def test_the_planted_bug_ack_before_quorum_answers_alone() -> None:
    cluster = Cluster(planted_bugs=("ack-before-quorum",))
    cluster.elect("athens")
    alice = Client(cluster, "alice").register("athens")
    cluster.cut("athens")
    assert len(alice.answers_to(alice.set("athens", "title", 1))) == 1


@pytest.mark.rows("LOG-R7", "LOG-I9")
@pytest.mark.parametrize(("planted_bugs", "survives"), [((), True), (("ack-before-fsync",), False)])
def test_an_answered_write_survives_the_death_of_all_unless_the_fsync_was_left_for_later(
    planted_bugs: tuple[str, ...], survives: bool
) -> None:
    """LOG-M9."""
    cluster = Cluster(planted_bugs=planted_bugs)
    cluster.elect("athens")
    alice = Client(cluster, "alice").register("athens")
    number = alice.set("athens", "title", "answered")
    cluster.deliver()
    assert len(alice.answers_to(number)) == 1
    for name in cluster.members:
        cluster.kill(name)
    for name in cluster.members:
        cluster.start(name)
    cluster.elect("byzantium")
    assert (cluster.values("byzantium") == {"title": "answered"}) == survives


@pytest.mark.rows("HWM-S7")
def test_a_crash_between_a_cut_and_its_flush_leaves_nothing_behind_the_new_entries() -> None:
    """The old suffix may be there again, but then nothing was acknowledged, and the leader's entries replace it."""

    class PowerIsOut(Exception):
        pass

    def lose_power(_: str) -> None:
        raise PowerIsOut

    cluster = Cluster()
    lead_from_outside(cluster, 1, (0, 0), entries(1, 1, 1, 1, 1))
    disk = cluster.ports["athens"].storage
    disk.fsync = lose_power
    request = ReplicationRequest("byzantium", 2, 1, 0, 2, 1, 0, entries(2, start=3))
    with pytest.raises((PowerIsOut, LogUnusable)):
        cluster.hand("byzantium", "athens", request)
    del disk.fsync
    assert [message for source, _, message in cluster.queue if source == "athens"] == []
    cluster.restart("athens")
    assert cluster.log("athens") in ([1, 1, 1, 1, 1], [1, 1])
    assert lead_from_outside(cluster, 2, (2, 1), entries(2, start=3)).succeeded
    cluster.restart("athens")
    assert cluster.log("athens") == [1, 1, 2]
