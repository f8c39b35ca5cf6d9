"""Fault ports of real worlds. Actions return when the kernel, the proxy or the node confirms them.

`ProcessFaultPort` is what all of them have in common: processes are signalled, clocks are set where the node looks.
Links differ: in the local world they are proxies, on hosts they are real ones."""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import ExitStack
from typing import TypeVar

from faultline.harness.errors import HarnessError
from faultline.harness.world.connection_faults import NoLinkDown
from faultline.harness.world.disk_faults import NoPowerFaults
from faultline.harness.world.faults import LOCAL_CAPABILITIES, LinkQuality
from faultline.harness.world.local.clock import ClockSetting, machine_monotonic_us
from faultline.harness.world.local.cluster import LocalCluster, NodeCluster
from faultline.harness.world.local.control import ClockReading
from faultline.harness.world.local.proxy import LinkProxy
from faultline.harness.world.ports import Link, NodeId
from faultline.harness.world.process_limits import NoProcessLimits

__all__ = ["LocalFaultPort", "ProcessFaultPort"]

LOOP_TIMEOUT_S = 10.0
CONNECT_TIMEOUT_S = 2.0
_ROUNDS_TO_ACCEPT = 10
"""In so many rounds the event loop has certainly seen, taken and perhaps dropped a connection that was made before."""
CLOCK_TIMEOUT_S = 2.0
Result = TypeVar("Result")


class ProcessFaultPort:
    """Faults of processes and their clocks on `cluster`; to be used from a thread that is not the event loop's."""

    def __init__(self, cluster: NodeCluster, loop: asyncio.AbstractEventLoop) -> None:
        self.nodes = cluster.nodes
        self._cluster = cluster
        self._loop = loop

    # -- roles --------------------------------------------------------------------------------------------------

    def leader(self) -> NodeId | None:
        """The live node that says it leads in the highest generation, or said so before it was paused."""
        return self._cluster.leader()

    def roles(self) -> dict[NodeId, str]:
        """The role each node says it has, or last said before it was paused; `dead`, or `unknown` when it is silent."""
        return {
            node: status.role if status is not None else "unknown" if self.is_alive(node) else "dead"
            for node, status in self._cluster.statuses().items()
        }

    # -- processes ----------------------------------------------------------------------------------------------

    def kill(self, node: NodeId) -> None:
        """SIGKILL; returns when the process is gone."""
        self._cluster.processes[node].kill()

    def restart(self, node: NodeId) -> None:
        """Start a dead node anew over its files; returns when it listens."""
        process = self._cluster.processes[node]
        if not process.is_alive():
            process.kill()
            self._in_loop(lambda: self._cluster.spawn(node))
            process.wait_until_up()

    def is_alive(self, node: NodeId) -> bool:
        """Does the kernel know the process?"""
        return self._cluster.processes[node].is_alive()

    def pause(self, node: NodeId) -> None:
        """SIGSTOP; returns when the kernel says the process is stopped."""
        # Ask for its role while it can still answer.
        self._cluster.status(node)
        self._cluster.processes[node].pause()

    def resume(self, node: NodeId) -> None:
        """SIGCONT; returns when the kernel says the process goes on."""
        self._cluster.processes[node].resume()

    def is_paused(self, node: NodeId) -> bool:
        """Does the kernel say the process is stopped?"""
        return self._cluster.processes[node].is_paused()

    # -- clocks -------------------------------------------------------------------------------------------------

    def step_clock(self, node: NodeId, delta_us: int) -> None:
        """Move the node's wall clock by `delta_us`."""
        self._set_clock(node, self._cluster.clocks[node].stepped(delta_us))

    def drift_clock(self, node: NodeId, rate_ppm: int) -> None:
        """Let both clocks of the node run fast by `rate_ppm`."""
        self._set_clock(node, self._cluster.clocks[node].drifting(rate_ppm, machine_monotonic_us()))

    def reset_clock(self, node: NodeId) -> None:
        """Put the node's wall clock right and end its drift."""
        self._set_clock(node, ClockSetting())

    def clock_offset_us(self, node: NodeId) -> int:
        """The node's wall clock minus true time, as the node reads both; from its setting when it cannot answer."""
        reading = self._reading(node)
        if reading is None:
            return self._cluster.clocks[node].skew_us(machine_monotonic_us())
        return reading.wall_us - reading.true_us

    def clock_rate_ppm(self, node: NodeId) -> int:
        """The drift in force, as the node says; from its setting when it cannot answer."""
        reading = self._reading(node)
        return reading.rate_ppm if reading is not None else self._cluster.clocks[node].rate_ppm

    def _set_clock(self, node: NodeId, setting: ClockSetting) -> None:
        # A dead or stopped node cannot confirm: it starts under the setting, or reads it when it goes on.
        self._cluster.clocks[node] = setting
        process = self._cluster.processes[node]
        if process.is_alive():
            timeout_s = 0.0 if process.is_paused() else CLOCK_TIMEOUT_S
            self._tolerate(lambda: process.control.set_clock(setting, timeout_s))

    def _reading(self, node: NodeId) -> ClockReading | None:
        process = self._cluster.processes[node]
        if not process.is_alive() or process.is_paused():
            return None
        return self._tolerate(lambda: process.control.clock(CLOCK_TIMEOUT_S))

    @staticmethod
    def _tolerate(question: Callable[[], Result]) -> Result | None:
        try:
            return question()
        except (TimeoutError, OSError):
            return None

    # -- the event loop -----------------------------------------------------------------------------------------

    def _in_loop(self, action: Callable[[], Result]) -> Result:
        """Run `action` in the loop's thread and wait for its result."""
        done: Future[Result] = Future()

        def run() -> None:
            try:
                done.set_result(action())
            except BaseException as error:
                done.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        try:
            return done.result(LOOP_TIMEOUT_S)
        except TimeoutError as error:
            raise HarnessError("The harness's own event loop did not answer.", "Is the machine overloaded?") from error


