"""The clients of a store on hosts: one for each worker, each in a thread of its own while it waits for an answer.

They stand where `harness.world.real.client_host.ClientHost` stands for the reference systems.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome, info
from faultline.harness.system import StoreClient
from faultline.harness.world.ports import NodeId

__all__ = ["StoreClients"]


class StoreClients:
    """Clients made by `make`, which is given the node to talk to first; `errors` collects clients that raise."""

    def __init__(
        self, members: tuple[NodeId, ...], workers: int, make: Callable[[NodeId], StoreClient], errors: list[str]
    ) -> None:
        self._members = members
        self._make = make
        self._errors = errors
        self._clients: dict[int, tuple[int, StoreClient]] = {}
        self._threads = ThreadPoolExecutor(workers, "store-client")
        self._loop = asyncio.get_running_loop()

    def node_of(self, worker: int) -> NodeId:
        """The node that `worker` talks to first."""
        return self._members[worker % len(self._members)]

    def invoke(self, worker: int, operation: Operation, done: Callable[[Outcome], None]) -> None:
        """Let the client of the operation's process perform it; `done` is called exactly once, in the event loop."""

        def perform() -> None:
            try:
                outcome = self._client(worker, operation.process).invoke(operation)
            except Exception as error:
                self._errors.append(f"The client of process {operation.process} raised {error!r} on {operation.f}.")
                outcome = info("client-raised")
            # The run may have ended meanwhile, and its loop with it.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(done, outcome)

        self._threads.submit(perform)

    def close(self) -> None:
        """Wait for answers that are still awaited, no longer than their time-outs, and hang up."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        with ThreadPoolExecutor(thread_name_prefix="store-client-end") as threads:
            for _, client in self._clients.values():
                threads.submit(client.close)
        self._clients.clear()

    def _client(self, worker: int, process: int) -> StoreClient:
        """The client of `process`, made and closed in the worker's thread: a client may have an event loop of its own.

        A worker has one operation at a time, so no two threads ask for the same one.
        """
        known = self._clients.get(worker)
        if known is not None and known[0] == process:
            return known[1]
        if known is not None:
            known[1].close()
        client = self._make(self.node_of(worker))
        self._clients[worker] = (process, client)
        return client
