"""The client of `follower-reads`: it reads from followers, and carries the stamp that makes this safe for its session.

Writes go to the leader as always; the answer brings the index of their entry, and that becomes the result of a write.
Each read starts a round: the followers in the order of choice, then the leader. A server that refuses or is silent
is left for the next; after the leader the round begins again, until the client's own timeout. What the session passes
on depends on the mode: the stamp of its last write (`stamped`), or the newest state it has written or seen.

The leader, asked in its turn, answers with its newest state, in `at-stamp` mode too: the snapshot of the session moves
on to that. A session in that mode is pinned to the first state it sees, and to each of its own writes.

The answer to a write may be handed to another client, which goes on from it: `read-after` takes `[null, answer]`, and
reads no state that is older than that write (S8 of the requirements: a stamp of one key with a read of another).

With `read_from=nearest` the client also sends heartbeats, from which `NearestReplicas` learns regions and latencies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_replication.replica_selection import NearestReplicas, ReplicaDescriptor
from faultline.systems_under_test.reference.follower_reads.messages import (
    OFFSET_OUT_OF_RANGE,
    REFUSALS,
    FollowerRead,
    ReplicaPing,
    ReplicaPong,
)
from faultline.systems_under_test.reference.follower_reads.options import StoreSettings
from faultline.systems_under_test.reference.raft.client import KeyValueClient
from faultline.systems_under_test.reference.shared.client_messages import (
    ClientResponse,
    GetValue,
    RedirectToLeader,
    SetValue,
)
from faultline.systems_under_test.reference.shared.key_commands import VERSION_COMPACTED

__all__ = ["READ_AFTER", "FollowerReadingClient"]

READ_AFTER = "read-after"
"""The function that reads no state older than a write whose answer is handed over."""

_PING_INTERVAL_US = 100_000
_PAUSE_US = 20_000


class FollowerReadingClient(KeyValueClient):
    """One logical client whose reads may be answered by followers."""

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], node: NodeId, settings: StoreSettings) -> None:
        super().__init__(ports, members, node, settings)
        self._follower = settings.follower
        self._written = 0
        self._seen = 0
        self._round: list[NodeId] = []
        home = members.index(node)
        self._ring = members[home:] + members[:home]
        self._replicas = NearestReplicas(
            (ReplicaDescriptor(member, "") for member in self._ring), self._follower.region_of(home)
        )
        self._unanswered: set[str] = set()

    def start(self) -> None:
        """Register a session, and begin to measure latencies if they matter."""
        super().start()
        if self._follower.read_from == "nearest":
            self._ports.timers.every(_PING_INTERVAL_US, self._ping)

    def receive(self, source: NodeId, message: Any) -> None:
        """Take an answer."""
        if type(message) is ReplicaPong:
            self._handle_pong(source, message)
        else:
            super().receive(source, message)

    def invoke(self, operation: Operation, done: Callable[[Outcome], None]) -> None:
        """Perform `operation`; a `read-after` is a read that first takes over the stamp it was handed."""
        if operation.f == READ_AFTER:
            handed = operation.value[1] if isinstance(operation.value, list | tuple) and operation.value[1:] else None
            if type(handed) is int:
                self._take_over(handed)
            operation = Operation(operation.process, "read", operation.key)
        super().invoke(operation, done)

    def _take_over(self, stamp: int) -> None:
        self._written = max(self._written, stamp)

    # Reads.

    @property
    def _reads(self) -> bool:
        return self._client_id is not None and type(self._command) is GetValue and self._follower.from_followers

    def stamp(self) -> int:
        """Return the version that a follower must have applied to answer this session."""
        mode = self._follower.mode
        if mode == "stamped":
            return self._written
        return max(self._written, self._seen) if mode in ("session", "at-stamp", "no-wait", "closed") else 0

    def _transmit(self) -> None:
        if not self._reads:
            super()._transmit()
            return
        if not self._round:
            self._round = self._choose()
        self._arm(self._settings.request_timeout_us, self._handle_silence)
        assert isinstance(self._command, GetValue)
        request = FollowerRead(self._request_number, self._command.key, self.stamp())
        self._ports.network.send(self._round[0], request)

    def _choose(self) -> list[NodeId]:
        """Return the servers to ask, in order; the leader, as far as it is known, comes last."""
        leader = self._target
        if self._follower.read_from == "nearest":
            return [NodeId(node) for node in self._replicas.nearest(leader, self._follower.bound_us)]
        return [*(member for member in self._ring if member != leader), leader]

    def _turn_to_next_member(self) -> None:
        """Leave the silent server of this round for the next one."""
        if not self._reads:
            super()._turn_to_next_member()
            return
        silent = self._round.pop(0)
        self._replicas.failed(silent)
        if silent == self._target:
            super()._turn_to_next_member()

    def _refused(self, source: NodeId, error: str) -> None:
        """Ask the next; the leader at once when only it can know what the session has seen."""
        if not self._round or source != self._round[0]:
            return
        self._round.pop(0)
        if error == OFFSET_OUT_OF_RANGE:
            self._round = [self._target]
        if error == VERSION_COMPACTED:
            self._written = self._seen = 0
        if self._round:
            self._try_again()
        else:
            self._arm(_PAUSE_US, self._try_again)

    def _handle_redirect(self, source: NodeId, redirect: RedirectToLeader) -> None:
        if not self._reads:
            super()._handle_redirect(source, redirect)
        elif redirect.correlation_id == self._request_number and self._round and source == self._round[0]:
            if redirect.leader_id is not None:
                self._target = NodeId(redirect.leader_id)
            self._refused(source, "")

    def _complete(self, source: NodeId, response: ClientResponse) -> None:
        if self._reads and response.error in REFUSALS:
            self._refused(source, response.error or "")
            return
        self._seen = max(self._seen, response.version)
        self._round = []
        if type(self._command) is not GetValue:
            self._written = max(self._written, response.version)
        if type(self._command) is SetValue and response.error is None:
            response = msgspec.structs.replace(response, value=response.version)
        super()._complete(source, response)

    def _give_up(self) -> None:
        self._round = []
        super()._give_up()

    # Heartbeats.

    def _ping(self) -> None:
        """Count a server that has not answered since the last time as failed, and ask all of them again."""
        for member in self._members:
            if member in self._unanswered:
                self._replicas.failed(member)
            self._unanswered.add(member)
            self._ports.network.send_ahead(member, ReplicaPing(self._ports.clock.monotonic_us()))

    def _handle_pong(self, source: NodeId, pong: ReplicaPong) -> None:
        self._unanswered.discard(source)
        self._replicas.describe(ReplicaDescriptor(source, pong.region))
        self._replicas.answered(source, self._ports.clock.monotonic_us() - pong.sent_us, pong.lag_us)
