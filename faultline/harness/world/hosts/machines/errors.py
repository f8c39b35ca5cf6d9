"""The ways in which a host can fail, as types: each error keeps the host's name, a command's also all its output.

HostError                       (a HarnessError: nothing is known about the system under test)
├── HostUnreachable             no connection within the attempts allowed
├── HostKeyRefused              the host shows another key than the known one, or none is known
├── LoginRefused                the host does not take this user and key
├── CommandFailed               the command ran and ended with a code other than 0
├── CommandTimedOut             the command had not ended in time; whether it goes on is unknown
├── CommandLost                 the connection broke while the command ran; what it did is unknown
├── UnreadableAnswer            what was heard from the host is no answer of a program of ours
├── TransferFailed              a file could not be brought to the host or fetched from it
└── HostsFailed                 several hosts failed in one fan-out; `errors` holds each one's own error
"""

from __future__ import annotations

from collections.abc import Mapping

from faultline.harness.errors import HarnessError

__all__ = [
    "CommandFailed",
    "CommandLost",
    "CommandTimedOut",
    "HostError",
    "HostKeyRefused",
    "HostUnreachable",
    "HostsFailed",
    "LoginRefused",
    "TransferFailed",
    "UnreadableAnswer",
]

_SHOWN_CHARACTERS = 300
_SHOWN_BYTES = 200


class HostError(HarnessError):
    """Something went wrong with the host called `host`."""

    def __init__(self, host: str, message: str, next_step: str = "") -> None:
        super().__init__(message, next_step)
        self.host = host


class HostUnreachable(HostError):
    """No SSH connection came about."""


class HostKeyRefused(HostError):
    """The host could not prove that it is the one that is meant."""


class LoginRefused(HostError):
    """The host does not let this user in with this key."""


class TransferFailed(HostError):
    """A file did not get to the host, or not back."""


class UnreadableAnswer(HostError):
    """Bytes came from the host that are no answer of `asked`."""

    def __init__(self, host: str, asked: str, said: bytes) -> None:
        shown = ascii(said[:_SHOWN_BYTES])[2:-1] if said else "nothing"
        super().__init__(
            host,
            f"On {host}, {asked} answered what is no answer: {shown}{' …' if len(said) > _SHOWN_BYTES else ''}.",
            "Does a start-up file of the login shell print something? It must not when no terminal is there; "
            f"try: ssh {host} true",
        )


class _CommandError(HostError):
    def __init__(self, host: str, command: str, ending: str, stdout: bytes, stderr: bytes, next_step: str) -> None:
        said = _shown(stderr) or _shown(stdout) or "it wrote nothing"
        super().__init__(host, f"On {host}, `{command}` {ending}: {said}.", next_step)
        self.command = command
        self.stdout = stdout
        self.stderr = stderr


class CommandFailed(_CommandError):
    """A command ended with `exit_code`, which is not 0; negative when the connection says that a signal ended it."""

    def __init__(self, host: str, command: str, exit_code: int, stdout: bytes, stderr: bytes) -> None:
        next_step = "Run it there by hand to see more."
        super().__init__(host, command, f"ended with code {exit_code}", stdout, stderr, next_step)
        self.exit_code = exit_code


class CommandTimedOut(_CommandError):
    """A command had not ended after `timeout_s`; the streams hold what it had written by then."""

    def __init__(self, host: str, command: str, timeout_s: float, stdout: bytes, stderr: bytes) -> None:
        next_step = "Is the host overloaded? A program left in the background must not keep the command's streams."
        super().__init__(host, command, f"had not ended after {timeout_s:g} s", stdout, stderr, next_step)
        self.timeout_s = timeout_s


class CommandLost(_CommandError):
    """The connection broke under a command; it may have happened, so it is never sent again by itself."""

    def __init__(self, host: str, command: str, stdout: bytes, stderr: bytes) -> None:
        next_step = "See whether the host still runs."
        super().__init__(host, command, "was cut off by the end of the connection", stdout, stderr, next_step)


class HostsFailed(HostError):
    """One action failed on several hosts."""

    def __init__(self, errors: Mapping[str, HostError]) -> None:
        names = ", ".join(errors)
        first = next(iter(errors.values()))
        super().__init__(names, f"{len(errors)} hosts failed ({names}); the first: {first.message}", first.next_step)
        self.errors = dict(errors)


def _shown(stream: bytes) -> str:
    """Return the end of a stream in one line."""
    text = stream.decode(errors="replace").strip()
    return " / ".join(text[-_SHOWN_CHARACTERS:].splitlines()).rstrip(".")
