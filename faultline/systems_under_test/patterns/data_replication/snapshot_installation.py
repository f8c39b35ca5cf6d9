"""Snapshot installation: bring a follower up to date that needs entries which the leader has already discarded.

*Problem.* A follower that was disconnected for a long time, or is new and empty, needs entries below the leader's
low-water mark, which the leader no longer has.

*Idea.* Their effect is in the leader's snapshot. The leader sends the follower the file of its newest snapshot, in
chunks, one at a time. The follower answers each chunk with the offset of the next. When the file is whole and its
checksum fits, the follower makes it durable, replaces its state by it, and goes on with the entry after it. It keeps
the entries of its log after the snapshot's last entry if its log holds that entry, and drops them otherwise.

*Invariants.* LWM-I5 after an installation the follower's state is that of every server at that index. LWM-I2 its log
begins right after the snapshot, or holds the snapshot's last entry. HWM-I1 its mark does not move back: a snapshot that
is older than its applied index is answered, and otherwise ignored.

*Tolerates.* Chunks and answers that are lost, repeated or late: a chunk that is not the next one is answered with the
offset of the next, and after a silence the leader sends again. A follower that restarts in the middle begins again. A
leader that changes in the middle: a transfer belongs to one leader, generation and snapshot. Appends and heartbeats in
between. A crash between publishing the snapshot and dropping the log: recovery finds the log too short, or in conflict
with the snapshot, and drops it then.

*Does not tolerate.* A snapshot that does not fit into memory. A snapshot that takes longer to send than the leader
takes to discard the entries after it: the follower then gets the next one, and never catches up.

*Workloads.* `register` in the campaign `compaction`.

*Checkers.* LWM-I1, LWM-I2, LWM-I5; linearizability.

*Planted bugs.* LWM-M5 (no installation at all) is shown in a scenario: clients see no error, but the follower never
comes back.

Sources: Patterns of Distributed Systems ch. 9, "Snapshots"; Ongaro and Ousterhout (2014) 7, figure 13.
"""

from __future__ import annotations

import msgspec

from faultline.harness.world.ports import Network, NodeId
from faultline.systems_under_test.patterns.data_replication.snapshot_store import Snapshot, encode_snapshot

__all__ = ["InstallSnapshotRequest", "InstallSnapshotResponse", "SnapshotReceiver", "SnapshotSender"]


class InstallSnapshotRequest(msgspec.Struct, frozen=True, tag="install-snapshot-request"):
    """Bytes from `offset` on of the file, `size` bytes long, of the leader's snapshot at `snapshot_index`."""

    leader_id: str
    generation: int
    snapshot_index: int
    size: int
    offset: int
    data: bytes


class InstallSnapshotResponse(msgspec.Struct, frozen=True, tag="install-snapshot-response"):
    """The answer: `next_offset` is wanted next; or the follower has the state at `snapshot_index` now (`installed`)."""

    server_id: str
    generation: int
    snapshot_index: int
    next_offset: int
    installed: bool


class _Transfer:
    __slots__ = ("data", "offset", "sent_us", "snapshot_index")

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot_index = snapshot.index
        self.data = encode_snapshot(snapshot)
        self.offset = 0
        self.sent_us = 0


class SnapshotSender:
    """The leader's side: at most one transfer per follower, one chunk of it under way."""

    def __init__(self, network: Network, leader: NodeId, chunk_bytes: int, retransmit_us: int) -> None:
        self._network = network
        self._leader = leader
        self._chunk_bytes = chunk_bytes
        self._retransmit_us = retransmit_us
        self._transfers: dict[NodeId, _Transfer] = {}

    def send(self, follower: NodeId, snapshot: Snapshot, generation: int, now_us: int) -> None:
        """Begin to send `snapshot`, unless a transfer to this follower is under way."""
        if follower not in self._transfers:
            self._transfers[follower] = _Transfer(snapshot)
            self._send_chunk(follower, generation, now_us)

    def handle_response(self, follower: NodeId, response: InstallSnapshotResponse, now_us: int) -> int:
        """Send the next chunk, and return the snapshot's index when it is installed, 0 before.

        An answer that asks for the chunk under way is an old one that came twice; acting on it would double the stream.
        """
        transfer = self._transfers.get(follower)
        if transfer is None or transfer.snapshot_index != response.snapshot_index:
            return 0
        if response.installed:
            del self._transfers[follower]
            return transfer.snapshot_index
        if response.next_offset != transfer.offset:
            transfer.offset = min(response.next_offset, len(transfer.data))
            self._send_chunk(follower, response.generation, now_us)
        return 0

    def resend_what_was_lost(self, generation: int, now_us: int) -> None:
        """Send the chunk under way again to every follower that has been silent for too long."""
        for follower, transfer in self._transfers.items():
            if now_us - transfer.sent_us >= self._retransmit_us:
                self._send_chunk(follower, generation, now_us)

    def stop(self) -> None:
        """Forget all transfers: this server leads no longer."""
        self._transfers.clear()

    def _send_chunk(self, follower: NodeId, generation: int, now_us: int) -> None:
        transfer = self._transfers[follower]
        transfer.sent_us = now_us
        offset, data = transfer.offset, transfer.data
        chunk = data[offset : offset + self._chunk_bytes]
        request = InstallSnapshotRequest(self._leader, generation, transfer.snapshot_index, len(data), offset, chunk)
        self._network.send(follower, request)


class SnapshotReceiver:
    """The follower's side, which gathers the chunks of one transfer, in order."""

    __slots__ = ("_buffer", "_transfer")

    def __init__(self) -> None:
        self._transfer: tuple[str, int, int] | None = None
        self._buffer = bytearray()

    @property
    def next_offset(self) -> int:
        """The offset at which the next chunk should begin."""
        return len(self._buffer)

    def take(self, request: InstallSnapshotRequest) -> bytes | None:
        """Add a chunk, and return the whole file once it is complete; a chunk of another transfer begins anew."""
        # Bytes of two snapshots must not be mixed: another leader may have another file for the same index.
        transfer = (request.leader_id, request.generation, request.snapshot_index)
        if transfer != self._transfer:
            self._transfer = transfer
            self._buffer.clear()
        if request.offset == len(self._buffer):
            self._buffer += request.data
        if len(self._buffer) < request.size:
            return None
        data = bytes(self._buffer)
        self.forget()
        return data

    def forget(self) -> None:
        """Begin anew with the next chunk."""
        self._transfer = None
        self._buffer.clear()
