"""Election through an external store: the first server to create the leader key leads, until the key expires.

*Problem.* In a large cluster, not all servers can vote. They need no vote if there already is a linearizable store,
which can give the leadership to one server alone.

*Idea.* Each server first watches the leader key of the store, then tries to create it: in that order, because a key
that is deleted between a failed creation and the beginning of the watch would go unnoticed. The winner leads; a loser
reads the name of the winner and follows it. When the key is deleted, all try again. The leader refreshes the key
several times within its time to live, and gives up by itself when it could not refresh it for that long.

    watch ──► create ──► won:  bring the generation to a majority, lead, refresh
                └──────► lost: read who leads, follow ──► the key goes: try again

The store decides who is *chosen*. It cannot stop a leader that slept from going on when it wakes: any time may pass
between its last look at the clock and its next message. So the generation of the key goes into every request. Before it
leads, a winner has a majority of the servers promise that generation (`generation_agreement`). This fences earlier
leaders off, and shows whether its log holds all committed entries. A winner that does not get a majority gives the key
back and stays out of the next race.

*Invariants.* LDR-I1, LDR-I2, LDR-I3, GEN-I1, GEN-I5. All of them rest on the store and on the agreement, never on the
time to live.

*Tolerates.* Lost, late, repeated and reordered messages, of the store too: each step is repeated until it is answered,
and an answer counts for the attempt it belongs to. Notifications that never come: a server that hears no leader for an
election timeout asks the store. A key that is gone when the loser reads it: it tries again (LDR-R15). A leader that
sleeps longer than its key lives (LDR-S8). A restart of the owner of the key: it cannot know what it did before, so it
gives that key back.

*Does not tolerate.* A store out of reach: the leader steps down after a time to live, and no server takes its place.

*Workloads.* `register` with partitions, kills, pauses and `election=external-store`; the last node is the store.

*Checkers.* The invariants above on every run; linearizability.

*Planted bugs.* `lock-without-fencing` (LDR-M9): the winner leads at once, and asks no server to enter its generation.
Watching after creating (LDR-M10) cannot strand a server here, because it also asks when it hears no leader; it is a bug
of the component, shown in the tests.

Sources: Patterns of Distributed Systems ch. 6 (leader election using an external linearizable store); Kleppmann, "How
to do distributed locking" (2016), for why a lock needs a fencing token; Apache Kafka's controller, whose epoch goes
into every request.
"""

from __future__ import annotations

import enum

from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.data_replication.generation_agreement import (
    GenerationAgreement,
    GenerationPromised,
    NewGeneration,
)
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import (
    ElectionContext,
    Handlers,
    LeaderElection,
    ServerRole,
)
from faultline.systems_under_test.patterns.data_replication.leader_key_store import (
    CreateLeaderKey,
    DeleteLeaderKey,
    LeaderKeyCreated,
    LeaderKeyDeleted,
    LeaderKeyRead,
    LeaderKeyRefreshed,
    LeaderKeyWatched,
    ReadLeaderKey,
    RefreshLeaderKey,
    WatchLeaderKey,
)

__all__ = ["ExternalStoreElection"]


class _Step(enum.Enum):
    WATCHING = "watching"
    CREATING = "creating"
    READING = "reading"
    ASKING = "asking"
    SETTLED = "settled"


