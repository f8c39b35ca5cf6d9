"""The repetition of a stored run, and its comparison with the record."""

from __future__ import annotations

import hashlib
import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from faultline.cli.single_run import execute, judge_and_report
from faultline.harness.decisions import as_it_happened
from faultline.harness.judge import judge
from faultline.harness.judgement import Judgement
from faultline.harness.parts import Parts
from faultline.harness.plan import Plan
from faultline.harness.store import StoredRun, claim_folder, open_history, prepare_run
from faultline.harness.stored_plan import fit_plan
from faultline.harness.verdict import Verdict, merge
from faultline.registry import resolve

__all__ = ["Repeated", "repeat"]


class Repeated(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a repetition. `as_recorded`: equal to the byte (simulated), or comparable at all (real)."""

    run_id: str
    world: str
    verdict: Verdict
    sentence: str
    as_recorded: bool
    reproduced: int
    times: int
    lines: list[str]
    checks_due: tuple[str, ...] = ()
    checks_ran: tuple[str, ...] = ()


def repeat(
    stored: StoredRun, times: int, *, as_happened: bool = False, keep: bool = False, hosts: str = ""
) -> Repeated:
    """Repeat the run: once in the simulated world, `times` times with real processes.

    With `as_happened`, a real run's decisions are repeated instead of its plan; with `keep`, each repetition stays as a
    run of its own below the stored one. A run on hosts is repeated on `hosts`; the hosts that the folder names come
    from its sender and are ignored.
    """
    parts = resolve(stored.file.plan)
    plan = fit_plan(stored.file.plan, parts, str(Path(stored.folder) / "run.json"))
    if stored.file.world == "simulated":
        return _repeat_simulated(stored, plan, parts)
    if as_happened:
        happened = as_it_happened(plan, stored.history())
        plan = fit_plan(happened, parts, str(Path(stored.folder) / "history.jsonl"))
    do = _kept(stored, plan, parts, hosts) if keep else _discarded(stored, plan, parts, hosts)
    return _compared(stored, [do() for _ in range(times)])


def _repeat_simulated(stored: StoredRun, plan: Plan, parts: Parts) -> Repeated:
    from faultline.reports.terminal import run_lines

    file = stored.file
    lines: list[bytes] = []
    record = execute(plan, parts, "simulated", Path(stored.folder), lines.append)
    judgement = judge(record, parts, run_id=file.run_id, replay=f"faultline replay {stored.folder}", probes=True)
    same_history = _is_same_history(stored, b"".join(lines))
    same_verdict = stored.judgement is None or _agrees(stored.judgement, judgement)
    return Repeated(
        run_id=file.run_id,
        world="simulated",
        verdict=judgement.verdict,
        sentence=judgement.sentence,
        as_recorded=same_history and same_verdict,
        reproduced=int(same_history and same_verdict),
        times=1,
        lines=[*run_lines(record, judgement), *_comparison(stored, same_history, same_verdict)],
        checks_due=tuple(judgement.checks_due),
        checks_ran=_ran(judgement),
    )


def _is_same_history(stored: StoredRun, history: bytes) -> bool:
    """Return whether `history` is the recorded one; where only the plan was kept, as in guided campaigns, by its
    digest in the verdict."""
    if not stored.history_bytes and stored.judgement is not None and stored.judgement.history_sha256:
        return hashlib.sha256(history).hexdigest() == stored.judgement.history_sha256
    return history == stored.history_bytes


def _ran(judgement: Judgement) -> tuple[str, ...]:
    return tuple(check.checker for check in judgement.checks)


def _comparison(stored: StoredRun, same_history: bool, same_verdict: bool) -> list[str]:
    recorded = stored.judgement.history_sha256 if stored.judgement is not None and not stored.history_bytes else ""
    digest = (recorded or hashlib.sha256(stored.history_bytes).hexdigest())[:16]
    if not same_history:
        return [
            f"NOT reproduced: the history differs from the one recorded by faultline {stored.file.versions}.",
            "The code of the system or of the harness has changed since; run the seed again with `faultline run`.",
        ]
    verdict = "the same verdict" if same_verdict else "ANOTHER verdict: the checkers have changed since"
    return [f"Reproduced: the same history byte for byte (sha256 {digest}…), {verdict}."]


def _discarded(stored: StoredRun, plan: Plan, parts: Parts, hosts: str) -> Callable[[], Judgement]:
    def do() -> Judgement:
        with tempfile.TemporaryDirectory(prefix="faultline-replay-") as scratch:
            record = execute(plan, parts, stored.file.world, Path(scratch), None, hosts)
            return judge(record, parts, run_id=stored.file.run_id)

    return do


def _kept(stored: StoredRun, plan: Plan, parts: Parts, hosts: str) -> Callable[[], Judgement]:
    replays = Path(stored.folder) / "replays"
    file = stored.file

    def do() -> Judgement:
        folder = claim_folder(replays, map(str, itertools.count(1)))
        run_id = f"{file.run_id}.replay-{folder.name}"
        prepare_run(folder, run_id, plan, file.world, hosts)
        with open_history(folder) as sink:
            record = execute(plan, parts, file.world, folder, sink, hosts)
        return judge_and_report(record, parts, run_id, folder, shrinks=False, hosts=hosts).judgement

    return do


def _compared(stored: StoredRun, judgements: list[Judgement]) -> Repeated:
    times = len(judgements)
    reproduced = sum(1 for judgement in judgements if _agrees(stored.judgement, judgement))
    lines = [f"{number}: {judgement.sentence}" for number, judgement in enumerate(judgements, start=1)]
    return Repeated(
        run_id=stored.file.run_id,
        world=stored.file.world,
        verdict=merge(judgement.verdict for judgement in judgements),
        sentence=judgements[-1].sentence,
        as_recorded=True,
        reproduced=reproduced,
        times=times,
        lines=[*lines, *_others(stored.judgement, judgements), _share(reproduced, times)],
        checks_due=tuple(judgements[-1].checks_due),
        checks_ran=_ran(judgements[-1]),
    )


def _others(recorded: Judgement | None, judgements: list[Judgement]) -> list[str]:
    """Return the sentence about violations of another kind than the recorded one."""
    others = [j for j in judgements if j.verdict is Verdict.VIOLATION and not _agrees(recorded, j)]
    return [f"{len(others)} of {len(judgements)} show another violation than the recorded one."] if others else []


def _share(reproduced: int, times: int) -> str:
    return f"Reproduced {reproduced} of {times}: a run of real processes cannot be repeated exactly."


def _agrees(recorded: Judgement | None, now: Judgement) -> bool:
    return recorded is not None and (recorded.verdict, recorded.signature) == (now.verdict, now.signature)
