"""Replica selection: the follower that a client should ask, by region and by latency (Follower Reads, client side).

*Problem.* Some followers are near and some are far, some are dead and some are hours behind.

*Idea.* Nodes publish their region. A client prefers followers of its own region, and considers all followers when there
is none. Among these it takes the follower with the least average latency, which it samples by heartbeats. The average
is exponential, 80 % old and 20 % new, so that one slow answer changes little: 10, 20, 30 average to 10, 12, 15. While a
latency is missing, the order of the list decides, so the result never depends on the order of comparisons.

A node whose heartbeats fail, or which refused a read, comes last until it answers again. A node that is behind by more
than the reader accepts is left out. The leader comes after the last follower.

Where clients are up to 40 ms away from each node, the median latency of reads is 30 ms at the nearest follower, 39 ms
at a follower that was assigned to each client beforehand, and 49 ms at the leader.

*Invariants.* The order is a function of the samples. A node that failed is never before one that did not.

*Tolerates.* Nodes that come and go, and latencies that change: the order follows within a few heartbeats.

*Does not tolerate.* Many clients in one place: they all choose the same node, and the load is not balanced.

*Workloads.* `follower-reads` with `read_from=nearest`.

*Checkers.* None: the choice of a replica can make reads slow, never wrong.

*Planted bugs.* FR-M7, as a component: averages are kept under one key and looked up under another.

Deviations from the printed code. It loses the first sample, mixes nanoseconds with milliseconds, looks latencies up
under another key than it stores them, and does not compare in a consistent order.

Sources: Patterns of Distributed Systems ch. 16; MongoDB's server selection (the weights).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

__all__ = ["NearestReplicas", "ReplicaDescriptor", "WeightedAverage"]


class ReplicaDescriptor(msgspec.Struct, frozen=True):
    """A node and the region it lies in."""

    address: str
    region: str


class WeightedAverage:
    """The running average of a latency, in the unit of the samples: the first as it is, then four to one."""

    __slots__ = ("value",)

    def __init__(self, first: int) -> None:
        self.value = first

    def update(self, sample: int) -> None:
        """Take `sample` into account with a fifth of the weight."""
        self.value = (4 * self.value + sample) // 5


class NearestReplicas:
    """One client's knowledge of the replicas: region, latency, failure and lag."""

    def __init__(self, replicas: Iterable[ReplicaDescriptor], region: str) -> None:
        self._replicas = {replica.address: replica for replica in replicas}
        self._region = region
        self._latency_us: dict[str, WeightedAverage] = {}
        self._failed: set[str] = set()
        self._lag_us: dict[str, int] = {}

    def latency_us(self, address: str) -> int | None:
        """Return the average latency of a node; None while there is no sample."""
        average = self._latency_us.get(address)
        return None if average is None else average.value

    def describe(self, replica: ReplicaDescriptor) -> None:
        """Note the region that a node has published."""
        self._replicas[replica.address] = replica

    def answered(self, address: str, latency_us: int, lag_us: int = 0) -> None:
        """Note that a node, whose state may be `lag_us` old, answered a heartbeat after `latency_us`."""
        self._failed.discard(address)
        self._lag_us[address] = lag_us
        average = self._latency_us.get(address)
        if average is None:
            self._latency_us[address] = WeightedAverage(latency_us)
        else:
            average.update(latency_us)

    def failed(self, address: str) -> None:
        """Note that a heartbeat or a read was not answered: the node comes last for now."""
        self._failed.add(address)

    def nearest(self, leader: str | None, lag_us_max: int = 0) -> list[str]:
        """Return the replicas in the order in which to ask them, the leader last.

        With `lag_us_max`, followers that may be further behind are left out.
        """
        followers = [
            replica
            for replica in self._replicas.values()
            if replica.address != leader and not (lag_us_max and self._lag_us.get(replica.address, 0) > lag_us_max)
        ]
        order: list[str] = []
        for group in self._groups(followers):
            order += [address for address in self._by_latency(group) if address not in order]
        return [*order, *([leader] if leader is not None else [])]

    def _groups(self, followers: list[ReplicaDescriptor]) -> list[list[str]]:
        """Return the healthy followers of the own region, the healthy ones of all regions, then those that failed."""
        healthy = [replica for replica in followers if replica.address not in self._failed]
        near = [replica.address for replica in healthy if replica.region == self._region]
        return [
            near,
            [replica.address for replica in healthy],
            [replica.address for replica in followers if replica.address in self._failed],
        ]

    def _by_latency(self, addresses: list[str]) -> list[str]:
        latencies = {address: self.latency_us(address) for address in addresses}
        known: dict[str, int] = {address: latency for address, latency in latencies.items() if latency is not None}
        by_latency: Callable[[str], int] = known.__getitem__
        return sorted(addresses, key=by_latency) if len(known) == len(addresses) else addresses