class ExternalStoreElection(LeaderElection):
    """One server's part; `store` keeps the key, which lives for `ttl_us` without a refresh."""

    def __init__(self, context: ElectionContext, *, store: NodeId, ttl_us: int) -> None:
        super().__init__(context)
        self._store = store
        self._ttl_us = ttl_us
        self._agreement = GenerationAgreement(context)
        self._step = _Step.SETTLED
        self._attempt = 0
        self._key_generation = 0
        self._deleted_generation = 0
        self._refreshed_us = 0
        self._asking_until_us = 0

    def handlers(self) -> Handlers:
        """Return the handlers of the store's answers, and of the messages that agree on the generation."""
        return {
            LeaderKeyWatched: self.handle_watched,
            LeaderKeyCreated: self.handle_created,
            LeaderKeyRead: self.handle_read,
            LeaderKeyRefreshed: self.handle_refreshed,
            LeaderKeyDeleted: self.handle_deleted,
            NewGeneration: self.handle_new_generation,
            GenerationPromised: self.handle_generation_promised,
        }

    def start(self) -> None:
        """Look for a leader at once, in the store."""
        super().start()
        # Answers to a process that has died must not be taken for answers to this one.
        self._attempt = self._ports.clock.monotonic_us()
        self._elect()

    def election_timeout(self) -> None:
        """Refresh the key that is held, repeat unanswered requests, and ask the store when no leader is heard."""
        if self._key_generation:
            self._timer = None
            self._keep_key()
        elif self._step is _Step.SETTLED:
            super().election_timeout()
        else:
            self._timer = None
            self._ask_store()

    def _leader_is_silent(self) -> None:
        self._elect()

    def _now_us(self) -> int:
        return self._ports.clock.monotonic_us()

    def _elect(self) -> None:
        """Begin a new attempt: watch, then try to create."""
        self.role = ServerRole.LOOKING_FOR_LEADER
        self.leader_id = None
        self._attempt += 1
        self._step = self._first_step()
        self._ask_store()

    def _ask_store(self) -> None:
        """Send the request of the present step, and again after an interval while no answer comes."""
        send = self._ports.network.send
        if self._step is _Step.WATCHING:
            send(self._store, WatchLeaderKey(self._attempt))
        elif self._step is _Step.CREATING:
            send(self._store, CreateLeaderKey(self._attempt, self._clock.generation))
        else:
            send(self._store, ReadLeaderKey(self._attempt))
        self._arm(self._interval_us)

    def handle_watched(self, source: NodeId, answer: LeaderKeyWatched) -> None:
        """Go on with the next step, now that the key is watched."""
        if self._is_answered(_Step.WATCHING, answer.correlation_id):
            self._step = self._step_after_watching()
            self._ask_store()

    def handle_created(self, source: NodeId, answer: LeaderKeyCreated) -> None:
        """Lead after winning; after losing, find out which server won."""
        if not self._is_answered(_Step.CREATING, answer.correlation_id):
            return
        if answer.created:
            self._won(answer.generation)
        else:
            self._step = _Step.READING
            self._ask_store()

    def handle_read(self, source: NodeId, answer: LeaderKeyRead) -> None:
        """Follow the owner of the key; without an owner, or if it is this server, try again (LDR-R15)."""
        if not self._is_answered(_Step.READING, answer.correlation_id):
            return
        # The answer may be older than the notification of the deletion; following that owner would wait for a dead key.
        if answer.leader_id is None or answer.generation <= self._deleted_generation:
            self._ports.trace.sometimes("leader-key-gone-when-read")
            self._elect()
        elif answer.leader_id == self._me:
            self._ports.trace.sometimes("own-leader-key-of-before-given-back")
            self._ports.network.send(self._store, DeleteLeaderKey(answer.generation))
            self._elect()
        else:
            self._lost(NodeId(answer.leader_id))

    def _is_answered(self, step: _Step, attempt: int) -> bool:
        return self._step is step and attempt == self._attempt

    def _lost(self, leader: NodeId) -> None:
        self._step = _Step.SETTLED
        self.role = ServerRole.FOLLOWING
        self.leader_id = leader
        self._restart_timer()

    def _won(self, generation: int) -> None:
        self._key_generation = generation
        self._step = _Step.ASKING
        self._refreshed_us = self._now_us()
        self._asking_until_us = self._refreshed_us + self._timeout_us
        if self._begin_leading(generation):
            self._refresh()
        else:
            self._give_up_key()

    def _keep_key(self) -> None:
        """Refresh the key; give it up when that failed for its time to live, or when no majority agrees in time."""
        now_us = self._now_us()
        if now_us - self._refreshed_us >= self._ttl_us:
            self._ports.trace.sometimes("leader-key-not-refreshed")
            self._give_up_key()
        # Holding on to the key without a majority would keep out a server that could get one.
        elif self._step is _Step.ASKING and now_us >= self._asking_until_us:
            self._ports.trace.sometimes("leader-key-given-back")
            self._give_up_key()
        else:
            if self._step is _Step.ASKING:
                self._agreement.ask_again()
            self._refresh()

    def _refresh(self) -> None:
        self._ports.network.send(self._store, RefreshLeaderKey(self._key_generation, self._now_us()))
        self._arm(self._interval_us)

    def handle_refreshed(self, source: NodeId, answer: LeaderKeyRefreshed) -> None:
        """Extend the key from the moment the refresh was sent.

        Or give up, when it is gone and with it the leadership.
        """
        if answer.generation != self._key_generation:
            return
        if answer.held:
            # Counted from the sending, so that the leader gives up before the store lets the key expire.
            self._refreshed_us = max(self._refreshed_us, answer.sent_us)
        else:
            self._ports.trace.sometimes("leader-key-lost")
            self._give_up_key()

    def handle_generation_promised(self, source: NodeId, answer: GenerationPromised) -> None:
        """Count a promise; with a majority this server leads, and a higher generation ends the attempt."""
        if answer.generation > self._clock.generation:
            self.become_follower(answer.generation, None)
        elif self._step is _Step.ASKING and self._agreement.count(source, answer):
            self._lead()

    def _lead(self) -> None:
        self._step = _Step.SETTLED
        self._become_leader()
        self._arm(self._interval_us)

    def _give_up_key(self) -> None:
        """Give the key back, and stay out of the race for a random election timeout, so that another server wins it."""
        self.become_follower(self._clock.generation, None)

    def handle_deleted(self, source: NodeId, event: LeaderKeyDeleted) -> None:
        """Stop leading, or try to create the key as a follower, now that it is gone."""
        self._deleted_generation = max(self._deleted_generation, event.generation)
        if event.generation == self._key_generation:
            self._give_up_key()
        elif self._step is _Step.SETTLED and self.leader_id is not None and self.role is ServerRole.FOLLOWING:
            self._elect()

    def handle_new_generation(self, source: NodeId, request: NewGeneration) -> None:
        """Enter the generation of the server that holds the key, which ends an earlier leadership."""
        if self._must_stick():
            self._ports.trace.sometimes("vote-refused-leader-known")
            self._agreement.refuse(source, request)
            return
        if request.generation > self._clock.generation:
            self.become_follower(request.generation, None)
        self._agreement.promise(source, request)

    def become_follower(self, generation: int, leader_id: NodeId | None) -> None:
        """Give back the key that is held, and follow."""
        if self._key_generation:
            self._ports.network.send(self._store, DeleteLeaderKey(self._key_generation))
            self._key_generation = 0
            self._cancel_timer()
        self._step = _Step.SETTLED
        super().become_follower(generation, leader_id)
        if leader_id is None:
            self._restart_timer()

    # Each step below is a method of its own, so that a planted bug can override it.

    def _first_step(self) -> _Step:
        return _Step.WATCHING

    def _step_after_watching(self) -> _Step:
        return _Step.CREATING

    def _begin_leading(self, generation: int) -> bool:
        """Ask a majority to enter the generation of the key; return False when it is no longer above the own one."""
        return self._agreement.propose(generation)
