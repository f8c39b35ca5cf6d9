"""The supervisor while its child works: it waits, receives the child's messages, and forwards signals.

The module `supervisor` describes the purpose.
"""

from __future__ import annotations

# The part of the module signal that is in C: the rest, names for numbers, takes four milliseconds to load.
import _signal as signal  # type: ignore[import-not-found]
import os
import select
import time

from faultline.cli.sealed_outcome import FAILED, Sealed, exit_code_of, opened_messages
from faultline.cli.worker import Worker, command, fork_worker

# Neither contextlib nor typing is imported: together they would take as long to load as all the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["Supervisor", "session_of"]

_SAME_SIGNAL_S = 0.25
"""The time within which a second signal counts as the first one, sent to several processes."""
_SUMMARY_S = 8.0
"""The time after the first signal that a campaign may take to summarise before it is concluded from its folder."""
_INTERRUPTED_S = 60.0
"""The time after the first signal that a run may take to end: nodes on hosts end and links heal one by one."""
_END_S = 10.0
"""The time that the child may take to end once it has told its outcome."""
_LEFT_S = 5.0
"""The time that processes of its session may take to end after it."""
_CHUNK_BYTES = 1 << 16


class Supervisor:
    """A supervisor of one child after another: it waits for messages and for the signals that are added to `noted`."""

    def __init__(self, worker: Worker, noted: list[int], wake: int) -> None:
        self.records: list[Sealed] = []
        self.campaign = ""
        self.doing = ""
        self._worker = worker
        self._status: int | None = None
        self._noted = noted
        self._wake = wake
        self._interrupted_by = 0
        self._first_s = 0.0
        self._given_up = False
        self._kill_at_s: float | None = None
        self._rest = b""
        self._is_telling = True

    def supervise(self) -> int:
        """Wait for the worker and return the exit code of the command."""
        self._wait()
        if self.campaign and not self._has_ended():
            self._conclude()
        code = exit_code_of(self.records, self._interrupted_by)
        if code == FAILED and not self._has_ended():
            self._say_what_died()
        return code

    def _has_ended(self) -> bool:
        return any(record.ended for record in self.records)

    def _wait(self) -> None:
        """Wait until the worker and all of its session have ended, and read its messages."""
        worker = self._worker
        os.set_blocking(worker.outcome, False)
        self._rest, self._status, self._is_telling = b"", None, True
        # A worker that ended before its signal could be noted is seen at once.
        self._reap()
        while self._status is None:
            # A child that closed its end sends no more; its pipe would stay readable for ever, and the loop would spin.
            telling = [worker.outcome] if self._is_telling else []
            select.select([*telling, self._wake], [], [], self._patience_s())
            _read_all(self._wake)
            self._take_in()
            self._heed_signals()
            self._reap()
        self._take_in()
        os.close(worker.outcome)
        os.close(worker.living)
        # Looking at all processes takes milliseconds. A command that announced no limit and no campaign, and ended
        # well, has started none, so the look is saved.
        if self.doing or self.campaign or self._interrupted_by or self._status != 0:
            _end_session(worker.process)

    def _heed_signals(self) -> None:
        """Act on the signals that were noted; their meaning depends on the child's messages before."""
        while self._noted:
            number, now_s = self._noted.pop(0), time.monotonic()
            if not self._first_s:
                self._first_s = now_s
                if not self._has_ended():
                    self._interrupted_by = number
                    self._limit(_SUMMARY_S if self.campaign else _INTERRUPTED_S)
                    _send(self._worker.process, signal.SIGINT)
            elif now_s - self._first_s > _SAME_SIGNAL_S:
                self._given_up = True
                self._kill()

    def _patience_s(self) -> float | None:
        return None if self._kill_at_s is None else max(0.0, self._kill_at_s - time.monotonic())

    def _limit(self, seconds: float) -> None:
        self._kill_at_s = time.monotonic() + seconds

    def _kill(self) -> None:
        self._kill_at_s = None
        _kill_session(self._worker.process)

    def _reap(self) -> None:
        if self._kill_at_s is not None and time.monotonic() >= self._kill_at_s:
            if not self._interrupted_by and not self._has_ended():
                _say(f"faultline: {self.doing or 'the work'} did not end within its time limit, and was killed.")
            self._kill()
        process, status = os.waitpid(self._worker.process, os.WNOHANG)
        if process:
            self._status = status

    def _take_in(self) -> None:
        """Read the child's messages so far; half a message waits for its rest."""
        data, self._is_telling = _read_all(self._worker.outcome)
        messages, self._rest = opened_messages(self._rest + data)
        for message in messages:
            self._heed(message)

    def _heed(self, message: dict[str, Any]) -> None:
        if "campaign" in message:
            self.campaign = message["campaign"]
        if "limit_s" in message and not self._interrupted_by:
            self.doing = message["doing"]
            self._limit(message["limit_s"])
        if "sealed" in message:
            record = Sealed(**message["sealed"])
            self.records.append(record)
            if record.ended:
                self._limit(_END_S)

    def _conclude(self) -> None:
        """Let another child summarise the campaign's folder, within the time that a summary takes."""
        if self._given_up:
            return
        _say(f"faultline: the campaign's process {self._how_it_died()}; concluding it from its folder {self.campaign}.")
        self._limit(_INTERRUPTED_S)
        self.records = [record for record in self.records if record.verdict == "violation"]
        folder, self.campaign = self.campaign, ""
        self._worker = fork_worker(command(["campaign", "conclude", folder]))
        self._wait()
        # The runs that are missing are a failure of the harness, whatever the verdict of the others is.
        violations = [record for record in self.records if record.verdict == "violation"]
        self.records = violations or [Sealed(verdict="harness-error", ended=True)]

    def _how_it_died(self) -> str:
        status = self._status or 0
        if os.WIFSIGNALED(status):
            return f"was ended by signal {os.WTERMSIG(status)} ({_signal_name(os.WTERMSIG(status))})"
        return f"ended with code {os.WEXITSTATUS(status)} without telling its outcome"

    def _say_what_died(self) -> None:
        _say(f"faultline: the work {self._how_it_died()}, so this says nothing about the system under test.")
        _say(
            "  The record is kept; `faultline check FOLDER` judges it. The cause may be a plug-in or a lack of memory."
        )


