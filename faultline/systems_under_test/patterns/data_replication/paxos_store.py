"""The Paxos store: for every key a chain of single-value instances, one per version, durable on a write-ahead log.

Paxos agrees on one value. A register needs many, one after the other. The printed code lets the acceptor forget
everything once a value is committed, and its own comment warns of that. It fails in two ways. A node that missed the
commit is answered "nothing accepted" and reads no value. Or the acceptor that missed the commit still reports its old
accepted value, and a reader commits the old value over a newer one.

Here every value has a *version*, and each version is a Paxos instance of its own:

- Version n + 1 of a key opens at an acceptor when it learns the commit of version n. The promises and acceptances of
  version n are then over: late requests for it are answered with the commit instead.
- A prepare request carries the commit on which it builds, so that it brings acceptors that lag up to date; an answer
  carries the acceptor's commit when the proposer lags.
- A commit replaces an older one, never a newer one, and may skip versions, since it holds the whole value.

Promises and acceptances are flushed before the answer leaves (the outbox of the ports sees to it). Commits are not: a
commit lost in a crash leaves the acceptance on disk, and the next prepare finds the value again.

Limits: the log is never cleaned, since that needs the low-water mark; it is replayed at each start.

Sources: Patterns of Distributed Systems ch. 8, "Handling multiple values"; Cassandra's paxos state, which keeps the
most recent commit and sends it to replicas that missed it.
"""

from __future__ import annotations

from collections.abc import Callable
from zlib import crc32

import msgspec

from faultline.harness.world.ports import Ports
from faultline.systems_under_test.patterns.data_replication.paxos import (
    NEVER,
    Acceptor,
    MonotonicId,
    MonotonicIds,
    Proposal,
)
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import WriteAheadLog

__all__ = [
    "AcceptRequest",
    "AcceptResponse",
    "Accepted",
    "Commit",
    "CommitNotice",
    "Committed",
    "Learned",
    "PaxosStore",
    "PrepareRequest",
    "PrepareResponse",
    "Promised",
    "StoreStarted",
]


class Commit(msgspec.Struct, frozen=True, array_like=True):
    """A chosen value: its version, and the generation in which it was chosen."""

    version: int
    generation: MonotonicId
    value: bytes


class PrepareRequest(msgspec.Struct, frozen=True, tag="paxos-prepare"):
    """The request to promise `generation` for this version of `key`; `committed` is the version before it."""

    key: str
    version: int
    generation: MonotonicId
    committed: Commit | None = None


class PrepareResponse(msgspec.Struct, frozen=True, tag="paxos-prepare-response"):
    """The promise with the proposal accepted so far, or a refusal with the `promised` generation, or a newer commit."""

    key: str
    version: int
    generation: MonotonicId
    given: bool
    promised: MonotonicId = NEVER
    accepted: Proposal | None = None
    committed: Commit | None = None


class AcceptRequest(msgspec.Struct, frozen=True, tag="paxos-accept"):
    """The request to accept `value` as this version of `key`."""

    key: str
    version: int
    generation: MonotonicId
    value: bytes


class AcceptResponse(msgspec.Struct, frozen=True, tag="paxos-accept-response"):
    """The acceptance, or a refusal with the `promised` generation, or a newer commit."""

    key: str
    version: int
    generation: MonotonicId
    given: bool
    promised: MonotonicId = NEVER
    committed: Commit | None = None


class CommitNotice(msgspec.Struct, frozen=True, tag="paxos-commit"):
    """The message that a value of `key` was chosen."""

    key: str
    commit: Commit


class Promised(msgspec.Struct, frozen=True, tag="promised"):
    """Log record and trace: this acceptor promised `generation` in the instance of `key` and `version`."""

    key: str
    version: int
    generation: MonotonicId


class Accepted(msgspec.Struct, frozen=True, tag="accepted"):
    """Log record and trace: this acceptor accepted `proposal`."""

    key: str
    version: int
    proposal: Proposal


class Committed(msgspec.Struct, frozen=True, tag="committed"):
    """Log record: this node learned a chosen value."""

    key: str
    commit: Commit


class Learned(msgspec.Struct, frozen=True):
    """Trace: this node learned that a value with this checksum was chosen."""

    key: str
    version: int
    generation: MonotonicId
    checksum: int


class StoreStarted(msgspec.Struct, frozen=True):
    """Trace: a new process recovered its acceptors."""

    records: int


_Record = Promised | Accepted | Committed
_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[_Record] = msgspec.msgpack.Decoder(_Record)


class _Chain:
    """One key at one node: the newest commit it knows, and the acceptor of the version after it."""

    __slots__ = ("acceptor", "committed")

    def __init__(self, acceptor: Acceptor) -> None:
        self.committed: Commit | None = None
        self.acceptor = acceptor

    @property
    def open_version(self) -> int:
        return 1 if self.committed is None else self.committed.version + 1


