"""Faults of links in the local world, where a proxy stands on each link."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from faultline.harness.world.faults import Actuator, Actuators, LinkQuality, switches
from faultline.harness.world.local.cluster import LocalCluster
from faultline.harness.world.local.event_loop import InLoop
from faultline.harness.world.local.proxy import LinkProxy
from faultline.harness.world.ports import Link

__all__ = ["link_actuators"]

CONNECT_TIMEOUT_S = 2.0
_ROUNDS_TO_ACCEPT = 10
"""In so many rounds the event loop has certainly seen, taken and perhaps dropped a connection that was made before."""


def link_actuators(cluster: LocalCluster, in_loop: InLoop) -> Actuators:
    """Return the actuators of the links of `cluster`."""
    links = _Proxies(cluster, in_loop)
    quality = Actuator(links.degrade, links.qualities, lambda chosen: links.degrade(chosen, LinkQuality()))
    return {
        "cut": switches(
            lambda chosen: links.for_each(chosen, lambda proxy: proxy.set_cut(True)),
            links.that_swallow,
            lambda chosen: links.for_each(chosen, lambda proxy: proxy.set_cut(False)),
        ),
        "loss": quality,
        "delay": quality,
        "duplicate": quality,
        "rate": quality,
        "connection-kill": Actuator(
            lambda chosen, _: links.for_each(chosen, lambda proxy: proxy.kill_connections()),
            links.connections,
            lambda _: None,
        ),
        "connection-reset": switches(
            lambda chosen: links.for_each(chosen, lambda proxy: proxy.set_resetting(True)),
            links.that_reset,
            lambda chosen: links.for_each(chosen, lambda proxy: proxy.set_resetting(False)),
        ),
    }


class _Proxies:
    """The proxies of all links. They live in the event loop, and are asked and set there."""

    def __init__(self, cluster: LocalCluster, in_loop: InLoop) -> None:
        self._mesh = cluster.mesh
        self._in_loop = in_loop

    def for_each(self, links: Sequence[Link], action: Callable[[LinkProxy], None]) -> None:
        """Do `action` to the proxy of each link, with nothing in between."""

        def apply() -> None:
            for link in links:
                action(self._mesh.links[link])

        self._in_loop(apply)

    def degrade(self, links: Sequence[Link], quality: LinkQuality) -> None:
        """Give `links` the `quality`."""
        self.for_each(links, lambda proxy: proxy.set_quality(quality))

    def qualities(self, links: Sequence[Link]) -> dict[Link, LinkQuality]:
        """Return the quality in force on each of `links`."""
        return self._in_loop(lambda: {link: self._mesh.links[link].quality for link in links})

    def that_swallow(self, links: Sequence[Link]) -> frozenset[Link]:
        """Return those of `links` whose proxies swallow a probe."""
        return self._in_loop(lambda: frozenset(link for link in links if self._mesh.links[link].swallows_a_probe()))

    def connections(self, links: Sequence[Link]) -> dict[Link, frozenset[str]]:
        """Return the names of the connections that each link's proxy carries."""
        return self._in_loop(lambda: {link: self._mesh.links[link].connections() for link in links})

    def that_reset(self, links: Sequence[Link]) -> frozenset[Link]:
        """Return those of `links` whose proxy ends a connection that the probe opens."""
        addresses = self._in_loop(lambda: [self._mesh.links[link].address for link in links])
        with ExitStack() as probes:
            opened = [probes.enter_context(socket.create_connection(to, CONNECT_TIMEOUT_S)) for to in addresses]
            for _ in range(_ROUNDS_TO_ACCEPT):
                self._in_loop(lambda: None)
            # Neither end says anything on these connections, so what can be read is their end.
            ended, _, _ = select.select(opened, [], [], 0)
            return frozenset(link for link, probe in zip(links, opened, strict=True) if probe in ended)
