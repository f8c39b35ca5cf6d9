"""Bad links between hosts of namespaces: set by one means, proved by datagrams of the harness's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict

from faultline.harness.errors import HarnessError
from faultline.harness.world.faults import LinkQuality
from faultline.harness.world.hosts.namespaces.packet_queue import PacketQueue
from faultline.harness.world.hosts.namespaces.quality_probe import QualityProbe
from faultline.harness.world.hosts.network.link_quality import judged
from faultline.harness.world.hosts.network.links import HostLink

__all__ = ["QueuedLinks"]

_HEALTHY = LinkQuality()


class QueuedLinks:
    """Links whose packets go through the link emulator while they are bad. Implements `LinkQualities`."""

    refusals: Mapping[str, str] = {}
    means = "a process beside the bridge, which gets the packets of bad links (NFQUEUE)"

    def __init__(self, queue: PacketQueue, probe: QualityProbe) -> None:
        self._queue = queue
        self._probe = probe
        self._expected: dict[HostLink, LinkQuality] = {}

    def prepare(self) -> None:
        """Have everything ready, so that the first fault need not wait."""
        self._queue.start()

    def degrade(self, links: Iterable[HostLink], quality: LinkQuality) -> None:
        """Give all `links` the `quality` at once."""
        wanted = dict.fromkeys(links, quality)
        self._queue.degrade(wanted)
        self._expected |= wanted

    def qualities(self, links: Iterable[HostLink]) -> dict[HostLink, LinkQuality]:
        """Return the quality that datagrams met with on each link, as far as numbers can tell."""
        expected = {link: self._expected.get(link, _HEALTHY) for link in links}
        if not expected:
            return {}
        before = self._probes()

        def settled(sent: Mapping[HostLink, int]) -> bool:
            done = self._probes()
            return all(done.get(link, 0) - before.get(link, 0) >= count for link, count in sent.items())

        seen = self._probe.observe(expected, settled)
        return {link: judged(quality, seen[link]) for link, quality in expected.items()}

    def statistics(self) -> dict[str, int]:
        """Return the fate of packets on all links that were ever bad, summed, without the harness's probes."""
        totals: dict[str, int] = {}
        for report in self._queue.reports().values():
            for name, count in asdict(report.packets).items():
                totals[f"packets_{name}"] = totals.get(f"packets_{name}", 0) + count
        return totals

    def close(self) -> None:
        """Make all links healthy, and let go of sockets."""
        # A means that has died lets everything pass, and the fault that used it has failed already.
        with suppress(HarnessError):
            self.degrade([link for link, quality in self._expected.items() if quality != _HEALTHY], _HEALTHY)
        self._probe.close()
        self._queue.close()

    def _probes(self) -> dict[HostLink, int]:
        return {link: report.probes for link, report in self._queue.reports().items()}
