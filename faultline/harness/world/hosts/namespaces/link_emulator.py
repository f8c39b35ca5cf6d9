"""The process that delays, loses, repeats and spoils packets between hosts of namespaces.

It lives in the bridge's network namespace, as a child of the supervisor, so that it ends with the set of hosts. The
kernel hands it the packets of degraded links only, each link through a queue of its own, and waits for its verdicts;
healthy links never pass here. When it ends, the kernel lets packets pass (`--queue-bypass`), so the harness looks at
its counters and at datagrams of its own to see that faults are there.

    python -m faultline.harness.world.hosts.namespaces.link_emulator SOCKET

It answers on the Unix socket SOCKET: each line asks it to set links (all at once), and is answered with all counters.
"""

from __future__ import annotations

import errno
import heapq
import os
import select
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from faultline.harness.world.faults import LinkQuality
from faultline.harness.world.hosts.namespaces.emulated_link import EmulatedLink, Treatment, with_flipped_bit
from faultline.harness.world.hosts.namespaces.emulation_orders import Answer, LinkReport, LinkSetting, Order
from faultline.harness.world.hosts.namespaces.netfilter_queue import (
    ACCEPT,
    DROP,
    NETFILTER,
    QueuedPacket,
    bind_request,
    copy_request,
    decoded,
    length_request,
    verdict,
)
from faultline.harness.world.hosts.namespaces.own_network import BUFFER_BYTES, enlarge_buffers
from faultline.harness.world.hosts.network.probe_marks import PROBE_TOS, TOS_MASK, UNDEGRADED_TOS

__all__ = ["LinkEmulator", "main"]

_HEADERS_BYTES = 128
_WHOLE_BYTES = 0xFFFF
_WAITING_MAX = 200_000
_READ_BYTES = 1 << 17
_READS_MAX = 256
_IDLE_S = 60.0


class _Waiting(msgspec.Struct, frozen=True, order=True):
    """A packet that goes on later."""

    due_ns: int
    number: int
    packet: QueuedPacket
    treatment: Treatment


