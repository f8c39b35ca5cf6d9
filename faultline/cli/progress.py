"""Progress on standard error: a bar on a terminal, a plain line every few seconds elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from faultline.cli.output import say

if TYPE_CHECKING:
    from faultline.campaign.pipeline import Progress as CampaignProgress

__all__ = ["campaign_progress", "line_now_and_then"]

_PLAIN_EVERY_S = 5.0

Show = Callable[["CampaignProgress"], None]


@contextlib.contextmanager
def campaign_progress() -> Iterator[Show]:
    """A function to call with each `Progress` of a campaign."""
    if sys.stderr.isatty():
        with _bar() as show:
            yield show
    else:
        yield _plain_lines()


@contextlib.contextmanager
def _bar() -> Iterator[Show]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting Spark", total=None)

        def show(progress: CampaignProgress) -> None:
            bar.update(task, description=_phrase(progress), total=progress.total, completed=progress.finished)

        yield show


def _plain_lines() -> Show:
    last_s = -_PLAIN_EVERY_S

    def show(progress: CampaignProgress) -> None:
        nonlocal last_s
        now_s = time.monotonic()
        if now_s - last_s >= _PLAIN_EVERY_S or progress.finished == progress.total:
            last_s = now_s
            say(f"{progress.finished} of {progress.total} runs: {_phrase(progress)}", err=True)

    return show


def line_now_and_then(what: str) -> Callable[[int], None]:
    """A function to call with each number reached; every few seconds it says `NUMBER what` on standard error."""
    last_s = time.monotonic()

    def tell(number: int) -> None:
        nonlocal last_s
        now_s = time.monotonic()
        if now_s - last_s >= _PLAIN_EVERY_S:
            last_s = now_s
            say(f"{number} {what}", err=True)

    return tell


def _phrase(progress: CampaignProgress) -> str:
    return f"{progress.phase}, {progress.violations} violations" if progress.violations else progress.phase
