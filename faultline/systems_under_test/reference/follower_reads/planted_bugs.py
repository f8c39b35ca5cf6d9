"""The planted bugs of versions and of reads from followers in `follower-reads`.

Two bugs of these patterns are not here, because no answer shows them: latencies that are kept where nothing reads them,
and an index that is updated before its data (tests/planted_bugs/test_version_bugs.py).
They break the store for good: never use them outside the harness.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from heapq import heapify
from typing import Any

import msgspec

from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.data_replication.closed_timestamp import (
    ClosedTime,
    ClosedTimestampLeader,
    ClosedTimestampReplica,
)
from faultline.systems_under_test.patterns.data_replication.follower_reads import LeaderContact, WaitingReads
from faultline.systems_under_test.patterns.data_replication.versioned_value import OrderedVersions
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import DATA
from faultline.systems_under_test.reference.follower_reads.client import FollowerReadingClient
from faultline.systems_under_test.reference.follower_reads.closed_timestamps import ClosedTimestamps
from faultline.systems_under_test.reference.follower_reads.extension import FollowerReads
from faultline.systems_under_test.reference.follower_reads.messages import FollowerRead
from faultline.systems_under_test.reference.follower_reads.parts import FollowerReadParts
from faultline.systems_under_test.reference.follower_reads.service import (
    FollowerReadService,
    PendingRead,
)
from faultline.systems_under_test.reference.follower_reads.stamped_store import VersionOf
from faultline.systems_under_test.reference.shared.client_messages import (
    ClientCommand,
    LoggedCommand,
    SetValue,
)
from faultline.systems_under_test.reference.shared.planted_bugs import PlantedBugs

__all__ = ["BUGS"]

_DECODER: msgspec.msgpack.Decoder[LoggedCommand] = msgspec.msgpack.Decoder(LoggedCommand)

BUGS = PlantedBugs("follower-reads", FollowerReadParts, pattern="follower-reads", campaign="follower-reads")
_SESSION = BUGS.group(options={"read_from": "follower", "follower_reads": "session"})
_CLOSED = BUGS.group(campaign="closed-timestamps", options={"read_from": "follower", "follower_reads": "closed"})
_VERSIONS = BUGS.group(
    pattern="versioned-value",
    campaign="versioned-reads",
    caught_by=("VVL-I3", "VVL-I4", "follower-reads"),
    options={"read_from": "follower", "follower_reads": "at-stamp", "store": "versioned"},
)


class _StampIgnored(WaitingReads[PendingRead]):
    def _is_reached(self, stamp: int) -> bool:
        return True


@_SESSION.plant(
    "stamp-ignored", "FR-M1", part="reads.service", caught_by=("follower-reads", "read-your-writes-violated")
)
class _WithoutStamps(FollowerReadService):
    """A follower answers at once, whatever stamp the reader brings.

    Shows as: a client does not see what it has just written.
    """

    waiting_reads = _StampIgnored


class _StampPassed(WaitingReads[PendingRead]):
    def _is_reached(self, stamp: int) -> bool:
        return self.version > stamp or stamp == 0


@_SESSION.plant("stamp-passed-not-reached", "FR-M2", part="reads.service", caught_by=("FR-R14",))
class _WaitsTooLong(FollowerReadService):
    """A read waits until more than its stamp is applied.

    Shows as: on a quiet system the reader of its own write waits in vain.
    """

    waiting_reads = _StampPassed


@_SESSION.plant("answer-to-another-key", "FR-M3", part="reads.service", caught_by=("VVL-I3", "follower-reads"))
class _AnswerToAnotherKey(FollowerReadService):
    """A read that waited gets the value of the write that it waited for, whatever its key.

    Shows as: a value of another key is read.
    """

    def handle_follower_read(self, source: NodeId, request: FollowerRead) -> None:
        if request.stamp > self.waiting.version:
            self._waited = {*getattr(self, "_waited", ()), request}
        super().handle_follower_read(source, request)

    def _look_up(self, request: FollowerRead) -> tuple[Any, int, int]:
        value, version, log_index = super()._look_up(request)
        if request in getattr(self, "_waited", ()):
            command = _DECODER.decode(self._entries.entry(request.stamp).data)
            if type(command) is ClientCommand and type(command.command) is SetValue:
                value = command.command.value
        return value, version, log_index


class _OneReaderPerStamp(WaitingReads[PendingRead]):
    def _keep(self, waiting: Any) -> None:
        self._heap = [entry for entry in self._heap if entry[0] != waiting.stamp]
        heapify(self._heap)
        super()._keep(waiting)


@_SESSION.plant(
    "one-reader-per-stamp", "FR-M4", part="reads.service", campaign="crowded-follower-reads", caught_by=("FR-R14",)
)
class _ForgetsReaders(FollowerReadService):
    """One reader is kept for each stamp: a second one takes the place of the first.

    Shows as: of two readers that wait for one stamp, one waits in vain.
    """

    waiting_reads = _OneReaderPerStamp


@_SESSION.plant("reads-above-the-mark", "FR-M5", part="reads.service", caught_by=("FR-I3", "VVL-I3", "follower-reads"))
class _ReadsAboveTheMark(FollowerReadService):
    """A follower answers from the end of its log, above its high-water mark.

    Shows as: a value is read that was not committed, and may vanish.
    """

    def _look_up(self, request: FollowerRead) -> tuple[Any, int, int]:
        value, version, log_index = super()._look_up(request)
        for index in range(log_index + 1, self._entries.last_index + 1):
            entry = self._entries.entry(index)
            command = _DECODER.decode(entry.data) if entry.kind == DATA else None
            if type(command) is ClientCommand and type(command.command) is SetValue:
                version = index
                if command.command.key == request.key:
                    value = command.command.value
        return value, version, self._entries.last_index


class _AlwaysInContact(LeaderContact):
    def may_serve(self, age_us_max: int = 0) -> bool:
        return True


@BUGS.plant(
    "serves-though-cut-off",
    "FR-M6",
    part="reads.service",
    campaign="bounded-staleness",
    caught_by=("FR-R9", "FR-I6", "follower-reads"),
    options={"read_from": "follower", "follower_reads": "bounded"},
)
class _ServesThoughCutOff(FollowerReadService):
    """A follower answers however long it has not heard its leader, and however old its state is.

    Shows as: a follower that is cut off answers with ever older values.
    """

    leader_contact = _AlwaysInContact


@BUGS.plant(
    "read-index-without-asking",
    "FR-M8, CC-M8",
    part="reads.service",
    campaign="follower-read-index",
    caught_by=("linearizability",),
    options={"read_from": "follower", "follower_reads": "read-index"},
)
class _ReadIndexWithoutAsking(FollowerReadService):
    """A follower answers linearizable reads from its own state, without asking the leader.

    Shows as: a read returns a value that was overwritten before the read began.
    """

    def _ask_for_index(self, read: PendingRead) -> None:
        self._serve(read)


@_SESSION.plant(
    "handed-stamp-ignored", "FR-M10", part="client", campaign="moved-sessions", caught_by=("dependent-writes",)
)
class _HandedStampIgnored(FollowerReadingClient):
    """A client that is handed the answer to another's write reads as if it knew nothing.

    Shows as: after a change of client a user does not see what he has just written.
    """

    def _take_over(self, stamp: int) -> None:
        pass


@_SESSION.plant("version-per-batch", "FR-M9", part="reads.version_of", caught_by=("VVL-I2", "follower-reads"))
def _counted_by_batch(reads: FollowerReads) -> VersionOf:
    """Each server counts the batches it applies, not the entries, and batches differ from server to server.

    Shows as: one entry has different versions on different servers, so stamps of one mean nothing to another.
    """
    batches, mark = 0, 0

    def version_of(_: int) -> int:
        nonlocal batches, mark
        if reads.log.high_water_mark.value != mark:
            batches, mark = batches + 1, reads.log.high_water_mark.value
        return batches

    return version_of


@_VERSIONS.plant("floor-without-key-check", "VVL-M1", part="reads.versions", caught_by=("VVL-I3", "follower-reads"))
class _FloorWithoutKeyCheck(OrderedVersions[int]):
    """A read takes the entry just below (key, version), even if it is another key's.

    Shows as: a key that had no value yet has its neighbour's.
    """

    def _entry_before(self, place: int, key: str) -> int | None:
        return self._order[place - 1][1] if place else None

    def _value(self, key: str, version: int) -> Any:
        return next(self._values[entry] for entry in self._order if entry[1] == version)


@_VERSIONS.plant("overwrite-in-place", "VVL-M2", part="reads.versions")
class _OverwriteInPlace(OrderedVersions[int]):
    """An update replaces the newest entry of its key.

    Shows as: a snapshot that a reader has pinned changes.
    """

    def put(self, key: str, version: int, value: Any) -> None:
        newest = self._newest(key)
        if newest is None:
            super().put(key, version, value)
        else:
            self._values[key, newest] = value


@_VERSIONS.plant(
    "version-at-propose", "VVL-M3", part="reads.version_of", caught_by=("VVL-I2", "VVL-I1", "VVL-I3", "node-crash")
)
def _at_propose(reads: FollowerReads) -> VersionOf:
    """A version is taken from the end of the log when an entry is applied, not from the entry.

    Shows as: one entry has different versions on different servers.
    """
    return lambda _: reads.wal.last_index


@_VERSIONS.plant(
    "version-reset-on-restart",
    "VVL-M4",
    part="reads.version_of",
    caught_by=("VVL-I2", "VVL-I1", "VVL-I3", "node-crash"),
)
def _reset_on_restart(reads: FollowerReads) -> VersionOf:
    """Versions of what is new after a restart begin at 1 again.

    Shows as: new writes hide behind old versions.
    """
    return lambda index: index - reads.recovered_index if index > reads.recovered_index else index


@_VERSIONS.plant("versions-as-text", "VVL-M5", part="reads.versions")
class _VersionsAsText(OrderedVersions[int]):
    """Versions are ordered as they are printed, 10 before 9.

    Shows as: the newest value of a key is lost once versions have two digits.
    """

    def _add(self, key: str, version: int, value: Any) -> None:
        self._values[key, version] = value
        insort(self._order, (key, version), key=_as_text)

    def _floor(self, key: str, at: int) -> int | None:
        return self._entry_before(bisect_right(self._order, _as_text((key, at)), key=_as_text), key)


def _as_text(entry: tuple[str, int]) -> tuple[str, str]:
    return entry[0], str(entry[1])


@_VERSIONS.plant("ceiling-for-floor", "VVL-M6", part="reads.versions")
class _CeilingForFloor(OrderedVersions[int]):
    """A read takes the first version from the one asked for on, not the last one up to it.

    Shows as: a read in the past sees the future.
    """

    def _floor(self, key: str, at: int) -> int | None:
        place = bisect_left(self._order, (key, at))
        return self._entry_before(place + 1, key) if place < len(self._order) else None


@_CLOSED.plant(
    "timestamps-of-the-clock-alone",
    "FR-M11",
    part="closing.leader",
    caught_by=("FR-R22", "VVL-I2", "follower-reads"),
)
class _TimestampsOfTheClockAlone(ClosedTimestampLeader):
    """A leader takes the time of a write from its clock, even if that time was given or closed before.

    Shows as: after a step of the clock a new write hides behind an older one, and reads go back.
    """

    def _write_timestamp(self, now: int) -> int:
        return now


@_CLOSED.plant(
    "closed-when-received", "FR-M12", part="closing.timestamps", caught_by=("FR-R22", "VVL-I3", "follower-reads")
)
class _ClosedWhenReceived(ClosedTimestamps):
    """A follower takes a time for closed when the closing is in its log, before it has applied what comes ahead of it.

    Shows as: a session does not see what it has just written, though its time is said to be closed.
    """

    def handled(self) -> None:
        for entry in self._left_to_apply():
            if type(entry) is ClosedTime:
                self._store.replica.close(entry.timestamp)


@_CLOSED.plant(
    "read-before-it-is-closed", "FR-M13", part="closing.replica", caught_by=("FR-R22", "VVL-I3", "follower-reads")
)
class _ReadBeforeItIsClosed(ClosedTimestampReplica):
    """A follower answers at the time of the session's stamp without a look at what is closed.

    Shows as: a session does not see what it has just written.
    """

    def _is_closed(self, timestamp: int) -> bool:
        return True
