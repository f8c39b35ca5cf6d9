"""The handshake: a peer without the run's secret is hung up on before a message crosses the connection."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from faultline.harness.world.framing import FrameDecoder, encode_frame
from faultline.harness.world.local.channel import HOST, Address, InboundConnection, OutgoingChannel
from faultline.harness.world.local.handshake import HANDSHAKE_BYTES_MAX, Caller, Listener, RunSecret, Witness
from faultline.harness.world.local.kept_messages import KeptMessages
from faultline.harness.world.local.proxy import LinkProxy
from faultline.harness.world.message_codec import WireError
from faultline.harness.world.ports import NodeId

SECRET, OTHER = RunSecret(b"s" * 32), RunSecret(b"o" * 32)


def payload(frame: bytes) -> bytes:
    (only,) = FrameDecoder().feed(frame)
    return only


def test_both_ends_prove_themselves_and_the_secret_does_not_travel() -> None:
    caller, listener = Caller(SECRET, "client-1", "athens"), Listener(SECRET, "athens")
    challenge = listener.take(payload(caller.hello))
    assert listener.caller is None, "a name alone proves nothing"
    proof = caller.answer(payload(challenge))
    assert listener.take(payload(proof)) == b""
    assert listener.caller == "client-1"
    assert SECRET.reveal() not in caller.hello + challenge + proof


def test_a_caller_with_another_secret_is_refused() -> None:
    # Its own end must not see that the listener is not one of its own, or it would not even answer.
    stranger, listener = Caller(OTHER, "byzantium", "athens"), Listener(SECRET, "athens")
    listener.take(payload(stranger.hello))
    forged = stranger.answer(payload(Listener(OTHER, "athens").take(payload(stranger.hello))))
    with pytest.raises(WireError, match="does not know the secret"):
        listener.take(payload(forged))
    assert listener.caller is None


def test_a_listener_with_another_secret_is_told_nothing() -> None:
    caller = Caller(SECRET, "client-1", "athens")
    challenge = Listener(OTHER, "athens").take(payload(caller.hello))
    with pytest.raises(WireError, match="does not know the secret"):
        caller.answer(payload(challenge))


def test_what_was_overheard_is_of_no_use_on_another_connection_or_at_another_node() -> None:
    caller, listener = Caller(SECRET, "byzantium", "athens"), Listener(SECRET, "athens")
    proof = caller.answer(payload(listener.take(payload(caller.hello))))
    for victim in ("athens", "cyrene"):
        again = Listener(SECRET, victim)
        again.take(payload(caller.hello))
        with pytest.raises(WireError, match="does not know the secret"):
            again.take(payload(proof))


def test_the_listeners_own_proof_handed_back_is_no_proof_of_the_caller() -> None:
    stranger, listener = Caller(OTHER, "byzantium", "athens"), Listener(SECRET, "athens")
    _nonce, proof = msgspec.msgpack.decode(payload(listener.take(payload(stranger.hello))))
    with pytest.raises(WireError, match="does not know the secret"):
        listener.take(msgspec.msgpack.encode([proof]))


@pytest.mark.parametrize(
    "hello",
    [
        b"",
        b"athens",
        b"\xc0",
        b"\x92\xa6athens\xc4\x01x",
        b"\x92\xa1\xff\xc4\x01x",
        b"\x91" * 900,
        b"\x93" + b"\xc0" * 3,
    ],
)
def test_a_hello_that_is_none_is_refused(hello: bytes) -> None:
    with pytest.raises(WireError):
        Listener(SECRET, "athens").take(hello)
    with pytest.raises(WireError):
        Witness(SECRET, "byzantium", "athens").take_from_caller(hello)


def test_a_secret_is_neither_shown_nor_stored() -> None:
    assert repr(SECRET) == str(SECRET) == "RunSecret(...)"
    with pytest.raises(TypeError, match="not stored"):
        pickle.dumps(SECRET)
    assert RunSecret.drawn().reveal() != RunSecret.drawn().reveal()


class Door:
    """A listening node that notes who came in and what arrived."""

    def __init__(self) -> None:
        self.callers: list[str] = []
        self.arrived: list[bytes] = []
        self.connections: list[InboundConnection] = []

    async def open(self) -> None:
        self.server = await asyncio.get_running_loop().create_server(self.accept, HOST, 0)
        self.address: Address = self.server.sockets[0].getsockname()[:2]

    def accept(self) -> InboundConnection:
        connection = InboundConnection(
            Listener(SECRET, "athens"),
            lambda name, _: self.callers.append(name),
            lambda _, message: self.arrived.append(message),
            lambda *_: None,
        )
        self.connections.append(connection)
        return connection

    async def close(self) -> None:
        self.server.close()
        for connection in self.connections:
            connection.close()
        await self.server.wait_closed()
        await asyncio.sleep(0.01)


def at_the_door(scenario: Callable[[Door], Awaitable[None]]) -> Door:
    async def run() -> Door:
        door = Door()
        await door.open()
        try:
            async with asyncio.timeout(30):
                await scenario(door)
        finally:
            await door.close()
        return door

    return asyncio.run(run())


async def heard_until_hung_up(address: Address, *frames: bytes) -> bytes:
    """Send `frames`, each after an answer to the one before; return all answers until the connection ends."""
    reader, writer = await asyncio.open_connection(*address)
    heard = b""
    try:
        for frame in frames:
            writer.write(frame)
            heard += await reader.read(4_096)
        heard += await reader.read()
    except ConnectionError:
        pass
    writer.close()
    return heard


def test_a_stranger_who_speaks_frames_is_hung_up_on_before_its_message_is_decoded(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def scenario(door: Door) -> None:
        stranger = Caller(OTHER, "byzantium", "athens")
        await heard_until_hung_up(door.address, stranger.hello, encode_frame(b"\x91\xc4\x20" + b"x" * 32), b"message")

    door = at_the_door(scenario)
    assert (door.callers, door.arrived) == ([], [])
    told = capsys.readouterr().err
    assert "connection from a stranger dropped: the other end does not know the secret" in told
    assert repr(SECRET.reveal())[2:-1] not in told


def test_a_stranger_cannot_fill_the_memory_before_it_has_proved_itself() -> None:
    async def scenario(door: Door) -> None:
        announced = (1 << 20).to_bytes(4, "big")
        assert await heard_until_hung_up(door.address, announced + bytes(HANDSHAKE_BYTES_MAX + 1)) == b""

    assert at_the_door(scenario).arrived == []


def test_nothing_is_said_to_one_who_listens_in_a_nodes_place(capsys: pytest.CaptureFixture[str]) -> None:
    heard: list[bytes] = []

    async def squat() -> None:
        knocked = asyncio.Event()

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            hello = payload(await reader.read(4_096))
            writer.write(Listener(OTHER, "athens").take(hello))
            heard.append(await reader.read())
            writer.close()
            knocked.set()

        server = await asyncio.start_server(answer, HOST, 0)
        channel = OutgoingChannel("client-1", "athens", SECRET, server.sockets[0].getsockname)
        channel.send(encode_frame(b"a write"))
        async with asyncio.timeout(30):
            await knocked.wait()
            while channel.lost == 0:
                await asyncio.sleep(0.001)
        channel.close()
        server.close()
        await server.wait_closed()

    asyncio.run(squat())
    assert set(heard) == {b""}
    assert "does not know the secret" in capsys.readouterr().err


def test_a_proxy_neither_counts_nor_passes_on_what_a_stranger_says() -> None:
    async def scenario(door: Door) -> None:
        proxy = LinkProxy(
            (NodeId("byzantium"), NodeId("athens")), SECRET, lambda: door.address, seed=3, kept=KeptMessages()
        )
        await proxy.listen()
        forged = encode_frame(b"\x91\xc4\x20" + b"x" * 32)
        strangers = [Caller(OTHER, "byzantium", "athens").hello, Caller(SECRET, "cyrene", "athens").hello]
        for hello in (*strangers, encode_frame(b"byzantium"), b"GET / HTTP/1.1\r\n\r\n"):
            await heard_until_hung_up(proxy.address, hello, forged, encode_frame(b"message"))
        await heard_until_hung_up(proxy.address, strangers[0] + forged + encode_frame(b"message"))
        assert (proxy.counters.arrived, door.arrived) == (0, [])
        channel = OutgoingChannel("byzantium", "athens", SECRET, lambda: proxy.address)
        channel.send(encode_frame(b"message"))
        while not door.arrived:
            await asyncio.sleep(0.001)
        channel.close()
        await proxy.close()

    door = at_the_door(scenario)
    assert (door.callers, door.arrived) == (["byzantium"], [b"message"])
