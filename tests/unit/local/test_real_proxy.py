"""The proxy of a link: passes, cuts, delays, loses and repeats whole messages, in order, and closes cleanly."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from faultline.harness.world.faults import LinkQuality
from faultline.harness.world.framing import encode_frame
from faultline.harness.world.local.channel import HOST, Address, InboundConnection, OutgoingChannel
from faultline.harness.world.local.handshake import Listener, RunSecret
from faultline.harness.world.local.kept_messages import LOST_S, KeptMessages
from faultline.harness.world.local.proxy import LinkProxy, ProxyMesh
from faultline.harness.world.ports import NodeId

SECRET = RunSecret(b"s" * 32)
LINK = (NodeId("athens"), NodeId("byzantium"))


class Bench:
    """One link: a channel, its proxy, and a server that notes what arrives."""

    def __init__(self) -> None:
        self.hellos: list[str] = []
        self.arrived: list[bytes] = []
        self.lost = 0
        self.inbound: list[InboundConnection] = []
        self.target: Address | None = None
        self.kept = KeptMessages()
        self.server: asyncio.Server | None = None

    async def open(self) -> None:
        await self.serve()
        self.proxy = LinkProxy(LINK, SECRET, lambda: self.target, seed=3, kept=self.kept)
        await self.proxy.listen()
        self.channel = OutgoingChannel("athens", "byzantium", SECRET, lambda: self.proxy.address)

    async def serve(self) -> None:
        loop = asyncio.get_running_loop()
        self.server = await loop.create_server(self.accept, HOST, 0)
        self.target = self.server.sockets[0].getsockname()[:2]

    async def stop_serving(self) -> None:
        self.target = None
        if self.server is not None:
            self.server.close()
            for connection in self.inbound:
                connection.close()
            await self.server.wait_closed()
            self.server = None

    def accept(self) -> InboundConnection:
        connection = InboundConnection(
            Listener(SECRET, "byzantium"), self.hello, lambda _name, payload: self.arrived.append(payload), self.gone
        )
        self.inbound.append(connection)
        return connection

    def hello(self, name: str, connection: InboundConnection) -> None:
        self.hellos.append(name)

    def gone(self, name: str, connection: InboundConnection) -> None:
        self.lost += 1

    def send(self, *payloads: bytes) -> None:
        for payload in payloads:
            self.channel.send(encode_frame(payload))

    async def close(self) -> None:
        self.channel.close()
        await self.proxy.close()
        await self.stop_serving()
        await asyncio.sleep(0.01)


def on_bench(scenario: Callable[[Bench], Awaitable[None]]) -> Bench:
    async def run() -> Bench:
        bench = Bench()
        await bench.open()
        try:
            async with asyncio.timeout(30):
                await scenario(bench)
        finally:
            await bench.close()
        return bench

    return asyncio.run(run())


async def settled(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


NUMBERS = [b"%d" % number for number in range(200)]


def test_messages_pass_in_order_after_a_hello() -> None:
    async def scenario(bench: Bench) -> None:
        bench.send(*NUMBERS)
        await settled(lambda: len(bench.arrived) == 200)

    bench = on_bench(scenario)
    assert (bench.hellos, bench.arrived) == (["athens"], NUMBERS)
    assert bench.proxy.counters.passed == 200


def test_a_cut_swallows_messages_and_keeps_the_connection() -> None:
    async def scenario(bench: Bench) -> None:
        bench.send(b"before")
        await settled(lambda: bench.arrived == [b"before"])
        bench.proxy.set_cut(True)
        assert bench.proxy.swallows_a_probe()
        bench.send(b"swallowed")
        await settled(lambda: bench.proxy.counters.swallowed == 1)
        bench.proxy.set_cut(False)
        assert not bench.proxy.swallows_a_probe()
        bench.send(b"after")
        await settled(lambda: len(bench.arrived) == 2)

    bench = on_bench(scenario)
    assert bench.arrived == [b"before", b"after"]
    assert bench.hellos == ["athens"], "the connection was never broken"
    assert bench.proxy.counters.arrived == 3, "probes are not counted"


def test_a_message_that_is_held_back_when_the_link_is_cut_is_swallowed_too() -> None:
    async def scenario(bench: Bench) -> None:
        def delayed_and_cut() -> int:
            bench.proxy.set_cut(True)
            return 20_000

        bench.send(b"open")
        await settled(lambda: bool(bench.arrived))
        bench.proxy.delay_us = delayed_and_cut  # type: ignore[method-assign]  # the script of this test alone
        bench.send(b"held back")
        await settled(lambda: bench.proxy.counters.swallowed == 1)

    assert on_bench(scenario).arrived == [b"open"]


def test_delay_and_jitter_hold_messages_back_but_keep_their_order() -> None:
    async def scenario(bench: Bench) -> None:
        loop = asyncio.get_running_loop()
        bench.proxy.quality = LinkQuality(delay_us=30_000, jitter_us=20_000)
        started_s = loop.time()
        bench.send(*NUMBERS)
        await settled(lambda: len(bench.arrived) == 200)
        assert loop.time() - started_s >= 0.03

    assert on_bench(scenario).arrived == NUMBERS


def test_loss_takes_a_share_and_duplication_repeats_one() -> None:
    async def scenario(bench: Bench) -> None:
        bench.proxy.quality = LinkQuality(loss=0.3, duplicate=0.2)
        bench.send(*NUMBERS)
        counters = bench.proxy.counters
        await settled(lambda: counters.arrived == 200)
        await settled(lambda: len(bench.arrived) == 200 - counters.lost + counters.duplicated)

    bench = on_bench(scenario)
    counters = bench.proxy.counters
    assert 30 <= counters.lost <= 90
    assert 10 <= counters.duplicated <= 60
    assert counters.passed == len(bench.arrived)
    assert bench.arrived == sorted(bench.arrived, key=int), "copies stand beside their originals"


def test_total_loss_lets_nothing_pass() -> None:
    async def scenario(bench: Bench) -> None:
        bench.proxy.quality = LinkQuality(loss=1.0)
        bench.send(*NUMBERS)
        await settled(lambda: bench.proxy.counters.lost == 200)

    assert on_bench(scenario).arrived == []


def test_a_rate_lets_one_message_after_the_other_through_as_long_as_its_bytes_take() -> None:
    async def scenario(bench: Bench) -> None:
        loop = asyncio.get_running_loop()
        bench.proxy.set_quality(LinkQuality(rate_kbit_per_s=400))
        started_s = loop.time()
        bench.send(b"a" * 996, b"b" * 996)
        await settled(lambda: len(bench.arrived) == 2)
        assert loop.time() - started_s >= 0.04

    assert on_bench(scenario).arrived == [b"a" * 996, b"b" * 996]


def test_a_killed_connection_is_lost_with_what_was_under_way_and_another_is_opened() -> None:
    async def scenario(bench: Bench) -> None:
        bench.send(b"before")
        await settled(lambda: bool(bench.arrived))
        first = bench.proxy.connections()
        bench.proxy.set_quality(LinkQuality(delay_us=60_000_000))
        bench.send(b"under way")
        await settled(lambda: bench.proxy.counters.arrived == 2)
        bench.proxy.kill_connections()
        bench.proxy.set_quality(LinkQuality())
        await settled(lambda: len(bench.hellos) == 2)
        assert len(first) == len(bench.proxy.connections()) == 1
        assert not first & bench.proxy.connections()
        bench.send(b"after")
        await settled(lambda: len(bench.arrived) == 2)

    assert on_bench(scenario).arrived == [b"before", b"after"]


def test_a_link_that_resets_drops_connections_until_it_no_longer_does() -> None:
    async def scenario(bench: Bench) -> None:
        bench.send(b"before")
        await settled(lambda: bool(bench.arrived))
        bench.proxy.set_resetting(True)
        await settled(lambda: bench.lost == 1)
        reader, writer = await asyncio.open_connection(*bench.proxy.address)
        assert await reader.read() == b"", "the proxy ends the connection by itself"
        writer.close()
        bench.proxy.set_resetting(False)
        await settled(lambda: len(bench.hellos) == 2)
        bench.send(b"after")
        await settled(lambda: len(bench.arrived) == 2)

    assert on_bench(scenario).arrived == [b"before", b"after"]


def test_a_target_that_ends_and_comes_back_elsewhere_is_found_again() -> None:
    async def scenario(bench: Bench) -> None:
        bench.send(b"before")
        await settled(lambda: bool(bench.arrived))
        await bench.stop_serving()
        await bench.serve()
        await settled(lambda: len(bench.hellos) == 2)
        bench.send(b"after")
        await settled(lambda: len(bench.arrived) == 2)

    assert on_bench(scenario).arrived == [b"before", b"after"]


def test_messages_to_a_dead_target_are_lost_and_do_not_come_back_from_the_past() -> None:
    async def scenario(bench: Bench) -> None:
        bench.send(b"before")
        await settled(lambda: bool(bench.arrived))
        await bench.stop_serving()
        await settled(lambda: not bench.proxy._connections)
        bench.send(*NUMBERS)
        await settled(lambda: bench.channel._transport is None and not bench.channel._connecting)
        await bench.serve()
        await settled(lambda: len(bench.hellos) == 2)
        bench.send(b"after")
        await settled(lambda: bench.arrived[-1] == b"after")

    assert on_bench(scenario).arrived == [b"before", b"after"]


def test_each_message_is_kept_with_its_fate_each_copy_of_a_repeated_one_too() -> None:
    async def scenario(bench: Bench) -> None:
        bench.send(b"passed")
        await settled(lambda: len(bench.kept.frames) == 1)
        bench.proxy.set_cut(True)
        bench.proxy.swallows_a_probe()
        bench.send(b"cut")
        await settled(lambda: len(bench.kept.frames) == 2)
        bench.proxy.set_cut(False)
        bench.proxy.set_quality(LinkQuality(duplicate=1.0, delay_us=20_000))
        bench.send(b"twice and late")
        await settled(lambda: len(bench.kept.frames) == 4)
        bench.proxy.set_quality(LinkQuality(delay_us=60_000_000))
        bench.send(b"under way")
        await settled(lambda: bench.proxy.counters.arrived == 4)
        bench.proxy.kill_connections()

    kept = on_bench(scenario).kept
    told = [(frame[4:], received_s == LOST_S) for _, frame, _, received_s in kept.frames]
    twice = (b"twice and late", False)
    assert told == [(b"passed", False), (b"cut", True), twice, twice, (b"under way", True)]
    assert {link for link, *_ in kept.frames} == {LINK}
    _, _, sent_s, received_s = kept.frames[2]
    assert received_s - sent_s >= 0.02, "it is sent when the proxy took it, and received when it was passed on"


def test_a_mesh_has_one_proxy_per_directed_link_with_an_address_of_its_own() -> None:
    async def addresses() -> list[Address]:
        mesh = ProxyMesh(map(NodeId, "abc"), SECRET, lambda _node: None, seed=0, kept=KeptMessages())
        await mesh.listen()
        found = [address for node in "abc" for address in mesh.addresses(NodeId(node)).values()]
        await mesh.close()
        return found

    found = asyncio.run(addresses())
    assert len(found) == len(set(found)) == 6
