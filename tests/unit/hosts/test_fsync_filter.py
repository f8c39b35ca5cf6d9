"""The filter under which fsync lies or fails: what it catches, what it lets through, and how it refuses."""

from __future__ import annotations

import errno
import subprocess
import sys
import time
from pathlib import Path
from struct import iter_unpack

import pytest
from process_table import processes_with

from faultline.harness.world.hosts.storage import fsync_filter

SOURCE = Path(fsync_filter.__file__)
LOAD, JUMP, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
PROBE = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
file = open(sys.argv[1], "wb")
file.write(b"content")
file.flush()
calls = (libc.fsync(file.fileno()), libc.fdatasync(file.fileno()), libc.syncfs(file.fileno()))
print(calls, ctypes.get_errno(), open(sys.argv[1]).read())
"""


def answer(program: bytes, architecture: int, number: int) -> int:
    """Return the kernel's decision, by the few instructions of BPF that the filter uses."""
    instructions, at, accumulator = list(iter_unpack("=HBBI", program)), 0, 0
    while True:
        code, if_equal, if_not, value = instructions[at]
        at += 1
        if code == RETURN:
            return int(value)
        if code == LOAD:
            accumulator = {0: number, 4: architecture}[value]
        else:
            assert code == JUMP
            at += if_equal if accumulator == value else if_not


@pytest.mark.parametrize(
    ("machine", "architecture", "syncs", "writes"),
    [
        ("x86_64", 0xC000003E, (74, 75, 277, 26, 162, 306), (1, 0, 59, 73, 76)),
        ("aarch64", 0xC00000B7, (82, 83, 84, 227, 81, 267), (64, 63, 74, 75, 26)),
    ],
)
def test_only_calls_that_sync_are_answered_and_only_of_this_architecture(
    machine: str, architecture: int, syncs: tuple[int, ...], writes: tuple[int, ...]
) -> None:
    for code in (0, errno.EIO):
        program = fsync_filter.program(machine, ERRNO | code)
        assert {answer(program, architecture, number) for number in syncs} == {ERRNO | code}
        assert {answer(program, architecture, number) for number in writes} == {ALLOW}
        assert {answer(program, 0x40000003, number) for number in syncs} == {ALLOW}


@pytest.mark.real
@pytest.mark.parametrize(
    ("kind", "said"), [("lies", "(0, 0, 0) 0 content"), ("fails", f"(-1, -1, -1) {errno.EIO} content")]
)
def test_programs_under_it_write_as_ever_and_sync_nothing(kind: str, said: str, tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, SOURCE, kind, sys.executable, "-c", PROBE, tmp_path / "file"],
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode == 4:
        assert run.stderr.startswith(f"fsync={kind}: ") and run.stdout == ""
    else:
        assert run.stdout.strip() == said, run.stderr


SWITCHED = """
import os, pathlib, sys
switch, file = pathlib.Path(sys.argv[1]), open(sys.argv[2], "wb")
def told():
    try:
        return os.fsync(file.fileno()) or 0
    except OSError as error:
        return error.errno
said = [told()]
switch.write_text("fails")
said += [told(), told(), pathlib.Path(f"{switch}.answered").read_text()]
switch.unlink()
print(*said, told())
"""


@pytest.mark.real
def test_a_supervisor_lets_fsync_fail_while_the_switch_says_so_and_ends_with_the_program(tmp_path: Path) -> None:
    command = [sys.executable, SOURCE, "asks", tmp_path / "switch"]
    program = [sys.executable, "-c", SWITCHED, tmp_path / "switch", tmp_path / "file"]
    run = subprocess.run([*command, *program], capture_output=True, text=True, check=False)
    if run.returncode == 4:
        assert run.stderr.startswith("fsync=asks: ")
        return
    assert run.stdout.split() == ["0", str(errno.EIO), str(errno.EIO), "2", "0"], run.stderr
    # A supervisor that held standard output open would have kept `run` from returning.
    wait_until_gone(str(tmp_path / "switch"))


def wait_until_gone(word: str) -> None:
    deadline_s = time.monotonic() + 60
    while processes_with(word):
        assert time.monotonic() < deadline_s, "the supervisor outlives its program"


def test_a_kind_of_machine_that_is_not_known_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(SystemExit) as ended:
        fsync_filter.main(["lies", "true"])
    assert ended.value.code == 4
    assert "the system calls of riscv64 are not known" in capsys.readouterr().err
