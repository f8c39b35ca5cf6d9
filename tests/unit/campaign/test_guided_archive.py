"""The archive of a guided campaign, and the signals that fill it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from faultline.campaign.guided.archive import Archive
from faultline.campaign.guided.signal import EventPairs, Signal, read_signals, write_signals

CELL = "system/register/kill"


def signal(seed: int, *pairs: str, **values: Any) -> Signal:
    return Signal(seed=seed, run_id=f"run-{seed}", pairs=pairs, **values)


def test_events_are_paired_at_one_node_and_each_pair_is_told_once() -> None:
    observer = EventPairs()
    for node, event in [("athens", "a"), ("delphi", "x"), ("athens", "b"), ("athens", "a"), ("athens", "b")]:
        observer.observe(node, event)
    assert observer.pairs() == ("a > b", "b > a")


def test_a_run_is_kept_when_it_reached_something_new_and_otherwise_not() -> None:
    archive = Archive()
    assert archive.add(CELL, signal(0, "a > b"))
    assert not archive.add(CELL, signal(1, "a > b"))
    assert archive.add(CELL, signal(2, "a > b", features=("compacted",)))
    chosen = {entry.signal.seed for rng in map(Random, range(30)) if (entry := archive.parent(CELL, rng))}
    assert chosen == {0, 2}


def test_a_cell_has_no_parent_of_another_cell() -> None:
    archive = Archive()
    archive.add(CELL, signal(0, "a > b"))
    assert archive.parent("system/append/kill", Random(0)) is None


def test_a_new_kind_of_violation_is_new_once_and_no_violation_is_changed() -> None:
    archive = Archive()
    first = signal(0, "a > b", violation="stale-read", is_archivable=False)
    assert archive.add(CELL, first)
    assert not archive.add(CELL, signal(1, "a > b", violation="stale-read", is_archivable=False))
    assert archive.parent(CELL, Random(0)) is None
    assert archive.violations == {"stale-read": 2}


def test_a_run_that_reached_what_few_met_is_likelier_to_be_changed() -> None:
    archive, chosen = Archive(), Counter[int]()
    archive.add(CELL, signal(0, "common > pair"))
    archive.add(CELL, signal(1, "common > pair", "rare > pair"))
    for seed in range(2, 40):
        archive.add(CELL, signal(seed, "common > pair"))
    entry = archive.parent(CELL, Random(1))
    assert entry is not None
    assert (entry.signal.seed, archive.rarest_event(entry)) == (1, "pair")
    rng = Random(2)
    chosen.update(entry.signal.seed for _ in range(10) if (entry := archive.parent(CELL, rng)))
    assert chosen[1] > chosen[0]


def test_the_option_value_with_most_new_pairs_is_wished_for() -> None:
    archive = Archive()
    archive.add(CELL, signal(0, options={"size": "1", "mode": "fast"}))
    archive.add(CELL, signal(1, options={"size": "2", "mode": "fast"}))
    wish = archive.rarest_value({"size": "1", "mode": "fast"}, [("size", "2"), ("size", "3")])
    assert wish == "size=3"
    assert archive.rarest_value({"size": "1"}, []) == ""


def test_signals_come_back_as_they_were_written_by_seed(tmp_path: Path) -> None:
    written = [
        signal(4, "a > b", "b > c", features=("f",), options={"o": "1"}, violation="v", is_archivable=False),
        signal(3, "b > c"),
    ]
    write_signals(tmp_path / "one.json", written[:1])
    write_signals(tmp_path / "two.json", written[1:])
    (tmp_path / "torn.json").write_bytes(b'{"names":["a > b"],"runs":[[1,"run-1",[5],[],{},"",true]]}')
    paths = [tmp_path / name for name in ("one.json", "torn.json", "two.json", "missing.json")]
    assert read_signals(paths) == [written[1], written[0]]
