"""The search finds the shortest cycles of a graph within the budget, and names them for their shape."""

from __future__ import annotations

import random

import numpy as np
import pytest
from transaction_histories import concurrent, one_after_another

from faultline.checkers.transactions.checker import ListAppendChecker
from faultline.checkers.transactions.components import strongly_connected
from faultline.checkers.transactions.edges import EdgeKind
from faultline.checkers.transactions.list_append import infer_list_append
from faultline.checkers.transactions.order import raise_targets, suspect_regions
from faultline.checkers.transactions.shapes import SHAPES, classify
from faultline.harness.history import History
from faultline.harness.verdict import Cause, Reason, Verdict

WW, WR, RW, PROCESS, REALTIME = EdgeKind.WW, EdgeKind.WR, EdgeKind.RW, EdgeKind.PROCESS, EdgeKind.REALTIME


@pytest.mark.parametrize(
    ("kinds", "name"),
    [
        ([WW, WW], "G0"),
        ([WW, WR], "G1c"),
        ([WW, RW, WR], "G-single-item"),
        ([RW, WR, RW, WW], "G-nonadjacent-item"),
        ([RW, WR, RW], "G2-item"),
        ([EdgeKind.PREDICATE_RW, WR], "G-single"),
        ([EdgeKind.PREDICATE_RW, RW], "G2"),
        ([WW, PROCESS], "G0-process"),
        ([WR, REALTIME], "G1c-realtime"),
        ([RW, PROCESS, REALTIME], "G-single-item-realtime"),
        ([RW | REALTIME, WR], "G-single-item-realtime"),
    ],
)
def test_a_cycle_is_named_for_its_edges(kinds: list[EdgeKind], name: str) -> None:
    assert classify(kinds) == name


def test_there_are_eight_shapes_in_three_variants() -> None:
    assert len({shape.name for shape in SHAPES}) == 24


def _reachable(count: int, pairs: list[tuple[int, int]]) -> list[set[int]]:
    reach = [{target for source, target in pairs if source == node} for node in range(count)]
    for middle in range(count):
        for node in range(count):
            if middle in reach[node]:
                reach[node] |= reach[middle]
    return reach


def test_components_and_orders_agree_with_reachability_on_random_graphs() -> None:
    for seed in range(150):
        rng = random.Random(seed)
        count = 2 + int(rng.random() * 12)
        edges = [(int(rng.random() * count), int(rng.random() * count)) for _ in range(int(rng.random() * 2 * count))]
        edges = [(source, target) for source, target in edges if source != target]
        source = np.array([edge[0] for edge in edges], dtype=np.int64)
        target = np.array([edge[1] for edge in edges], dtype=np.int64)
        reach = _reachable(count, edges)
        expected = {frozenset(o for o in range(count) if o in reach[n] and n in reach[o]) for n in range(count)}
        found = {frozenset(part) for part in strongly_connected(count, source, target)}
        assert found == {part for part in expected if len(part) > 1}
        earliest = np.arange(count, dtype=np.int64) << 10
        raise_targets(earliest, source, target)
        assert bool((earliest[source] >= earliest[target]).any()) == bool(found)


def test_a_valid_history_leaves_no_region_to_search() -> None:
    history = one_after_another(
        *(f"ax{n} rx{list(range(n + 1))}".replace(" ", "", 0).replace(", ", ",") for n in range(40))
    )
    inference = infer_list_append(history)
    assert suspect_regions(inference.columns, inference.edges, realtime=True).count == 0


def test_only_the_place_of_a_cycle_is_searched() -> None:
    good = [f"ax{n} rx{list(range(n + 1))}".replace(", ", ",") for n in range(60)]
    history = one_after_another(*good, "ay1", "ry-", "ry[1]")
    result = ListAppendChecker().check(history)
    assert result.verdict == Verdict.VIOLATION
    assert result.detail["components"] == [2]


def test_the_shortest_cycle_of_a_long_ring_is_the_ring() -> None:
    size = 9
    keys = "abcdefghi"
    ring = [f"a{keys[n]}1 r{keys[(n + 1) % size]}[1]" for n in range(size)]
    result = ListAppendChecker("serializable").check(concurrent(*ring))
    assert result.detail["anomalies"] == {"G1c": 1}
    assert result.findings[0].operations == tuple(range(size))
    assert result.findings[0].detail["shortest"]


