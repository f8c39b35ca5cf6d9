"""Running a Spark job while showing how far it is, and ending it in good order on Ctrl-C.

The job runs in a thread of its own, so that progress is shown, and Ctrl-C received, in the thread of the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from faultline.campaign.progress import read_progress
from faultline.campaign.summarise import Ending
from faultline.campaign.summary import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["watch"]

_LOOK_EVERY_S = 0.3


def watch(
    session: SparkSession, job: Callable[[], object], progress: Path, total: int, show: Callable[[Progress], None]
) -> Ending:
    """Carry out `job`, showing the progress of the files in `progress`; tells how it ended and never raises for it."""
    from pyspark import InheritableThread

    failures: list[str] = []

    def carry_out() -> None:
        try:
            job()
        except Exception as error:
            failures.append(f"Spark gave up: {_first_line(error)}.")

    thread = InheritableThread(target=carry_out, name="faultline-spark-job")
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_LOOK_EVERY_S)
            show(read_progress(progress, total, "running"))
    except KeyboardInterrupt:
        session.sparkContext.cancelAllJobs()
        thread.join()
        return Ending(interrupted=True)
    return Ending(failure=" ".join(failures))


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")
