"""A program on a host that sends bursts of datagrams to its like on others, and tells what has come of theirs.

It stands alone, with nothing but Python's own library, and is sent to hosts as text. On its standard input it reads
lines of JSON, and answers each with one:

    {"mark": TOS}                                          the port it listens on
    {"round": R, "me": NUMBER, "send": [[ADDRESS, PORT, COUNT, BYTES], ...]}   true, when all has been sent
    {"round": R, "wait_s": SECONDS}                        what has come by the time that nothing more does

What has come is, for each address, the number its sender calls itself by (-1 when none came whole), the time in
nanoseconds of each datagram's way by the clocks of both hosts (which may differ; see `station_probe`), and how many
came twice, spoilt or after later ones. They carry no checksum of UDP, so that spoilt ones arrive; the kernel notes when
each does.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import sys
import time
import zlib
from typing import Any

__all__ = ["Station", "main"]

_HEADER = struct.Struct("!IIQI")
_CHECK = struct.Struct("!I")
_TIMESTAMP = struct.Struct("@qq")
_NO_CHECKSUM, _TIMESTAMPS, _SEND_BUFFER_FORCED, _RECEIVE_BUFFER_FORCED = 11, 35, 32, 33
_BUFFER_BYTES = 16 << 20
_READ_BYTES = 2048
_QUIET_S = 0.2
_NOTHING = {"me": -1, "duplicates": 0, "corrupted": 0, "first": 0, "last": 0, "highest": 0, "overtaken": 0}


class Station:
    """The sockets and the counts of one host."""

    def __init__(self, mark: int) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, mark)
        self.socket.setsockopt(socket.SOL_SOCKET, _NO_CHECKSUM, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, _TIMESTAMPS, 1)
        try:
            self.socket.setsockopt(socket.SOL_SOCKET, _SEND_BUFFER_FORCED, _BUFFER_BYTES)
            self.socket.setsockopt(socket.SOL_SOCKET, _RECEIVE_BUFFER_FORCED, _BUFFER_BYTES)
        except PermissionError:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
        self.socket.bind(("0.0.0.0", 0))
        self.socket.setblocking(False)
        self.found: dict[str, dict[str, Any]] = {}
        self.seen: set[tuple[str, int]] = set()

    def send(self, number: int, me: int, targets: list[list[Any]]) -> bool:
        """Send to all targets by turns, so that none has its burst all at once."""
        self.found, self.seen = {}, set()
        for index in range(max(count for _, _, count, _ in targets)):
            for address, port, count, byte_count in targets:
                if index < count:
                    body = _HEADER.pack(number, index, time.time_ns(), me)
                    body += b"\0" * (byte_count - len(body) - _CHECK.size)
                    try:
                        self.socket.sendto(_CHECK.pack(zlib.crc32(body)) + body, (address, port))
                    except OSError:
                        # No route, or no room: lost, as it may be on the way.
                        continue
            self.read(number)
        return True

    def report(self, number: int, wait_s: float) -> dict[str, dict[str, Any]]:
        """Return what has come of round `number`, once nothing more has come for a while."""
        deadline_s = time.monotonic() + wait_s
        quiet_since_s = time.monotonic()
        while time.monotonic() < max(deadline_s, quiet_since_s + _QUIET_S):
            if select.select([self.socket], [], [], _QUIET_S / 4)[0] and self.read(number):
                quiet_since_s = time.monotonic()
        return self.found

    def read(self, number: int) -> int:
        """Take what has arrived; returns how much of it belongs to round `number`."""
        taken = 0
        while True:
            try:
                content, ancillary, _, sender = self.socket.recvmsg(_READ_BYTES, socket.CMSG_SPACE(_TIMESTAMP.size))
            except BlockingIOError:
                return taken
            taken += self.take(number, content, ancillary, sender[0])

    def take(self, number: int, content: bytes, ancillary: list[Any], address: str) -> bool:
        """Count one datagram."""
        if len(content) < _CHECK.size + _HEADER.size or not ancillary:
            return False
        body = content[_CHECK.size :]
        burst, index, sent_ns, me = _HEADER.unpack_from(body)
        entry = self.found.setdefault(address, dict(_NOTHING, way_ns=[]))
        seconds, nanoseconds = _TIMESTAMP.unpack(ancillary[0][2])
        arrived_ns = seconds * 1_000_000_000 + nanoseconds
        if _CHECK.unpack_from(content)[0] != zlib.crc32(body):
            entry["corrupted"] += 1
            return True
        if burst != number:
            return False
        entry["me"] = me
        entry["first"] = entry["first"] or arrived_ns
        entry["last"] = max(entry["last"], arrived_ns)
        if (address, index) in self.seen:
            entry["duplicates"] += 1
            return True
        entry["overtaken"] += index < entry["highest"]
        entry["highest"] = max(index, entry["highest"])
        self.seen.add((address, index))
        entry["way_ns"].append(arrived_ns - sent_ns)
        return True


def main() -> None:
    """Answer until the input ends."""
    station = None
    for line in sys.stdin:
        order = json.loads(line)
        if station is None:
            station = Station(order["mark"])
            answer: Any = station.socket.getsockname()[1]
        elif "send" in order:
            answer = station.send(order["round"], order["me"], order["send"])
        else:
            answer = station.report(order["round"], order["wait_s"])
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
