"""A replicated log without followers: one server, which commits the entries that its own disk holds.

With followers, an entry is committed when one of them acknowledges it, and no request leaves the leader before its own
copy is durable; so the own copy may count at once. A server alone gets no answers, and an entry that counted at once
could be executed, read, and then lost in a crash. So the server sends itself a message after each flush. Like every
message it arrives only when the flush is done (the outbox of the ports), and then advances the high-water mark.

A lone server tolerates no failure. It is here as the yardstick for the cost of replication.

Sources: Patterns of Distributed Systems ch. 10, the first row of its table of cluster sizes.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.data_replication.leader_and_followers import Handlers, LeaderElection
from faultline.systems_under_test.patterns.data_replication.replicated_log import ReplicatedLog

__all__ = ["LoneLog", "OwnCopyDurable"]


class OwnCopyDurable(msgspec.Struct, frozen=True, tag="own-copy-durable"):
    """The message of a server to itself: the log up to `index` is on the disk."""

    generation: int
    index: int


class LoneLog(ReplicatedLog):
    """The log of a server that is alone."""

    _durable_index = 0
    _leads = False

    def handlers(self, election: LeaderElection, progressed: Callable[[], None]) -> Handlers:
        """Return the handler of what the server sends to itself."""
        return {OwnCopyDurable: self.handle_own_copy}

    def start_leading(self) -> None:
        """Count the entries that become durable from now on."""
        super().start_leading()
        self._leads = True

    def stop_leading(self) -> None:
        """Count no more entries."""
        super().stop_leading()
        self._leads = False

    def append_and_replicate(self, kind: int, data: bytes) -> int:
        """Append a command; it is committed once it is durable."""
        index = super().append_and_replicate(kind, data)
        self._hear_of_the_flush()
        return index

    def append_batch_and_replicate(self, kind: int, batch: list[bytes]) -> None:
        """Append several commands, which share one flush."""
        super().append_batch_and_replicate(kind, batch)
        self._hear_of_the_flush()

    def resend_what_was_lost(self) -> None:
        """Ask again whether the end of the log is durable, unless that is known: the message may be lost."""
        if self._durable_index < self._log.last_index:
            self._hear_of_the_flush()

    def handle_own_copy(self, _: NodeId, message: OwnCopyDurable) -> None:
        """Commit the entries of a flush that is done.

        A message of an earlier life or leadership proves nothing about the end of this log.
        """
        if self._leads and message.generation == self.generation and message.index > self._durable_index:
            self._durable_index = message.index
            self._advance_high_water_mark()

    def _hear_of_the_flush(self) -> None:
        self._ports.network.send(self._me, OwnCopyDurable(self.generation, self._log.last_index))

    def _committed_index(self) -> int:
        return self._durable_index
