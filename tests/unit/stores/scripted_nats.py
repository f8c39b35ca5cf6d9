"""A server that speaks as much of NATS's protocol as a client of JetStream needs, and answers as the test says."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

HOST = "127.0.0.1"
INFO = {"server_id": "S", "version": "2.9.10", "proto": 1, "headers": True, "max_payload": 1_048_576, "jetstream": True}


class HangsUp(Exception):
    """The connection ends without an answer."""


class Silent(Exception):
    """No answer, and the connection stays."""


class NoResponders(Exception):
    """Nobody takes such messages."""


class ScriptedNats:
    """Listens on a free port; `answer` is given subject, headers and payload, and returns what becomes JSON, or raises.

    An answer of a string is a message as it is stored, the way direct reads bring it.
    """

    def __init__(self, answer: Callable[[str, str, str], Any]) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str, str]] = []
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        self._open: list[socket.socket] = [self._listener]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(connection)
            self._threads.append(threading.Thread(target=self._serve, args=(connection,)))
            self._threads[-1].start()

    def _serve(self, connection: socket.socket) -> None:
        stream = connection.makefile("rb")
        inbox = b""
        try:
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
        except (OSError, ValueError, HangsUp):
            pass
        finally:
            stream.close()
            connection.close()

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
