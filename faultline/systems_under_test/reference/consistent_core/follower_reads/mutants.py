"""The planted bugs of versions and of reads from followers in `consistent-core`.

Each is a record and a change to the `ReadParts` a node is built from. They break the store for good: never use them
outside the harness. Two bugs of these patterns are not here, because no answer shows them: latencies that are kept
where nobody looks, and an index that is updated before its data (tests/mutants/test_version_bugs.py).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable
from dataclasses import replace
from heapq import heapify
from typing import Any

import msgspec

from faultline.harness.system import Mutant
from faultline.harness.world.ports import NodeId
from faultline.systems_under_test.patterns.data_replication.follower_reads import LeaderContact, WaitingReads
from faultline.systems_under_test.patterns.data_replication.versioned_value import OrderedVersions
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import DATA
from faultline.systems_under_test.reference.consistent_core.follower_reads.extension import (
    FollowerReads,
    ReadParts,
)
from faultline.systems_under_test.reference.consistent_core.follower_reads.messages import FollowerRead
from faultline.systems_under_test.reference.consistent_core.follower_reads.service import (
    FollowerReadService,
    PendingRead,
)
from faultline.systems_under_test.reference.consistent_core.stamped_store import VersionOf
from faultline.systems_under_test.reference.shared.client_messages import (
    ClientCommand,
    LoggedCommand,
    SetValue,
)
from faultline.systems_under_test.reference.shared.planted_bugs import in_front, parts_with_bugs

__all__ = ["FOLLOWER_READ_MUTANTS", "read_parts"]

_DECODER: msgspec.msgpack.Decoder[LoggedCommand] = msgspec.msgpack.Decoder(LoggedCommand)

_SESSION = {"read_from": "follower", "follower_reads": "session"}
_BOUNDED = {"read_from": "follower", "follower_reads": "bounded"}
_READ_INDEX = {"read_from": "follower", "follower_reads": "read-index"}
_AT_STAMP = {"read_from": "follower", "follower_reads": "at-stamp", "store": "versioned"}

FOLLOWER_READ_MUTANTS = (
    Mutant(
        name="stamp-ignored",
        pattern="follower-reads",
        id="FR-M1",
        summary="a follower answers at once, whatever stamp the reader brings",
        shows_as="a client does not see what it has just written",
        campaign="follower-reads",
        caught_by=("follower-reads", "read-your-writes-violated"),
        options=_SESSION,
    ),
    Mutant(
        name="stamp-passed-not-reached",
        pattern="follower-reads",
        id="FR-M2",
        summary="a read waits until more than its stamp is applied",
        shows_as="on a quiet system the reader of its own write waits in vain",
        campaign="follower-reads",
        caught_by=("FR-R14",),
        options=_SESSION,
    ),
    Mutant(
        name="answer-to-another-key",
        pattern="follower-reads",
        id="FR-M3",
        summary="a read that waited gets the value of the write that it waited for, whatever its key",
        shows_as="a value of another key is read",
        campaign="follower-reads",
        caught_by=("VVL-I3", "follower-reads"),
        options=_SESSION,
    ),
    Mutant(
        name="one-reader-per-stamp",
        pattern="follower-reads",
        id="FR-M4",
        summary="one reader is kept for each stamp: a second one takes the place of the first",
        shows_as="of two readers that wait for one stamp, one waits in vain",
        campaign="crowded-follower-reads",
        caught_by=("FR-R14",),
        options=_SESSION,
    ),
    Mutant(
        name="reads-above-the-mark",
        pattern="follower-reads",
        id="FR-M5",
        summary="a follower answers from the end of its log, above its high-water mark",
        shows_as="a value is read that was not committed, and may vanish",
        campaign="follower-reads",
        caught_by=("FR-I3", "VVL-I3", "follower-reads"),
        options=_SESSION,
    ),
    Mutant(
        name="serves-though-cut-off",
        pattern="follower-reads",
        id="FR-M6",
        summary="a follower answers however long it has not heard its leader, and however old its state is",
        shows_as="a follower that is cut off answers with ever older values",
        campaign="bounded-staleness",
        caught_by=("FR-R9", "FR-I6", "follower-reads"),
        options=_BOUNDED,
    ),
    Mutant(
        name="read-index-without-asking",
        pattern="follower-reads",
        id="FR-M8, CC-M8",
        summary="a follower answers linearizable reads from its own state, without asking the leader",
        shows_as="a read returns a value that was overwritten before the read began",
        campaign="follower-read-index",
        caught_by=("linearizability",),
        options=_READ_INDEX,
    ),
    Mutant(
        name="version-per-batch",
        pattern="follower-reads",
        id="FR-M9",
        summary="each server counts the batches it applies, not the entries, and batches differ from server to server",
        shows_as="one entry has different versions on different servers, so stamps of one mean nothing to another",
        campaign="follower-reads",
        caught_by=("VVL-I2", "follower-reads"),
        options=_SESSION,
    ),
    Mutant(
        name="floor-without-key-check",
        pattern="versioned-value",
        id="VVL-M1",
        summary="a read takes the entry just below (key, version), even if it is another key's",
        shows_as="a key that had no value yet has its neighbour's",
        campaign="versioned-reads",
        caught_by=("VVL-I3", "follower-reads"),
        options=_AT_STAMP,
    ),
    Mutant(
        name="overwrite-in-place",
        pattern="versioned-value",
        id="VVL-M2",
        summary="an update replaces the newest entry of its key",
        shows_as="a snapshot that a reader has pinned changes",
        campaign="versioned-reads",
        caught_by=("VVL-I3", "VVL-I4", "follower-reads"),
        options=_AT_STAMP,
    ),
    Mutant(
        name="version-at-propose",
        pattern="versioned-value",
        id="VVL-M3",
        summary="a version is taken from the end of the log when an entry is applied, not from the entry",
        shows_as="one entry has different versions on different servers",
        campaign="versioned-reads",
        caught_by=("VVL-I2", "VVL-I1", "VVL-I3", "node-crash"),
        options=_AT_STAMP,
    ),
    Mutant(
        name="version-reset-on-restart",
        pattern="versioned-value",
        id="VVL-M4",
        summary="versions of what is new after a restart begin at 1 again",
        shows_as="new writes hide behind old versions",
        campaign="versioned-reads",
        caught_by=("VVL-I2", "VVL-I1", "VVL-I3", "node-crash"),
        options=_AT_STAMP,
    ),
    Mutant(
        name="versions-as-text",
        pattern="versioned-value",
        id="VVL-M5",
        summary="versions are ordered as they are printed, 10 before 9",
        shows_as="the newest value of a key is lost once versions have two digits",
        campaign="versioned-reads",
        caught_by=("VVL-I3", "VVL-I4", "follower-reads"),
        options=_AT_STAMP,
    ),
    Mutant(
        name="ceiling-for-floor",
        pattern="versioned-value",
        id="VVL-M6",
        summary="a read takes the first version from the one asked for on, not the last one up to it",
        shows_as="a read in the past sees the future",
        campaign="versioned-reads",
        caught_by=("VVL-I3", "VVL-I4", "follower-reads"),
        options=_AT_STAMP,
    ),
)
"""Every planted bug of these patterns."""


# -- waiting and freshness --------------------------------------------------------------------------------------------


class _StampIgnored(WaitingReads[PendingRead]):
    def _is_reached(self, stamp: int) -> bool:
        return True


class _StampPassed(WaitingReads[PendingRead]):
    def _is_reached(self, stamp: int) -> bool:
        return self.version > stamp or stamp == 0


class _OneReaderPerStamp(WaitingReads[PendingRead]):
    def _keep(self, waiting: Any) -> None:
        self._heap = [entry for entry in self._heap if entry[0] != waiting.stamp]
        heapify(self._heap)
        super()._keep(waiting)


class _ServesThoughCutOff(LeaderContact):
    def may_serve(self, age_us_max: int = 0) -> bool:
        return True


# -- what is looked up ------------------------------------------------------------------------------------------------


class _AnswerToAnotherKey(FollowerReadService):
    """Hands whoever waited for a stamp the value that the entry of that stamp wrote."""

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


class _ReadsAboveTheMark(FollowerReadService):
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


class _ReadIndexWithoutAsking(FollowerReadService):
    def _ask_for_index(self, read: PendingRead) -> None:
        self._serve(read)


# -- versions ---------------------------------------------------------------------------------------------------------


class _FloorWithoutKeyCheck(OrderedVersions[int]):
    def _entry_before(self, place: int, key: str) -> int | None:
        return self._order[place - 1][1] if place else None

    def _value(self, key: str, version: int) -> Any:
        return next(self._values[entry] for entry in self._order if entry[1] == version)


class _OverwriteInPlace(OrderedVersions[int]):
    def put(self, key: str, version: int, value: Any) -> None:
        newest = self._newest(key)
        if newest is None:
            super().put(key, version, value)
        else:
            self._values[key, newest] = value


class _VersionsAsText(OrderedVersions[int]):
    def _add(self, key: str, version: int, value: Any) -> None:
        self._values[key, version] = value
        insort(self._order, (key, version), key=_as_text)

    def _floor(self, key: str, at: int) -> int | None:
        return self._entry_before(bisect_right(self._order, _as_text((key, at)), key=_as_text), key)


def _as_text(entry: tuple[str, int]) -> tuple[str, str]:
    return entry[0], str(entry[1])


class _CeilingForFloor(OrderedVersions[int]):
    def _floor(self, key: str, at: int) -> int | None:
        place = bisect_left(self._order, (key, at))
        return self._entry_before(place + 1, key) if place < len(self._order) else None


# -- how entries are numbered -----------------------------------------------------------------------------------------


def _counted_by_batch(reads: FollowerReads) -> VersionOf:
    batches, mark = 0, 0

    def version_of(_: int) -> int:
        nonlocal batches, mark
        if reads.log.high_water_mark.value != mark:
            batches, mark = batches + 1, reads.log.high_water_mark.value
        return batches

    return version_of


def _at_propose(reads: FollowerReads) -> VersionOf:
    return lambda _: reads.wal.last_index


def _reset_on_restart(reads: FollowerReads) -> VersionOf:
    return lambda index: index - reads.recovered_index if index > reads.recovered_index else index


# -- how they are put in ----------------------------------------------------------------------------------------------

_Change = Callable[[ReadParts], ReadParts]


def _service(bug: type[FollowerReadService]) -> _Change:
    return lambda parts: replace(parts, service=in_front(bug, parts.service))


def _in_service(**parts_of_service: type[Any]) -> _Change:
    return lambda parts: replace(parts, service=type("Service", (parts.service,), parts_of_service))


def _store(bug: type[OrderedVersions[int]]) -> _Change:
    return lambda parts: replace(parts, versions=bug)


def _numbering(bug: Callable[[FollowerReads], VersionOf]) -> _Change:
    return lambda parts: replace(parts, version_of=bug)


_CHANGES: dict[str, _Change] = {
    "stamp-ignored": _in_service(waiting_reads=_StampIgnored),
    "stamp-passed-not-reached": _in_service(waiting_reads=_StampPassed),
    "answer-to-another-key": _service(_AnswerToAnotherKey),
    "one-reader-per-stamp": _in_service(waiting_reads=_OneReaderPerStamp),
    "reads-above-the-mark": _service(_ReadsAboveTheMark),
    "serves-though-cut-off": _in_service(leader_contact=_ServesThoughCutOff),
    "read-index-without-asking": _service(_ReadIndexWithoutAsking),
    "version-per-batch": _numbering(_counted_by_batch),
    "floor-without-key-check": _store(_FloorWithoutKeyCheck),
    "overwrite-in-place": _store(_OverwriteInPlace),
    "version-at-propose": _numbering(_at_propose),
    "version-reset-on-restart": _numbering(_reset_on_restart),
    "versions-as-text": _store(_VersionsAsText),
    "ceiling-for-floor": _store(_CeilingForFloor),
}


def read_parts(names: Iterable[str]) -> ReadParts:
    """The parts of the read side with those of the planted bugs `names` that belong there."""
    return parts_with_bugs(names, ReadParts(), _CHANGES)
