"""Hosts the run's clients in the harness's event loop, over real connections to the nodes.

Clients are not part of the cluster under test: their connections go to the nodes directly, never through a proxy, and
their ports share the machine's clock. A worker whose process retired gets a fresh client under a new network name, so
that a late answer to the old process is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, info
from faultline.harness.plan import Plan
from faultline.harness.system import NodeSystem, PortClient
from faultline.harness.world.local.channel import Address
from faultline.harness.world.local.clock import ClockSetting, SkewedClock
from faultline.harness.world.local.handshake import RunSecret
from faultline.harness.world.local.kept_messages import KeptMessages
from faultline.harness.world.local.network import ClientNetwork
from faultline.harness.world.local.ports import RealPorts
from faultline.harness.world.local.random_source import WeatherRandom
from faultline.harness.world.local.storage import BufferedStorage, Commit
from faultline.harness.world.local.timers import ClockTimers
from faultline.harness.world.local.trace import SilentTrace
from faultline.harness.world.message_codec import MessageCodec
from faultline.harness.world.ports import NodeId

__all__ = ["ClientHost"]

Done = Callable[[Outcome], None]


def _never_durable(commit: Commit) -> None:
    """Clients have no disk: what one stores is gone with it."""


class _HostedClient:
    """One client of one process with its ports."""

    def __init__(self, process: int, client: PortClient, network: ClientNetwork, timers: ClockTimers) -> None:
        self.process = process
        self.client = client
        self._network = network
        self._timers = timers

    def close(self) -> None:
        self._network.close()
        self._timers.close()


class ClientHost:
    """The clients of all workers, which know the `secret` of the run.

    `address_of` says where a node listens, `errors` collects clients that raise. Messages are `kept` where the world
    keeps any.
    """

    def __init__(
        self,
        plan: Plan,
        system: NodeSystem,
        secret: RunSecret,
        address_of: Callable[[NodeId], Address | None],
        errors: list[str],
        kept: KeptMessages | None = None,
    ) -> None:
        self._plan = plan
        self._system = system
        self._secret = secret
        self._address_of = address_of
        self._errors = errors
        self._kept = kept
        self._codec = MessageCodec(system.messages)
        self._members = tuple(map(NodeId, plan.nodes))
        self._clients: dict[int, _HostedClient] = {}
        self._loop = asyncio.get_running_loop()

    def node_of(self, worker: int) -> NodeId:
        """Return the node that `worker` talks to first."""
        return self._members[worker % len(self._members)]

    def invoke(self, worker: int, operation: Operation, done: Done) -> None:
        """Let the client of the operation's process perform it; `done` is called exactly once, in the event loop."""
        completed = False

        def once(outcome: Outcome) -> None:
            nonlocal completed
            if not completed:
                completed = True
                self._loop.call_soon(done, outcome)

        try:
            self._client(worker, operation.process).client.invoke(operation, once)
        except (Exception, SystemExit) as error:
            self._errors.append(f"The client of process {operation.process} raised {error!r} on {operation.f}.")
            once(info("client-raised"))

    def is_ready(self, worker: int) -> bool:
        """Return True: these clients wait for their connections themselves, as long as an operation may take."""
        return True

    def reconnect(self, worker: int, process: int, error: str, done: Callable[[], None]) -> None:
        """Call `done`: there is nothing to wait for."""
        done()

    def close(self) -> None:
        """Close all clients."""
        for hosted in self._clients.values():
            hosted.close()
        self._clients.clear()

    def _client(self, worker: int, process: int) -> _HostedClient:
        hosted = self._clients.get(worker)
        if hosted is None or hosted.process != process:
            if hosted is not None:
                hosted.close()
            hosted = self._clients[worker] = self._open(worker, process)
            hosted.client.start()
        return hosted

    def _open(self, worker: int, process: int) -> _HostedClient:
        client_id = NodeId(f"client-{process}")
        clock = SkewedClock(ClockSetting())
        timers = ClockTimers(self._loop, clock)
        network = ClientNetwork(
            client_id,
            self._secret,
            self._address_of,
            self._codec,
            lambda source, message: client.receive(source, message),
            self._kept,
        )
        ports = RealPorts(
            node_id=client_id,
            clock=clock,
            network=network,
            timers=timers,
            storage=BufferedStorage(_never_durable),
            random=WeatherRandom(self._plan.seed, client_id, clock),
            trace=SilentTrace(),
        )
        client = self._system.client(
            ports, self._members, self.node_of(worker), self._plan.options, frozenset(self._plan.planted_bugs)
        )
        return _HostedClient(process, client, network, timers)
