"""A hand-cranked cluster of `consistent-core`, or of another system with a leader, and a client of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from faultline.harness.plan import NODE_NAMES
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import ServerRole
from faultline.systems_under_test.patterns.data_replication.log_entry import LogEntry
from faultline.systems_under_test.reference.consistent_core.system import ConsistentCore
from faultline.systems_under_test.reference.shared.client_messages import (
    ClientRequest,
    ClientResponse,
    Command,
    GetValue,
    RedirectToLeader,
    RegisterClientRequest,
    RegisterClientResponse,
    SetValue,
)
from faultline.testing.hand_cranked import ClusterPorts, HandCrankedCluster, Matcher, Surroundings

__all__ = ["ELECTION_TIMEOUT_US", "HEARTBEAT_US", "Client", "Cluster", "Matcher", "StaggeredPorts"]

ELECTION_TIMEOUT_US = 250_000
HEARTBEAT_US = 50_000


class _Staggering(Surroundings, Protocol):
    timeout_offset_us: dict[str, int]


class StaggeredPorts(ClusterPorts):
    """Ports whose random delays grow with the place of the node, so that the first node times out first."""

    cluster: _Staggering

    def uniform_us(self, stream: str, low_us: int, high_us: int) -> int:
        return low_us + self.cluster.timeout_offset_us.get(self.node_id, 0)


class Cluster(HandCrankedCluster):
    """Nodes with elections, and what tests of replicated logs ask them to do."""

    system_type: type[Any] = ConsistentCore
    ports_type: type[ClusterPorts] = StaggeredPorts

    def __init__(self, size: int | Sequence[str] = 3, planted_bugs: tuple[str, ...] = (), **options: str) -> None:
        self.election_timeout_us = 1_000 * int(options.get("election_timeout_ms", ELECTION_TIMEOUT_US // 1_000))
        self.heartbeat_us = 1_000 * int(options.get("heartbeat_interval_ms", HEARTBEAT_US // 1_000))
        names = NODE_NAMES[:size] if isinstance(size, int) else size
        self.timeout_offset_us = {name: 10_000 * number for number, name in enumerate(names)}
        super().__init__(self.system_type(), size, planted_bugs, **options)

    # -- time -----------------------------------------------------------------------------------------------------

    def go_silent(self, *names: str) -> None:
        """Let `names` have heard nothing for an election timeout, without their timers having rung."""
        for name in names or self.members:
            self.ports[name].now_us += self.election_timeout_us

    def time_out(self, name: str) -> None:
        """Let `name` wait until it stands for election; deliver nothing."""
        for _ in range(50):
            timer = self.ports[name].next_timer()
            assert timer is not None
            self.ports[name].ring(timer)
            if self.look(name, _stands_for_election):
                return
        raise AssertionError(f"{name} does not stand for election")

    def heartbeat(self, name: str) -> None:
        """Let the leader's next heartbeat tick ring; deliver nothing."""
        self.ports[name].ring(
            next(timer for timer in self.ports[name].waiting if timer.interval_us == self.heartbeat_us)
        )

    def elect(self, name: str, match: Matcher = lambda *_: True) -> None:
        """Make `name` the leader of all nodes that can hear it, delivering only what matches."""
        self.go_silent()
        for _ in range(3):
            self.time_out(name)
            self.deliver(match)
            if self.leads(name):
                return
        raise AssertionError(f"{name} was not elected")

    # -- what can be seen -----------------------------------------------------------------------------------------

    def leads(self, name: str) -> bool:
        return bool(self.nodes[name].status().role == ServerRole.LEADING.value)

    def leaders(self) -> list[str]:
        return [name for name in self.nodes if self.leads(name)]

    def generation(self, name: str) -> int:
        return int(self.nodes[name].status().generation)

    def mark(self, name: str) -> int:
        return int(self.look(name, _mark))

    def log(self, name: str) -> list[int]:
        """The generations of the entries that the node's log still holds, in order."""
        return [entry.generation for entry in self.entries(name)[1]]

    def entries(self, name: str) -> tuple[int, list[LogEntry]]:
        """The index up to which the node's log was discarded, and the entries that it still holds."""
        held: tuple[int, list[LogEntry]] = self.look(name, _entries)
        return held

    def values(self, name: str) -> dict[str, Any]:
        return dict(self.look(name, _values))


def _stands_for_election(node: Any) -> bool:
    election = node.election
    return election.role is ServerRole.LOOKING_FOR_LEADER and election._detector.silence_us() == 0


def _mark(node: Any) -> int:
    return int(node.log.high_water_mark.value)


def _entries(node: Any) -> tuple[int, list[LogEntry]]:
    wal = node.wal
    return wal.compacted_index, wal.entries(wal.compacted_index + 1, wal.last_index)


def _values(node: Any) -> dict[str, Any]:
    return dict(node.store.values)


class Client:
    """A client whose every attempt is the test's decision."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.client_id = 0
        self.number = 0

    def register(self, node: str) -> Client:
        self.cluster.hand(self.name, node, RegisterClientRequest(0))
        self.cluster.deliver()
        answer = self.answers()[-1]
        assert isinstance(answer, RegisterClientResponse), answer
        self.client_id = answer.client_id
        return self

    def ask(self, node: str, command: Command) -> int:
        """Send a new request to `node`; deliver nothing else. Its number."""
        self.number += 1
        self.ask_again(node, self.number, command)
        return self.number

    def ask_again(self, node: str, number: int, command: Command) -> None:
        self.cluster.hand(self.name, node, ClientRequest(self.client_id, number, command))

    def set(self, node: str, key: str, value: Any) -> int:
        return self.ask(node, SetValue(key, value))

    def get(self, node: str, key: str) -> int:
        return self.ask(node, GetValue(key))

    def answers(self) -> list[Any]:
        """Everything this client was told, answers still in the queue included."""
        self.cluster.deliver(lambda _, target, __: target == self.name)
        return [message for _, message in self.cluster.inbox.get(self.name, [])]

    def answers_to(self, number: int) -> list[ClientResponse]:
        return [
            answer
            for answer in self.answers()
            if isinstance(answer, ClientResponse) and answer.request_number == number
        ]

    def answer_to(self, number: int) -> ClientResponse | None:
        return next(iter(self.answers_to(number)), None)

    def redirects(self) -> list[RedirectToLeader]:
        return [answer for answer in self.answers() if isinstance(answer, RedirectToLeader)]
