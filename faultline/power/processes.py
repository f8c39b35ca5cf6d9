"""Tasks in processes of their own: each begins without any module of a system, and its end harms no other."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess

from faultline.harness.errors import HarnessError
from faultline.power.worker import HANG, Ran, Task, work

__all__ = ["carry_out"]


class _Running:
    def __init__(self, number: int, task: Task, process: BaseProcess, hearing: Connection) -> None:
        self.number = number
        self.task = task
        self.process = process
        self.hearing = hearing
        self.ran: list[Ran] = []

    def ended(self) -> list[Ran]:
        """Return all runs. When the kernel ended the process, the last one counts as a hang.

        Raise `HarnessError` when the process failed by itself: that says nothing about the mutant.
        """
        self.process.join()
        if (self.process.exitcode or 0) > 0:
            changed = self.task.mutant.id if self.task.mutant else "the unchanged program"
            raise HarnessError(
                f"The process that ran {changed} failed; its traceback stands above.",
                "Report this as a bug of Faultline, with the command.",
            )
        if self.process.exitcode:
            lost = Ran(
                number=self.task.numbers[min(len(self.ran), len(self.task.numbers) - 1)],
                ended=HANG,
                error=f"the process of the run ended with code {self.process.exitcode}",
            )
            return [*self.ran, lost]
        return self.ran


def carry_out(tasks: Iterable[Task], processes: int) -> Iterator[tuple[int, list[Ran]]]:
    """Yield the number of each task and its runs, as tasks end; at most so many `processes` work at a time."""
    # A process of the server is a copy of one that has imported the harness, and no system.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["faultline.power.worker"])
    waiting, running = iter(enumerate(tasks)), dict[Connection, _Running]()
    try:
        while True:
            while len(running) < processes and (following := next(waiting, None)) is not None:
                begun = _begun(context, *following)
                running[begun.hearing] = begun
            if not running:
                return
            for hearing in wait(list(running)):
                assert isinstance(hearing, Connection)
                if not _hear(running[hearing]):
                    done = running.pop(hearing)
                    yield done.number, done.ended()
    finally:
        for each in running.values():
            each.process.kill()
            each.process.join()


def _begun(context: ForkServerContext, number: int, task: Task) -> _Running:
    hearing, telling = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(task, telling), daemon=True)
    process.start()
    telling.close()
    return _Running(number, task, process, hearing)


def _hear(running: _Running) -> bool:
    """Take the next run of a process; return whether more may come."""
    try:
        running.ran.append(running.hearing.recv())
    except (EOFError, OSError):
        return False
    return True
