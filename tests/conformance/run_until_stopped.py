"""A harness of its own process, to be interrupted or killed by a test: a long run of the toy system with a paused node.

Prints `ready PIDS` once the fault has begun, and what became of the run when `run_local` comes back.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from toy_run import fault, operation, parts, plan

from faultline.harness.world.local.world import run_local

folder = Path(sys.argv[1])


def children() -> list[int]:
    """The processes whose parent is this one."""
    mine = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid():
            mine.append(int(stat.parent.name))
    return sorted(mine)


def sink(line: bytes) -> None:
    """Tell the test when the pause is in force."""
    if b"start-pause" in line:
        print("ready", *children(), flush=True)


appends = [operation(100 * number, "append", number) for number in range(600)]
long_plan = plan(*appends, faults=(fault("pause", 200, 50_000, "byzantium"),), heal_ms=55_000, end_ms=60_000)
record = run_local(long_plan, parts(), folder=folder, sink=sink)
print("ended", record.interrupted, len(record.history), record.errors, len(children()), flush=True)
