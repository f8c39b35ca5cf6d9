"""The minimal run of a violation: the shrunken plan, carried out and kept below the run it came from.

    RUN/minimal/run.json, history.jsonl, verdict.json

It is an ordinary run folder, so every command that takes a run takes it too. The judgement of the full run has its
size under `detail["minimal"]`. Where the minimal plan shows the violation with too few other seeds, and a larger one
that was met on the way to it is robust, the run of that plan is kept in `RUN/robust`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from faultline.harness.judge import judge
from faultline.harness.judgement import Judgement
from faultline.harness.parts import Parts
from faultline.harness.plan import Plan
from faultline.harness.robust import ENOUGH_SEEDS, OTHER_SEEDS, failing_seeds, robust_plan
from faultline.harness.run import run_simulated
from faultline.harness.run_record import RunRecord
from faultline.harness.shrink import Shrunk, same_violation, shrink
from faultline.harness.store import open_history, prepare_run, write_judgement

__all__ = ["Minimal", "Robust", "keep_minimal_run", "minimal_run"]


class Robust(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a plan that fails with enough other seeds, their number, and the command that repeats its run."""

    operations: int
    faults: int
    failing_seeds: int
    replay: str


class Minimal(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a minimal run: the parts that are left of the original plan, and the cost of the search.

    `complete` means that no further part can be taken out of the plan without losing the violation; otherwise the
    budget of `runs` was spent. `replay` is the command that repeats the minimal run, `signature` the kind of violation
    that was kept, `needs` the faults that are left, by kind and planned time, and `universe` the drawn values that are
    left. The plan shows that kind of violation with `failing_seeds` of `other_seeds` other seeds; `robust` is a larger
    plan that does so with more, where one was looked for and found.
    """

    operations: int
    operations_before: int
    faults: int
    faults_before: int
    runs: int
    complete: bool
    sentence: str
    replay: str
    signature: str = ""
    needs: tuple[tuple[str, int], ...] = ()
    universe: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    other_seeds: int = 0
    failing_seeds: int = 0
    robust: Robust | None = None


def keep_minimal_run(
    folder: Path,
    plan: Plan,
    judgement: Judgement,
    parts: Parts,
    replay_of: Callable[[Path], str],
    signature: str = "",
) -> tuple[Minimal, RunRecord, Judgement]:
    """Shrink the violation of `plan`, keep its minimal run in `folder/minimal`, and return its size.

    `judgement` is that of the full run, `replay_of` makes the replay command of a folder. The most important finding
    is kept, or the one of this `signature`. Return the summary and the minimal run's record (with messages) and
    judgement, for reports.
    """
    told_by = signature or judgement.signature
    still_fails = same_violation(parts, told_by, any_finding=told_by != judgement.signature)
    shrunk = shrink(plan, still_fails, system=parts.system)
    run_id = f"{judgement.run_id}.minimal"
    record, smallest = _carried_out(folder / "minimal", run_id, shrunk.plan, parts, replay_of)
    minimal = msgspec.structs.replace(
        minimal_run(plan, shrunk, smallest, told_by),
        **_other_seeds(folder, shrunk, judgement, parts, replay_of, told_by),
    )
    smallest.detail["minimal_of"] = {
        "signature": minimal.signature,
        "needs": msgspec.to_builtins(minimal.needs),
        "complete": minimal.complete,
    }
    write_judgement(folder / "minimal", smallest)
    return minimal, record, smallest


def _carried_out(
    target: Path, run_id: str, plan: Plan, parts: Parts, replay_of: Callable[[Path], str]
) -> tuple[RunRecord, Judgement]:
    """Carry `plan` out, keep its run in `target`, and return its record, with messages, and its judgement."""
    prepare_run(target, run_id, plan, "simulated")
    with open_history(target) as sink:
        record = run_simulated(plan, parts, sink=sink, record_messages=True).whole()
    return record, judge(record, parts, run_id=run_id, replay=replay_of(target))


def _other_seeds(
    folder: Path, shrunk: Shrunk, judgement: Judgement, parts: Parts, replay_of: Callable[[Path], str], signature: str
) -> dict[str, Any]:
    """Return what a `Minimal` tells of other seeds, and keep the run of a robust plan in `folder/robust`."""
    shows_it = same_violation(parts, signature, any_finding=True)
    told: dict[str, Any] = {"other_seeds": OTHER_SEEDS, "failing_seeds": failing_seeds(shrunk.plan, shows_it)}
    # The first step is the run itself.
    found = robust_plan(shrunk.steps[1:-1], shows_it) if told["failing_seeds"] < ENOUGH_SEEDS else None
    if found is not None:
        _, robust = _carried_out(folder / "robust", f"{judgement.run_id}.robust", found.plan, parts, replay_of)
        write_judgement(folder / "robust", robust)
        operations, faults = len(found.plan.operations), len(found.plan.faults)
        told["robust"] = Robust(
            operations=operations, faults=faults, failing_seeds=found.failing_seeds, replay=robust.replay
        )
    return told


def minimal_run(plan: Plan, shrunk: Shrunk, smallest: Judgement, signature: str) -> Minimal:
    """Return the summary of a shrunken `plan`, whose run was judged `smallest`; it was shrunk to keep `signature`."""
    return Minimal(
        operations=len(shrunk.plan.operations),
        operations_before=len(plan.operations),
        faults=len(shrunk.plan.faults),
        faults_before=len(plan.faults),
        runs=shrunk.runs,
        complete=shrunk.complete,
        sentence=smallest.sentence,
        replay=smallest.replay,
        signature=signature,
        needs=tuple((fault.kind, fault.at_us) for fault in shrunk.plan.faults),
        universe=shrunk.plan.universe,
    )
