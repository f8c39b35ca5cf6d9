"""The rules by which a register's write is called lost, or the read that misses it stale, one by one."""

from __future__ import annotations

import pytest

from faultline.checkers import LinearizabilityChecker
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH, fail, info, ok


def write(value, process=0, node="a", outcome=None, key="k"):
    return process, node, "write", value, outcome or ok(), key


def read(value, process=1, node="a"):
    return process, node, "read", None, ok(value), "k"


def cas(old, new, process=0, node="a", outcome=None):
    return process, node, "cas", [old, new], outcome or ok(), "k"


def named(*operations):
    """The names of what the checker finds in operations that follow one another."""
    return [finding.anomaly for finding in LinearizabilityChecker().check(history_of(operations)).findings]


def history_of(operations):
    history = History()
    for number, (process, node, f, value, outcome, key) in enumerate(operations):
        row = history.invoke(Operation(process, f, key, value), 10 * number, process, node)
        history.complete(row, outcome, 10 * number + 5)
    return history


FINAL = [read(None, process, "b") for process in range(5)]

RULES = {
    "what no final read sees is lost": (
        "lost-write",
        [write(1), *FINAL],
    ),
    "what was seen, and then no more, is lost": (
        "lost-write",
        [write(1), read(1), *FINAL],
    ),
    "the last read of a history has the last word, be it one": (
        "lost-write",
        [write(1), read(None)],
    ),
    "what a later read sees again was not lost": (
        "stale-read",
        [write(1), read(None), read(1, 2)],
    ),
    "what was lost after a stale read is lost": (
        "lost-write",
        [write(1), read(None, 1, "b"), read(1, 2), *FINAL],
    ),
    "a newer write that was acknowledged and seen shows that the store went on": (
        "stale-read",
        [write(1), write(2), read(None, 1, "b"), read(2)],
    ),
    "overwritten before anyone else looked, a write may have been there": (
        "stale-read",
        [write(1), read(None, 1, "b"), write(2), read(2)],
    ),
    "one node alone may be behind, for every client that asks it": (
        "stale-read",
        [write(1), read(None, 1, "b"), read(None, 2, "b"), write(2), read(2)],
    ),
    "two clients at two nodes are believed": (
        "lost-write",
        [write(1), read(None, 1, "b"), read(None, 2, "c"), write(2), read(2)],
    ),
    "the node that acknowledged two writes and has them no more lost them": (
        "lost-write",
        [write(1), write(2), read(None), write(3), read(3)],
    ),
    "a node that takes over, goes on without two writes": (
        "lost-write",
        [write(1), write(2), read(None, 1, "b"), write(3, 1, "b"), read(3, 1, "b")],
    ),
    "a node that takes over may have to apply the last write, for every client that asks": (
        "stale-read",
        [write(1), read(None, 1, "b"), read(None, 2, "b"), write(3, 1, "b"), read(3, 1, "b")],
    ),
    "a node that takes over and has acknowledged something since has applied all": (
        "lost-write",
        [write(1), write(7, 2, "b", key="other"), read(None, 1, "b"), write(3, 1, "b"), read(3, 1, "b")],
    ),
    "a node does not take over while the other one answers": (
        "stale-read",
        [write(1), write(2), read(None, 1, "b"), read(2, 0, "a"), write(3, 1, "b"), read(3, 1, "b")],
    ),
    "a compare-and-set that was built on the old state, and seen, went on without the write": (
        "lost-write",
        [write(1), write(2), cas(1, 3, 1, "b"), read(3), write(4), read(4)],
    ),
    "a refused compare-and-set shows no value, so alone it shows no loss": (
        "refused-cas",
        [write(1), cas(1, 2, 1, "b", fail(CAS_MISMATCH))],
    ),
    "two compare-and-sets of one version are a lost update": (
        "lost-update",
        [write(1), cas(1, 2), cas(1, 3, 1), read(3)],
    ),
    "a write that may be there, and was seen, is not acknowledged: not called lost": (
        "stale-read",
        [write(1, outcome=info("timeout")), read(1), *FINAL],
    ),
    "a failed write was not lost": (
        "aborted-read",
        [write(1, outcome=fail("not-leader")), read(1), *FINAL],
    ),
    "the write that is lost is named, not the one that came before": (
        "lost-write",
        [write(1), write(2), *[read(1, process, "b") for process in range(3)]],
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_the_history_decides_between_lost_and_stale(rule):
    name, operations = RULES[rule]
    assert named(*operations) == [name]


def test_a_lost_write_is_told_with_the_read_that_misses_it_for_good():
    operations = [write(1), read(None, 1, "b"), read(1, 2), *FINAL]
    (finding,) = LinearizabilityChecker().check(history_of(operations)).findings
    assert "client 0 read nothing from k although client 0's write of 1 had completed" in finding.sentence
    assert "and no later operation saw it" in finding.sentence
    assert {0, 3} <= set(finding.operations)


def test_the_gravest_anomaly_of_a_run_comes_first_whatever_the_order_of_the_keys():
    history = History()
    stale, lost = (
        RULES[rule][1] for rule in ("what a later read sees again was not lost", "what no final read sees is lost")
    )
    for key, operations in (("stale", stale), ("lost", lost)):
        for process, node, f, value, outcome, _ in operations:
            row = history.invoke(Operation(process, f, key, value), 0, process, node)
            history.complete(row, outcome, 0)
    findings = LinearizabilityChecker().check(history).findings
    assert [(finding.key, finding.anomaly) for finding in findings] == [("lost", "lost-write"), ("stale", "stale-read")]


def test_many_stale_reads_of_a_long_history_do_not_take_long_to_name():
    operations = []
    for value in range(400):
        operations += [write(value), read(value), read(value - 1 if value else None, 2, "b")]
    assert named(*operations, read(399, 3)) == ["stale-read"]