def test_of_two_rings_through_one_transaction_the_shorter_is_shown() -> None:
    history = concurrent("aa1 ab1 rc[1] rd[1]", "ac1 ra[1]", "ad1 re[1]", "ae1 rb[1]")
    result = ListAppendChecker("serializable").check(history)
    assert result.findings[0].operations == (0, 1)


def _tangle(seed: int, transactions: int) -> History:
    """Transactions that each see random old states: one component that holds nearly all of them."""
    rng = random.Random(seed)
    lists: dict[str, list[int]] = {key: [] for key in "abcdefgh"}
    bodies = []
    for _ in range(transactions):
        parts = []
        for _ in range(3):
            key = "abcdefgh"[int(rng.random() * 8)]
            if rng.random() < 0.4:
                lists[key].append(len(lists[key]) + 1)
                parts.append(f"a{key}{len(lists[key])}")
            else:
                seen = lists[key][: int(rng.random() * (len(lists[key]) + 1))]
                parts.append(f"r{key}{seen}".replace(", ", ","))
        bodies.append(" ".join(parts))
    return concurrent(*bodies, " ".join(f"r{key}{lists[key]}".replace(", ", ",") for key in lists))


def _write_skews(count: int, *more: str) -> History:
    """`count` pairs of transactions that miss each other's writes, each pair on keys of its own, and `more`."""
    keys = [(chr(0x100 + 2 * n), chr(0x101 + 2 * n)) for n in range(count)]
    bodies = (body for one, other in keys for body in (f"a{one}1 r{other}-", f"a{other}1 r{one}-"))
    return concurrent(*bodies, *more)


def test_of_each_shape_eight_cycles_are_looked_for_and_pairs_are_all_counted() -> None:
    result = ListAppendChecker("serializable").check(_write_skews(20))
    assert result.detail["component_count"] == 20
    assert result.detail["anomalies"] == {"G-update": 8, "G2-item": 8, "write-skew": 20}


def test_a_shape_that_was_not_shown_is_looked_for_in_the_last_component_too() -> None:
    result = ListAppendChecker("serializable").check(_write_skews(20, "aa1 rb[1]", "ab1 ra[1]"))
    assert (result.detail["component_count"], result.detail["anomalies"]["G1c"]) == (21, 1)
    assert result.findings[0].anomaly == "G1c"


def test_around_a_cycle_the_rounds_end_when_they_have_seen_each_edge_again() -> None:
    size = 20_000
    source = np.arange(2 * size, dtype=np.int64) // 2
    target = (source + 1 + np.arange(2 * size) % 2) % size
    assert raise_targets(np.zeros(size, dtype=np.int64), source, target) <= 2


def test_a_huge_component_is_judged_within_its_budget() -> None:
    result = ListAppendChecker("serializable", steps=20_000).check(_tangle(1, 700))
    assert result.detail["components"][0] > 300
    assert result.detail["steps"] < 60_000
    assert result.verdict == Verdict.VIOLATION
    assert any(finding.detail.get("edges") for finding in result.findings)


def test_what_a_small_budget_leaves_open_is_named_and_never_called_a_pass() -> None:
    history = concurrent(*(f"a{key}1 r{after}-" for key, after in zip("abcdefghij", "bcdefghija")))
    complete = ListAppendChecker("serializable").check(history)
    assert complete.detail["anomalies"] == {"G-update": 1, "G2-item": 1}
    assert ListAppendChecker("snapshot-isolation").check(history).verdict == Verdict.PASS
    assert ListAppendChecker("snapshot-isolation", steps=8).check(history).verdict == Verdict.PASS  # a search decides
    starved = ListAppendChecker("consistent-view", steps=8).check(history)
    assert starved.verdict == Verdict.UNKNOWN
    assert "G-single-item" in starved.detail["undecided_cycles"]
    assert "not decided within the budget" in starved.sentence
    assert starved.reason == Reason(cause=Cause.BUDGET, option="steps", value=8)
    late = ListAppendChecker("consistent-view", timeout_s=0.0).check(history)
    assert (late.verdict, late.reason) == (Verdict.UNKNOWN, Reason(cause=Cause.TIME))
    assert ListAppendChecker("serializable", timeout_s=0.0).check(history).verdict == Verdict.VIOLATION
    certain = ListAppendChecker("serializable", steps=8).check(history)
    assert certain.verdict == Verdict.VIOLATION
