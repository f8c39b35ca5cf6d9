"""Traces: all nodes' lines merge by time, invariants see typed events, marks are counted, torn lines are dropped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from faultline.harness.invariant import Breach, Report
from faultline.harness.world.local.trace import FileTrace, SilentTrace, observe, read_traces


class Elected(msgspec.Struct, frozen=True):
    generation: int
    voters: tuple[str, ...]


class Ignored(msgspec.Struct, frozen=True):
    number: int


class OneLeader:
    """At most one leader per generation."""

    id = "I1"
    statement = "One leader per generation."
    events = (Elected,)

    def __init__(self) -> None:
        self.leaders: dict[int, str] = {}

    def observe(self, time_us: int, node: str, event: Any, report: Report) -> None:
        assert isinstance(event, Elected)
        first = self.leaders.setdefault(event.generation, node)
        if first != node:
            report(Breach(invariant="I1", sentence=f"{first} and {node}", time_us=time_us, node=node))


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    athens, byzantium = (FileTrace(node, tmp_path / node) for node in ("athens", "byzantium"))
    athens.emit(Elected(1, ("athens", "cyrene")))
    byzantium.emit(Ignored(7))
    athens.sometimes("elected")
    byzantium.emit(Elected(1, ("byzantium",)))
    byzantium.emit(Elected(1, ("byzantium",)))
    byzantium.sometimes("elected")
    athens.always("log-is-ordered", True)
    athens.always("log-is-ordered", False, "3 after 5")
    athens.close()
    byzantium.close()
    return [tmp_path / "athens", tmp_path / "byzantium"]


def test_lines_of_all_nodes_merge_in_the_order_they_were_written(paths: list[Path]) -> None:
    lines = read_traces(paths)
    assert [line.node[0] for line in lines] == list("ababbba")
    assert [line.time_us for line in lines] == sorted(line.time_us for line in lines)


def test_invariants_see_typed_events_and_the_first_breach_counts(paths: list[Path]) -> None:
    lines = read_traces(paths)
    breaches, marks = observe(lines, [OneLeader()], lambda time_us: time_us - lines[0].time_us)
    assert [(breach.invariant, breach.sentence) for breach in breaches] == [
        ("I1", "athens and byzantium"),
        ("log-is-ordered", "log-is-ordered did not hold at athens: 3 after 5."),
    ]
    assert breaches[0].time_us == lines[3].time_us - lines[0].time_us
    assert marks == {"elected": 2}


def test_a_line_torn_by_a_kill_is_dropped_and_the_next_process_starts_a_new_one(paths: list[Path]) -> None:
    whole = paths[1].read_bytes()
    paths[1].write_bytes(whole[:-5])
    assert len(read_traces(paths)) == 6
    restarted = FileTrace("byzantium", paths[1])
    restarted.sometimes("restarted")
    restarted.close()
    assert [line.sometimes for line in read_traces(paths)][-1] == "restarted"
    assert len(read_traces(paths)) == 7


def test_a_node_that_never_started_has_no_lines(tmp_path: Path) -> None:
    assert read_traces([tmp_path / "missing"]) == []


def test_the_trace_of_a_client_is_discarded() -> None:
    trace = SilentTrace()
    trace.emit(Ignored(1))
    trace.sometimes("mark")
    trace.always("mark", False)
