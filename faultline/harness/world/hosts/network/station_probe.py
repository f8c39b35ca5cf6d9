"""Proof with packets between machines: a program on each sends datagrams to the others and counts theirs.

Delays are measured with two clocks, the sender's and the receiver's. On hosts of one machine they are the same. Between
machines their difference is estimated as NTP does, from the fastest datagram each way, less the delays that should be
there: so what is proved is that both directions together are as slow as they should be.
"""

from __future__ import annotations

import inspect
import json
import shlex
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from faultline.harness.world.faults import LinkQuality
from faultline.harness.world.hosts.machines.connection import Connection
from faultline.harness.world.hosts.machines.errors import HostError, UnreadableAnswer
from faultline.harness.world.hosts.machines.fleet import Fleet
from faultline.harness.world.hosts.machines.line_channel import LineChannel
from faultline.harness.world.hosts.network import datagram_station
from faultline.harness.world.hosts.network.link_quality import PROBE_BYTES, ProbeResult, probes_needed
from faultline.harness.world.hosts.network.links import HostLink
from faultline.harness.world.hosts.network.probe_marks import PROBE_TOS

__all__ = ["StationProbe", "results_of"]

_SMALL_BYTES = 64
_ANSWER_TIMEOUT_S = 30.0
_READ_BYTES = 65_536
_MOMENT_S = 0.2
_NOTHING: Mapping[str, Any] = {"way_ns": [], "duplicates": 0, "corrupted": 0, "overtaken": 0}

Reports = Mapping[str, Mapping[int, Mapping[str, Any]]]
"""By receiver and by number of the sender: what a station has counted."""


class StationProbe:
    """Sends bursts between the hosts of `fleet`; `shares_clock` says whether all of them read one clock."""

    def __init__(self, fleet: Fleet, *, shares_clock: bool) -> None:
        self._fleet = fleet
        self._shares_clock = shares_clock
        self._stations: dict[str, _Station] = {}
        self._numbers = {name: number for number, name in enumerate(fleet.hosts)}
        self._round = 0

    def observe(self, expected: Mapping[HostLink, LinkQuality]) -> dict[HostLink, ProbeResult]:
        """Send over each link what shows whether it has the quality expected of it, over all links at once."""
        self._round += 1
        hosts = sorted({end for link in expected for end in link})
        self._each(hosts, lambda station: station.port)
        ports = {name: self._stations[name].port for name in hosts}
        bursts = {name: self._burst(name, expected, ports) for name in hosts}
        self._each(hosts, lambda station: bursts[station.name] and station.ask(**bursts[station.name]))
        wait_s = max(_wait_s(quality) for quality in expected.values())
        answers = self._each(hosts, lambda station: station.ask(round=self._round, wait_s=wait_s))
        reports = {name: {entry["me"]: entry for entry in answer.values()} for name, answer in answers.items()}
        return results_of(expected, reports, self._numbers, shares_clock=self._shares_clock)

    def close(self) -> None:
        """Let the stations go."""
        for station in self._stations.values():
            station.close()
        self._stations.clear()

    def _burst(self, name: str, expected: Mapping[HostLink, LinkQuality], ports: Mapping[str, int]) -> dict[str, Any]:
        targets = [
            [self._fleet.hosts[target].address, ports[target], probes_needed(quality), _bytes(quality)]
            for (source, target), quality in expected.items()
            if source == name
        ]
        return {"round": self._round, "me": self._numbers[name], "send": targets} if targets else {}

    def _each(self, hosts: Iterable[str], question: Any) -> dict[str, Any]:
        chosen = set(hosts)

        def ask(connection: Connection) -> Any:
            name = connection.host.name
            if name not in chosen:
                return None
            if name not in self._stations:
                self._stations[name] = _Station(connection)
            return question(self._stations[name])

        return {name: answer for name, answer in self._fleet.each(ask).items() if name in chosen}


class _Station:
    """The station on one host."""

    def __init__(self, connection: Connection) -> None:
        self.name = connection.host.name
        program = shlex.quote(inspect.getsource(datagram_station))
        channel = connection.open(connection.as_root(f"exec python3 -c {program}"))
        channel.settimeout(_ANSWER_TIMEOUT_S)
        self._program = LineChannel(self.name, channel)
        self._lock = threading.Lock()
        port = self.ask(mark=PROBE_TOS)
        if type(port) is not int:
            raise UnreadableAnswer(self.name, "the station", json.dumps(port).encode())
        self.port = port

    def ask(self, **order: Any) -> Any:
        """Return the station's answer to a line. Raises HostError when there is none."""
        with self._lock:
            try:
                return self._program.ask(order)
            except (OSError, EOFError) as error:
                raise HostError(
                    self.name,
                    f"On {self.name}, links cannot be probed: {self._program.complaint() or error}.",
                    "Has it python3?",
                ) from error

    def close(self) -> None:
        """Hang up; the station ends with its input."""
        self._program.channel.close()


def results_of(
    expected: Mapping[HostLink, LinkQuality], reports: Reports, numbers: Mapping[str, int], *, shares_clock: bool
) -> dict[HostLink, ProbeResult]:
    """Return the fates of the datagrams on each link, out of the receivers' reports."""
    ways = {(source, target): reports.get(target, {}).get(numbers[source], _NOTHING) for source, target in expected}
    results = {}
    for link, way in ways.items():
        offset_ns = 0 if shares_clock else _offset_ns(link, ways, expected)
        late_us = [(way_ns - offset_ns) // 1_000 for way_ns in way["way_ns"]]
        results[link] = ProbeResult(
            probes_needed(expected[link]), late_us, way["duplicates"], way["corrupted"], _span_us(way), way["overtaken"]
        )
    return results


def _offset_ns(
    link: HostLink, ways: Mapping[HostLink, Mapping[str, Any]], expected: Mapping[HostLink, LinkQuality]
) -> int:
    """Return the lead of the receiver's clock over the sender's, if both ways are as slow as they should be."""
    back = (link[1], link[0])
    there_ns = min(ways[link]["way_ns"], default=0) - _fastest_ns(expected[link])
    if back not in ways or not ways[back]["way_ns"]:
        return int(there_ns)
    back_ns = min(ways[back]["way_ns"]) - _fastest_ns(expected[back])
    return int(there_ns - back_ns) // 2


def _fastest_ns(quality: LinkQuality) -> int:
    """Return the delay that no datagram escapes on a link of `quality`."""
    return 0 if quality.reorder else quality.delay_us * 1_000


def _span_us(way: Mapping[str, Any]) -> int:
    """Return the time all took that came; that of the first on the wire is not seen, but is like the others'."""
    count = len(way["way_ns"])
    return int((way["last"] - way["first"]) // 1_000 * count // (count - 1)) if count > 1 else 0


def _bytes(quality: LinkQuality) -> int:
    return PROBE_BYTES if quality.rate_kbit_per_s else _SMALL_BYTES


def _wait_s(quality: LinkQuality) -> float:
    sending_s = 0.0
    if quality.rate_kbit_per_s:
        sending_s = probes_needed(quality) * PROBE_BYTES * 8 / (quality.rate_kbit_per_s * 1_000)
    return (quality.delay_us + quality.jitter_us) / 1e6 + sending_s + _MOMENT_S
