"""The listener's end of a single socket channel: one connection per caller, one queue for the requests of all.

The first frame of a connection names the caller. A new connection of the same caller ends the old one: requests that
were read from it are handled first, and the rest are never read. Requests go through a singular update queue, so they
are handled in the order they came, and each answer goes back over the connection of its request, at once or when it is
known. A heartbeat is returned past the queue.

A connection that is silent for ten heartbeat intervals is closed. So is one that brings a frame that is too long, an
invalid name, more requests than the queue holds, or a request whose handler raises; `on_error` hears of each.

Sources: Patterns of Distributed Systems ch. 30 (`SocketListener`, `SocketClientIO`).
"""

from __future__ import annotations

from collections.abc import Callable

from faultline.harness.world.framing import FrameDecoder, FrameError, encode_frame
from faultline.harness.world.ports import Clock, Timers
from faultline.systems_under_test.patterns.data_replication.singular_update_queue import QueueFull, SingularUpdateQueue
from faultline.systems_under_test.patterns.node_communication.single_socket_channel import READ_TIMEOUT_HEARTBEATS
from faultline.systems_under_test.patterns.node_communication.socket_channel import (
    HEARTBEAT,
    HEARTBEAT_INTERVAL_US,
    ReadTimeout,
    Wire,
)
from faultline.systems_under_test.patterns.promise import Promise

__all__ = ["SocketListener"]

NAME_BYTES_MAX = 255
QUEUE_CAPACITY = 100


class _Accepted:
    """A connection at the listener: the name of its caller, once it is known, and when it was last heard."""

    __slots__ = ("decoder", "heard_us", "peer", "wire")

    def __init__(self, wire: Wire, decoder: FrameDecoder, now_us: int) -> None:
        self.wire = wire
        self.decoder = decoder
        self.peer = ""
        self.heard_us = now_us


class SocketListener:
    """The listener's end; `handle(peer, request)` returns the answer or its promise, or None when there is none.

    `schedule` is that of the update queue: it decides when the consumer runs.
    """

    def __init__(
        self,
        clock: Clock,
        timers: Timers,
        handle: Callable[[str, bytes], bytes | Promise[bytes] | None],
        *,
        on_error: Callable[[str, Exception], None] | None = None,
        schedule: Callable[[Callable[[], None]], object] | None = None,
        heartbeat_interval_us: int = HEARTBEAT_INTERVAL_US,
    ) -> None:
        self.accepted_total = 0
        self._clock = clock
        self._timers = timers
        self._handle_request = handle
        self._on_error = on_error
        self._read_timeout_us = heartbeat_interval_us * READ_TIMEOUT_HEARTBEATS
        self._interval_us = heartbeat_interval_us
        self._open: dict[int, _Accepted] = {}
        self._queue: SingularUpdateQueue[tuple[int, str, bytes], None] = SingularUpdateQueue(
            self._handle, QUEUE_CAPACITY, schedule=schedule, on_error=self._handler_failed
        )
        self._timers.after(self._interval_us, self._tick)

    @property
    def open_connections(self) -> list[tuple[int, str]]:
        """The open connections, each with the name of its caller."""
        return [(connection, accepted.peer) for connection, accepted in self._open.items()]

    def accepted(self, wire: Wire) -> int:
        """Accept a connection, and return its number."""
        self.accepted_total += 1
        self._open[self.accepted_total] = _Accepted(wire, self._new_decoder(), self._clock.monotonic_us())
        return self.accepted_total

    def data_received(self, connection: int, data: bytes) -> None:
        """Take bytes of a connection; those of one that was ended are dropped."""
        accepted = self._open.get(connection)
        if accepted is None:
            return
        accepted.heard_us = self._clock.monotonic_us()
        try:
            for payload in accepted.decoder.feed(data):
                self._take(connection, accepted, payload)
        except (FrameError, QueueFull) as error:
            self._drop(connection, error)

    def lost(self, connection: int) -> None:
        """Forget a connection that ended at its other end."""
        self._open.pop(connection, None)

    def _take(self, connection: int, accepted: _Accepted, payload: bytes) -> None:
        if connection not in self._open:
            return
        if not accepted.peer:
            accepted.peer = _name_in(payload)
            self._end_older(connection, accepted.peer)
        elif payload == HEARTBEAT:
            self._handle_heartbeat(connection)
        else:
            self._submit(connection, accepted.peer, payload)

    def _handle(self, request: tuple[int, str, bytes]) -> None:
        connection, peer, payload = request
        answer = self._handle_request(peer, payload)
        if isinstance(answer, Promise):
            answer.then(lambda later: self._answer(connection, later))
        elif answer is not None:
            self._answer(connection, answer)

    def _answer(self, connection: int, payload: bytes) -> None:
        accepted = self._open.get(connection)
        if accepted is not None:
            accepted.wire.write(encode_frame(payload))

    def _handler_failed(self, request: tuple[int, str, bytes], error: Exception) -> None:
        self._drop(request[0], error)

    def _drop(self, connection: int, error: Exception) -> None:
        accepted = self._open.pop(connection, None)
        if accepted is not None:
            accepted.wire.close()
            if self._on_error is not None:
                self._on_error(accepted.peer, error)

    def _tick(self) -> None:
        self._timers.after(self._interval_us, self._tick)
        oldest_us = self._clock.monotonic_us() - self._read_timeout_us
        for connection in [number for number, accepted in self._open.items() if accepted.heard_us < oldest_us]:
            self._drop(connection, ReadTimeout("the other end is silent"))

    # Each step below is a method of its own, so that a planted bug can override it.

    def _new_decoder(self) -> FrameDecoder:
        return FrameDecoder()

    def _submit(self, connection: int, peer: str, payload: bytes) -> None:
        self._queue.post((connection, peer, payload))

    def _handle_heartbeat(self, connection: int) -> None:
        self._answer(connection, HEARTBEAT)

    def _end_older(self, connection: int, peer: str) -> None:
        """End older connections of `peer`: what they have not yet brought never counts."""
        for older in [number for number, accepted in self._open.items() if accepted.peer == peer]:
            if older != connection:
                self._open.pop(older).wire.close()


def _name_in(payload: bytes) -> str:
    if not 0 < len(payload) <= NAME_BYTES_MAX:
        raise FrameError(f"a connection must begin with a name of 1 to {NAME_BYTES_MAX} bytes, not {len(payload)}")
    try:
        return payload.decode()
    except UnicodeDecodeError as error:
        raise FrameError(f"a connection must begin with a name, not {payload[:20]!r}") from error
