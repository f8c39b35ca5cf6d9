"""The output of the command: one door, for every kind of standard output."""

from __future__ import annotations

import errno
import io
import sys

import pytest

from faultline.cli.output import OutputLost, say


class Refuses(io.StringIO):
    """A stream that takes nothing."""

    encoding = "utf-8"

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def write(self, _text: str) -> int:
        raise OSError(self.number, "no")


@pytest.mark.parametrize(("number", "wanted"), [(errno.EPIPE, False), (errno.ENOSPC, True), (errno.EIO, True)])
def test_output_that_is_lost_is_told_of_and_whether_it_was_wanted(
    monkeypatch: pytest.MonkeyPatch, number: int, wanted: bool
) -> None:
    monkeypatch.setattr(sys, "stdout", Refuses(number))
    with pytest.raises(OutputLost) as raised:
        say("a verdict")
    assert raised.value.wanted is wanted


def test_what_accompanies_a_result_may_be_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Refuses(errno.EIO))
    say("progress", err=True)
    monkeypatch.setattr(sys, "stderr", None)
    say("progress", err=True)


@pytest.mark.parametrize(
    ("encoding", "printed"),
    [("ascii", b"\\u2714 \\ud800"), ("latin-1", b"\\u2714 \\ud800"), ("utf-8", "✔ \\ud800".encode())],
)
def test_characters_that_the_terminal_does_not_have_are_escaped(
    monkeypatch: pytest.MonkeyPatch, encoding: str, printed: bytes
) -> None:
    data = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(data, encoding=encoding))
    say("✔ \ud800")
    assert data.getvalue() == printed + b"\n"
