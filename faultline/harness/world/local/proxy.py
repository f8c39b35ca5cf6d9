"""Proxies: one per directed link, the place where a network of loopback addresses can be made to fail without root.

A node reaches each peer through that link's own proxy. The proxy understands frames, so it works on whole messages: a
cut link swallows every message while the connections stay up, as a router that drops packets does; no sender gets an
error to notice it by. Degraded links delay, lose and repeat messages by a draw that is a function of (seed, link,
message number). Order is kept, since the link stands for one single-socket channel; a link with a rate carries one
message after the other, each as long as its bytes take. The handshake that opens a connection always passes: it belongs
to the transport, node code never sees it. A caller that does not prove itself there is hung up on, and none of its
frames is counted. Each message is kept with its fate, for figures (`kept_messages`).

Connections can be killed, with what is under way on them, and reset for a while: then every one is dropped as soon as
it is made.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

from faultline.harness.world.faults import LinkQuality
from faultline.harness.world.framing import FrameDecoder, FrameError, encode_frame
from faultline.harness.world.local.channel import HOST, Address, takes_more
from faultline.harness.world.local.handshake import HANDSHAKE_BYTES_MAX, HANDSHAKE_TIMEOUT_S, RunSecret, Witness
from faultline.harness.world.local.kept_messages import LOST_S, KeptMessages
from faultline.harness.world.message_codec import WireError
from faultline.harness.world.ports import Link, NodeId
from faultline.harness.world.weather import DRAW_RANGE, draw, salt, uniform

__all__ = ["LinkCounters", "LinkProxy", "ProxyMesh"]


@dataclass(slots=True)
class LinkCounters:
    """The fates of the messages of one link."""

    arrived: int = 0
    passed: int = 0
    swallowed: int = 0
    lost: int = 0
    duplicated: int = 0
    overflowed: int = 0


class LinkProxy:
    """The proxy of one directed link. Its state may be changed only in the event loop it runs in."""

    def __init__(
        self, link: Link, secret: RunSecret, target: Callable[[], Address | None], seed: int, kept: KeptMessages
    ) -> None:
        self.link = link
        self.secret = secret
        self.kept = kept
        self.counters = LinkCounters()
        self.cut = False
        self.quality = LinkQuality()
        self.resetting = False
        self._opened = 0
        self._busy_until_s = 0.0
        self._target = target
        self._loss = salt(seed, "loss", *link)
        self._duplicate = salt(seed, "duplicate", *link)
        self._jitter = salt(seed, "jitter", *link)
        self._server: asyncio.Server | None = None
        self._connections: set[_Passage] = set()
        self.address: Address = (HOST, 0)

    async def listen(self) -> None:
        """Accept the source's connections on any free port."""
        self._server = await asyncio.get_running_loop().create_server(lambda: _Passage(self), HOST, 0)
        self.address = self._server.sockets[0].getsockname()[:2]

    async def close(self) -> None:
        """Stop listening and drop all connections."""
        if self._server is not None:
            self._server.close()
        self.kill_connections()
        if self._server is not None:
            await self._server.wait_closed()

    def set_cut(self, cut: bool) -> None:
        """Cut the link or let messages pass again."""
        self.cut = cut

    def set_quality(self, quality: LinkQuality) -> None:
        """Degrade the link or make it healthy again."""
        self.quality = quality

    def set_resetting(self, resetting: bool) -> None:
        """Drop all connections from now on, or take them again."""
        self.resetting = resetting
        if resetting:
            self.kill_connections()

    def connections(self) -> frozenset[str]:
        """Return the open connections, by names that no later one bears."""
        return frozenset(connection.name for connection in self._connections)

    def kill_connections(self) -> None:
        """Drop all connections and what is under way on them."""
        for connection in tuple(self._connections):
            connection.close()

    def swallows_a_probe(self) -> bool:
        """Put a probe to the gate that every message of the link goes through, and return whether it is swallowed."""
        before = replace(self.counters)
        passed = self.copies()
        swallowed = self.counters.swallowed > before.swallowed
        # A probe is no message of the run and must not be counted as one.
        self.counters = before
        return swallowed and not passed

    def copies(self) -> int:
        """Return how many copies of the message that has just arrived are passed on: 0, 1 or 2."""
        counters, quality = self.counters, self.quality
        counters.arrived += 1
        if self.cut:
            counters.swallowed += 1
            return 0
        if quality.loss and draw(self._loss, counters.arrived) < quality.loss * DRAW_RANGE:
            counters.lost += 1
            return 0
        if quality.duplicate and draw(self._duplicate, counters.arrived) < quality.duplicate * DRAW_RANGE:
            counters.duplicated += 1
            return 2
        return 1

    def delay_us(self) -> int:
        """Return how long the message that has just arrived is held back."""
        jitter_us = uniform(self._jitter, self.counters.arrived, 0, self.quality.jitter_us)
        return self.quality.delay_us + jitter_us

    def sending_s(self, now_s: float, byte_count: int) -> float:
        """Return the time from `now_s` until a message of so many bytes is on its way, at the link's rate."""
        if not self.quality.rate_kbit_per_s:
            return 0.0
        self._busy_until_s = max(now_s, self._busy_until_s) + byte_count * 8 / (self.quality.rate_kbit_per_s * 1_000)
        return self._busy_until_s - now_s

    async def connect(self, protocol: _Upstream) -> asyncio.Transport | None:
        """Return a connection to the target, or None when it cannot be reached."""
        target = self._target()
        if target is None:
            return None
        try:
            transport, _ = await asyncio.get_running_loop().create_connection(lambda: protocol, *target)
        except OSError:
            return None
        return transport

    def opened(self, connection: _Passage) -> str:
        """Take `connection` in; returns its name."""
        self._connections.add(connection)
        self._opened += 1
        return str(self._opened)

    def closed(self, connection: _Passage) -> None:
        """Forget a connection that has ended."""
        self._connections.discard(connection)


