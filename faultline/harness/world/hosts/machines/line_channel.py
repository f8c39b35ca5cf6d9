"""A program of ours on a host that answers each line of JSON with one, over an SSH channel.

What comes over the channel was written on another machine: by our program, by a login shell that greets, or by
anything else. So a line has a bounded length, and what is no answer becomes one error that names the host and shows how
it began.
"""

from __future__ import annotations

from typing import Any

import msgspec

from faultline.harness.untrusted import decoded
from faultline.harness.world.hosts.machines.errors import UnreadableAnswer

__all__ = ["LineChannel"]

LINE_BYTES_MAX = 16 * 1024 * 1024
_READ_BYTES = 65_536


class LineChannel:
    """One such program on `host`, behind an open `channel`."""

    def __init__(self, host: str, channel: Any) -> None:
        self.channel = channel
        self._host = host
        self._heard = bytearray()

    @property
    def is_open(self) -> bool:
        """Return whether the program goes on, as far as is known here."""
        return not self.channel.closed and not self.channel.exit_status_ready()

    def ask(self, question: dict[str, Any]) -> Any:
        """Return the answer. Raises OSError or EOFError when none comes, UnreadableAnswer when it is no JSON."""
        self.channel.sendall(msgspec.json.encode(question) + b"\n")
        line = self._line()
        try:
            return decoded(line)
        except ValueError as error:
            raise UnreadableAnswer(self._host, "a program of ours", line) from error

    def complaint(self) -> str:
        """Return the last line that the program wrote to its standard error."""
        said = b""
        while self.channel.recv_stderr_ready() and len(said) < LINE_BYTES_MAX:
            said += self.channel.recv_stderr(_READ_BYTES)
        return said.decode(errors="replace").strip().rpartition("\n")[2]

    def _line(self) -> bytes:
        heard = self._heard
        while (end := heard.find(b"\n")) < 0:
            if len(heard) > LINE_BYTES_MAX:
                raise UnreadableAnswer(self._host, "a program of ours", bytes(heard))
            part = self.channel.recv(_READ_BYTES)
            if not part:
                raise EOFError("it has ended")
            heard += part
        line = bytes(heard[:end])
        del heard[: end + 1]
        return line
