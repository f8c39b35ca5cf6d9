"""Bad input gets one sentence and the right exit code, and the other inputs are judged all the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

import pytest

from faultline.checkers import files
from faultline.cli.main import perform
from faultline.harness import untrusted
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import ok


def history(*, read: int) -> bytes:
    """A write of 1 and then a read."""
    recorded = History()
    recorded.complete(recorded.invoke(Operation(0, "write", "k0", 1), 1, 0, "athens"), ok(), 2)
    recorded.complete(recorded.invoke(Operation(1, "read", "k0"), 3, 1, "athens"), ok(read), 4)
    return recorded.to_jsonl()


PASSING, VIOLATING = history(read=1), history(read=2)
DEEP = b'{"index":0,"time_us":1,"value":' + b"[" * 5_000 + b"\n"


@pytest.fixture
def check(tmp_path, capsys):
    """`faultline check` of files with these bytes, in this process."""

    def checked(*contents: bytes, flags=()):
        names = [f"{number}.jsonl" for number in range(len(contents))]
        for name, data in zip(names, contents, strict=True):
            (tmp_path / name).write_bytes(data)
        code = perform(["check", *flags, *names])
        said = capsys.readouterr()
        return code, said.out + said.err

    return checked


# -- one bad file among others ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [DEEP, b"", b"\xff\xfe", b"\x00" * 100, b'{"time_us": 1}\n{}', b"nonsense"])
def test_a_file_that_cannot_be_read_does_not_hide_the_violation_in_another(check, bad):
    code, said = check(bad, VIOLATING, bad, PASSING)
    assert code == 1
    assert "1.jsonl: violation" in said and "3.jsonl: pass" in said
    assert "0.jsonl" in said and "2.jsonl" in said


def test_a_file_that_cannot_be_read_beside_one_that_passes_ends_with_2(check):
    assert check(DEEP, PASSING)[0] == 2


def test_a_check_that_fails_itself_does_not_hide_the_violation_in_another_file(check, monkeypatch):
    real = files.judge

    def fails_for_some(model, judged, *args, **kwargs):
        if judged.result[1] == 1:
            raise RecursionError("a mistake of the checker")
        return real(model, judged, *args, **kwargs)

    monkeypatch.setattr(files, "judge", fails_for_some)
    code, said = check(PASSING, VIOLATING)
    assert code == 1
    assert "0.jsonl: The check itself failed: RecursionError" in said and "1.jsonl: violation" in said
    assert check(PASSING)[0] == 4


def test_every_file_has_a_line_of_its_own_in_json_too(check):
    code, said = check(DEEP, VIOLATING, PASSING, flags=["--json"])
    told = [json.loads(line) for line in said.splitlines()]
    assert code == 1
    assert [each["file"] for each in told] == ["0.jsonl", "1.jsonl", "2.jsonl"]
    assert "nested more than 100 deep" in told[0]["error"]


def test_a_file_in_a_folder_that_cannot_be_read_does_not_hide_the_others(check, tmp_path, capsys):
    os.mkfifo(tmp_path / "a-pipe")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    check(VIOLATING, PASSING)
    assert perform(["check", "."]) == 1
    assert "0.jsonl: violation" in capsys.readouterr().out


# -- pipes -----------------------------------------------------------------------------------------------------------


def test_a_pipe_into_which_nothing_is_written_ends_with_2(tmp_path, monkeypatch, capsys):
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(untrusted, "DEADLINE_S", 0.05)
    assert perform(["check", "pipe"]) == 2
    assert "pipe cannot be read: it sent nothing for 0.05 s" in capsys.readouterr().err


def test_what_comes_out_of_a_pipe_is_judged(tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(VIOLATING,))
    writer.start()
    assert perform(["check", "pipe"]) == 1
    writer.join()
    assert "pipe: violation" in capsys.readouterr().out


# -- names and texts that cannot be printed --------------------------------------------------------------------------

HALF_A_CHARACTER = rb"""{:process 0, :type :invoke, :f :get, :key "\ud800 \u001b[31m", :value nil}
{:process 0, :type :ok, :f :get, :key "\ud800 \u001b[31m", :value "what was never put there"}
"""


def faultline(*arguments, **environment):
    """The command in a process of its own."""
    command = [sys.executable, "-m", "faultline", *arguments]
    return subprocess.run(command, capture_output=True, env=os.environ | environment, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("flags", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "ascii"])
def test_names_and_values_that_no_terminal_knows_are_printed_escaped(tmp_path, encoding, flags):
    name = os.fsdecode(b"\xff\x1b[31m caf\xc3\xa9")
    (tmp_path / name).write_bytes(HALF_A_CHARACTER)
    ended = faultline("check", *flags, name, PYTHONIOENCODING=encoding)
    assert ended.returncode == 1
    assert b"violation" in ended.stdout and b"Traceback" not in ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [b"\xff", b"x" * 300, b"\n", b"\x1b]0;title\x07"], ids=["bytes", "long", "line", "title"]
)
@pytest.mark.parametrize("verb", ["check", "replay", "shrink", "causes"])
def test_a_name_that_is_no_text_and_names_nothing_is_refused_in_a_sentence(verb, name):
    ended = faultline(verb, os.fsdecode(name))
    assert ended.returncode == 2
    assert ended.stderr and b"Traceback" not in ended.stderr
