"""The time that a test module pays for `from faultline.checkers import check, Model, Operation`.

Processor time of fresh interpreters, less that of one which imports nothing; the median and the least of many, since
the first reads files from the disk. `python benchmarks/checkers/library_import.py [RUNS]`
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys

NAMES = "from faultline.checkers import check, Model, Operation"
FIRST_CHECK = f"{NAMES}\ncheck('register', [Operation(0, ('write', 1), 0, None, 1)])"


def processor_ms(code: str) -> float:
    """Return the processor time of one interpreter that runs `code`, in milliseconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1_000


def main() -> None:
    """Print the median and the least of the names alone, and of the first check with them."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    empty = [processor_ms("pass") for _ in range(runs)]
    for name, code in (("the names", NAMES), ("the names and a first check", FIRST_CHECK)):
        spent = [processor_ms(code) for _ in range(runs)]
        median, least = statistics.median(spent) - statistics.median(empty), min(spent) - min(empty)
        print(f"{name}: median {median:.0f} ms, least {least:.0f} ms of {runs} runs")


if __name__ == "__main__":
    main()
