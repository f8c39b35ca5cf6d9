"""The tool that compares runs before and after a change of the code."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from run_digests import RunDigest, digest_of, drawn_run, main

TASKS = [("gossip", number) for number in range(3)]


def test_a_run_that_is_drawn_is_the_same_when_its_request_is_carried_out_again() -> None:
    drawn = [drawn_run(task) for task in TASKS]
    assert [digest_of(one.request) for one in drawn] == drawn
    assert len({one.history for one in drawn}) == len(drawn)
    assert drawn[0].request.planted_bugs and not drawn[1].request.planted_bugs


def test_a_request_that_is_refused_is_told_with_its_reason() -> None:
    request = msgspec.structs.replace(drawn_run(TASKS[0]).request, options={"no-such-option": "1"})
    refusal = digest_of(request)
    assert isinstance(refusal, str) and "no-such-option" in refusal


@pytest.mark.slow
def test_a_comparison_names_the_run_that_differs_and_in_what(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "before.jsonl"
    monkeypatch.setattr(sys, "argv", ["run_digests.py", "record", str(file), "--system", "gossip", "--runs", "3"])
    assert main() == 0
    monkeypatch.setattr(sys, "argv", ["run_digests.py", "compare", str(file)])
    assert main() == 0
    lines = [msgspec.json.decode(line, type=RunDigest) for line in file.read_bytes().splitlines()]
    lines[1] = msgspec.structs.replace(lines[1], history="0" * 64, signature="set/lost-element")
    file.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    capsys.readouterr()
    assert main() == 1
    printed = capsys.readouterr().out
    assert "differs in history, signature: faultline run" in printed
    assert "3 runs: 1 differ, 0 refused" in printed
