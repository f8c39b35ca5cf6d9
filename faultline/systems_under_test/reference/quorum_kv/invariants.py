"""The invariants of `quorum-kv`, checked on what its replicas report while a run goes on.

A version is judged when it arrives at another node: only then was it durable at the node that made it. A version that a
crash took away before it was sent may be made again.
"""

from __future__ import annotations

from itertools import chain
from zlib import crc32

import msgspec

from faultline.harness.invariant import Invariant, Report, ReportingInvariant
from faultline.systems_under_test.patterns.data_replication.version_vector import DottedVersion, Version, VersionedValue
from faultline.systems_under_test.reference.quorum_kv.messages import (
    CountersRecovered,
    SiblingsReceived,
    SiblingsStored,
    WriteRefused,
    WriteTaken,
)
from faultline.systems_under_test.reference.shared.leaderless_node import waiting_invariants

__all__ = [
    "CountersAreDurable",
    "NewerValuesReplaceOlder",
    "RefusedWritesAreTakenNowhere",
    "SiblingsAreConcurrent",
    "VersionsNameOneValue",
    "quorum_kv_invariants",
]


class SiblingsAreConcurrent(ReportingInvariant):
    """Siblings are concurrent: VVC-I1."""

    id = "VVC-I1"
    statement = "No value at a replica descends another one beside it."
    events = (SiblingsStored,)

    def __init__(self) -> None:
        self._compared: dict[tuple[str, str], tuple[VersionedValue, ...]] = {}

    def observe(self, time_us: int, node: str, event: SiblingsStored, report: Report) -> None:
        """Compare each new value with all, both ways; the pairs of those that stayed were compared when they came."""
        before = self._compared.get((node, event.key), ())
        self._compared[node, event.key] = event.siblings
        came = [one for one in event.siblings if one not in before]
        pairs = ((one, other) for one in came for other in event.siblings if other is not one)
        for one, other in chain.from_iterable((pair, pair[::-1]) for pair in pairs):
            if _descends(one.version, other.version):
                sentence = f"{node} keeps {other.value} of {event.key} beside {one.value}, which replaced it."
                self._breach(report, time_us, node, sentence)
                return


class VersionsNameOneValue(ReportingInvariant):
    """A version names one value: VVC-I2."""

    id = "VVC-I2"
    statement = "Two values with the same version are the same value."
    events = (SiblingsReceived,)

    def __init__(self) -> None:
        self._checksums: dict[tuple[str, bytes], int] = {}

    def observe(self, time_us: int, node: str, event: SiblingsReceived, report: Report) -> None:
        """Remember the first value of each version; compare later ones with it."""
        for sibling in event.siblings:
            event_name = _event_of(sibling.version)
            checksum = crc32(msgspec.msgpack.encode(sibling.value))
            if self._checksums.setdefault((event.key, event_name), checksum) != checksum:
                sentence = f"{node} was sent {sibling.value} of {event.key} under a version that named another value."
                self._breach(report, time_us, node, sentence)
                return


class NewerValuesReplaceOlder(ReportingInvariant):
    """VVC-I5, of each process: a value that vanishes from a replica was replaced by one that descends it.

    With `versions=last-write-wins` values vanish by design, and this invariant shows it.
    """

    id = "VVC-I5"
    statement = "A value leaves a replica only for one that descends it, never for one that it descends itself."
    events = (SiblingsStored, CountersRecovered)

    def __init__(self) -> None:
        self._siblings: dict[str, dict[str, tuple[VersionedValue, ...]]] = {}

    def observe(self, time_us: int, node: str, event: SiblingsStored | CountersRecovered, report: Report) -> None:
        """Compare with the siblings that this process stored before."""
        if isinstance(event, CountersRecovered):
            # A crash may take away values that were not durable yet.
            self._siblings[node] = {}
            return
        stored = self._siblings.setdefault(node, {})
        for old in stored.get(event.key, ()):
            if old not in event.siblings and not any(_descends(new.version, old.version) for new in event.siblings):
                kept = ", ".join(str(new.value) for new in event.siblings)
                sentence = (
                    f"{node} dropped {old.value} of {event.key} for {kept}, which was not written in its knowledge."
                )
                self._breach(report, time_us, node, sentence)
                break
        stored[event.key] = event.siblings


class CountersAreDurable(ReportingInvariant):
    """VVC-I6: a node that starts knows every number of its own that a version carried to another node."""

    id = "VVC-I6"
    statement = "No version anywhere has an entry of a node above the counter that the node recovers."
    needs_order = True
    events = (SiblingsReceived, CountersRecovered)

    def __init__(self) -> None:
        self._carried: dict[str, dict[str, int]] = {}

    def observe(self, time_us: int, node: str, event: SiblingsReceived | CountersRecovered, report: Report) -> None:
        """Remember the highest numbers that other nodes have seen; compare when their own node starts."""
        if isinstance(event, CountersRecovered):
            self._compare(time_us, node, event.counters, report)
            return
        for sibling in event.siblings:
            for writer, number in sibling.version.known():
                carried = self._carried.setdefault(writer, {})
                carried[event.key] = max(number, carried.get(event.key, 0))

    def _compare(self, time_us: int, node: str, counters: dict[str, int], report: Report) -> None:
        for key, number in self._carried.get(node, {}).items():
            if counters.get(key, 0) < number:
                sentence = (
                    f"{node} starts with {counters.get(key, 0)} updates of {key} numbered,"
                    f" and others hold its update {number}."
                )
                self._breach(report, time_us, node, sentence)
                return


class RefusedWritesAreTakenNowhere(ReportingInvariant):
    """VVC-R8: a client refused as obsolete has to read again; another node would only make a sibling of the write."""

    id = "VVC-R8"
    statement = "An update that one replica refused as obsolete is taken by no other."
    events = (WriteRefused, WriteTaken)

    def __init__(self) -> None:
        self._refused: dict[tuple[str, str, int], str] = {}
        self._taken: dict[tuple[str, str, int], str] = {}

    def observe(self, time_us: int, node: str, event: WriteRefused | WriteTaken, report: Report) -> None:
        """Look for the same update among those of the other kind."""
        update = (event.key, event.client, event.update)
        own, others = (self._refused, self._taken) if isinstance(event, WriteRefused) else (self._taken, self._refused)
        if isinstance(event, WriteRefused) and others.get(update) == node:
            return  # A stale repetition comes when the replica has taken later updates, and its client has its answer.
        own[update] = node
        if update in others:
            sentence = (
                f"Update {event.update} of {event.key} by {event.client} was taken by {self._taken[update]}"
                f" although {self._refused[update]} had refused it as obsolete."
            )
            self._breach(report, time_us, node, sentence)


def _descends(one: Version, other: Version) -> bool:
    return bool(one.descends(other))  # type: ignore[arg-type]  # both of one kind


def _event_of(version: Version) -> bytes:
    """Return the part that must not be used twice: the dot of a dotted version, else the whole vector."""
    if isinstance(version, DottedVersion):
        return f"{version.node} {version.counter}".encode()
    return msgspec.msgpack.encode(sorted(version.counters.items()))


def quorum_kv_invariants() -> list[Invariant]:
    """Return fresh instances of all invariants, for one run."""
    return [
        SiblingsAreConcurrent(),
        VersionsNameOneValue(),
        NewerValuesReplaceOlder(),
        CountersAreDurable(),
        RefusedWritesAreTakenNowhere(),
        *waiting_invariants(),
    ]
