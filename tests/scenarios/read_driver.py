"""A hand-cranked cluster of `follower-reads`, and a client of it that reads from followers."""

from __future__ import annotations

from typing import Any

from faultline.story.log_cluster import HEARTBEAT_US, Client, Cluster
from faultline.systems_under_test.patterns.data_replication.replicated_log import ReplicationRequest
from faultline.systems_under_test.reference.follower_reads.messages import FollowerRead
from faultline.systems_under_test.reference.follower_reads.system import FollowerReadStore

__all__ = ["MS", "SILENCE_MS", "Reader", "Store", "beat", "corrected", "library", "slow_to"]

MS = 1_000
SILENCE_MS = 500


class Reader(Client):
    """A client that also reads from followers, with whatever stamp the test gives it."""

    def read(self, node: str, key: str, stamp: int = 0) -> int:
        self.number += 1
        self.cluster.hand(self.name, node, FollowerRead(self.number, key, stamp))
        return self.number

    def told(self, number: int) -> list[tuple[Any, str | None]]:
        return [(answer.value, answer.error) for answer in self.answers_to(number)]

    def stamp_of(self, number: int) -> int:
        answer = self.answer_to(number)
        assert answer is not None
        return answer.version


class Store(Cluster):
    """A hand-cranked cluster of `follower-reads`."""

    system_type = FollowerReadStore


def library(mode: str, **options: str) -> tuple[Cluster, Reader]:
    """Athens leads, the title is wrong everywhere, and all followers have caught up."""
    cluster = Store(read_from="follower", follower_reads=mode, store="versioned", **options)
    cluster.elect("athens")
    alice = Reader(cluster, "alice")
    alice.register("athens")
    alice.set("athens", "title", "Nitroservices")
    cluster.deliver()
    cluster.pass_time(100 * MS)
    return cluster, alice


def beat(cluster: Cluster, name: str) -> None:
    """Let everything that `name` does once in a heartbeat interval happen; deliver nothing."""
    for timer in list(cluster.ports[name].waiting):
        if timer.callback is not None and timer.interval_us == HEARTBEAT_US:
            cluster.ports[name].ring(timer)


def slow_to(*followers: str) -> Any:
    """Matches everything but replication to `followers`."""
    return lambda _, target, message: not (target in followers and isinstance(message, ReplicationRequest))


def corrected(cluster: Cluster, alice: Reader, *late: str) -> int:
    """Alice corrects the title; `late` have not heard of it. The stamp of her write."""
    number = alice.set("athens", "title", "Microservices")
    cluster.deliver(slow_to(*late))
    return alice.stamp_of(number)
