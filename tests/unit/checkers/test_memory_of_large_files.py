"""A file that is larger than its share of memory is checked key by key, and memory does not grow with the file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

KEYS = 40

CHECK = """
import re, sys
from pathlib import Path
from faultline.checkers import files
from faultline.checkers.importers import partition

partition._SEGMENT_EVENTS = files._SAMPLE_EVENTS = 4_000
(checked,) = files.check_histories(Path(sys.argv[1]), large_bytes=int(sys.argv[2]))
# What resource.getrusage tells is at least what the process that started this one had.
peak_kb = re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]
print(checked.result.verdict.value, checked.operations, int(peak_kb) // 1024)
"""


def write_history(path: Path, rounds: int) -> int:
    """Writes to each of the keys in turn, round after round; answers the size of the file."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(rounds * KEYS):
            same = f'"process":{number % KEYS},"f":"write","key":"k{number % KEYS}"'
            for index, kind in ((2 * number, "invoke"), (2 * number + 1, "ok")):
                file.write(f'{{"index":{index},"time_us":{index},"type":"{kind}",{same},"value":{number}}}\n')
    return path.stat().st_size


def peak_mb(path: Path, large_bytes: int, operations: int) -> int:
    """The most memory that a process had that checked the file."""
    command = [sys.executable, "-c", CHECK, str(path), str(large_bytes)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert told[:2] == ["pass", str(operations)]
    return int(told[2])


@pytest.mark.slow
def test_memory_stays_bounded_when_a_file_is_split_and_grows_with_it_when_it_is_not(tmp_path: Path) -> None:
    small, large = tmp_path / "small.jsonl", tmp_path / "large.jsonl"
    size = write_history(small, 200)
    write_history(large, 1_200)
    before = peak_mb(small, size // 2, 200 * KEYS)
    split = peak_mb(large, size // 2, 1_200 * KEYS)
    whole = peak_mb(large, 1 << 40, 1_200 * KEYS)
    assert whole - before > 20
    assert split - before < (whole - before) / 3
