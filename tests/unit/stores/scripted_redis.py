"""A server that speaks Redis's protocol (RESP 2) and answers each command as the test says."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

HOST = "127.0.0.1"
Answer = str | int | None | list["Answer"]


class Refused(Exception):
    """Answered as an error: `READONLY You can't ...`."""


class HangsUp(Exception):
    """The connection ends without an answer."""


class Silent(Exception):
    """No answer, and the connection stays."""


class ScriptedRedis:
    """Listens on a free port; `answer` is given each command, as words, and returns or raises."""

    def __init__(self, answer: Callable[[list[str]], Answer]) -> None:
        self.answer = answer
        self.asked: list[list[str]] = []
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        self._open: list[socket.socket] = [self._listener]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def hang_up(self) -> None:
        """End all connections; new ones are welcome."""
        for each in self._open[1:]:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

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
        try:
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
        except (OSError, ValueError, HangsUp):
            pass
        finally:
            stream.close()
            connection.close()


def encoded(answer: Answer) -> bytes:
    """`answer` in RESP 2."""
    if answer is None:
        return b"$-1\r\n"
    if isinstance(answer, int):
        return f":{answer}\r\n".encode()
    if isinstance(answer, str):
        return f"${len(answer.encode())}\r\n{answer}\r\n".encode()
    return f"*{len(answer)}\r\n".encode() + b"".join(map(encoded, answer))
