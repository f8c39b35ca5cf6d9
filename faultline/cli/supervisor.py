"""The `faultline` command as the user starts it: a supervisor, whose child does the work.

The supervisor's exit code comes from the sealed outcome that the child sends (`sealed_outcome`) and from nothing else.
The way in which the child ends does not count: a plug-in may end it in any way (sys.exit, os._exit, a segmentation
fault), and so may the kernel. The child is forked before anything is imported: a small process is forked in a
millisecond, and the supervisor then imports its own modules (`supervision`) while the child imports its own.

- The child leads a session of its own, so that Ctrl-C reaches it and its processes once, and only through the
  supervisor.
- The first SIGINT, SIGTERM or SIGHUP asks the child to end: it gets one SIGINT, and summarises its results. A second
  one ends everything at once. A signal that comes twice at a time, as when it is sent to a group or a control group,
  counts once.
- A child that has announced a limit and does not keep it is killed.
- A campaign whose process died, or is slow to end, is concluded from its folder by another child.
- At the end no process of the child's session is left.
"""

from __future__ import annotations

# The part of the module signal that is in C: the rest, names for numbers, takes four milliseconds to load.
import _signal as signal  # type: ignore[import-not-found]
import os
import sys

from faultline.cli.worker import command, fork_worker, take_over

# Not imported from typing, which takes longer to load than a small process to fork.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

__all__ = ["main"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> NoReturn:
    """Run the command line under supervision, and exit."""
    work = command(sys.argv[1:])
    take_over(work)
    if not hasattr(os, "fork"):
        from faultline.cli.main import main as unsupervised

        unsupervised()
    noted: list[int] = []
    wake = _note_signals(noted)
    worker = fork_worker(work)
    from faultline.cli.supervision import Supervisor

    code = Supervisor(worker, noted, wake).supervise()
    # At once: an interpreter that ends has no signal handlers any more, and a late signal would replace the exit code.
    os._exit(code)


def _note_signals(noted: list[int]) -> int:
    """Add signals to `noted`; return a descriptor that is readable after a signal, or after a child has ended."""
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    for number in _SIGNALS:
        # A signal that the parent of the command ignores (nohup, a shell's background job) stays ignored.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda received, _frame: noted.append(received))
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    return wake
