"""Generation clock: a number that grows with every election, so that a deposed leader can be recognised.

*Problem.* A leader that was paused or cut off does not know that the others have elected a new leader. Its later
messages must not count.

*Idea.* Each election takes the next generation, a Lamport timestamp of leadership. Every request, heartbeat and
response carries it. A node that sees a higher generation adopts it, and refuses messages of a lower generation. A node
votes at most once in a generation, which makes the winner unique. So the generation and the vote must be durable before
any other node hears of them.

The entries of the log carry generations too, but they are not enough: a node that voted and has not yet received an
entry would forget its vote in a restart (GEN-R2). So `(generation, vote)` has a small log of its own. `adopt` and
`vote` record an fsync in the outbox, so a reply that is sent afterwards leaves only when the vote is on disk.

*Invariants.* GEN-I1 a node's generation never decreases, restarts included. GEN-I3 no message of a lower generation is
accepted. GEN-I4 an entry's generation is at most its node's. GEN-I5 each new leader has a higher generation. LDR-I1
one vote per node and generation.

*Tolerates.* A kill at any moment, a torn last record (its vote was never sent), and repeated vote requests of one
candidate.

*Does not tolerate.* A disk that loses flushed records: the node may then vote twice. A changed record is `CorruptLog`,
even the last record, so that a vote that was sent is never dropped as torn.

*Workloads.* `register` with pauses, partitions and kills that force elections.

*Checkers.* Invariants LDR-I1 (one leader per generation), LDR-I2 (one vote), GEN-I1, GEN-I2; linearizability.

*Planted bugs.* `vote-twice` (LDR-M6) overrides `_may_vote`, `forget-votes` (GEN-M3) `_persist`, as do `vote-not-synced`
(GEN-M10), `vote-overwritten-in-place` (GEN-M8) and `vote-renamed-without-folder-sync` (GEN-M9); `old-leader-obeyed`
(GEN-M1), `old-heartbeats-obeyed` (GEN-M2) and `own-generation-on-entries` (GEN-M4) ignore the number elsewhere.
GEN-M8, GEN-M9 and GEN-M11 are subclasses in the tests.

Sources: Patterns of Distributed Systems ch. 11; Ongaro and Ousterhout, "In Search of an Understandable Consensus
Algorithm" (2014) §5.1-5.2; Lamport, "Time, Clocks, and the Ordering of Events" (1978). Zab calls it epoch, Kafka
leader epoch. A clock with another name, and `adopt(generation + 1)` at each start, is Cassandra's restart generation
(GEN-R9).
"""

from __future__ import annotations

import msgspec

from faultline.harness.world.ports import Storage
from faultline.systems_under_test.patterns.data_replication.file_format import (
    CorruptLog,
    LogUnusable,
    encode_record,
    read_record,
    record_positions,
    was_torn,
)

__all__ = ["COMPACT_BYTES", "CorruptLog", "GenerationClock", "LogUnusable"]

COMPACT_BYTES = 4096
"""At recovery a log larger than this is replaced by its last record."""

_SALT = 0


class _Promise(msgspec.Struct, frozen=True, array_like=True):
    generation: int
    voted_for: str | None


class GenerationClock:
    """The current generation of one node and its vote in it, durable in the file `name.log`.

    `generation` is the highest generation that this node has seen, 0 before the first election. `voted_for` is the
    candidate for which it voted in that generation, if any. Other objects may read both; only the methods change them.
    """

    def __init__(self, storage: Storage, name: str = "generation") -> None:
        self._storage = storage
        self._file = f"{name}.log"
        self._size = 0
        self.generation = 0
        self.voted_for: str | None = None
        self._failed = False

    def recover(self, *, generation_min: int = 0) -> None:
        """Read generation and vote from disk; must come first. Raises `CorruptLog`.

        `generation_min` is the generation of the newest log entry: the clock is never behind it.
        """
        data = self._storage.read(self._file)
        positions, self._size = record_positions(data, _SALT)
        if self._size < len(data):
            if not self._was_torn(data):
                raise CorruptLog(f"{self._file}: the record at byte {self._size} changed after it was written.")
            self._storage.truncate(self._file, self._size)
        if data:
            # Bytes that a killed process had written but not flushed count from now on, so they are flushed.
            self._storage.fsync(self._file)
            self._sync_name()
        if positions:
            last = msgspec.msgpack.decode(read_record(data, _SALT, positions[-1]) or b"", type=_Promise)
            self.generation, self.voted_for = last.generation, last.voted_for
        if self._size > COMPACT_BYTES:
            self._replace(self.generation, self.voted_for)
        self.adopt(generation_min)

    def adopt(self, generation: int) -> bool:
        """Move on to a higher generation, in which this node has not voted; return False when it is not higher."""
        if generation <= self.generation:
            return False
        self._set(generation, None)
        return True

    def vote(self, generation: int, candidate: str) -> bool:
        """Vote for `candidate` in `generation`, adopting it; return True when granted (again), False when refused."""
        if not self._may_vote(generation, candidate):
            return False
        if (generation, candidate) != (self.generation, self.voted_for):
            self._set(generation, candidate)
        return True

    def begin_election(self, candidate: str) -> int:
        """Take the next generation, voting for `candidate` (this node itself), and return it."""
        self._set(self.generation + 1, candidate)
        return self.generation

    def _was_torn(self, data: bytes) -> bool:
        """Return whether a crash left the invalid end of `data`; else a promise that was told has changed."""
        return was_torn(data, _SALT, self._size)

    def _may_vote(self, generation: int, candidate: str) -> bool:
        if generation == self.generation:
            return self.voted_for in (None, candidate)
        return generation > self.generation

    def _set(self, generation: int, voted_for: str | None) -> None:
        if self._failed:
            raise LogUnusable(f"{self._file}: an earlier write failed, so the disk is unknown until a restart")
        # A promise that could not be written is not made: memory changes last.
        self._failed = True
        self._persist(generation, voted_for)
        self._failed = False
        self.generation = generation
        self.voted_for = voted_for

    def _persist(self, generation: int, voted_for: str | None) -> None:
        """Append the promise and flush it: messages that are sent from now on wait for it."""
        self._append(generation, voted_for)
        self._storage.fsync(self._file)
        self._sync_name()

    def _append(self, generation: int, voted_for: str | None) -> None:
        record = _record(generation, voted_for, self._size)
        self._storage.append(self._file, record)
        self._size += len(record)

    def _sync_name(self) -> None:
        self._storage.fsync_folder()

    def _replace(self, generation: int, voted_for: str | None) -> None:
        """Replace the log by one record; a crash leaves either the old file or the new one."""
        record = _record(generation, voted_for, 0)
        replacement = f"{self._file}.new"
        self._storage.write(replacement, record)
        self._storage.fsync(replacement)
        self._storage.rename(replacement, self._file)
        self._storage.fsync(self._file)
        self._sync_name()
        self._size = len(record)


def _record(generation: int, voted_for: str | None, position: int) -> bytes:
    return encode_record(msgspec.msgpack.encode(_Promise(generation, voted_for)), _SALT, position)
