"""Folders of runs whose content is known: whole ones, torn ones, and ones in which files do not belong together."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from known_answers import PARTITION, judged, plan, record, request, sound_history

from faultline.harness import results
from faultline.harness.decisions import as_it_happened
from faultline.harness.errors import HarnessError, UsageError
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import ok
from faultline.harness.plan import PlannedFault, PlannedOperation
from faultline.harness.results import appending, unique_partial, writable, write_pieces, write_whole
from faultline.harness.store import (
    claim_folder,
    numbered,
    prepare_run,
    read_judgement,
    read_run,
    run_id_of,
    write_judgement,
)
from faultline.harness.stored_record import recovered
from faultline.harness.verdict import CheckResult, Finding, Verdict

__all__ = [
    "a_damaged_file_is_never_taken_for_a_whole_one",
    "a_file_appears_whole_or_not_at_all",
    "a_long_plan_is_stored_to_its_last_operation",
    "a_run_is_read_back_as_it_was",
    "a_verdict_of_another_history_is_not_taken",
    "no_two_runs_share_a_folder",
    "what_happened_can_be_repeated",
]


def a_file_appears_whole_or_not_at_all(folder: Path) -> None:
    """Each primitive of writing in its order; then writes that fail, that come short, and that meet another's file."""
    calls: list[str] = []
    with _watched(calls):
        write_pieces(folder / "new", (b"one ", b"two"))
        write_whole(folder / "hasty", b"three", durable=False)
    assert calls == ["_write", "_write", "_sync", "_rename", "_sync", "_write", "_rename"]
    assert (folder / "new").read_bytes() == b"one two" and (folder / "hasty").read_bytes() == b"three"
    write_whole(folder / "new", b"other", replace=False)
    assert (folder / "new").read_bytes() == b"one two"
    for failing in ("_write", "_sync", "_rename"):
        with _failing(failing):
            assert _raises(OSError, lambda: write_pieces(folder / "new", (b"half", b"rest")))
        assert (folder / "new").read_bytes() == b"one two"
    assert sorted(path.name for path in folder.iterdir()) == ["hasty", "new"]
    assert unique_partial(folder / "new") != unique_partial(folder / "new")
    whole = os.write
    try:
        os.write = lambda descriptor, data: whole(descriptor, data[:3])
        write_whole(folder / "short", b"a long line of bytes")
        with appending(folder / "log") as append:
            append(b"first line\n")
            append(b"second line\n")
    finally:
        os.write = whole
    assert (folder / "short").read_bytes() == b"a long line of bytes"
    assert (folder / "log").read_bytes() == b"first line\nsecond line\n"

    def full() -> None:
        with writable(folder):
            raise OSError(28, "No space left on device")

    assert _raises(HarnessError, full)


class _watched:
    """Notes the calls of the primitives of writing, inside."""

    def __init__(self, calls: list[str]) -> None:
        self._calls = calls
        self._real: dict[str, Callable[..., Any]] = {}

    def __enter__(self) -> None:
        for name in ("_write", "_sync", "_rename"):
            self._real[name] = getattr(results, name)
            setattr(results, name, self._noting(name))

    def _noting(self, name: str) -> Callable[..., Any]:
        def noting(*arguments: Any) -> Any:
            self._calls.append(name)
            return self._real[name](*arguments)

        return noting

    def __exit__(self, *_error: object) -> None:
        for name, function in self._real.items():
            setattr(results, name, function)


class _failing(_watched):
    """Lets one of the primitives fail at its second call, or its first where there is no second."""

    def __init__(self, name: str) -> None:
        super().__init__([])
        self._name = name

    def _noting(self, name: str) -> Callable[..., Any]:
        noting = super()._noting(name)

        def failing(*arguments: Any) -> Any:
            if name == self._name and (name != "_write" or name in self._calls):
                raise OSError(28, "No space left on device")
            return noting(*arguments)

        return failing


def _raises(kind: type[BaseException], act: Callable[[], object]) -> bool:
    try:
        act()
    except kind:
        return True
    return False


def no_two_runs_share_a_folder(folder: Path) -> None:
    """Names differ with everything that determines a run, and a name that is taken is not taken twice."""
    asked = [
        request(),
        request(seed=8),
        request(options={"read_mode": "log"}),
        request(operations=50),
        request(nodes=5),
    ]
    asked += [request(planted_bugs=("stale-read",)), request(faults=("clocks",)), request(duration_s=2.0)]
    names = [run_id_of(each) for each in asked]
    assert len(set(names)) == len(names) and names == [run_id_of(each) for each in asked]
    assert run_id_of(request(), "namespaces:3") != names[0]
    first, second = (claim_folder(folder, numbered("run")) for _ in range(2))
    (first / "verdict.json").write_text("kept")
    assert (first.name, second.name) == ("run", "run-2") and not list(second.iterdir())
    assert claim_folder(folder, numbered("run")).name == "run-3"


def a_long_plan_is_stored_to_its_last_operation(folder: Path) -> None:
    """Plans around the length of a block of the file, read back."""
    for length in (0, 1, 999, 1_000, 1_001, 2_001):
        operations = tuple(PlannedOperation(0, number, "write", "k0", number) for number in range(length))
        prepare_run(folder / str(length), "r", plan(operations=operations), "simulated")
        stored = read_run(folder / str(length)).file
        assert (stored.run_id, stored.world, stored.plan) == ("r", "simulated", plan(operations=operations)), length


