"""The invariants of `quorum-kv`, checked on what its replicas report while a run goes on.

A version is judged when it arrives at another node: only then was it durable where it was made. One that a crash took
away before anybody had it may be made again.
"""

from __future__ import annotations

from itertools import permutations
from zlib import crc32

import msgspec

from faultline.harness.invariant import Breach, Invariant, Report
from faultline.systems_under_test.patterns.clusters.quorum_kv_messages import SiblingsReceived, SiblingsStored
from faultline.systems_under_test.patterns.data_replication.version_vector import DottedVersion, Version

__all__ = ["SiblingsAreConcurrent", "VersionsNameOneValue", "quorum_kv_invariants"]

Events = tuple[type[msgspec.Struct], ...]


class SiblingsAreConcurrent:
    """VVC-I1."""

    id = "VVC-I1"
    statement = "No value at a replica descends another one beside it."
    events: Events = (SiblingsStored,)
    needs_order = False

    def observe(self, time_us: int, node: str, event: SiblingsStored, report: Report) -> None:
        """Compare each pair, both ways."""
        for one, other in permutations(event.siblings, 2):
            if _descends(one.version, other.version):
                sentence = f"{node} keeps {other.value} of {event.key} beside {one.value}, which replaced it."
                report(Breach(invariant=self.id, sentence=sentence, time_us=time_us, node=node))
                return


class VersionsNameOneValue:
    """VVC-I2."""

    id = "VVC-I2"
    statement = "Two values with the same version are the same value."
    events: Events = (SiblingsReceived,)
    needs_order = False

    def __init__(self) -> None:
        self._checksums: dict[tuple[str, bytes], int] = {}

    def observe(self, time_us: int, node: str, event: SiblingsReceived, report: Report) -> None:
        """Remember which value each version stood for first."""
        for sibling in event.siblings:
            event_name = _event_of(sibling.version)
            checksum = crc32(msgspec.msgpack.encode(sibling.value))
            if self._checksums.setdefault((event.key, event_name), checksum) != checksum:
                sentence = f"{node} was sent {sibling.value} of {event.key} under a version that named another value."
                report(Breach(invariant=self.id, sentence=sentence, time_us=time_us, node=node))
                return


def _descends(one: Version, other: Version) -> bool:
    return bool(one.descends(other))  # type: ignore[arg-type]  # both of one kind


def _event_of(version: Version) -> bytes:
    """What must not be used twice: the dot of a dotted version, else the whole vector."""
    if isinstance(version, DottedVersion):
        return f"{version.node} {version.counter}".encode()
    return msgspec.msgpack.encode(sorted(version.counters.items()))


def quorum_kv_invariants() -> list[Invariant]:
    """Fresh instances, for one run."""
    return [SiblingsAreConcurrent(), VersionsNameOneValue()]
