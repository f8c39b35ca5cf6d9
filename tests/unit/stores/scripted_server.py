"""A server on a free port that talks with each of its clients in a thread, and ends all of them when it is closed."""

from __future__ import annotations

import socket
import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import BinaryIO

__all__ = ["HOST", "HangsUp", "ScriptedServer", "Silent"]

HOST = "127.0.0.1"


class HangsUp(Exception):
    """The connection ends without an answer."""


class Silent(Exception):
    """No answer, and the connection stays."""


class ScriptedServer(ABC):
    """Listens from its making on."""

    def __init__(self) -> None:
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        self._open: list[socket.socket] = [self._listener]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    @abstractmethod
    def talk(self, connection: socket.socket, stream: BinaryIO) -> None:
        """Answer what comes over `stream` until it ends, or raise HangsUp."""

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
            self.talk(connection, stream)
        except (OSError, ValueError, HangsUp):
            pass
        finally:
            stream.close()
            connection.close()
