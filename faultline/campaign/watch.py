"""A Spark job with its progress.

The job runs in a thread of its own, so that the thread of the caller shows progress and receives Ctrl-C. The caller
does not wait for that thread when it leaves: a job whose workers are gone may never end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from faultline.campaign.progress import read_progress
from faultline.campaign.summary import Progress

__all__ = ["watch"]

_LOOK_EVERY_S = 0.3

Answer = TypeVar("Answer")


def watch(job: Callable[[], Answer], progress: Path, total: int, show: Callable[[Progress], None]) -> Answer:
    """Return the answer of `job`, and show the progress of the files in `progress` while it runs.

    Raise the exception of the job.
    """
    from pyspark import InheritableThread

    answers: list[Answer] = []
    failures: list[Exception] = []

    def carry_out() -> None:
        try:
            answers.append(job())
        except Exception as error:
            failures.append(error)

    thread = InheritableThread(target=carry_out, name="faultline-spark-job", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_LOOK_EVERY_S)
        show(read_progress(progress, total, "running"))
    for failure in failures:
        raise failure
    return answers[0]
