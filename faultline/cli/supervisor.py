"""The `faultline` command as the user starts it: a supervisor, whose child does the work.

The supervisor's exit code comes from the sealed outcome that the child sends (`sealed_outcome`) and from nothing else.
How the child ends says nothing: a plug-in may end it in any way (sys.exit, os._exit, a segmentation fault), and so may
the kernel. The child is forked before anything is imported, which costs about a millisecond.

- The child leads a session of its own, so that Ctrl-C reaches it, and what it started, once and from here.
- The first SIGINT, SIGTERM or SIGHUP asks the child to end: it gets one SIGINT, and summarises what it has. A second
  one ends everything at once. A signal that comes twice at a time, as when it is sent to a group or a control group,
  counts once.
- A child that has announced a limit and does not keep it is ended.
- A campaign whose process died, or is slow to end, is concluded from its folder by another child.
- At the end no process of the child's session is left.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from faultline.cli import sealed_outcome
from faultline.cli.sealed_outcome import FAILED, Sealed, exit_code_of, opened_messages

__all__ = ["main", "session_of"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SAME_SIGNAL_S = 0.25
"""Within this time a second signal is the same one, sent to several processes."""
_SUMMARY_S = 8.0
"""How long after the first signal a campaign may take to summarise before it is concluded from its folder."""
_INTERRUPTED_S = 60.0
"""How long after the first signal a run may take to end: nodes on hosts are ended and links healed one by one."""
_END_S = 10.0
"""How long the child may take to end once it has told its outcome."""
_LEFT_S = 5.0
"""How long processes of its session may take to end after it."""
_CHUNK_BYTES = 1 << 16


def main() -> NoReturn:
    """Run the command line under supervision, and exit."""
    arguments = sys.argv[1:]
    if sealed_outcome.take_over():
        _work(lambda: _command(arguments))
    if not hasattr(os, "fork"):
        from faultline.cli.main import main as unsupervised

        unsupervised()
    code = _Supervisor().supervise(lambda: _command(arguments))
    # At once: while an interpreter ends it has no handlers, and a late signal would take the place of the code.
    os._exit(code)


def _command(arguments: Sequence[str]) -> None:
    from faultline.cli.main import carry_out

    carry_out(arguments)


# -- the child -------------------------------------------------------------------------------------------------------


def _work(work: Callable[[], None]) -> NoReturn:
    """Carry out `work` in this process, the child, and end it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        # Sent to this process: the supervisor decides what that means, and whether it got the same one.
        signal.signal(number, lambda received, _frame: os.kill(os.getppid(), received))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    work()
    sys.exit(0)


# -- the supervisor --------------------------------------------------------------------------------------------------


