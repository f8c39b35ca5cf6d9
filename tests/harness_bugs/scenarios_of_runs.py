"""Runs whose answer is known: scripted clients and faults, and a planted bug of a system beside its correct twin."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from known_answers import events_in, faultline, outcomes, plan, request, the_run, verdict_in

from faultline.harness.errors import HarnessError
from faultline.harness.fault_schedule import FaultSchedule
from faultline.harness.generator import scheduled
from faultline.harness.history import History
from faultline.harness.interpreter import Interpreter
from faultline.harness.judge import judge
from faultline.harness.nemesis import Injection
from faultline.harness.outcome import Outcome, fail, info, ok
from faultline.harness.plan import PlannedFault, PlannedOperation
from faultline.harness.planning import make_plan
from faultline.harness.run import run_simulated
from faultline.harness.shrink import same_violation
from faultline.harness.verdict import Verdict
from faultline.registry import fault_marks, resolve

__all__ = [
    "a_correct_system_passes_from_run_to_replay",
    "a_full_disk_is_told_and_the_run_judged",
    "a_planted_bug_violates_from_run_to_replay",
    "a_shrunken_run_is_the_same_violation",
    "an_interrupted_run_says_so",
    "an_invariant_that_breaks_is_a_violation",
    "faults_are_told_as_they_were",
    "faults_of_the_simulated_world_bite",
    "scripted_clients_leave_these_events",
]

NODES = ("athens", "byzantium", "cyrene")


def scripted_clients_leave_these_events(_folder: Path) -> None:
    """Each kind of outcome, a late answer and a nonsensical one, and what stands in the history for them."""
    asked = [(0, 5, "write", 1), (1, 5, "read", None), (2, 5, "cas", [1, 2])]
    asked += [(0, 5, "read", None), (1, 9, "write", 3), (2, 9, "read", None), (0, 12, "write", 4)]
    operations = tuple(PlannedOperation(worker, at, f, "k0", value) for worker, at, f, value in asked)
    history = History()
    driver = Interpreter(
        scheduled(operations, workers=3), workers=3, seed=1, history=history, node_of=lambda worker: NODES[worker]
    )
    assert driver.poll(4) == [] and driver.next_wake_us() == 5
    started = {dispatch.worker: dispatch.row for dispatch in driver.poll(5)}
    assert started == {0: 0, 1: 1, 2: 2}
    assert driver.complete(1, fail("refused"), 6, 1) is False
    assert driver.complete(0, ok(None, node="cyrene"), 7, 0) is False
    assert driver.complete(2, info("timed-out"), 8, 2) is True
    assert _refused(driver, 1, 1), "an operation completed twice"
    assert [dispatch.worker for dispatch in driver.poll(9)] == [0, 1, 2]
    assert driver.in_flight() == [3, 4, 5]
    nonsense: Any = Outcome("maybe", None)  # type: ignore[arg-type]
    assert driver.complete(1, nonsense, 10, 4) is True
    assert driver.complete(0, ok(1), 11, 3) is False
    assert [dispatch.row for dispatch in driver.poll(12)] == [6]
    driver.abandon(13)
    assert driver.complete(2, ok(9), 14, 5) is False
    assert driver.finished and driver.poll(20) == []
    told = [(event["index"], event["type"], event["process"], event.get("node")) for event in history.events()]
    assert told == [
        *((0, "invoke", 0, "athens"), (1, "invoke", 1, "byzantium"), (2, "invoke", 2, "cyrene")),
        *((3, "fail", 1, None), (4, "ok", 0, "cyrene"), (5, "info", 2, None)),
        *((6, "invoke", 0, "athens"), (7, "invoke", 1, "byzantium"), (8, "invoke", 5, "cyrene")),
        *((9, "info", 1, None), (10, "ok", 0, None), (11, "invoke", 0, "athens")),
    ]
    assert history.outcome == ["ok", "fail", "info", "ok", "info", "info", "info"]
    assert history.error == [None, "refused", "timed-out", None, "unrecordable-outcome", None, None]
    assert history.result == [None, None, None, 1, None, None, None]
    assert history.complete_us == [7, 6, 8, 11, 10, -1, -1]
    assert len(history.problems) == 1 and "operation 4" in history.problems[0]
    again = History.from_jsonl(history.to_jsonl().splitlines(keepends=True))
    assert again.to_jsonl() == history.to_jsonl() and again.digest() == history.digest()


def _refused(driver: Interpreter, worker: int, row: int) -> bool:
    try:
        driver.complete(worker, ok(5), 8, row)
    except HarnessError:
        return True
    return False


class _Nemesis:
    """A fault that bites unless its target is `immune`; `ended` has those that were stopped."""

    kind, summary, mark, needs, tick_us = "kill", "", "nodes-killed", frozenset[str](), 0

    def __init__(self) -> None:
        self.ended: list[str] = []

    def start(self, _port: Any, fault: PlannedFault, _seed: int) -> Injection:
        return Injection(nodes=("athens",), description=fault.target)

    def verify(self, _port: Any, injection: Injection) -> str | None:
        return "it is alive" if injection.description == "immune" else None

    def tick(self, _port: Any, _injection: Injection, _count: int) -> None:
        raise AssertionError("no ticks were asked for")

    def stop(self, _port: Any, injection: Injection) -> None:
        self.ended.append(injection.description)


def faults_are_told_as_they_were(_folder: Path) -> None:
    """One fault that bites, one that does not, one that the heal ends, and two that begin too late."""
    nemesis, errors, history, now = _Nemesis(), list[str](), History(), [0]
    targets = ("leader", "immune", "one", "late", "after")
    planned = [PlannedFault("kill", 10 * number, 10, target) for number, target in enumerate(targets, start=1)]
    made = plan(faults=(*planned[:4], PlannedFault("kill", 90_000, 10, "after")), heal_us=HEAL)
    port: Any = SimpleNamespace(roles=lambda: {"athens": "leader"})
    parts: Any = SimpleNamespace(nemeses={"kill": nemesis}, heal=lambda _port: ["a link stays cut"])
    faults = FaultSchedule(made, parts, port, history, lambda: now[0], errors)
    for moment, act, number in (
        (10, faults.start, 0),
        (20, faults.stop, 0),
        (21, faults.start, 1),
        (25, faults.stop, 1),
    ):
        now[0] = moment
        act(number)
    now[0] = 30
    faults.start(2)
    assert faults.is_active(2) and not faults.is_active(0)
    assert [each.stop_us for each in faults.intervals()] == [20, 25, 30]
    now[0] = 41
    faults.heal()
    faults.start(3)
    assert nemesis.ended == ["leader", "immune"]
    told = [(each.target, each.start_us, each.stop_us, each.applied) for each in faults.intervals()]
    assert told == [
        ("leader", 10, 20, None),
        ("immune", 21, 25, "it is alive"),
        ("one", 30, 41, None),
        ("late", 41, 41, "it had not begun when everything was healed"),
    ]
    assert faults.marks == {"nodes-killed": 2}
    assert len(errors) == 2 and "did not take effect: it is alive" in errors[0] and "a link stays cut" in errors[1]
    starts = [event.value["applied"] for event in history.faults if event.f == "start-kill"]
    assert starts == [None, "it is alive", None, "it had not begun when everything was healed"]
    assert [event.f for event in history.faults][-3:] == ["start-kill", "stop-kill", "heal"]


HEAL = 45


def a_planted_bug_violates_from_run_to_replay(folder: Path) -> None:
    """A stale read: run, its files, check and replay, all say so, and what is shrunk is the same kind of violation."""
    store = folder / "store"
    code, told = faultline("run", "--planted-bug", "stale-read", "--seed", 7, "--output", store)
    assert code == 1, told
    run = the_run(store)
    verdict, events = verdict_in(run), events_in(run / "history.jsonl")
    assert verdict["verdict"] == "violation" and verdict["signature"].startswith("linearizability/")
    assert verdict["counts"] == outcomes(events)
    assert verdict["history_sha256"] == hashlib.sha256((run / "history.jsonl").read_bytes()).hexdigest()
    assert [event["index"] for event in events] == list(range(len(events))) and events[-1]["index"] > 100
    assert {check["checker"] for check in verdict["checks"]} == set(verdict["checks_due"])
    assert verdict["detail"]["minimal"]["operations"] < 10
    assert verdict_in(run / "minimal")["signature"] == verdict["signature"]
    assert (run / "report.html").stat().st_size > 1_000
    assert faultline("check", run)[0] == 1
    assert faultline("replay", run)[0] == 1
    (run / "verdict.json").unlink()
    assert faultline("check", run)[0] == 1


def a_correct_system_passes_from_run_to_replay(folder: Path) -> None:
    """The twin of the run above: run, its files, check and replay, all say that nothing is wrong, and why."""
    store = folder / "store"
    code, told = faultline("run", "--seed", 7, "--operations", 120, "--output", store)
    assert code == 0, told
    run = the_run(store)
    verdict, events = verdict_in(run), events_in(run / "history.jsonl")
    assert verdict["verdict"] == "pass" and not verdict["interrupted"] and verdict["errors"] == []
    assert verdict["counts"] == outcomes(events) and verdict["counts"]["ok"] > 60
    faults = [event for event in events if event["process"] == "nemesis"]
    assert [event["f"] for event in faults].count("heal") == 1
    heal_us = next(event["time_us"] for event in faults if event["f"] == "heal")
    final = [event for event in events if event["type"] == "invoke" and event["time_us"] >= heal_us]
    assert {event["key"] for event in final if event["f"] == "read"} == {
        event["key"] for event in events if event["type"] == "invoke" and event["f"] != "read"
    }
    assert sum(verdict["overlap"].values()) > 0
    assert verdict["marks"]["leader-elected"] > 0 and verdict["marks"].keys() & fault_marks()
    assert faultline("check", run)[0] == 0
    assert faultline("replay", run)[0] == 0


def a_shrunken_run_is_the_same_violation(_folder: Path) -> None:
    """A smaller plan counts only if it shows the violation that was found, and not another one, or none."""
    for planted_bugs, signature, expected in (
        (("stale-read",), "linearizability/stale-read", True),
        (("stale-read",), "linearizability/lost-write", False),
        ((), "", False),
    ):
        asked = request(planted_bugs=planted_bugs)
        parts = resolve(asked)
        assert same_violation(parts, signature)(make_plan(asked, parts)) is expected, signature


def an_invariant_that_breaks_is_a_violation(_folder: Path) -> None:
    """A planted bug that only the system's own invariants see in this run."""
    asked = request(planted_bugs=("ack-before-quorum",), seed=3, faults=("leadership",), operations=200)
    parts = resolve(asked)
    run = run_simulated(make_plan(asked, parts), parts)
    judgement = judge(run, parts, run_id="r")
    assert judgement.verdict is Verdict.VIOLATION
    assert "invariants/HWM-I5" in {f"{finding.checker}/{finding.anomaly}" for finding in judgement.findings}


