"""Short histories for the classic checkers, written as operations rather than as events."""

from __future__ import annotations

from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome


def op(f, value=None, result=None, *, span=None, process=0, outcome="ok", key=None, error=None, worker=None):
    """One operation; `span` is (begin, end) in steps, `end` None for never; without one, it stands alone."""
    return {
        "f": f, "value": value, "result": result, "span": span, "process": process, "outcome": outcome, "key": key,
        "error": error, "worker": worker,
    }  # fmt: skip


def history_of(*operations, step_us=1000):
    """Operations in the order of their spans; those without a span follow one another."""
    history, events, clock = History(), [], 0
    for operation in operations:
        begin, end = operation["span"] or (clock, clock + 1)
        clock = max(clock, begin + 2 if end is None else end + 1)
        events.append((begin, 0, len(events), operation))
        if end is not None:
            events.append((end, 1, len(events), operation))
    rows = {}
    for moment, is_end, _, operation in sorted(events, key=lambda event: event[:3]):
        if is_end:
            outcome = Outcome(operation["outcome"], operation["result"], operation["error"])
            history.complete(rows[id(operation)], outcome, moment * step_us)
        else:
            invocation = Operation(operation["process"], operation["f"], operation["key"], operation["value"])
            worker = operation["process"] if operation["worker"] is None else operation["worker"]
            rows[id(operation)] = history.invoke(invocation, moment * step_us, worker, "n1")
    return history


def anomalies(result):
    """The names of the anomalies that were found, sorted, each once."""
    return sorted({finding.anomaly for finding in result.findings})
