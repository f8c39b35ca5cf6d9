"""The leader of one partition in one generation: it brings its followers level, counts their writes, and answers.

    write ──► own log ──► followers ──► all in sync have it ──► client
    read  ──► what all in sync have ──► client

A write is acknowledged when *every* replica in sync has it on disk, so that each of them can take over. Readers are
shown only values below that mark, because a value above it could still vanish. The leader answers no request before all
in sync have this generation's content.

The set in sync stands in the core, and only the controller changes it, at the leader's request. While a request is
under way the leader must be careful in both directions. A replica that is to go *out* still counts until the table says
so: otherwise it could be appointed, and lack a write. A replica that is to come *in* counts from the moment of asking:
it may be appointed as soon as the controller agrees, and the leader hears of that later.

Sources: PacificA §2; Kafka, KIP-497, on the *maximal* set of replicas in sync.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_partitioning.fixed_partitions import Answer, Written
from faultline.systems_under_test.patterns.data_replication.high_water_mark import HighWaterMark, ValuesBelowMark
from faultline.systems_under_test.reference.coordinated_kv.messages import (
    AlterInSync,
    ConfirmReads,
    InstallReplica,
    LeadershipBegan,
    LeadershipResigned,
    ReadsConfirmed,
    ReplicaCounted,
    ReplicaStored,
    ReplicateWrite,
)
from faultline.systems_under_test.reference.coordinated_kv.replicas import ReplicaStore
from faultline.systems_under_test.reference.coordinated_kv.settings import DataNodeSettings
from faultline.systems_under_test.reference.coordinated_kv.table import NO_NODE, Entry
from faultline.systems_under_test.reference.shared.key_commands import Command, GetValue, executed

__all__ = ["PartitionLeader", "Respond"]

_NOTHING_YET = -1

Respond = Callable[[int, Answer], None]
"""A function that sends the answer, which shows the partition after so many writes."""


class PartitionLeader:
    """One leadership: it ends when another entry of the table names another leader, generation or lease."""

    def __init__(
        self, ports: Ports, settings: DataNodeSettings, store: ReplicaStore, partition: int, entry: Entry
    ) -> None:
        self._ports = ports
        self._settings = settings
        self._store = store
        self.partition = partition
        self.entry = entry
        self.generation = entry.generation
        self.replica = store.begin(partition, entry.generation)
        self._begun_with = self.replica.number
        self.is_over = False
        self._committed = HighWaterMark()
        self._stored: dict[str, int] = {}
        self._level_us: dict[str, int] = dict.fromkeys(entry.replicas, ports.clock.monotonic_us())
        self._joining: tuple[str, ...] = ()
        self._shown = ValuesBelowMark(self.replica.values)
        self._is_established = False
        self._writes: deque[tuple[int, Respond, Answer]] = deque()
        self._reads: deque[tuple[int, int, Respond, Answer]] = deque()
        self._questions = 0
        self._confirmed: dict[str, int] = {}
        ports.trace.emit(LeadershipBegan(partition, entry.generation, self.replica.number))
        for follower in self._followers():
            self._install(follower)
        self._hear_of_the_own_copy()

    def serve(self, client: str, request_number: int, command: Command, respond: Respond) -> None:
        """Execute `command`, unless it was executed before; `respond` once the answer cannot vanish any more."""
        if type(command) is GetValue:
            self._read(request_number, command.key, respond)
            return
        known = self.replica.answers.get(client)
        if known is not None and request_number <= known.request_number:
            # The known answer waits like a new one: the write it belongs to may not be on all replicas in sync yet.
            self._ports.trace.sometimes("duplicate-answered")
            self._await(respond, known)
            return
        before = self.replica.values.get(command.key)
        result = executed(before, command)
        answer = Answer(request_number, result.error, result.answer)
        self._shown.wrote(self.replica.number + 1, command.key, before)
        self._write(Written(self.partition, command.key, result.value, client, answer))
        self._await(respond, answer)

    def _read(self, request_number: int, key: str, respond: Respond) -> None:
        """Answer with the committed value, once this leadership is established and, in mode `confirmed`, confirmed."""
        mark = self._committed.value if self._is_established else self._begun_with
        answer = Answer(request_number, None, self._shown.value(key))
        self._reads.append((mark, self._ask_for_confirmation(), respond, answer))
        self._advance()

    def _write(self, written: Written) -> None:
        number = self._store.write(written)
        for follower in self._followers():
            self._ports.network.send(NodeId(follower), ReplicateWrite(self.generation, number, written))
        self._hear_of_the_own_copy()

    def _hear_of_the_own_copy(self) -> None:
        """Count the own copy when no follower is in sync; with one, a write left for it only after the own flush."""
        if not self._required():
            own = ReplicaStored(self.partition, self.generation, self.replica.number)
            self._ports.network.send(self._ports.node_id, own)

    def _await(self, respond: Respond, answer: Answer) -> None:
        self._writes.append((self.replica.number, respond, answer))
        self._advance()

    def _ask_for_confirmation(self) -> int:
        """Ask all in sync, in the mode `confirmed`, whether this is still the latest generation."""
        if self._settings.read_mode != "confirmed":
            return 0
        self._questions += 1
        for follower in self._required():
            self._ports.network.send(NodeId(follower), self._question())
        return self._questions

    def _question(self) -> ConfirmReads:
        return ConfirmReads(self.partition, self.generation, self._questions)

    def _followers(self) -> list[str]:
        return [name for name in self.entry.replicas if name != self._ports.node_id]

    def _required(self) -> list[str]:
        """Return the followers that must have a write before it is acknowledged: those that are, or may be, in sync."""
        return [name for name in self._followers() if name in self.entry.in_sync or name in self._joining]

    def _install(self, follower: str) -> None:
        replica = self.replica
        content = InstallReplica(self.partition, self.generation, replica.number, replica.content())
        self._ports.network.send(NodeId(follower), content)

    def handle_stored(self, source: NodeId, message: ReplicaStored) -> None:
        """Note the writes that a follower has."""
        if message.generation != self.generation or self.is_over:
            return
        self._stored[source] = max(message.number, self._stored.get(source, _NOTHING_YET))
        self._ports.trace.emit(ReplicaCounted(source, self.partition, self.generation, message.number))
        self._advance()
        if self._is_level(source):
            self._level_us[source] = self._ports.clock.monotonic_us()

    def handle_confirmed(self, source: NodeId, message: ReadsConfirmed) -> None:
        """Note that a follower knows no later leader."""
        if message.generation == self.generation:
            self._confirmed[source] = max(message.question, self._confirmed.get(source, 0))
            self._advance()

    def _is_level(self, follower: str) -> bool:
        return self._stored.get(follower, _NOTHING_YET) == self.replica.number

    def _advance(self) -> None:
        """Move the mark to the last write that all in sync have, and answer the clients that waited for it."""
        required = self._required()
        mark = min(self._stored.get(name, _NOTHING_YET) for name in required or [self._ports.node_id])
        confirmed = min((self._confirmed.get(name, 0) for name in required), default=self._questions)
        if mark < self._begun_with:
            # A follower that may be appointed still lacks acknowledged writes of the generations before.
            return
        self._is_established = True
        if self._committed.advance_to(mark):
            self._shown.advance_to(mark)
        while self._reads and self._reads[0][1] <= confirmed:
            number, _, respond, answer = self._reads.popleft()
            respond(number, answer)
        while self._writes and self._writes[0][0] <= self._committed.value:
            number, respond, answer = self._writes.popleft()
            respond(number, answer)

    def take(self, entry: Entry) -> None:
        """Go by a new revision of this leadership."""
        self.entry = entry
        # The table says now which of them are in sync; a wish for an earlier revision is void.
        self._joining = ()
        now_us = self._ports.clock.monotonic_us()
        for follower in self._followers():
            if follower not in self._level_us:
                self._level_us[follower] = now_us
                self._install(follower)
        if entry.heir != NO_NODE:
            self.end()
        self._hear_of_the_own_copy()
        self._advance()

    def end(self) -> None:
        """Serve no longer; clients that wait ask again elsewhere."""
        self.is_over = True
        self._reads.clear()
        self._writes.clear()

    def look_around(self) -> AlterInSync | LeadershipResigned | None:
        """Send lost copies again, and return the wish for the controller, until the table shows it granted."""
        if self.is_over:
            return LeadershipResigned(self.partition, self.generation) if self.entry.heir != NO_NODE else None
        now_us = self._ports.clock.monotonic_us()
        for follower in self._followers():
            if self._is_level(follower):
                self._level_us[follower] = now_us
            elif now_us - self._level_us[follower] >= self._settings.retransmit_us:
                self._ports.trace.sometimes("replica-sent-again")
                self._install(follower)
        if self._reads and self._settings.read_mode == "confirmed":
            for follower in self._required():
                self._ports.network.send(NodeId(follower), self._question())
        return self._wanted_in_sync(now_us)

    def _wanted_in_sync(self, now_us: int) -> AlterInSync | None:
        """Return a request if a follower has caught up, or one that counts lags behind for too long."""
        kept = tuple(name for name in self.entry.replicas if self._deserves(name, now_us))
        if kept == self.entry.in_sync and not self._joining:
            return None
        self._joining = tuple(dict.fromkeys((*self._joining, *self._newcomers(kept))))
        self._ports.trace.sometimes("in-sync-change-asked")
        return AlterInSync(self.partition, self.generation, self.entry.revision, kept)

    def _newcomers(self, kept: tuple[str, ...]) -> list[str]:
        return [name for name in kept if name not in self.entry.in_sync]

    def _deserves(self, name: str, now_us: int) -> bool:
        """Return whether a replica is to be in sync: it must be level to come in, and may then lag for a while."""
        if name == self._ports.node_id or self._is_level(name):
            return True
        counts = name in self.entry.in_sync or name in self._joining
        return counts and now_us - self._level_us[name] < self._settings.replica_silence_us

    def is_of(self, entry: Entry) -> bool:
        """Return whether `entry` is a revision of this leadership."""
        return (entry.leader, entry.generation, entry.incarnation) == (
            self.entry.leader,
            self.entry.generation,
            self.entry.incarnation,
        )