def _store(folder: Path, made: History, verdict: Verdict = Verdict.VIOLATION) -> Path:
    """A run in `folder` with a verdict on its history, an error of the harness and a broken invariant."""
    prepare_run(folder, "r", plan(), "simulated")
    (folder / "history.jsonl").write_bytes(made.to_jsonl())
    finding = Finding(checker="invariants", anomaly="A-1", sentence="It broke.", time_us=400, node="athens")
    broken = CheckResult(checker="invariants", verdict=Verdict.VIOLATION, sentence="It broke.", findings=(finding,))
    run = record(made, errors=["A fault did not bite."], interrupted=True, marks={"links-cut": 1})
    told = judged([("invariants", broken), ("a", verdict)], run)
    write_judgement(folder, told)
    return folder


def _with_faults() -> History:
    """Three operations, a partition that was stopped, and a kill that did not bite and was never stopped."""
    made, sound = History(), sound_history()
    for row in range(3):
        told = sound.row(row)
        process = (0, 1, 2)[row]
        made.invoke(Operation(process, told.f, told.key, told.value), told.invoke_us, process, "byzantium")
    begun = {"target": "leader", "nodes": ["athens"], "links": [["athens", "cyrene"]], "roles": ["leader"]}
    made.fault("start-partition", begun | {"fault": 0, "description": "", "applied": None}, 15_000)
    made.complete(0, ok(), 20_000)
    made.fault("stop-partition", {"fault": 0, "target": "leader"}, 35_000)
    made.fault("start-kill", begun | {"fault": 1, "description": "", "applied": "it is alive"}, 40_000)
    made.complete(1, ok(1), 45_000)
    return made


def a_run_is_read_back_as_it_was(folder: Path) -> None:
    """A stored run keeps its faults, errors, breaches, marks, and the fact that it was interrupted."""
    made = _with_faults()
    found = recovered(_store(folder / "run", made))
    run = found.record
    assert found.judgement is not None and found.judgement.verdict is Verdict.VIOLATION
    assert run.history.to_jsonl() == made.to_jsonl() and run.plan == plan()
    told = [(fault.kind, fault.start_us, fault.stop_us, fault.applied) for fault in run.faults]
    assert told == [("partition", 15_000, 35_000, None), ("kill", 40_000, 45_000, "it is alive")]
    assert run.faults[0].links == (("athens", "cyrene"),)
    assert run.errors == ["A fault did not bite."] and run.marks == {"links-cut": 1} and run.interrupted
    assert [(breach.invariant, breach.time_us, breach.node) for breach in run.breaches] == [("A-1", 400, "athens")]


def a_verdict_of_another_history_is_not_taken(folder: Path) -> None:
    """The history was cut short, or the plan exchanged, after the run had been judged."""
    run = _store(folder / "run", sound_history())
    lines = (run / "history.jsonl").read_bytes().splitlines(keepends=True)
    (run / "history.jsonl").write_bytes(b"".join(lines[:-1]))
    found = recovered(run)
    assert found.judgement is None and "another history" in found.why_not
    assert found.record.errors == [] and len(found.record.history) == 6
    (run / "history.jsonl").write_bytes(b"".join(lines))
    assert recovered(run).judgement is not None
    prepare_run(run, "r", plan(seed=4), "simulated")
    found = recovered(run)
    assert found.judgement is None and "another plan" in found.why_not
    (run / "verdict.json").unlink()
    assert recovered(run).judgement is None


def a_damaged_file_is_never_taken_for_a_whole_one(folder: Path) -> None:
    """A torn end of a history is dropped; any other damage, and any damage of another file, is named."""
    run = _store(folder / "run", sound_history())
    whole = (run / "history.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    torn = History.from_jsonl([*lines[:-1], lines[-1][:20]])
    assert torn.to_jsonl() == b"".join(lines[:-1])
    assert _raises(UsageError, lambda: History.from_jsonl([*lines[:-2], lines[-2][:20], lines[-1]]))
    verdict = (run / "verdict.json").read_bytes()
    (run / "verdict.json").write_bytes(verdict[: len(verdict) // 2])
    assert _raises(UsageError, lambda: read_judgement(run))
    assert _raises(UsageError, lambda: read_run(run))
    assert recovered(run).judgement is None
    (run / "verdict.json").write_bytes(verdict)
    told = read_judgement(run)
    assert told is not None and told.verdict is Verdict.VIOLATION
    (run / "run.json").unlink()
    assert _raises(UsageError, lambda: read_run(run))


def what_happened_can_be_repeated(_folder: Path) -> None:
    """A plan with what the history says in place of what was planned."""
    made = _with_faults()
    faults = (PlannedFault("partition", 15_500, 20_000, "leader"), PlannedFault("kill", 39_000, 90_000, "one"))
    decided = as_it_happened(plan(faults=faults), made)
    assert [(each.worker, each.at_us, each.f) for each in decided.operations] == [
        (0, 1_000, "write"),
        (1, 11_000, "read"),
        (2, 16_000, "cas"),
    ]
    told = [(each.at_us, each.stop_us, each.target) for each in decided.faults]
    assert told == [(15_000, 35_000, "athens"), (40_000, 50_000, "athens")]
    assert decided.faults[0].argument == {"links": [["athens", "cyrene"]]}
    assert msgspec.structs.replace(decided, operations=(), faults=()) == plan(faults=())
    assert PARTITION.kind == "partition"
