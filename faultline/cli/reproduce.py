"""The runs of a piece of evidence, and the decision whether they confirm its claim."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from faultline.cli.single_run import carry_out
from faultline.harness.judgement import Judgement
from faultline.harness.verdict import Verdict
from faultline.harness.world.hosts.evidence.cases import Case

__all__ = ["Outcome", "outcome_of", "runs_of"]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the runs of one claim.

    `tried` are the seeds that were run, `shown` those that violated in the way of the claim, `passed` the clean ones;
    the others were undecided, or violated in another way. `finding` and `sentence` are of the first in `shown`, or,
    when the claim is not confirmed, of the first run that contradicts it.
    """

    name: str
    expected: str
    borne_out: bool
    tried: tuple[int, ...]
    shown: tuple[int, ...]
    passed: tuple[int, ...]
    operations: int
    finding: str = ""
    sentence: str = ""
    folders: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The verdict on the claim: a violation only where none was expected; *vacuous* where one was, and none
        came."""
        if self.borne_out:
            return Verdict.PASS
        if len(self.shown) + len(self.passed) < len(self.tried):
            return Verdict.HARNESS_ERROR
        return Verdict.VIOLATION if self.expected == "pass" else Verdict.VACUOUS


def runs_of(case: Case, store: Path, *, hosts: str = "", every_seed: bool = False) -> Iterator[tuple[Path, Judgement]]:
    """Run the seeds of `case` one after the other; yield the folder and judgement of each.

    Where a violation is expected, the first seed that shows it is the last, unless `every_seed` is wanted.
    """
    for seed in case.seeds:
        finished = carry_out(case.request(seed), store, shrinks=False, hosts=hosts or f"namespaces:{case.hosts}")
        yield finished.folder, finished.judgement
        if finished.interrupted:
            raise KeyboardInterrupt
        if case.expected == "violation" and case.shows(finished.judgement) and not every_seed:
            return


def outcome_of(case: Case, runs: list[tuple[Path, Judgement]]) -> Outcome:
    """Count the `runs` of `case`."""
    judged = [judgement for _, judgement in runs]
    shown = [judgement for judgement in judged if case.shows(judgement)]
    passed = [judgement for judgement in judged if judgement.verdict is Verdict.PASS]
    against = [judgement for judgement in judged if judgement not in passed]
    telling = next(iter(shown or against), None)
    return Outcome(
        name=case.name,
        expected=case.expected,
        borne_out=case.is_borne_out(judged),
        tried=tuple(judgement.seed for judgement in judged),
        shown=tuple(judgement.seed for judgement in shown),
        passed=tuple(judgement.seed for judgement in passed),
        operations=sum(judgement.counts.get("invoked", 0) for judgement in judged),
        finding=telling.signature if telling else "",
        sentence=telling.sentence if telling else "",
        folders=tuple(str(folder) for folder, _ in runs),
    )
