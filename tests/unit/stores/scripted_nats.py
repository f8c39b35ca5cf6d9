"""A server that speaks as much of NATS's protocol as a client of JetStream needs, and answers as the test says."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any, BinaryIO

from scripted_server import ScriptedServer, Silent

INFO = {"server_id": "S", "version": "2.9.10", "proto": 1, "headers": True, "max_payload": 1_048_576, "jetstream": True}


class NoResponders(Exception):
    """No server takes such messages."""


class ScriptedNats(ScriptedServer):
    """`answer` is given subject, headers and payload, and returns what becomes JSON, or raises.

    An answer of a string is a message as it is stored, the way direct reads bring it.
    """

    def __init__(self, answer: Callable[[str, str, str], Any]) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str, str]] = []
        super().__init__()

    def talk(self, connection: socket.socket, stream: BinaryIO) -> None:
        inbox = b""
        connection.sendall(b"INFO " + json.dumps(INFO).encode() + b"\r\n")
        while line := stream.readline():
            words = line.split()
            if words[0] == b"PING":
                connection.sendall(b"PONG\r\n")
            elif words[0] == b"SUB":
                inbox = words[-1]
            elif words[0] in (b"PUB", b"HPUB"):
                content = stream.read(int(words[-1]) + 2)[:-2]
                headers_size = int(words[3]) if words[0] == b"HPUB" else 0
                self._answer(connection, inbox, words[1].decode(), words[2], content, headers_size)

    def _answer(
        self, connection: socket.socket, inbox: bytes, subject: str, reply: bytes, content: bytes, headers_size: int
    ) -> None:
        question = (subject, content[:headers_size].decode(), content[headers_size:].decode())
        self.asked.append(question)
        headers, body = b"", b""
        try:
            answer = self.answer(*question)
            if isinstance(answer, str):
                headers, body = _stored_at(subject), answer.encode()
            else:
                body = json.dumps(answer).encode()
        except NoResponders:
            headers = b"NATS/1.0 503\r\n\r\n"
        except Silent:
            return
        sizes = f"{len(headers)} {len(headers) + len(body)}" if headers else f"{len(body)}"
        verb = b"HMSG" if headers else b"MSG"
        connection.sendall(b" ".join([verb, reply, inbox, sizes.encode()]) + b"\r\n" + headers + body + b"\r\n")


def _stored_at(subject: str) -> bytes:
    key = subject.partition("KV_faultline.")[2]
    lines = ["NATS/1.0", "Nats-Stream: KV_faultline", f"Nats-Subject: {key}", "Nats-Sequence: 5"]
    return "\r\n".join([*lines, "Nats-Time-Stamp: 2026-01-01T00:00:00Z", "", ""]).encode()
