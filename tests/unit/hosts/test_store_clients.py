"""Clients of stores on hosts: how they come back to a store that is down."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from faultline.harness.operation import Operation
from faultline.harness.outcome import NOT_CONNECTED, Outcome, fail, ok
from faultline.harness.system import StoreClient
from faultline.harness.world.hosts.processes import store_clients
from faultline.harness.world.hosts.processes.store_clients import StoreClients
from faultline.harness.world.ports import NodeId

READ = Operation(0, "read", "k", None)


class RefusedClient:
    """A client that cannot connect before it was refused `refusals` times."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.attempts = 0
        self.is_connected = False

    def connects(self) -> bool:
        self.attempts += 1
        self.is_connected = self.attempts > self.refusals
        return self.is_connected

    def invoke(self, operation: Operation) -> Outcome:
        return ok(1) if self.is_connected else fail(NOT_CONNECTED)

    def close(self) -> None:
        """Nothing is open."""


class PlainClient:
    """A client that cannot be asked to connect."""

    def invoke(self, operation: Operation) -> Outcome:
        return fail(NOT_CONNECTED)

    def close(self) -> None:
        """Nothing is open."""


async def told(call: Callable[[Callable[[], None]], None]) -> None:
    """Return when what `call` is given has been called."""
    done = asyncio.Event()
    call(done.set)
    await done.wait()


def clients_of(client: StoreClient, errors: list[str]) -> StoreClients:
    return StoreClients((NodeId("athens"),), 1, lambda _: client, errors)


def test_a_client_connects_before_it_is_asked_again() -> None:
    client, errors = RefusedClient(3), list[str]()

    async def story() -> None:
        clients = clients_of(client, errors)
        await told(lambda done: clients.invoke(0, READ, lambda _: done()))
        assert not clients.is_ready(0)
        await told(lambda done: clients.reconnect(0, 0, NOT_CONNECTED, done))
        assert clients.is_ready(0)
        clients.close()

    asyncio.run(story())
    assert (client.attempts, errors) == (4, [])


def test_a_store_that_stays_away_is_tried_all_the_same_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    client, errors = RefusedClient(10**9), list[str]()
    monkeypatch.setattr(store_clients, "REST_S_MAX", 0.0)

    async def story() -> None:
        clients = clients_of(client, errors)
        await told(lambda done: clients.reconnect(0, 0, NOT_CONNECTED, done))
        clients.close()

    asyncio.run(story())
    assert not client.is_connected and client.attempts >= 1


def test_who_is_connected_goes_on_at_once_and_so_does_who_was_answered() -> None:
    errors: list[str] = []

    async def story(client: StoreClient, error: str) -> None:
        clients = clients_of(client, errors)
        await told(lambda done: clients.invoke(0, READ, lambda _: done()))
        called: list[int] = []
        clients.reconnect(0, 0, error, lambda: called.append(1))
        assert called == [1]
        clients.close()

    connected = RefusedClient(0)
    connected.connects()
    asyncio.run(story(connected, "cas-mismatch"))
    asyncio.run(story(PlainClient(), "cas-mismatch"))
    assert errors == []


def test_closing_ends_a_wait_for_a_connection() -> None:
    async def story() -> None:
        clients = clients_of(RefusedClient(10**9), [])
        clients.reconnect(0, 0, NOT_CONNECTED, lambda: None)
        await asyncio.to_thread(clients.close)

    asyncio.run(asyncio.wait_for(story(), 60))


def test_pauses_grow_and_workers_do_not_come_back_together() -> None:
    pauses = [store_clients._pause_s(3, attempt) for attempt in range(6)]
    assert all(most / 2 <= pause <= most for pause, most in zip(pauses, store_clients.BACK_OFF_S, strict=False))
    assert len({store_clients._pause_s(worker, 0) for worker in range(5)}) == 5
