"""The outcome of a command, as the supervisor receives it: the only source of its exit code.

A record is *sealed*: it carries a checksum of itself, so that half a record does not count. A command seals each
verdict as soon as it knows it, before any page is written, and its ending last. The exit code follows from all its
records:

    a violation that was judged      1, whatever came afterwards
    no ending                        4: the work died, or was ended
    an ending by a signal            129 (SIGHUP), 130 (SIGINT), 143 (SIGTERM)
    an ending with a verdict         by the verdict; a pass with a missing check is 3
    an ending without one            the code that it names: 0, 2, 3 or 4

This module is imported before everything else at every start, so it imports next to nothing itself.
"""

from __future__ import annotations

import marshal
import os
import zlib

# Not imported from typing, which takes as long to load as a small process to fork.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

__all__ = [
    "FAILED",
    "INTERRUPTED",
    "Sealed",
    "announce",
    "announced",
    "begin",
    "exit_code_of",
    "handed_over",
    "limit",
    "opened_messages",
    "sealed_message",
    "take_over",
    "work_for",
    "working_in",
]

FAILED = 4
INTERRUPTED = 130
_CODES = {"pass": 0, "violation": 1, "unknown": 3, "vacuous": 3, "harness-error": FAILED}
_VIOLATION = 1
_UNDECIDED = 3
_FOR_ENDINGS = (0, 2, 3, 4, 129, 130, 143)


class Sealed:
    """One record: a verdict that was established, or (`ended`) how the command ended.

    `verdict` is a verdict's name or '', `code` the exit code of an ending without one. `checks_due` names the parts
    that had to be judged and `checks_ran` those that were: checks of a run, cells of a campaign, files of a check.
    `folder` is where the results are."""

    def __init__(
        self,
        *,
        verdict: str = "",
        ended: bool = False,
        code: int = 0,
        plan_sha256: str = "",
        history_sha256: str = "",
        checks_due: tuple[str, ...] = (),
        checks_ran: tuple[str, ...] = (),
        folder: str = "",
    ) -> None:
        self.verdict = verdict
        self.ended = ended
        self.code = code
        self.plan_sha256 = plan_sha256
        self.history_sha256 = history_sha256
        self.checks_due = checks_due
        self.checks_ran = checks_ran
        self.folder = folder

    def replaced(self, **fields: Any) -> Sealed:
        """Return the same record with other values of `fields`."""
        return Sealed(**(vars(self) | fields))


def exit_code_of(records: Iterable[Sealed], interrupted_by: int = 0) -> int:
    """Return the exit code of the command that left `records`; `interrupted_by` is the signal that ended it early, if
    any."""
    told = list(records)
    if any(record.verdict == "violation" for record in told):
        return _VIOLATION
    if interrupted_by:
        return 128 + interrupted_by
    endings = [record for record in told if record.ended]
    return _code_of_ending(endings[-1]) if endings else FAILED


def _code_of_ending(ending: Sealed) -> int:
    if not ending.verdict:
        return ending.code if ending.code in _FOR_ENDINGS else FAILED
    code = _CODES.get(ending.verdict, FAILED)
    missing = not ending.checks_ran or set(ending.checks_due) - set(ending.checks_ran)
    return _UNDECIDED if code == 0 and missing else code


_records: list[Sealed] = []
_send: Callable[[dict[str, Any]], None] | None = None


def announce(record: Sealed) -> None:
    """Seal `record` and send it to the supervisor, if there is one."""
    _records.append(record)
    if _send is not None:
        _send({"sealed": vars(record)})


def announced() -> Sequence[Sealed]:
    """Return the records that this process has announced since it last began a command."""
    return _records


def limit(seconds: float, doing: str) -> None:
    """Let the supervisor end this process unless another limit, or the ending, is told within `seconds`.

    `doing` names the work, as in "the run". This is the last resort: work that can be interrupted in Python ends with a
    verdict of its own before (`faultline.harness.deadline`).
    """
    if _send is not None:
        _send({"limit_s": seconds, "doing": doing})


def working_in(folder: str) -> None:
    """Tell the supervisor that a campaign's journal is in `folder`, from which it can be concluded if this process
    dies."""
    if _send is not None:
        _send({"campaign": folder})


def begin() -> None:
    """Begin a command: forget what an earlier one of this process announced."""
    _records.clear()


_HEAD_BYTES = 8


def sealed_message(message: dict[str, Any]) -> bytes:
    """Return `message` in bytes, after its length and checksum.

    Both ends are this very interpreter, so its own format for plain values suffices; it costs no import at every start.
    """
    data = marshal.dumps(message)
    return len(data).to_bytes(4, "big") + zlib.crc32(data).to_bytes(4, "big") + data


def opened_messages(data: bytes) -> tuple[list[dict[str, Any]], bytes]:
    """Return the whole messages at the beginning of `data`, and the rest; one with a broken seal is left out."""
    messages = []
    while len(data) >= _HEAD_BYTES:
        end = _HEAD_BYTES + int.from_bytes(data[:4], "big")
        if len(data) < end:
            break
        body = data[_HEAD_BYTES:end]
        if zlib.crc32(body) == int.from_bytes(data[4:8], "big"):
            messages.append(marshal.loads(body))
        data = data[end:]
    return messages, data


_PIPES = "FAULTLINE_SUPERVISOR"
_pipes: tuple[int, int] | None = None


def work_for(telling: int, alive: int) -> None:
    """Make this process the worker of a supervisor: `telling` takes its messages, `alive` closes with the supervisor.

    The kernel then sends SIGIO, whose default is to end the process: without a supervisor the outcome has no reader.
    """
    global _pipes, _send
    import fcntl

    fcntl.fcntl(alive, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(alive, fcntl.F_SETFL, fcntl.fcntl(alive, fcntl.F_GETFL) | fcntl.FASYNC)
    _pipes = (telling, alive)
    _send = _writer(telling)


def take_over() -> bool:
    """Return whether this program replaced a worker (`handed_over`), whose work it then goes on with."""
    pipes = os.environ.pop(_PIPES, "").split(",")
    if len(pipes) != 2 or not all(map(str.isdigit, pipes)):
        return False
    telling, alive = map(int, pipes)
    for descriptor in (telling, alive):
        os.set_inheritable(descriptor, False)
    work_for(telling, alive)
    return True


def handed_over() -> dict[str, str]:
    """Return the environment by which a program that replaces this worker (execve) takes over its pipes."""
    if _pipes is None:
        return {}
    for descriptor in _pipes:
        os.set_inheritable(descriptor, True)
    return {_PIPES: ",".join(map(str, _pipes))}


def _writer(descriptor: int) -> Callable[[dict[str, Any]], None]:
    """Return a function that writes messages into the pipe `descriptor`."""

    def send(message: dict[str, Any]) -> None:
        rest = memoryview(sealed_message(message))
        while rest:
            rest = rest[os.write(descriptor, rest) :]

    return send