def _signal_name(number: int) -> str:
    try:
        from signal import Signals

        return Signals(number).name
    except ValueError:
        return "unknown"


def _say(sentence: str) -> None:
    try:
        os.write(2, f"{sentence}\n".encode())
    except OSError:
        return


def _read_all(descriptor: int) -> tuple[bytes, bool]:
    """Return the bytes that can be read from `descriptor` at once, and whether its other end is still open."""
    data = b""
    try:
        while chunk := os.read(descriptor, _CHUNK_BYTES):
            data += chunk
    except BlockingIOError:
        return data, True
    return data, False


def _send(process: int, number: int, send: Callable[[int, int], None] = os.kill) -> None:
    """Send the signal `number`, unless the process has ended or belongs to another user."""
    try:
        send(process, number)
    except (ProcessLookupError, PermissionError):
        return


def _end_session(leader: int) -> None:
    """Wait for the processes of the session of `leader` to end, and end those that do not."""
    deadline_s = time.monotonic() + _LEFT_S
    while session_of(leader):
        if time.monotonic() > deadline_s:
            _kill_session(leader)
            return
        time.sleep(0.02)


def _kill_session(leader: int) -> None:
    """End the process `leader` and every process of its session and of its group."""
    _send(leader, signal.SIGKILL, os.killpg)
    for process in session_of(leader):
        _send(process, signal.SIGKILL)


def session_of(leader: int) -> list[int]:
    """Return the processes of the session of `leader`; none where the system has no /proc, or all have
    ended."""
    try:
        names = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
    return [int(name) for name in names if _is_of(leader, name)]


def _is_of(leader: int, process: str) -> bool:
    """Return whether `process` belongs to the session of `leader` and has not ended."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            # The name, in parentheses, may hold spaces; after it: state, parent, group, session.
            state, _parent, _group, session = file.read().rpartition(b")")[2].split()[:4]
    except (OSError, ValueError):
        return False
    return int(session) == leader and state not in (b"Z", b"X")
