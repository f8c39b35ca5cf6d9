"""A server that speaks Redis's protocol (RESP 2) and answers each command as the test says."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import BinaryIO

from patience import HASTY_S
from scripted_server import ScriptedServer, Silent

from faultline.systems_under_test.stores.redis.connection import RedisConnection

Answer = str | int | None | list["Answer"]


class Refused(Exception):
    """Answered as an error: `READONLY You can't ...`."""


class ScriptedRedis(ScriptedServer):
    """`answer` is given each command, as words, and returns or raises."""

    def __init__(self, answer: Callable[[list[str]], Answer]) -> None:
        self.answer = answer
        self.asked: list[list[str]] = []
        super().__init__()

    def talk(self, connection: socket.socket, stream: BinaryIO) -> None:
        while header := stream.readline():
            words = [stream.read(int(stream.readline()[1:]) + 2)[:-2].decode() for _ in range(int(header[1:]))]
            if words[0].upper() == "CLIENT":  # the library introduces itself
                connection.sendall(b"+OK\r\n")
                continue
            self.asked.append(words)
            try:
                connection.sendall(encoded(self.answer(words)))
            except Refused as refusal:
                connection.sendall(f"-{refusal}\r\n".encode())
            except Silent:
                continue


def end_patience(connection: RedisConnection) -> None:
    """Let it wait shortly from now on: no answer will come."""
    connection._connection._sock.settimeout(HASTY_S)


def encoded(answer: Answer) -> bytes:
    """`answer` in RESP 2."""
    if answer is None:
        return b"$-1\r\n"
    if isinstance(answer, int):
        return f":{answer}\r\n".encode()
    if isinstance(answer, str):
        return f"${len(answer.encode())}\r\n{answer}\r\n".encode()
    return f"*{len(answer)}\r\n".encode() + b"".join(map(encoded, answer))