class LocalFaultPort(NoLinkDown, NoPowerFaults, NoProcessLimits, ProcessFaultPort):
    """Implements `faultline.harness.world.faults.FaultPort` on the local world."""

    capabilities = frozenset(LOCAL_CAPABILITIES)

    def __init__(self, cluster: LocalCluster, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(cluster, loop)
        self._mesh = cluster.mesh

    # -- links --------------------------------------------------------------------------------------------------

    def cut(self, links: Iterable[Link]) -> None:
        """Swallow every message on `links` from now on."""
        self._for_each(links, lambda proxy: proxy.set_cut(True))

    def restore(self, links: Iterable[Link]) -> None:
        """Let messages pass over `links` again."""
        self._for_each(links, lambda proxy: proxy.set_cut(False))

    def is_cut(self, link: Link) -> bool:
        """Does the link's proxy swallow a probe?"""
        return self._in_loop(self._mesh.links[link].swallows_a_probe)

    def are_cut(self, links: Iterable[Link]) -> frozenset[Link]:
        """Those of `links` whose proxies swallow a probe."""
        chosen = tuple(links)
        return self._in_loop(lambda: frozenset(link for link in chosen if self._mesh.links[link].swallows_a_probe()))

    def degrade(self, links: Iterable[Link], quality: LinkQuality) -> None:
        """Give `links` the `quality`."""
        self._for_each(links, lambda proxy: proxy.set_quality(quality))

    def qualities(self, links: Iterable[Link]) -> dict[Link, LinkQuality]:
        """The quality in force on each of `links`."""
        chosen = tuple(links)
        return self._in_loop(lambda: {link: self._mesh.links[link].quality for link in chosen})

    # -- connections --------------------------------------------------------------------------------------------

    def connections(self, link: Link) -> frozenset[str]:
        """The connections that the link's proxy carries."""
        return self._in_loop(lambda: self._mesh.links[link].connections())

    def kill_connections(self, links: Iterable[Link]) -> None:
        """Let the links' proxies drop all connections."""
        self._for_each(links, lambda proxy: proxy.kill_connections())

    def reset_connections(self, links: Iterable[Link]) -> None:
        """Let the links' proxies drop all connections, and new ones as soon as they are made."""
        self._for_each(links, lambda proxy: proxy.set_resetting(True))

    def admit_connections(self, links: Iterable[Link]) -> None:
        """Let the links' proxies take connections again."""
        self._for_each(links, lambda proxy: proxy.set_resetting(False))

    def resets_connections(self, links: Iterable[Link]) -> frozenset[Link]:
        """Those of `links` whose proxy ends a connection that the probe opens."""
        chosen = tuple(links)
        addresses = self._in_loop(lambda: [self._mesh.links[link].address for link in chosen])
        with ExitStack() as probes:
            opened = [probes.enter_context(socket.create_connection(to, CONNECT_TIMEOUT_S)) for to in addresses]
            for _ in range(_ROUNDS_TO_ACCEPT):
                self._in_loop(lambda: None)
            # Nobody says anything on these connections, so what can be read is their end.
            ended, _, _ = select.select(opened, [], [], 0)
            return frozenset(link for link, probe in zip(chosen, opened, strict=True) if probe in ended)

    def _for_each(self, links: Iterable[Link], action: Callable[[LinkProxy], None]) -> None:
        chosen = tuple(links)

        def apply() -> None:
            for link in chosen:
                action(self._mesh.links[link])

        self._in_loop(apply)
