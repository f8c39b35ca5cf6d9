"""The caller's end of a single socket channel, without its socket: it dials, calls, sends heartbeats, gives up.

`SingleSocketChannel` keeps one connection open and dials again, after a pause that doubles, when it ends.
`blocking_send` has one request on the wire at a time and completes the promise of its caller with the answer; after a
timeout the next answer could belong to either call, so the connection is closed rather than used again. `send_one_way`
is for the request pipeline, and messages for which no blocking call waits go to `on_message`.

An empty frame is a heartbeat. The caller sends one when it has sent nothing for an interval, and the listener
(`socket_listener`) returns it at once, past its queue: a slow request must not look like a dead server. After ten
intervals without a byte the connection is closed. That leaves one kind of head-of-line blocking: heartbeats wait behind
a frame that is under way, so a frame that takes longer than the timeout costs the connection. Keep requests, and
batches of them, small.

The transport (`Wire`) moves bytes; it tells of connections that were made and lost, by the number of the attempt.

Sources: Patterns of Distributed Systems ch. 30 (`SingleSocketChannel`); Zookeeper's one connection per follower.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from faultline.harness.world.framing import FrameDecoder, FrameError, encode_frame
from faultline.harness.world.ports import Clock, Timer, Timers
from faultline.systems_under_test.patterns.node_communication.single_socket_channel import (
    READ_TIMEOUT_HEARTBEATS,
    ChannelClosed,
    ChannelState,
)
from faultline.systems_under_test.patterns.promise import Promise

__all__ = ["HEARTBEAT", "HEARTBEAT_INTERVAL_US", "ReadTimeout", "SingleSocketChannel", "Wire"]

HEARTBEAT = b""
"""The payload of a heartbeat."""

HEARTBEAT_INTERVAL_US = 100_000
"""The interval at which a channel shows that it lives."""

BACKOFF_US_MIN = 10_000
BACKOFF_US_MAX = 160_000


class ReadTimeout(Exception):
    """No answer in time; if the request was sent, it may have been executed, and the connection was closed."""


class Wire(Protocol):
    """One connection, as its owner writes to it."""

    def write(self, data: bytes) -> None:
        """Send bytes, after all those written before."""

    def close(self) -> None:
        """End the connection."""


class _Call:
    """A blocking call: its request, its promise, and the timer after which it is over."""

    __slots__ = ("payload", "promise", "timer")

    def __init__(self, payload: bytes) -> None:
        self.payload = payload
        self.promise: Promise[bytes] = Promise()
        self.timer: Timer | None = None


class SingleSocketChannel:
    """The caller's end. `dial(attempt)` starts a connection; the transport answers with `opened` or `lost`."""

    def __init__(
        self,
        name: str,
        clock: Clock,
        timers: Timers,
        dial: Callable[[int], None],
        *,
        on_message: Callable[[bytes], None] | None = None,
        on_connection: Callable[[bool], None] | None = None,
        on_error: Callable[[Exception], None] | None = None,
        heartbeat_interval_us: int = HEARTBEAT_INTERVAL_US,
        read_timeout_heartbeats: int = READ_TIMEOUT_HEARTBEATS,
    ) -> None:
        self.attempt = 0
        self._name = name
        self._clock = clock
        self._timers = timers
        self._dial = dial
        self._on_message = on_message
        self._on_connection = on_connection
        self._on_error = on_error
        self._state = ChannelState(heartbeat_interval_us, read_timeout_heartbeats)
        self._interval_us = heartbeat_interval_us
        self._wire: Wire | None = None
        self._decoder = FrameDecoder()
        self._calls: deque[_Call] = deque()
        self._current: _Call | None = None
        self._backoff_us = BACKOFF_US_MIN
        self._dialled_us = 0
        self._closed = False
        self._timer: Timer | None = None
        self._connect()

    @property
    def is_open(self) -> bool:
        """True while there is a connection."""
        return self._state.is_open

    def send_one_way(self, payload: bytes) -> None:
        """Send, and wait for no answer. Raises `ChannelClosed`, FrameError."""
        self._write(payload)

    def blocking_send(self, payload: bytes) -> Promise[bytes]:
        """Send, and return the promise of the answer.

        Calls take turns, and none is open for longer than the read timeout.
        """
        encode_frame(payload)
        call = _Call(payload)
        call.timer = self._timers.after(self._state.read_timeout_us, lambda: self._call_is_over(call))
        self._calls.append(call)
        self._next_call()
        return call.promise

    def close(self) -> None:
        """End the connection for good, and fail all calls."""
        self._closed = True
        self._hang_up()
        if self._timer is not None:
            self._timer.cancel()
        for call in self._calls:
            self._finish(call, ChannelClosed("the channel was closed before the request was sent"))
        self._calls.clear()

    def opened(self, attempt: int, wire: Wire) -> None:
        """Use the connection that was dialled as `attempt`; close one that comes late."""
        if attempt != self.attempt or self._closed:
            wire.close()
            return
        self._wire = wire
        self._decoder = self._new_decoder()
        self._state.opened(self._clock.monotonic_us())
        self._backoff_us = BACKOFF_US_MIN
        # The name is the first frame of a connection; the listener ends an older connection of the same name.
        self._write(self._name.encode())
        if self._on_connection is not None:
            self._on_connection(True)
        self._next_call()

    def data_received(self, attempt: int, data: bytes) -> None:
        """Take bytes of a connection; those of an old one are dropped."""
        if attempt != self.attempt or not self._state.is_open:
            return
        self._state.heard(self._state.connection, self._clock.monotonic_us())
        try:
            payloads = self._decoder.feed(data)
        except FrameError as error:
            self._break(error)
            return
        for payload in payloads:
            if payload != HEARTBEAT:
                self._take(payload)

    def lost(self, attempt: int) -> None:
        """Dial again after the connection ended, or was refused."""
        if attempt == self.attempt:
            self._break(None)

    def _connect(self) -> None:
        self._timer = self._timers.after(self._interval_us, self._tick)
        self.attempt += 1
        self._dialled_us = self._clock.monotonic_us()
        self._dial(self.attempt)

    def _tick(self) -> None:
        """Show that this end lives, and check that the other does; runs every heartbeat interval."""
        self._timer = self._timers.after(self._interval_us, self._tick)
        now_us = self._clock.monotonic_us()
        if self._state.is_open:
            if self._state.heartbeat_due(now_us):
                self._write(HEARTBEAT)
            if self._has_timed_out(now_us):
                self._break(ReadTimeout("the other end is silent"))
        elif now_us - self._dialled_us >= self._state.read_timeout_us:
            self._break(ReadTimeout("no connection in time"))

    def _write(self, payload: bytes) -> None:
        frame = encode_frame(payload)
        self._state.sending(self._clock.monotonic_us())
        assert self._wire is not None
        self._wire.write(frame)

    def _take(self, payload: bytes) -> None:
        call, self._current = self._current, None
        if call is not None:
            self._finish(call, None, payload)
            self._next_call()
        elif self._on_message is not None:
            self._on_message(payload)

    def _next_call(self) -> None:
        while self._calls and self._state.is_open and not self._is_busy():
            self._current = self._calls.popleft()
            self._write(self._current.payload)

    def _call_is_over(self, call: _Call) -> None:
        if call.promise.done:
            return
        was_sent = call is self._current
        if not was_sent and call in self._calls:
            self._calls.remove(call)
        self._finish(call, ReadTimeout("no answer in time" if was_sent else "not sent in time"))
        if was_sent:
            self._current = None
            self._after_unanswered_call()

    def _finish(self, call: _Call, error: Exception | None, answer: bytes = b"") -> None:
        if call.timer is not None:
            call.timer.cancel()
        if error is None:
            call.promise.complete(answer)
        else:
            call.promise.fail(error)

    def _break(self, error: Exception | None) -> None:
        """End this connection and dial again after a pause."""
        self._hang_up()
        if error is not None and self._on_error is not None:
            self._on_error(error)
        if self._closed:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._timers.after(self._backoff_us, self._connect)
        self._backoff_us = min(2 * self._backoff_us, BACKOFF_US_MAX)

    def _hang_up(self) -> None:
        was_open = self._state.closed(self._state.connection)
        # A new number: the transport may still deliver bytes of this attempt, and they must not count.
        self.attempt += 1
        if self._wire is not None:
            self._wire.close()
            self._wire = None
        call, self._current = self._current, None
        if call is not None:
            self._finish(call, ChannelClosed("the connection ended; whether the request was executed is unknown"))
        if was_open and self._on_connection is not None:
            self._on_connection(False)

    # Each step below is a method of its own, so that a planted bug can override it.

    def _new_decoder(self) -> FrameDecoder:
        return FrameDecoder()

    def _is_busy(self) -> bool:
        return self._current is not None

    def _has_timed_out(self, now_us: int) -> bool:
        return self._state.timed_out(now_us)

    def _after_unanswered_call(self) -> None:
        """End the connection: the late answer would be taken for that of the next call."""
        self._break(None)
