"""The child of the supervisor, which does the work; it is forked early, so this module imports little."""

from __future__ import annotations

# The part of the module signal that is in C: the rest, names for numbers, takes four milliseconds to load.
import _signal as signal  # type: ignore[import-not-found]
import os
import sys

from faultline.cli import sealed_outcome

# Not imported from typing, which takes longer to load than a small process to fork.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

__all__ = ["Worker", "command", "fork_worker", "take_over"]


def command(arguments: list[str]) -> Callable[[], object]:
    """Return the work of a worker: carrying out the command line `arguments`."""

    def carry_out() -> object:
        from faultline.cli.main import carry_out as carried_out

        return carried_out(arguments)

    return carry_out


class Worker:
    """A child at work: its process id, the pipe for its messages, and the pipe that shows it that the supervisor
    lives."""

    __slots__ = ("living", "outcome", "process")

    def __init__(self, process: int, outcome: int, living: int) -> None:
        self.process = process
        self.outcome = outcome
        self.living = living


def fork_worker(work: Callable[[], object]) -> Worker:
    """Start a child that does `work`, in a session of its own."""
    outcome, telling = os.pipe()
    alive, living = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(outcome)
        os.close(living)
        os.setsid()
        sealed_outcome.work_for(telling, alive)
        _work(work)
    os.close(telling)
    os.close(alive)
    return Worker(process, outcome, living)


def take_over(work: Callable[[], object]) -> None:
    """Go on as the worker when this program replaced one, and never return; return at once otherwise."""
    if sealed_outcome.take_over():
        _work(work)


def _work(work: Callable[[], object]) -> NoReturn:
    """Carry out `work` in this process, the child, and end it."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number in (signal.SIGTERM, signal.SIGHUP):
        # A signal to this process alone goes on to the supervisor, which knows whether it is a duplicate.
        signal.signal(number, lambda received, _frame: os.kill(os.getppid(), received))
    try:
        work()
    except KeyboardInterrupt:
        # The signal came before the work began, or after it had ended.
        os._exit(0)
    sys.exit(0)
