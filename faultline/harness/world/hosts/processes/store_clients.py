"""The clients of a store on hosts: one for each worker, each in a thread of its own while it waits for an answer.

They stand where `harness.world.local.client_host.ClientHost` stands for the reference systems. After an operation that
went wrong a client connects again before it is asked for the next one, with pauses that grow: a store that is down
refuses at once, and operations that nothing hears test nothing. Now and then one is tried all the same, so that a store
that stays away shows in the history.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from faultline.harness.generator.chance import below, chance_of
from faultline.harness.operation import Operation
from faultline.harness.outcome import NOT_CONNECTED, Outcome, info
from faultline.harness.system import ConnectingClient, StoreClient
from faultline.harness.world.ports import NodeId

__all__ = ["BACK_OFF_S", "REST_S_MAX", "StoreClients"]

BACK_OFF_S = (0.05, 0.1, 0.2, 0.4)
"""The longest wait of a worker after each attempt in a row to connect, the last for all further ones. Half of it is
drawn, so that workers do not come back together."""

REST_S_MAX = 2.5
"""The time after which a worker without a connection tries an operation all the same."""

_SALT = 0xD6E8_FEB8_6659_FD93


class StoreClients:
    """Clients made by `make`, which is given the node to talk to first; `errors` collects clients that raise."""

    def __init__(
        self, members: tuple[NodeId, ...], workers: int, make: Callable[[NodeId], StoreClient], errors: list[str]
    ) -> None:
        self._members = members
        self._make = make
        self._errors = errors
        self._clients: dict[int, tuple[int, StoreClient]] = {}
        self._connecting: dict[int, ConnectingClient] = {}
        self._ended = threading.Event()
        self._threads = ThreadPoolExecutor(workers, "store-client")
        self._loop = asyncio.get_running_loop()

    def node_of(self, worker: int) -> NodeId:
        """Return the node that `worker` talks to first."""
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

    def is_ready(self, worker: int) -> bool:
        """Return whether the client of `worker` seems connected; a client that was never asked may connect then."""
        client = self._connecting.get(worker)
        return client is None or client.is_connected

    def reconnect(self, worker: int, process: int, error: str, done: Callable[[], None]) -> None:
        """Let the client of `process` connect after `error`, and call `done` in the event loop when it has.

        After REST_S_MAX `done` is called all the same. A client that cannot be asked to connect rests for a moment when
        no connection came about.
        """
        if self._process_of(worker) == process and self._can_go_on(worker, error):
            done()
            return

        def connect() -> None:
            try:
                self._client(worker, process)
                if worker in self._connecting:
                    self._connect(worker, self._connecting[worker])
                elif error == NOT_CONNECTED:
                    self._ended.wait(_pause_s(worker, len(BACK_OFF_S)))
            except Exception as problem:
                self._errors.append(f"The client of process {process} raised {problem!r} while it connected.")
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(done)

        self._threads.submit(connect)

    def _process_of(self, worker: int) -> int | None:
        known = self._clients.get(worker)
        return None if known is None else known[0]

    def _can_go_on(self, worker: int, error: str) -> bool:
        client = self._connecting.get(worker)
        return error != NOT_CONNECTED if client is None else client.is_connected

    def _connect(self, worker: int, client: ConnectingClient) -> None:
        """Return when `client` is connected, or has tried for long enough."""
        until_s, attempt = time.monotonic() + REST_S_MAX, 0
        while not client.connects() and time.monotonic() < until_s:
            if self._ended.wait(_pause_s(worker, attempt)):
                return
            attempt += 1

    def close(self) -> None:
        """Wait for answers that are still awaited, no longer than their time-outs, and hang up."""
        self._ended.set()
        self._threads.shutdown(wait=True, cancel_futures=True)
        with ThreadPoolExecutor(thread_name_prefix="store-client-end") as threads:
            for _, client in self._clients.values():
                threads.submit(client.close)
        self._clients.clear()

    def _client(self, worker: int, process: int) -> StoreClient:
        """Return the client of `process`, made and closed in the worker's thread: it may have an event loop of its own.

        A worker has one operation at a time, so no two threads ask for the same one.
        """
        known = self._clients.get(worker)
        if known is not None and known[0] == process:
            return known[1]
        if known is not None:
            known[1].close()
        client = self._make(self.node_of(worker))
        self._clients[worker] = (process, client)
        if isinstance(client, ConnectingClient):
            self._connecting[worker] = client
        return client


def _pause_s(worker: int, attempt: int) -> float:
    most_us = int(BACK_OFF_S[min(attempt, len(BACK_OFF_S) - 1)] * 1_000_000)
    return (most_us // 2 + below(chance_of(worker, attempt), most_us // 2 + 1, _SALT)) / 1_000_000
