"""Single socket channel: one long-lived connection per pair of nodes, so that messages arrive in order.

*Problem.* A leader sends many requests to each follower. Their order matters, and a new connection for each request is
expensive.

*Idea.* Keep one connection open and send everything over it. As long as the connection lasts, TCP delivers in order and
repeats lost packets. Messages are framed with a four-byte length. Each end closes the connection after ten heartbeat
intervals without a byte, so no call waits for a peer that died silently. Heartbeats keep an idle channel open.

Messages are in order only within one connection. After a reconnect, bytes of the old one may still be on their way;
they must not be taken for the new one's. So each end numbers its connections, and a message of a number that is not
current is dropped. Repeating unanswered requests is the work of the layers above, by log indexes or request numbers.

This module is the channel without its socket: the framing, which the harness uses for its own connections too, and the
state that decides which messages count. `socket_channel` and `socket_listener` make the ends of a channel from it. The
transport of the real world owns sockets and reads and writes the same frames; in the simulated world the network port
keeps the same promise. It dials again with a pause that doubles, but leaves heartbeats and timeouts to its nodes. In
`consistent-core` with `wire=channel` servers and clients use the ends themselves, over connections that the port
carries.

*Invariants.* SC-I1 per connection, the received messages are a prefix of the sent ones. SC-I2 one open connection per
pair and direction. SC-I3 a response goes to the caller of its own request: after a timeout the connection is closed,
not used again. SC-I4 no wait is longer than the read timeout. SC-I5 no end reports a peer that runs and is connected.

*Tolerates.* Frames in pieces of any size, a reset in the middle of one, silent death of the peer, late bytes of an old
connection, a peer that sends nonsense (a length above the limit closes the connection).

*Does not tolerate.* Loss over a reconnect: a message in flight may or may not have arrived. A slow request delays all
behind it. The request pipeline and `send_ahead` for heartbeats are the remedies.

*Workloads.* `register` with cuts, in both worlds; campaign `channels`.

*Checkers.* Linearizability; conformance tests of the network port in both worlds.

*Planted bugs.* In `consistent-core`: `late-answer-taken` (SC-M4), a client that goes on after a timeout. SC-M1 to SC-M8
break the claims of the ends in tests/planted_bugs/test_channel_bugs.py. Most of them are hidden from clients of
`consistent-core`: its log and its sessions expect no order of the network.

Sources: Patterns of Distributed Systems ch. 30; the leader-follower connections of Zookeeper and Kafka.
"""

from __future__ import annotations

from faultline.harness.world.framing import MAX_FRAME_BYTES, FrameDecoder, FrameError, encode_frame

__all__ = [
    "MAX_FRAME_BYTES",
    "READ_TIMEOUT_HEARTBEATS",
    "ChannelClosed",
    "ChannelState",
    "FrameDecoder",
    "FrameError",
    "OutOfSequence",
    "encode_frame",
]

READ_TIMEOUT_HEARTBEATS = 10
"""The number of heartbeat intervals without a byte after which a channel is closed."""


class ChannelClosed(Exception):
    """There is no open connection."""


class OutOfSequence(Exception):
    """A message was lost or repeated within one connection, which must then be closed."""


class ChannelState:
    """The state of one end of a channel: the current connection, and the last messages sent and received on it.

    Times are microseconds of the monotonic clock, given by the caller.
    """

    __slots__ = (
        "_heard_us", "_heartbeat_interval_us", "_open", "_received", "_sent", "_sent_us", "connection",
        "read_timeout_us",
    )  # fmt: skip

    def __init__(self, heartbeat_interval_us: int, read_timeout_heartbeats: int = READ_TIMEOUT_HEARTBEATS) -> None:
        self._heartbeat_interval_us = heartbeat_interval_us
        self.read_timeout_us = heartbeat_interval_us * read_timeout_heartbeats
        """The longest time for which the channel may be silent."""
        self.connection = 0
        """The number of the newest connection, 0 before the first."""
        self._open = False
        self._sent = 0
        self._received = 0
        self._sent_us = 0
        self._heard_us = 0

    @property
    def is_open(self) -> bool:
        """True while there is a connection."""
        return self._open

    def opened(self, now_us: int) -> int:
        """Replace the connection, if there is one, by a new one, and return its number, by which its bytes are
        known.
        """
        self.connection += 1
        self._open = True
        self._sent = self._received = 0
        self._sent_us = self._heard_us = now_us
        return self.connection

    def closed(self, connection: int) -> bool:
        """Record the end of `connection`.

        Return False when it was not the current one and nothing else must be done.
        """
        if connection != self.connection or not self._open:
            return False
        self._open = False
        return True

    def is_current(self, connection: int) -> bool:
        """Return whether messages of `connection` still count."""
        return self._open and connection == self.connection

    def sending(self, now_us: int) -> int:
        """Return the sequence number, from 1, of the message that is sent now. Raises `ChannelClosed`."""
        if not self._open:
            raise ChannelClosed("there is no open connection to send over")
        self._sent += 1
        self._sent_us = now_us
        return self._sent

    def received(self, connection: int, sequence: int, now_us: int) -> bool:
        """Record message `sequence` of `connection`; return False when that is an old one and the message must be
        dropped.

        Raises `OutOfSequence` when it is not the next message of the current connection.
        """
        if not self.is_current(connection):
            return False
        if sequence != self._received + 1:
            raise OutOfSequence(f"message {sequence} came after message {self._received}")
        self._received = sequence
        self._heard_us = now_us
        return True

    def heard(self, connection: int, now_us: int) -> bool:
        """Record bytes of `connection`, a whole message or not; return False when that is an old one."""
        if not self.is_current(connection):
            return False
        self._heard_us = now_us
        return True

    def heartbeat_due(self, now_us: int) -> bool:
        """Return whether nothing was sent, or nothing heard, for a heartbeat interval.

        What is sent puts off the peer's read timeout. A peer that need not answer is heard because it returns
        heartbeats, so one is due as well while there is much to send and no answer.
        """
        quiet_since_us = min(self._sent_us, self._heard_us)
        return self._open and now_us - quiet_since_us >= self._heartbeat_interval_us

    def timed_out(self, now_us: int) -> bool:
        """Return whether nothing was heard for longer than the read timeout; the connection must then be closed."""
        return self._open and now_us - self._heard_us > self.read_timeout_us
