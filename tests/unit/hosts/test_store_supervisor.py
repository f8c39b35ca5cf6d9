"""The supervisor of a store: it adopts, reaps, kills what is left, and ends with its lifeline."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from faultline.harness.world.hosts.processes import supervisor as supervisor

pytestmark = pytest.mark.real


Minded = subprocess.Popen[bytes]


@contextmanager
def minding(script: str) -> Iterator[Minded]:
    command = [sys.executable, supervisor.__file__, "/bin/sh", "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as minded:
        yield minded


def numbers(minded: Minded, count: int) -> list[int]:
    """The process numbers that the script wrote, a line each."""
    assert minded.stdout is not None
    return [int(minded.stdout.readline()) for _ in range(count)]


def is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -KILL $$", 128 + 9)])
def test_the_exit_code_is_the_commands(script: str, code: int) -> None:
    with minding(script) as minded:
        assert minded.wait(60) == code


def test_when_the_lifeline_ends_everything_ends_daemons_included() -> None:
    with minding("setsid sh -c 'echo $$; exec sleep 600' & echo $$; exec sleep 600") as minded:
        found = numbers(minded, 2)
        assert not any(map(is_gone, found))
        minded.communicate(timeout=60)
    assert all(map(is_gone, found))


def test_what_outlives_the_command_is_adopted_and_killed() -> None:
    # The script reads an empty standard input, so it ends by itself, with the lifeline still there.
    with minding("(sleep 600 & echo $!); read -r line; exit 3") as minded:
        (orphan,) = numbers(minded, 1)
        assert minded.wait(60) == 3
    assert is_gone(orphan)


def test_orphans_are_the_supervisors_descendants() -> None:
    with minding("(setsid sh -c 'echo $$; exec sleep 600' &); echo $$; exec sleep 600") as minded:
        # The second number is told after the subshell has ended, and no process changes its parent any more.
        assert set(numbers(minded, 2)) <= set(supervisor.descendants(minded.pid))
        assert os.getpid() not in supervisor.descendants(minded.pid)
        minded.communicate(timeout=60)