class _Passage(asyncio.Protocol):
    """One connection of the source, and the connection to the target that goes with it."""

    def __init__(self, proxy: LinkProxy) -> None:
        self.name = ""
        self._proxy = proxy
        self._decoder = FrameDecoder()
        self._loop = asyncio.get_running_loop()
        self._source: asyncio.Transport | None = None
        self._target: asyncio.Transport | None = None
        self._witness = Witness(proxy.secret, *proxy.link)
        self._deadline = self._loop.call_later(HANDSHAKE_TIMEOUT_S, self.close)
        # Messages under way, with the times at which each is due and was taken; none overtakes an earlier one.
        self._under_way: deque[tuple[float, bytes, float]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._connecting: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._source = transport
        self.name = self._proxy.opened(self)
        if self._proxy.resetting:
            self.close()

    def data_received(self, data: bytes) -> None:
        try:
            for payload in self._decoder.feed(data):
                if self._witness.is_proven:
                    self._take(encode_frame(payload))
                else:
                    self._introduce(payload)
            if not self._witness.is_proven and self._decoder.pending_bytes > HANDSHAKE_BYTES_MAX:
                self.close()
        except (FrameError, WireError):
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._proxy.closed(self)
        self.close()

    def close(self) -> None:
        """Drop both connections and what is under way between them."""
        self._deadline.cancel()
        if self._connecting is not None:
            self._connecting.cancel()
        if self._timer is not None:
            self._timer.cancel()
        for _, frame, taken_s in self._under_way:
            self._note(frame, taken_s, LOST_S)
        self._under_way.clear()
        for transport in (self._source, self._target):
            if transport is not None:
                transport.abort()

    def take_from_target(self, payload: bytes) -> None:
        """Pass the target's part of the handshake on to the source. Raises WireError when it is none."""
        self._witness.take_from_listener(payload)
        if self._source is not None:
            self._source.write(encode_frame(payload))

    def _introduce(self, payload: bytes) -> None:
        """Pass the source's part of the handshake on to the target. Raises WireError when it is none."""
        self._witness.take_from_caller(payload)
        if self._connecting is None:
            self._connecting = self._loop.create_task(self._connect(encode_frame(payload)))
            return
        # The target has spoken, so it is connected.
        assert self._target is not None
        self._deadline.cancel()
        self._target.write(encode_frame(payload))

    async def _connect(self, hello: bytes) -> None:
        target = await self._proxy.connect(_Upstream(self))
        if target is None:
            self.close()
            return
        self._target = target
        target.write(hello)

    def _take(self, frame: bytes) -> None:
        copies = self._proxy.copies()
        now_s = self._loop.time()
        if not copies:
            self._note(frame, now_s, LOST_S)
            return
        delay_s = self._proxy.delay_us() / 1_000_000 + self._proxy.sending_s(now_s, len(frame) * copies)
        if not delay_s and not self._under_way and self._target is not None:
            self._pass(frame, copies, now_s, now_s)
            return
        due_s = now_s + delay_s
        if self._under_way:
            due_s = max(due_s, self._under_way[-1][0])
        self._under_way.extend([(due_s, frame, now_s)] * copies)
        self._arm()

    def _arm(self) -> None:
        if self._timer is None and self._under_way and self._target is not None:
            self._timer = self._loop.call_at(self._under_way[0][0], self._deliver)

    def _deliver(self) -> None:
        self._timer = None
        now_s = self._loop.time()
        while self._under_way and self._under_way[0][0] <= now_s:
            _, frame, taken_s = self._under_way.popleft()
            self._pass(frame, 1, taken_s, now_s)
        self._arm()

    def _pass(self, frame: bytes, copies: int, taken_s: float, now_s: float) -> None:
        counters = self._proxy.counters
        assert self._target is not None
        if self._proxy.cut:
            # The link was cut while the message was held back.
            counters.swallowed += copies
            now_s = LOST_S
        elif not takes_more(self._target):
            counters.overflowed += copies
            now_s = LOST_S
        else:
            self._target.write(frame * copies)
            counters.passed += copies
        for _ in range(copies):
            self._note(frame, taken_s, now_s)

    def _note(self, frame: bytes, taken_s: float, passed_s: float) -> None:
        self._proxy.kept.note(self._proxy.link, frame, taken_s, passed_s)


class _Upstream(asyncio.Protocol):
    """The connection to the target: it carries nothing back but its part of the handshake; its end ends the passage."""

    def __init__(self, passage: _Passage) -> None:
        self._passage = passage
        self._decoder: FrameDecoder | None = FrameDecoder()

    def data_received(self, data: bytes) -> None:
        if self._decoder is None:
            return
        try:
            for payload in self._decoder.feed(data)[:1]:
                self._decoder = None
                self._passage.take_from_target(payload)
        except (FrameError, WireError):
            self._passage.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._passage.close()


class ProxyMesh:
    """The proxies of all directed links of a cluster."""

    def __init__(
        self,
        nodes: Iterable[NodeId],
        secret: RunSecret,
        target: Callable[[NodeId], Address | None],
        seed: int,
        kept: KeptMessages,
    ) -> None:
        names = tuple(nodes)
        self.links: dict[Link, LinkProxy] = {
            (source, sink): LinkProxy((source, sink), secret, partial(target, sink), seed, kept)
            for source in names
            for sink in names
            if source != sink
        }

    async def listen(self) -> None:
        """Open all proxies."""
        for proxy in self.links.values():
            await proxy.listen()

    async def close(self) -> None:
        """Close all proxies and let the loop release their sockets."""
        for proxy in self.links.values():
            await proxy.close()

    def addresses(self, source: NodeId) -> dict[NodeId, Address]:
        """Return the address at which `source` reaches each of its peers."""
        return {sink: proxy.address for (start, sink), proxy in self.links.items() if start == source}

    def statistics(self) -> dict[str, int]:
        """Return the counters of all links, summed."""
        counters = [proxy.counters for proxy in self.links.values()]
        return {
            "messages_sent": sum(counter.arrived for counter in counters),
            "messages_delivered": sum(counter.passed for counter in counters),
            "messages_cut": sum(counter.swallowed for counter in counters),
            "messages_lost": sum(counter.lost + counter.overflowed for counter in counters),
            "messages_duplicated": sum(counter.duplicated for counter in counters),
        }