class _Supervisor:
    """Waits for one child after another, for its messages, and for signals."""

    def __init__(self) -> None:
        self.records: list[Sealed] = []
        self.campaign = ""
        self.doing = ""
        self._child = 0
        self._status: int | None = None
        self._pending: list[int] = []
        self._interrupted_by = 0
        self._first_s = 0.0
        self._given_up = False
        self._kill_at_s: float | None = None
        self._rest = b""

    def supervise(self, work: Callable[[], None]) -> int:
        """Let a child do `work` and return the exit code of the command."""
        wake, waker = os.pipe()
        os.set_blocking(waker, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        self._watch_child(work, wake)
        if self.campaign and not self._has_ended():
            self._conclude(wake)
        code = exit_code_of(self.records, self._interrupted_by)
        if code == FAILED and not self._has_ended():
            self._say_what_died()
        return code

    def _has_ended(self) -> bool:
        return any(record.ended for record in self.records)

    def _watch_child(self, work: Callable[[], None], wake: int) -> None:
        """Fork, wait until the child and all of its session are gone, and take in what it told."""
        outcome, telling = os.pipe()
        alive, living = os.pipe()
        self._rest, self._status = b"", None
        self._child = os.fork()
        if self._child == 0:
            for descriptor in (outcome, living, wake):
                os.close(descriptor)
            signal.set_wakeup_fd(-1)
            os.setsid()
            sealed_outcome.work_for(telling, alive)
            _work(work)
        for descriptor in (telling, alive):
            os.close(descriptor)
        os.set_blocking(outcome, False)
        self._take_signals()
        try:
            while self._status is None:
                select.select([outcome, wake], [], [], self._patience_s())
                self._drain(wake)
                self._take_in(outcome)
                self._heed_signals()
                self._reap()
            self._take_in(outcome)
        finally:
            os.close(outcome)
            os.close(living)
        # Looking at all processes takes milliseconds: what told no limit and no campaign, and ended well, has none.
        if self.doing or self.campaign or self._interrupted_by or self._status != 0:
            _end_session(self._child)

    def _take_signals(self) -> None:
        for number in _SIGNALS:
            # What was ignored by whoever started the command (nohup, a shell's background job) stays so.
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._signalled)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)

    def _signalled(self, number: int, _frame: Any) -> None:
        """Note a signal. What it means depends on what the child has told meanwhile, which is read first."""
        self._pending.append(number)

    def _heed_signals(self) -> None:
        while self._pending:
            number, now_s = self._pending.pop(0), time.monotonic()
            if not self._first_s:
                self._first_s = now_s
                if not self._has_ended():
                    self._interrupted_by = number
                    self._limit(_SUMMARY_S if self.campaign else _INTERRUPTED_S)
                    os.kill(self._child, signal.SIGINT)
            elif now_s - self._first_s > _SAME_SIGNAL_S:
                self._given_up = True
                self._kill()

    def _patience_s(self) -> float | None:
        return None if self._kill_at_s is None else max(0.0, self._kill_at_s - time.monotonic())

    def _limit(self, seconds: float) -> None:
        self._kill_at_s = time.monotonic() + seconds

    def _kill(self) -> None:
        self._kill_at_s = None
        _kill_session(self._child)

    def _reap(self) -> None:
        if self._kill_at_s is not None and time.monotonic() >= self._kill_at_s:
            if not self._interrupted_by and not self._has_ended():
                _say(f"faultline: {self.doing or 'the work'} did not end in the time that it may take, and was ended.")
            self._kill()
        process, status = os.waitpid(self._child, os.WNOHANG)
        if process:
            self._status = status

    def _drain(self, wake: int) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(wake, _CHUNK_BYTES):
                pass

    def _take_in(self, outcome: int) -> None:
        """Read what the child has told so far; what is not a whole message waits for its rest."""
        data = self._rest
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(outcome, _CHUNK_BYTES):
                data += chunk
        messages, self._rest = opened_messages(data)
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

    def _conclude(self, wake: int) -> None:
        """Have another child summarise what the campaign left; it is given the time that a summary takes."""
        if self._given_up:
            return
        _say(f"faultline: the campaign's process {self._how_it_died()}; concluding what it left in {self.campaign}.")
        self._limit(_INTERRUPTED_S)
        self.records = [record for record in self.records if record.verdict == "violation"]
        folder, self.campaign = self.campaign, ""
        self._watch_child(lambda: _command(["campaign", "conclude", folder]), wake)
        # What is missing in the campaign is a failure of the harness, whatever the rest came to.
        violations = [record for record in self.records if record.verdict == "violation"]
        self.records = violations or [Sealed(verdict="harness-error", ended=True)]

    def _how_it_died(self) -> str:
        status = self._status or 0
        if os.WIFSIGNALED(status):
            return f"was ended by signal {os.WTERMSIG(status)} ({_signal_name(os.WTERMSIG(status))})"
        return f"ended with code {os.WEXITSTATUS(status)} without having told what it came to"

    def _say_what_died(self) -> None:
        _say(f"faultline: the work {self._how_it_died()}, so nothing is known about the system under test.")
        _say("  What was recorded is kept; `faultline check FOLDER` judges it. Is a plug-in, or memory, to blame?")


# -- processes -------------------------------------------------------------------------------------------------------


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def _say(sentence: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, f"{sentence}\n".encode())


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
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    for process in session_of(leader):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)


def session_of(leader: int) -> list[int]:
    """The processes of the session of `leader`; none where the system has no /proc, or only ended ones are left."""
    found = []
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    for name in filter(str.isdigit, names):
        with contextlib.suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{name}/stat", "rb") as file:
                # The name, in parentheses, may hold spaces; after it: state, parent, group, session.
                fields = file.read().rpartition(b")")[2].split()
            if int(fields[3]) == leader and fields[0] not in (b"Z", b"X"):
                found.append(int(name))
    return found
