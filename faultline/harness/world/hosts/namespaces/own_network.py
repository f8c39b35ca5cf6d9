"""Things made in another network namespace: a socket belongs for ever to the namespace in which it was made.

So a thread enters the namespace, makes what is wanted, and ends; the receiver of the socket can then speak from there
at the cost of a system call, without ever leaving its own namespace.
"""

from __future__ import annotations

import ctypes
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from faultline.harness.errors import HarnessError

__all__ = ["BUFFER_BYTES", "enlarge_buffers", "made_in"]

Made = TypeVar("Made")
BUFFER_BYTES = 64 << 20
"""Room for a burst of some ten thousand packets."""
_NETWORK = 0x40000000
_SEND_BUFFER_FORCED, _RECEIVE_BUFFER_FORCED = 32, 33


def made_in(network: Path, make: Callable[[], Made]) -> Made:
    """Return the result of `make` in the namespace `network`. Raises HarnessError when that cannot be entered."""
    made: list[Made] = []
    errors: list[BaseException] = []

    def enter_and_make() -> None:
        try:
            _enter(network)
            made.append(make())
        except BaseException as error:
            errors.append(error)

    # Only the thread changes over, and it ends here.
    thread = threading.Thread(target=enter_and_make, name="enter-namespace")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return made[0]


def enlarge_buffers(made: socket.socket, byte_count: int) -> None:
    """Let so much wait in `made` in either direction, also beyond the system's limit for ordinary users."""
    made.setsockopt(socket.SOL_SOCKET, _SEND_BUFFER_FORCED, byte_count)
    made.setsockopt(socket.SOL_SOCKET, _RECEIVE_BUFFER_FORCED, byte_count)


def _enter(network: Path) -> None:
    try:
        descriptor = os.open(network, os.O_RDONLY)
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.setns(descriptor, _NETWORK):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        finally:
            os.close(descriptor)
    except OSError as error:
        raise HarnessError(f"The host's network {network} cannot be entered: {error}.", "Does it still run?") from error
