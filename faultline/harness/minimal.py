"""The minimal run of a violation: the shrunken plan, carried out and kept below the run it came from.

    RUN/minimal/run.json, history.jsonl, verdict.json

It is an ordinary run folder, so every command that takes a run takes it too. The judgement of the full run has its
size under `detail["minimal"]`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from faultline.harness.judge import judge
from faultline.harness.judgement import Judgement
from faultline.harness.parts import Parts
from faultline.harness.plan import Plan
from faultline.harness.run import run_simulated
from faultline.harness.run_record import RunRecord
from faultline.harness.shrink import Shrunk, same_violation, shrink
from faultline.harness.store import open_history, prepare_run, write_judgement

__all__ = ["Minimal", "keep_minimal_run", "minimal_run"]


class Minimal(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a minimal run: the parts that are left of the original plan, and the cost of the search.

    `complete` means that no further part can be taken out of the plan without losing the violation; otherwise the
    budget of `runs` was spent. `replay` is the command that repeats the minimal run, `signature` the kind of violation
    that was kept, `needs` the faults that are left, by kind and planned time, and `universe` the drawn values that are
    left.
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
    target = folder / "minimal"
    run_id = f"{judgement.run_id}.minimal"
    prepare_run(target, run_id, shrunk.plan, "simulated")
    with open_history(target) as sink:
        record = run_simulated(shrunk.plan, parts, sink=sink, record_messages=True).whole()
    smallest = judge(record, parts, run_id=run_id, replay=replay_of(target))
    minimal = minimal_run(plan, shrunk, smallest, told_by)
    smallest.detail["minimal_of"] = {
        "signature": minimal.signature,
        "needs": msgspec.to_builtins(minimal.needs),
        "complete": minimal.complete,
    }
    write_judgement(target, smallest)
    return minimal, record, smallest


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