class PaxosStore:
    """The acceptors of one node and the values it knows to be chosen; `ids` hears of every generation in use."""

    def __init__(
        self,
        ports: Ports,
        log: WriteAheadLog,
        ids: MonotonicIds,
        *,
        rejects: bool = True,
        acceptor: Callable[[], Acceptor] = Acceptor,
    ) -> None:
        """`rejects` says whether refusals are sent; without them a stale proposer finds out by its own timeout."""
        self._ports = ports
        self._log = log
        self._ids = ids
        self._rejects = rejects
        self._acceptor = acceptor
        self._chains: dict[str, _Chain] = {}

    def recover(self) -> None:
        """Rebuild all acceptors from the log; must come first. Raises `CorruptLog`."""
        self._log.recover()
        for entry in self._log.entries(1, self._log.last_index):
            self._replay(_DECODER.decode(entry.data))
        self._ports.trace.emit(StoreStarted(self._log.last_index))

    def _replay(self, record: _Record) -> None:
        chain = self._chain(record.key)
        if type(record) is Promised:
            self._ids.observe(record.generation)
            chain.acceptor.prepare(record.generation)
        elif type(record) is Accepted:
            self._ids.observe(record.proposal.generation)
            chain.acceptor.accept(record.proposal)
        else:
            assert type(record) is Committed
            self._ids.observe(record.commit.generation)
            self._open_next(chain, record.commit)

    def committed(self, key: str) -> Commit | None:
        """Return the newest commit of `key` that this node knows; others may know a newer one."""
        return self._chain(key).committed

    def acceptor(self, key: str) -> Acceptor:
        """Return the acceptor of the version of `key` that is open at this node."""
        return self._chain(key).acceptor

    def _chain(self, key: str) -> _Chain:
        chain = self._chains.get(key)
        if chain is None:
            chain = self._chains[key] = _Chain(self._acceptor())
        return chain

    def prepare(self, request: PrepareRequest) -> PrepareResponse | None:
        """Promise, refuse, or report a newer commit; None is a refusal without an answer."""
        key, version, generation = request.key, request.version, request.generation
        self._ids.observe(generation)
        chain = self._chain(key)
        if request.committed is not None:
            self._catch_up(key, request.committed)
        if not self._is_open(chain, version):
            return PrepareResponse(key, version, generation, False, committed=chain.committed)
        before = chain.acceptor.promised
        if not chain.acceptor.prepare(generation):
            self._ports.trace.sometimes("promise-refused")
            return PrepareResponse(key, version, generation, False, before) if self._rejects else None
        # A repeated promise is on the disk already.
        if generation != before:
            self._record(Promised(key, version, generation))
        return PrepareResponse(key, version, generation, True, generation, chain.acceptor.accepted)

    def accept(self, request: AcceptRequest) -> AcceptResponse | None:
        """Accept, refuse, or report a newer commit; None is a refusal without an answer."""
        key, version, generation = request.key, request.version, request.generation
        self._ids.observe(generation)
        chain = self._chain(key)
        if not self._is_open(chain, version):
            return AcceptResponse(key, version, generation, False, committed=chain.committed)
        proposal = Proposal(generation, request.value)
        before = chain.acceptor.promised
        if not chain.acceptor.accept(proposal):
            self._ports.trace.sometimes("acceptance-refused")
            return AcceptResponse(key, version, generation, False, before) if self._rejects else None
        self._record(Accepted(key, version, proposal))
        return AcceptResponse(key, version, generation, True, generation)

    def learn(self, key: str, commit: Commit) -> bool:
        """Record a chosen value; return False when this node already knows it, or a newer one."""
        chain = self._chain(key)
        if commit.version < chain.open_version:
            return False
        self._ids.observe(commit.generation)
        # Not flushed: a commit that a crash loses can be found again from the acceptances, which were.
        self._append(Committed(key, commit))
        self._open_next(chain, commit)
        self._ports.trace.emit(Learned(key, commit.version, commit.generation, crc32(commit.value)))
        return True

    def _catch_up(self, key: str, commit: Commit) -> None:
        """Learn `commit`, on which a proposer builds, if this node missed it."""
        if self.learn(key, commit):
            self._ports.trace.sometimes("laggard-caught-up")

    def _is_open(self, chain: _Chain, version: int) -> bool:
        """Return whether this is the instance whose promises and acceptances count now.

        An older one is decided. A newer one has not begun here, because the commit before it is missing.
        """
        return version == chain.open_version

    def _open_next(self, chain: _Chain, commit: Commit) -> None:
        chain.committed = commit
        chain.acceptor = self._acceptor()

    def _record(self, record: Promised | Accepted) -> None:
        """Write and flush: messages that are sent from now on wait for it."""
        self._append(record)
        self._flush()
        self._ports.trace.emit(record)

    def _append(self, record: _Record) -> None:
        self._log.append_data(_ENCODER.encode(record))

    def _flush(self) -> None:
        self._log.flush()
