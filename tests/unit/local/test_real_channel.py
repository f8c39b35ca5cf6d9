"""Channels: a stranger is hung up on, and what a dead connection is given is counted as lost."""

from __future__ import annotations

import asyncio

import pytest

from faultline.harness.world.framing import encode_frame
from faultline.harness.world.local.channel import HOST, InboundConnection, OutgoingChannel
from faultline.harness.world.local.handshake import Listener, RunSecret
from faultline.harness.world.local.kept_messages import LOST_S

SECRET = RunSecret(b"s" * 32)


def test_a_stranger_that_does_not_speak_frames_is_hung_up_on(capsys: pytest.CaptureFixture[str]) -> None:
    async def knock() -> bytes:
        loop = asyncio.get_running_loop()
        arrived: list[object] = []
        take_nothing = arrived.append

        def accept() -> InboundConnection:
            return InboundConnection(Listener(SECRET, "athens"), take_nothing, take_nothing, take_nothing)

        server = await loop.create_server(accept, HOST)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        try:
            answer = await asyncio.wait_for(reader.read(), 30)
        except ConnectionResetError:
            answer = b""
        writer.close()
        server.close()
        await server.wait_closed()
        assert arrived == []
        return answer

    assert asyncio.run(knock()) == b""
    assert "a stranger dropped" in capsys.readouterr().err


def test_messages_to_an_unknown_address_are_lost_and_counted() -> None:
    async def send() -> int:
        channel = OutgoingChannel("athens", "byzantium", SECRET, lambda: None)
        async with asyncio.timeout(30):
            while channel.lost == 0:
                channel.send(encode_frame(b"x"))
                await asyncio.sleep(0)
        channel.close()
        return channel.lost

    assert asyncio.run(send()) >= 1


def test_a_frame_that_waits_for_a_connection_and_never_gets_one_is_noted_as_lost_once() -> None:
    async def send() -> list[tuple[bytes, float]]:
        noted: list[tuple[bytes, float]] = []
        channel = OutgoingChannel(
            "client-1",
            "athens",
            SECRET,
            lambda: None,
            note=lambda frame, _sent_s, received_s: noted.append((frame, received_s)),
        )
        channel.send(encode_frame(b"x"))
        async with asyncio.timeout(30):
            while not noted:
                await asyncio.sleep(0)
        channel.close()
        return noted

    assert asyncio.run(send()) == [(encode_frame(b"x"), LOST_S)]


def test_an_answer_comes_back_over_the_callers_own_connection() -> None:
    async def ask() -> tuple[list[str], bytes]:
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[bytes] = loop.create_future()
        names: list[str] = []
        connections: list[InboundConnection] = []

        def hello(name: str, connection: InboundConnection) -> None:
            names.append(name)
            connections.append(connection)

        def payload(_name: str, data: bytes) -> None:
            connections[0].send(encode_frame(data.upper()))

        server = await loop.create_server(
            lambda: InboundConnection(Listener(SECRET, "athens"), hello, payload, lambda _name, _connection: None), HOST
        )
        channel = OutgoingChannel("client-1", "athens", SECRET, server.sockets[0].getsockname, answered.set_result)
        channel.send(encode_frame(b"question"))
        answer = await asyncio.wait_for(answered, 30)
        channel.close()
        connections[0].close()
        server.close()
        await server.wait_closed()
        return names, answer

    assert asyncio.run(ask()) == (["client-1"], b"QUESTION")


@pytest.mark.rows("SC-R12", "SC-R3")
def test_a_server_that_answers_nonsense_is_hung_up_on_and_dialled_again(capsys: pytest.CaptureFixture[str]) -> None:
    async def ask() -> int:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: pytest.fail(str(context)))
        callers: list[InboundConnection] = []
        again = asyncio.Event()

        def hello(_name: str, connection: InboundConnection) -> None:
            callers.append(connection)
            if len(callers) == 2:
                again.set()
            else:
                connection.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        server = await loop.create_server(
            lambda: InboundConnection(Listener(SECRET, "athens"), hello, lambda *_: None, lambda *_: None), HOST
        )
        channel = OutgoingChannel("client-1", "athens", SECRET, server.sockets[0].getsockname, lambda payload: None)
        channel.send(encode_frame(b"question"))
        await asyncio.wait_for(again.wait(), 30)
        channel.close()
        for connection in callers:
            connection.close()
        server.close()
        await server.wait_closed()
        return len(callers)

    assert asyncio.run(ask()) == 2
    assert "dropped: a frame announces" in capsys.readouterr().err
