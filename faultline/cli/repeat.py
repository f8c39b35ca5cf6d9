"""Repeats a stored run and says how the repetition compares."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

import msgspec

from faultline.cli.single_run import execute
from faultline.harness.judge import judge
from faultline.harness.judgement import Judgement
from faultline.harness.parts import Parts
from faultline.harness.store import StoredRun
from faultline.harness.verdict import Verdict
from faultline.registry import resolve

__all__ = ["Repeated", "repeat"]


class Repeated(msgspec.Struct, frozen=True, kw_only=True):
    """How a repetition went. `as_recorded`: equal to the byte (simulated), or comparable at all (real)."""

    run_id: str
    world: str
    verdict: Verdict
    sentence: str
    as_recorded: bool
    reproduced: int
    times: int
    lines: list[str]


def repeat(stored: StoredRun, times: int) -> Repeated:
    """Do the run again: once in the simulated world, `times` times with real processes."""
    parts = resolve(stored.file.plan)
    if stored.file.world == "simulated":
        return _repeat_simulated(stored, parts)
    return _repeat_real(stored, parts, times)


def _repeat_simulated(stored: StoredRun, parts: Parts) -> Repeated:
    from faultline.reports.terminal import run_lines

    file = stored.file
    lines: list[bytes] = []
    record = execute(file.plan, parts, "simulated", Path(stored.folder), lines.append)
    judgement = judge(record, parts, run_id=file.run_id, replay=f"faultline replay {stored.folder}")
    same_history = b"".join(lines) == stored.history_bytes
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
    )


def _comparison(stored: StoredRun, same_history: bool, same_verdict: bool) -> list[str]:
    digest = hashlib.sha256(stored.history_bytes).hexdigest()[:16]
    if not same_history:
        return [
            f"NOT reproduced: the history differs from the one recorded by faultline {stored.file.versions}.",
            "The code of the system or of the harness has changed since; run the seed anew with `faultline run`.",
        ]
    verdict = "the same verdict" if same_verdict else "ANOTHER verdict: the checkers have changed since"
    return [f"Reproduced: the same history byte for byte (sha256 {digest}…), {verdict}."]


def _repeat_real(stored: StoredRun, parts: Parts, times: int) -> Repeated:
    file, judgements = stored.file, []
    for _ in range(times):
        with tempfile.TemporaryDirectory(prefix="faultline-replay-") as scratch:
            record = execute(file.plan, parts, file.world, Path(scratch), None, file.hosts)
            judgements.append(judge(record, parts, run_id=file.run_id))
    reproduced = sum(1 for judgement in judgements if _agrees(stored.judgement, judgement))
    return Repeated(
        run_id=file.run_id,
        world=file.world,
        verdict=stored.judgement.verdict if stored.judgement and reproduced else judgements[-1].verdict,
        sentence=judgements[-1].sentence,
        as_recorded=True,
        reproduced=reproduced,
        times=times,
        lines=[
            *(f"{number}: {judgement.sentence}" for number, judgement in enumerate(judgements, start=1)),
            f"Reproduced {reproduced} of {times}: a run of real processes cannot be repeated exactly.",
        ],
    )


def _agrees(recorded: Judgement | None, now: Judgement) -> bool:
    return recorded is not None and (recorded.verdict, recorded.signature) == (now.verdict, now.signature)