class LinkEmulator:
    """Decides about the packets of all degraded links. `seed` is that of the draws."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._links: dict[int, EmulatedLink] = {}
        self._settings: dict[int, LinkSetting] = {}
        self._waiting: list[_Waiting] = []
        self._probes: dict[int, int] = {}
        self._taken = 0
        self._queues = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETFILTER)
        enlarge_buffers(self._queues, BUFFER_BYTES)
        self._frames = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)

    def serve(self, listener: socket.socket) -> None:
        """Follow orders and treat packets until killed."""
        connections: list[socket.socket] = []
        while True:
            ready, _, _ = select.select([self._queues, listener, *connections], [], [], self._patience_s())
            if self._queues in ready:
                self._take()
            self._release(time.monotonic_ns())
            if listener in ready:
                connections.append(listener.accept()[0])
            for connection in [one for one in connections if one in ready]:
                if not self._follow(connection):
                    connections.remove(connection)

    def _follow(self, connection: socket.socket) -> bool:
        """Read one order and answer it; False when the other side has hung up."""
        with connection.makefile("rwb") as stream:
            line = stream.readline()
            if not line:
                connection.close()
                return False
            stream.write(msgspec.json.encode(self._obey(msgspec.json.decode(line, type=Order))) + b"\n")
        return True

    def _obey(self, order: Order) -> Answer:
        try:
            for setting in order.links:
                self._prepare(setting)
        except OSError as error:
            return Answer(problem=f"the kernel does not hand over packets: {error.strerror}")
        for setting in order.links:
            self._links[setting.queue].degrade(setting.quality)
            if setting.quality == LinkQuality():
                self._let_go(setting.queue)
        return Answer(links=tuple(self._report(queue) for queue in self._links))

    def _prepare(self, setting: LinkSetting) -> None:
        """Bind the queue, once; and ask for as much of each packet as its treatment needs."""
        queue, quality = setting.queue, setting.quality
        if queue not in self._links:
            self._ask(bind_request(queue))
            self._ask(length_request(queue, _WAITING_MAX))
            self._links[queue] = EmulatedLink(self._seed, setting.source, setting.target)
        # A delay alone needs no look at single packets; all else counts packets as they are on a wire.
        singly = quality != LinkQuality(delay_us=quality.delay_us, jitter_us=quality.jitter_us)
        byte_count = _WHOLE_BYTES if quality.duplicate or quality.corrupt else _HEADERS_BYTES
        self._ask(copy_request(queue, byte_count, large=not singly))
        self._settings[queue] = setting

    def _ask(self, request: bytes) -> None:
        """Send a request and wait for the kernel's answer; packets that come before it are treated meanwhile."""
        self._queues.send(request)
        while True:
            for message in decoded(self._queues.recv(_READ_BYTES)):
                if message.error is None:
                    self._treat(message)
                elif message.error:
                    raise OSError(message.error, os.strerror(message.error))
                else:
                    return

    def _let_go(self, queue: int) -> None:
        """Release what waits on a link that is healthy again, at once and in order."""
        mine = sorted(waiting for waiting in self._waiting if waiting.packet.queue == queue)
        self._waiting = [waiting for waiting in self._waiting if waiting.packet.queue != queue]
        heapq.heapify(self._waiting)
        for waiting in mine:
            self._pass(waiting.packet, waiting.treatment)

    def _report(self, queue: int) -> LinkReport:
        link, setting = self._links[queue], self._settings[queue]
        return LinkReport(setting.source, setting.target, link.counters, self._probes.get(queue, 0))

    def _take(self) -> None:
        for _ in range(_READS_MAX):
            try:
                datagram = self._queues.recv(_READ_BYTES, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno == errno.ENOBUFS:
                    continue
                raise
            for message in decoded(datagram):
                if message.error is None:
                    self._treat(message)

    def _treat(self, packet: QueuedPacket) -> None:
        now_ns = time.monotonic_ns()
        service = _service(packet)
        if service == UNDEGRADED_TOS:
            self._queues.send(verdict(packet.queue, packet.packet_id, ACCEPT))
            return
        byte_count = int.from_bytes(packet.content[2:4], "big")
        treatment = self._links[packet.queue].treat(byte_count, now_ns, probe=service == PROBE_TOS)
        if treatment.due_ns <= now_ns:
            self._pass(packet, treatment)
        else:
            self._taken += 1
            heapq.heappush(self._waiting, _Waiting(treatment.due_ns, self._taken, packet, treatment))

    def _release(self, now_ns: int) -> None:
        while self._waiting and self._waiting[0].due_ns <= now_ns:
            waiting = heapq.heappop(self._waiting)
            self._pass(waiting.packet, waiting.treatment)

    def _pass(self, packet: QueuedPacket, treatment: Treatment) -> None:
        """Let the packet go on, or not, as was decided when it came."""
        content = None if treatment.flip is None else with_flipped_bit(packet.content, treatment.flip)
        decision = ACCEPT if treatment.copies else DROP
        self._queues.send(verdict(packet.queue, packet.packet_id, decision, content))
        if treatment.copies > 1:
            self._send_copy(self._settings[packet.queue], content or packet.content)
        if _service(packet) == PROBE_TOS:
            self._probes[packet.queue] = self._probes.get(packet.queue, 0) + 1

    def _send_copy(self, setting: LinkSetting, content: bytes) -> None:
        frame = bytes.fromhex(setting.frame_head) + content
        # The target may have been powered off meanwhile; then no socket takes the copy.
        with suppress(OSError):
            self._frames.sendto(frame, (setting.target, 0))

    def _patience_s(self) -> float:
        if not self._waiting:
            return _IDLE_S
        return max(self._waiting[0].due_ns - time.monotonic_ns(), 0) / 1e9


def _service(packet: QueuedPacket) -> int:
    return packet.content[1] & TOS_MASK


def main(path: str) -> None:
    """Serve on the Unix socket `path`, which is there as soon as orders are taken."""
    emulator = LinkEmulator()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(f"{path}.new")
        listener.listen()
        Path(f"{path}.new").rename(path)
        emulator.serve(listener)


if __name__ == "__main__":
    main(sys.argv[1])
