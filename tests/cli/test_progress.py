"""Progress of a campaign: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import io
import sys

import pytest

from faultline.campaign.summary import Progress
from faultline.cli.progress import campaign_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, stderr: io.StringIO) -> str:
    monkeypatch.setattr(sys, "stderr", stderr)
    with campaign_progress() as show:
        for finished in (0, 5, 10):
            show(Progress(phase="simulating", finished=finished, total=10, violations=finished // 5))
    return stderr.getvalue()


def test_a_terminal_is_shown_a_bar_that_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(monkeypatch, Terminal())
    assert "starting Spark" in text
    assert "simulating, 1 violation " in text and "simulating, 2 violations" in text
    assert "5/10" in text and "10/10" in text


def test_a_file_is_told_lines_and_the_last_one_always(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(monkeypatch, io.StringIO()).splitlines()
    assert lines[0] == "0 of 10 runs: simulating"
    assert lines[-1] == "10 of 10 runs: simulating, 2 violations"
