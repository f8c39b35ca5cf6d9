"""Bad links between machines that are there already: by what their kernels offer, the same on all of them.

Netem where every host has it; else nftables, which can lose packets and nothing more; else nothing, by name.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Protocol

from faultline.harness.errors import HarnessError
from faultline.harness.world.faults import LinkQuality
from faultline.harness.world.hosts.machines.connection import Connection
from faultline.harness.world.hosts.machines.errors import HostError
from faultline.harness.world.hosts.machines.fleet import Fleet
from faultline.harness.world.hosts.network.firewall_loss import FirewallLoss, loss_rules
from faultline.harness.world.hosts.network.link_quality import judged
from faultline.harness.world.hosts.network.links import QUALITIES, HostLink
from faultline.harness.world.hosts.network.netem import NETEM_TRIAL, Netem
from faultline.harness.world.hosts.network.rule_table import RULES_TRIAL
from faultline.harness.world.hosts.network.station_probe import StationProbe

__all__ = ["Means", "RemoteQualities", "loss_refusal", "netem_refusal"]

_HEALTHY = LinkQuality()


class Means(Protocol):
    """One way to make links bad."""

    capabilities: frozenset[str]
    means: str

    def apply(self, bad: Mapping[HostLink, LinkQuality]) -> None:
        """Let exactly these links be bad."""

    def close(self) -> None:
        """Leave nothing behind."""


def netem_refusal(connection: Connection) -> str:
    """Try netem on the host: why it is not to be had there, or nothing."""
    tried = connection.run(NETEM_TRIAL, check=False, root=True)
    return "" if tried.exit_code == 0 else f"it has no netem ({_first_line(tried.stderr)})"


def loss_refusal(connection: Connection) -> str:
    """Return why the host refuses a rule that loses packets; empty when it does not. The rule is only checked."""
    tried = connection.run(RULES_TRIAL, stdin=loss_rules({"192.0.2.1": 0.5}).encode(), check=False, root=True)
    return "" if tried.exit_code == 0 else f"nftables takes no rule that loses packets ({_first_line(tried.stderr)})"


class RemoteQualities:
    """The links between the hosts of `fleet`. Implements `LinkQualities`; its means are found when first asked for."""

    def __init__(self, fleet: Fleet, *, shares_clock: bool, chosen: Means | None = None) -> None:
        self._fleet = fleet
        self._probe = StationProbe(fleet, shares_clock=shares_clock)
        self._bad: dict[HostLink, LinkQuality] = {}
        self._lock = threading.Lock()
        self._given = chosen

    @cached_property
    def _choice(self) -> tuple[Means | None, dict[str, str]]:
        """The means, and the reason against each quality that they cannot give."""
        if self._given is not None:
            return self._given, {}
        no_netem, no_loss = (_first_refusal(self._fleet, ask) for ask in (netem_refusal, loss_refusal))
        if not no_netem:
            return Netem(self._fleet), {}
        if no_loss:
            return None, dict.fromkeys(QUALITIES, f"{no_netem}; {no_loss}")
        lacking = [quality for quality in QUALITIES if quality not in FirewallLoss.capabilities]
        return FirewallLoss(self._fleet), dict.fromkeys(lacking, f"{no_netem}, and nftables can only lose packets")

    @property
    def refusals(self) -> Mapping[str, str]:
        """The qualities that cannot be had, each with the reason."""
        with self._lock:
            return self._choice[1]

    @property
    def means(self) -> str:
        """The means by which links are degraded; empty when they cannot be."""
        with self._lock:
            return self._choice[0].means if self._choice[0] is not None else ""

    def prepare(self) -> None:
        """Find the means."""
        _ = self.refusals

    def degrade(self, links: Iterable[HostLink], quality: LinkQuality) -> None:
        """Give `links` the `quality`, host by host. Raises HarnessError when the means cannot."""
        wanted = dict.fromkeys(links, quality)
        bad = {link: one for link, one in (self._bad | wanted).items() if one != _HEALTHY}
        if bad == self._bad:
            return
        with self._lock:
            means, refusals = self._choice
        missing = [name for name in _asked(quality) if name in refusals]
        if means is None or missing:
            reason = refusals[missing[0]] if missing else next(iter(refusals.values()))
            raise HarnessError(f"Links cannot be degraded: {reason}.", "Leave packet faults out.")
        means.apply(bad)
        self._bad = bad

    def qualities(self, links: Iterable[HostLink]) -> dict[HostLink, LinkQuality]:
        """Return the qualities that datagrams met with, sent both ways of each link, since delays are seen only so."""
        chosen = tuple(links)
        if not self._bad and "_choice" not in self.__dict__:
            return dict.fromkeys(chosen, _HEALTHY)
        both = dict.fromkeys(way for source, target in chosen for way in ((source, target), (target, source)))
        if not both:
            return {}
        expected = {link: self._bad.get(link, _HEALTHY) for link in both}
        seen = self._probe.observe(expected)
        return {link: judged(expected[link], seen[link]) for link in chosen}

    def statistics(self) -> dict[str, int]:
        """Nothing is counted on machines that are not ours."""
        return {}

    def close(self) -> None:
        """Make all links healthy and leave nothing behind."""
        if "_choice" in self.__dict__ and self._choice[0] is not None:
            self._choice[0].close()
        self._bad.clear()
        self._probe.close()


def _asked(quality: LinkQuality) -> list[str]:
    """Return the capabilities that a quality takes."""
    asked = [name for name in ("loss", "duplicate", "reorder", "corrupt") if getattr(quality, name)]
    if quality.delay_us or quality.jitter_us:
        asked.append("delay")
    return [*asked, "rate"] if quality.rate_kbit_per_s else asked


def _first_refusal(fleet: Fleet, ask: object) -> str:
    assert callable(ask)
    for name, answer in fleet.attempt(ask).items():
        if isinstance(answer, HostError):
            return answer.message.rstrip(".")
        if answer:
            return f"on {name}, {answer}"
    return ""


def _first_line(stream: bytes) -> str:
    lines = stream.decode(errors="replace").strip().splitlines()
    return lines[0].rstrip(".") if lines else "it said nothing"
