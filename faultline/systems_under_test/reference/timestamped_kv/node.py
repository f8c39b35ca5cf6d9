"""A node of `timestamped-kv`: it owns some of the keys, and its clients read by its clock.

A client gets the time to read at from the node it is near, and the value from the owner of the key: so two clocks are
always involved, and stamps must survive that. There is no replication: a key is away while its owner is down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from faultline.harness.world.ports import READY, Clock, NodeId, NodeStatus, Ports, UnexpectedMessage
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import ClockTooFarAhead, HybridTimestamp
from faultline.systems_under_test.reference.timestamped_kv.clocks import HybridStamps, LamportStamps, Stamps
from faultline.systems_under_test.reference.timestamped_kv.messages import (
    ReadAt,
    ReadResponse,
    TimeRequest,
    TimeResponse,
    WriteRequest,
    WriteResponse,
)
from faultline.systems_under_test.reference.timestamped_kv.options import TimestampSettings
from faultline.systems_under_test.reference.timestamped_kv.store import StampedVersions
from faultline.systems_under_test.reference.timestamped_kv.waits import WAITS, Waits

__all__ = ["CLOCK_TOO_FAR_AHEAD", "Parts", "TimestampedKvNode"]

CLOCK_TOO_FAR_AHEAD = "clock-too-far-ahead"
"""The client's stamp is further ahead of the node's clock than the node follows; nothing was written."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The classes that a node is built from; a planted bug changes one of them."""

    hybrid: Callable[[Clock, TimestampSettings], Stamps] = HybridStamps
    lamport: Callable[[Clock, TimestampSettings], Stamps] = LamportStamps
    waits: Mapping[str, Callable[..., Waits]] = field(default_factory=lambda: dict(WAITS))


class TimestampedKvNode:
    """One node: implements `Node` over its ports."""

    def __init__(self, ports: Ports, settings: TimestampSettings, parts: Parts) -> None:
        self.ports = ports
        self.versions = StampedVersions(ports)
        self._settings = settings
        self._parts = parts

    def start(self) -> None:
        """Recover the versions, and stamp above all of them from then on."""
        make_stamps = self._parts.hybrid if self._settings.clock == "hybrid" else self._parts.lamport
        stamps = make_stamps(self.ports.clock, self._settings)
        for stamp in self.versions.recover():
            stamps.restore(stamp)
        self._waits = self._parts.waits[self._settings.wait](self.ports, self._settings, stamps, self.versions)

    def receive(self, source: NodeId, message: Any) -> None:
        """Handle a client's request; one that the network repeats is taken once.

        The log has the numbers of all writes, since a network may repeat one after a restart. Limit: a restart forgets
        the number of a write that was refused.
        """
        if not isinstance(message, TimeRequest | ReadAt | WriteRequest):
            raise UnexpectedMessage(message)
        if message.request_number <= self.versions.last_number.get(source, 0):
            return
        self.versions.last_number[source] = message.request_number
        match message:
            case TimeRequest():
                self._handle_time(source, message)
            case ReadAt():
                self._waits.read(message, lambda answer: self._send(source, answer))
            case WriteRequest():
                self._handle_write(source, message)

    def status(self) -> NodeStatus:
        """Return `ready`: every node owns a share of the keys, and none leads."""
        return NodeStatus(role=READY)

    def _handle_time(self, source: NodeId, request: TimeRequest) -> None:
        self._send(source, TimeResponse(request.request_number, self._waits.read_time(request.seen)))

    def _handle_write(self, source: NodeId, request: WriteRequest) -> None:
        def written(stamp: HybridTimestamp) -> None:
            self._send(source, WriteResponse(request.request_number, stamp))

        try:
            self._waits.write(source, request, written)
        except ClockTooFarAhead:
            self.ports.trace.sometimes("stamp-too-far-ahead-refused")
            self._send(source, WriteResponse(request.request_number, error=CLOCK_TOO_FAR_AHEAD))

    def _send(self, to: NodeId, message: TimeResponse | ReadResponse | WriteResponse) -> None:
        self.ports.network.send(to, message)
