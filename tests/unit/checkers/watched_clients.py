"""Clients whose operations an incremental checker sees one by one."""

from __future__ import annotations

from faultline.harness.incremental import incremental_checkers
from faultline.harness.operation import Operation
from faultline.harness.outcome import ok

__all__ = ["Clients"]


class Clients:
    """Clients of one twin: `begin` gives the row of an operation, `end` the rows that show a violation."""

    def __init__(self, checker):
        (self.twin,) = incremental_checkers([checker])
        self.rows = 0

    def begin(self, f, value=None, process=0, key="k"):
        self.twin.invoke(self.rows, Operation(process, f, key, value))
        self.rows += 1
        return self.rows - 1

    def end(self, row, outcome):
        return self.twin.complete(row, outcome)

    def do(self, f, value=None, answer=None, process=0, key="k"):
        return self.end(self.begin(f, value, process, key), ok(answer))
