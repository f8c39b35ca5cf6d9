"""Progress on standard error: a bar on a terminal, a plain line every few seconds elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from faultline.cli.output import say

if TYPE_CHECKING:
    from faultline.campaign.pipeline import Progress as CampaignProgress

__all__ = ["campaign_progress", "line_now_and_then", "words_now_and_then"]

_PLAIN_EVERY_S = 5.0

Show = Callable[["CampaignProgress"], None]


@contextlib.contextmanager
def campaign_progress() -> Iterator[Show]:
    """Return a function to call with each `Progress` of a campaign."""
    if sys.stderr.isatty():
        with _bar() as show:
            yield show
    else:
        yield _plain_lines()


@contextlib.contextmanager
def _bar() -> Iterator[Show]:
    say("starting Spark", err=True)
    with contextlib.ExitStack() as closing:
        bar: Any = None

        def show(progress: CampaignProgress) -> None:
            nonlocal bar
            if bar is None:
                # The number of runs is known only once the campaign has begun, so the bar cannot be made before.
                bar = closing.enter_context(click.progressbar(length=progress.total, show_pos=True, file=sys.stderr))
            bar.label = _phrase(progress)
            bar.update(progress.finished - bar.pos)

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
    """Return a function to call with each number reached; every few seconds it prints `NUMBER what` on standard
    error."""
    show = words_now_and_then()
    return lambda number: show(f"{number} {what}")


def words_now_and_then() -> Callable[[str], None]:
    """Return a function to call with each step reached; every few seconds it prints it on standard error."""
    last_s = time.monotonic()

    def tell(words: str) -> None:
        nonlocal last_s
        now_s = time.monotonic()
        if now_s - last_s >= _PLAIN_EVERY_S:
            last_s = now_s
            say(words, err=True)

    return tell


def _phrase(progress: CampaignProgress) -> str:
    if not progress.violations:
        return progress.phase
    return f"{progress.phase}, {progress.violations} violation{'' if progress.violations == 1 else 's'}"