def faults_of_the_simulated_world_bite(_folder: Path) -> None:
    """Planted bugs of systems that show under one kind of fault only, or only at the end of a run."""
    for planted_bug, seed, faults, mark in (
        ("stale-read", 7, "leadership", "links-cut"),
        ("wall-clock-lease", 0, "clocks", "clocks-strobed"),
        ("ack-before-fsync", 2, "durability", "nodes-killed"),
        ("no-duplicate-detection", 2, "retries", "packets-lost"),
        ("ack-before-quorum", 3, "leadership", "nodes-paused"),
        ("next-index-stuck", 7, "leadership", "leader-changed"),
    ):
        asked = request(planted_bugs=(planted_bug,), seed=seed, faults=(faults,))
        parts = resolve(asked)
        run = run_simulated(make_plan(asked, parts), parts)
        assert judge(run, parts, run_id="r").verdict is Verdict.VIOLATION, planted_bug
        assert run.marks[mark] > 0 and run.errors == [], planted_bug


def an_interrupted_run_says_so(_folder: Path) -> None:
    """Ctrl-C in the middle: what was recorded is judged, and the judgement says that it was interrupted."""
    asked = request(operations=120)
    parts, lines = resolve(asked), list[bytes]()

    def sink(line: bytes) -> None:
        lines.append(line)
        if len(lines) == 60:
            raise KeyboardInterrupt

    run = run_simulated(make_plan(asked, parts), parts, sink=sink)
    assert run.interrupted and run.history.to_jsonl().splitlines(keepends=True)[: len(lines)] == lines
    judgement = judge(run, parts, run_id="r")
    assert judgement.interrupted and judgement.verdict is not Verdict.PASS
    assert judgement.sentence.startswith("Interrupted after ")


def a_full_disk_is_told_and_the_run_judged(_folder: Path) -> None:
    """The history cannot be written any more: the run goes on and is judged, and is no pass."""
    asked = request(operations=40)
    parts, lines = resolve(asked), list[bytes]()

    def sink(line: bytes) -> None:
        if len(lines) == 20:
            raise OSError(28, "No space left on device")
        lines.append(line)

    run = run_simulated(make_plan(asked, parts), parts, sink=sink)
    judgement = judge(run, parts, run_id="r")
    assert judgement.verdict is Verdict.HARNESS_ERROR and "No space left" in judgement.sentence
    assert judgement.counts["invoked"] >= 40
