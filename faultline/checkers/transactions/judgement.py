"""From an inference to a verdict: search for cycles, name them, and compare the anomalies with the promised model.

The promise decides. An anomaly that the model forbids is a finding and makes a violation. One that it allows is
reported too (`detail["allowed"]`), because it describes the store, but it does not fail the test. If the search gave up
on a shape that the model forbids, and nothing else was found, the verdict is *unknown*. A history in which no two
transactions depend on each other has tested nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import msgspec
import numpy as np

from faultline.checkers.common.words import counted
from faultline.checkers.isolation.committed import Committed
from faultline.checkers.porcupine.budget import UNLIMITED, Budget
from faultline.checkers.transactions.anomalies import severity
from faultline.checkers.transactions.causes import by_cause
from faultline.checkers.transactions.columns import OK
from faultline.checkers.transactions.component import Component, edge_lookup
from faultline.checkers.transactions.components import suspect_components
from faultline.checkers.transactions.cycles import Cycle, find_cycles
from faultline.checkers.transactions.edges import DependencyEdges, EdgeKind
from faultline.checkers.transactions.exact import decided
from faultline.checkers.transactions.explain import cycle_detail, cycle_sentence, reasons_of, turned
from faultline.checkers.transactions.inference import Inference
from faultline.checkers.transactions.models import FORBID_EVERY_CYCLE, canonical, orders_for, ruled_out
from faultline.checkers.transactions.observations import Observation
from faultline.checkers.transactions.order import suspect_regions
from faultline.checkers.transactions.pairs import observe_pairs, observe_updates
from faultline.checkers.transactions.shapes import CycleShape, shapes_for
from faultline.checkers.transactions.strength import STRONGEST_FIRST, strongest
from faultline.checkers.transactions.suspects import Suspects
from faultline.harness.history import History
from faultline.harness.verdict import Cause, CheckResult, Finding, Reason, Verdict

__all__ = ["DEFAULT_STEPS", "cycles_against", "judge", "refutes"]

DEFAULT_STEPS = 2_000_000
"""The edges that the search for shapes visits in one component by default."""

_ALL_COMPONENTS = 10
"""The budget of all components together, as a multiple of that of one."""

_EXAMPLES = 8
"""The cycles of each shape that are looked for: more of them rule out no further model."""

_STRENGTH_TRANSACTIONS_MAX = 1_000
"""The size up to which other models than the promised one are decided too."""

_STRENGTH_STEPS_MAX = 200_000
"""The steps of the search for each of them."""


@dataclass(slots=True)
class _Found:
    cycles: dict[str, list[Cycle]] = field(default_factory=dict)
    undecided: dict[str, int] = field(default_factory=dict)
    components: list[int] = field(default_factory=list)
    rounds: int = 0
    cost: int = 0

    def add(self, cycle: Cycle) -> None:
        self.cycles.setdefault(cycle.name, []).append(cycle)

    def not_shown(self, shapes: list[CycleShape]) -> list[CycleShape]:
        """Return the shapes of which more cycles are wanted.

        A cycle is one of process order and of real time as well, so that these say nothing new beside plain ones.
        """
        shown = {name for name, cycles in self.cycles.items() if len(cycles) >= _EXAMPLES}
        return [shape for shape in shapes if shown.isdisjoint((shape.name, shape.base))]


def judge(
    history: History,
    inference: Inference,
    checker: str,
    model: str,
    steps: int = DEFAULT_STEPS,
    limit: Budget = UNLIMITED,
) -> CheckResult:
    """Return the verdict on whether `history` is what `model` promises. Raise UsageError for an unknown model.

    The search for cycles ends at the time of `limit`; inference and the search for components are linear in time.
    """
    result = _inferred(history, inference, checker, canonical(model), steps, limit)
    if result.verdict is not Verdict.VIOLATION:
        result = _searched(history, inference, result, limit)
    return _with_strength(history, inference, result, limit)


def _with_strength(history: History, inference: Inference, result: CheckResult, limit: Budget) -> CheckResult:
    """Return `result` with the strongest models that the history keeps and the weakest that it does not.

    Only small histories are asked for other models than the promised one: each is a search of its own.
    """
    detail, model = result.detail, result.detail["model"]
    broken = {*detail["not"], *detail["also_not"]} | ({model} if result.verdict is Verdict.VIOLATION else set())
    holding = [model] if result.verdict is Verdict.PASS and _is_decided(inference, model) else []
    refuted: list[str] = []
    is_small = len(inference.columns) <= _STRENGTH_TRANSACTIONS_MAX
    if inference.committed is not None and is_small and result.verdict in (Verdict.PASS, Verdict.VIOLATION):
        keeps = partial(_keeps, history, inference, inference.committed(), limit)
        candidates = [name for name in STRONGEST_FIRST if _is_decided(inference, name)]
        holding, refuted = strongest(candidates, holding, broken, keeps)
    if result.verdict is Verdict.VIOLATION:
        refuted.append(model)
    impossible = ruled_out(detail["anomalies"], refuted)
    detail = detail | {"holds": holding, "not": list(impossible.weakest), "also_not": list(impossible.also)}
    sentence = result.sentence
    if result.verdict is Verdict.VIOLATION and holding:
        sentence += f" They keep {' and '.join(holding)}; the weakest ruled out: {', '.join(impossible.weakest)}."
    return msgspec.structs.replace(result, sentence=sentence, detail=detail)


def _is_decided(inference: Inference, model: str) -> bool:
    """Return whether a history without a finding against `model` is known to keep it."""
    return inference.committed is not None and (model in inference.searched or model in FORBID_EVERY_CYCLE)


def _keeps(history: History, inference: Inference, committed: Committed, limit: Budget, model: str) -> bool | None:
    """Return whether the history keeps a model that `_is_decided`, None when the budget does not tell."""
    if model not in inference.searched:
        return not refutes(inference, model)
    verdict = decided(model, history, committed, limit, {"steps_max": _STRENGTH_STEPS_MAX}).verdict
    return None if verdict is Verdict.UNKNOWN else verdict is not Verdict.VIOLATION


def _searched(history: History, inference: Inference, inferred: CheckResult, limit: Budget) -> CheckResult:
    """Return `inferred`, which is no violation, as the search for an order confirms, refutes or doubts it."""
    model = inferred.detail["model"]
    if inference.committed is None or model not in inference.searched:
        return inferred
    searched = decided(model, history, inference.committed(), limit)
    said = {"verdict": searched.verdict.value, "sentence": searched.sentence} | searched.detail
    detail = inferred.detail | {"search": said}
    if searched.verdict is Verdict.VIOLATION:
        worst = searched.findings[0]
        return msgspec.structs.replace(
            inferred,
            verdict=searched.verdict,
            sentence=f"{_these(inference).capitalize()} not {model}. {worst.sentence}",
            findings=tuple(msgspec.structs.replace(each, checker=inferred.checker) for each in searched.findings),
            detail=detail,
            reason=None,
        )
    if inferred.verdict is Verdict.VACUOUS:
        return msgspec.structs.replace(inferred, detail=detail)
    if searched.verdict is Verdict.PASS:
        # An order was found, so that no shape that inference left undecided can be there.
        allowed = inferred.detail["anomalies"]
        sentence = f"{_passing_sentence(inference, model, allowed)} A search confirms it: {searched.sentence}"
        return msgspec.structs.replace(inferred, verdict=Verdict.PASS, sentence=sentence, detail=detail, reason=None)
    if inferred.verdict is Verdict.PASS:
        sentence = f"Inference finds nothing against {model}, and no more is known: {searched.sentence}"
        return msgspec.structs.replace(
            inferred, verdict=Verdict.UNKNOWN, sentence=sentence, detail=detail, reason=searched.reason
        )
    return msgspec.structs.replace(inferred, detail=detail)


def _inferred(
    history: History, inference: Inference, checker: str, promised: str, steps: int, limit: Budget
) -> CheckResult:
    """Return the verdict as far as the dependencies that were inferred tell."""
    found = _search(inference, promised, steps, limit)
    counts = {**inference.observations.counts, **{name: len(cycles) for name, cycles in found.cycles.items()}}
    impossible = ruled_out(counts)
    forbidden = {name for name in counts if _breaks(name, promised)}
    findings = _findings(history, inference, found, checker)
    verdict = _verdict(inference, found, promised, bool(forbidden))
    return CheckResult(
        checker=checker,
        verdict=verdict,
        sentence=_sentence(inference, found, verdict, promised, counts, findings),
        findings=tuple(by_cause(finding for finding in findings if finding.anomaly in forbidden)),
        detail={
            "model": promised,
            "transactions": len(inference.columns),
            "edges": _edge_counts(inference.edges),
            "anomalies": dict(sorted(counts.items())),
            "not": list(impossible.weakest),
            "also_not": list(impossible.also),
            "allowed": [
                {"anomaly": finding.anomaly, "sentence": finding.sentence, "operations": list(finding.operations)}
                for finding in findings
                if finding.anomaly not in forbidden
            ],
            "components": found.components[:_EXAMPLES],
            "component_count": len(found.components),
            "undecided_cycles": found.undecided,
            "steps": found.cost,
        },
        reason=_reason(steps, limit) if verdict is Verdict.UNKNOWN else None,
    )


def refutes(inference: Inference, model: str) -> bool | None:
    """Return whether `judge` finds a violation, without naming any cycle; None where only the search decides.

    Models that forbid every cycle are refuted by the first component that is strongly connected.
    """
    promised = canonical(model)
    if any(_breaks(name, promised) for name in inference.observations.counts):
        return True
    if promised not in FORBID_EVERY_CYCLE:
        return None
    process, realtime = orders_for(promised)
    edges = _with_process(inference) if process else inference.edges
    regions = suspect_regions(inference.columns, inference.edges if realtime else edges, realtime)
    is_cyclic = bool(suspect_components(inference.columns, edges, regions, realtime))
    return None if promised in inference.searched and not is_cyclic else is_cyclic


def cycles_against(inference: Inference, model: str, limit: Budget) -> list[Cycle]:
    """Return the cycles that `judge` finds and `model` forbids."""
    found = _search(inference, canonical(model), DEFAULT_STEPS, limit)
    return [cycle for name, cycles in found.cycles.items() if _breaks(name, canonical(model)) for cycle in cycles]


def _search(inference: Inference, model: str, steps: int, limit: Budget) -> _Found:
    process, realtime = orders_for(model)
    columns, found = inference.columns, _Found()
    edges = _with_process(inference) if process else inference.edges
    regions = suspect_regions(columns, inference.edges if realtime else edges, realtime)
    found.rounds = regions.rounds
    components = suspect_components(columns, edges, regions, realtime)
    if not components:
        return found
    found.components = sorted(map(len, components), reverse=True)
    suspects, shapes = Suspects(columns, edges, components, realtime), shapes_for(process, realtime)
    lookup = edge_lookup(suspects.edges)
    for number, nodes in enumerate(components):
        possible = suspects.possible(number, shapes)
        wanted = found.not_shown(possible)
        if not wanted and not suspects.has_pair[number]:
            continue
        component = Component(columns, lookup, nodes)
        observe_pairs(component, columns, inference.observations)
        if wanted:
            left = min(steps, steps * _ALL_COMPONENTS - found.cost)
            _search_component(component, wanted, left, limit, found, must_find=len(wanted) == len(possible))
    for cycle in (cycle for cycles in found.cycles.values() for cycle in cycles):
        observe_updates(cycle, columns, inference.observations)
    return found


def _search_component(
    component: Component, shapes: list[CycleShape], steps: int, limit: Budget, found: _Found, *, must_find: bool
) -> None:
    if steps <= 0:
        for shape in shapes:
            found.undecided[shape.name] = found.undecided.get(shape.name, 0) + 1
        return
    search = find_cycles(component, shapes, steps, limit, must_find)
    found.cost += search.cost
    for cycle in search.cycles:
        found.add(cycle)
    for name in search.undecided:
        found.undecided[name] = found.undecided.get(name, 0) + 1


def _with_process(inference: Inference) -> DependencyEdges:
    before, after = inference.columns.process_pairs()
    edges = inference.edges
    return DependencyEdges(
        edges.transactions,
        edges.nodes,
        np.concatenate((edges.source, before)),
        np.concatenate((edges.target, after)),
        np.concatenate((edges.kind, np.full(len(before), int(EdgeKind.PROCESS)))),
        np.concatenate((edges.reason, np.full(len(before), -1))),
    )


def _breaks(anomaly: str, model: str) -> bool:
    impossible = ruled_out([anomaly])
    return model in impossible.weakest or model in impossible.also


def _findings(history: History, inference: Inference, found: _Found, checker: str) -> list[Finding]:
    findings = [_observed(history, inference, example, checker) for example in inference.observations.examples]
    for cycles in found.cycles.values():
        shortest = sorted(cycles, key=lambda cycle: (not cycle.shortest, len(cycle.steps)))[:_EXAMPLES]
        findings += [_cyclic(history, inference, cycle, checker) for cycle in shortest]
    return sorted(findings, key=lambda finding: severity(finding.anomaly))


def _observed(history: History, inference: Inference, example: Observation, checker: str) -> Finding:
    rows = tuple(sorted(int(inference.columns.rows[t]) for t in example.transactions))
    return Finding(
        checker=checker,
        anomaly=example.anomaly,
        sentence=example.sentence,
        key=None if example.key is None else str(example.key),
        operations=rows,
        time_us=max(history.complete_us[row] for row in rows),
        detail={
            **example.detail,
            "transactions": [
                {
                    "row": int(inference.columns.rows[t]),
                    "process": int(inference.columns.process[t]),
                    "operations": inference.columns.micro_operations(t),
                }
                for t in example.transactions
            ],
        },
    )


def _cyclic(history: History, inference: Inference, cycle: Cycle, checker: str) -> Finding:
    steps = turned(inference.columns, cycle)
    reasons = reasons_of(inference, steps)
    rows = tuple(sorted(int(inference.columns.rows[step.source]) for step in steps))
    keys = {str(reason.key) for reason in reasons if reason.key is not None}
    return Finding(
        checker=checker,
        anomaly=cycle.name,
        sentence=cycle_sentence(inference, cycle.name, steps, reasons),
        key=min(keys) if len(keys) == 1 else None,
        operations=rows,
        time_us=max(history.complete_us[row] for row in rows),
        detail=cycle_detail(inference, cycle, steps, reasons),
    )


def _verdict(inference: Inference, found: _Found, model: str, forbidden: bool) -> Verdict:
    if forbidden:
        return Verdict.VIOLATION
    if any(_breaks(name, model) for name in found.undecided):
        return Verdict.UNKNOWN
    if not len(inference.edges) and not inference.observations.counts:
        return Verdict.VACUOUS
    return Verdict.PASS


def _reason(steps: int, limit: Budget) -> Reason:
    return Reason(cause=Cause.TIME) if limit.is_over() else Reason(cause=Cause.BUDGET, option="steps", value=steps)


def _sentence(
    inference: Inference, found: _Found, verdict: Verdict, model: str, counts: dict[str, int], findings: list[Finding]
) -> str:
    several, these = counted(len(inference.columns), "transaction"), _these(inference)
    committed = int((inference.columns.outcome == OK).sum())
    if verdict is Verdict.VIOLATION:
        worst = next(finding for finding in findings if _breaks(finding.anomaly, model))
        return f"{these.capitalize()} not {model}. {worst.sentence}"
    if verdict is Verdict.UNKNOWN:
        return (
            f"Whether {these} {model} was not decided within the budget: in a component of "
            f"{found.components[0]} transactions {', '.join(found.undecided)} could not be ruled out."
        )
    if verdict is Verdict.VACUOUS:
        return f"Nothing was tested: of {several} {committed} committed, and no two of them depended on each other."
    return _passing_sentence(inference, model, counts)


def _passing_sentence(inference: Inference, model: str, counts: Mapping[str, int]) -> str:
    several, committed = counted(len(inference.columns), "transaction"), int((inference.columns.outcome == OK).sum())
    allowed = f"; seen, and allowed by it: {', '.join(sorted(counts))}" if counts else ""
    return f"Nothing in {several} ({committed} committed) contradicts {model}{allowed}."


def _these(inference: Inference) -> str:
    several = counted(len(inference.columns), "transaction")
    return f"these {several} are" if len(inference.columns) != 1 else f"this {several.removeprefix('1 ')} is"


def _edge_counts(edges: DependencyEdges) -> dict[str, int]:
    return {
        name: int((edges.kind & int(kind) > 0).sum())
        for name, kind in (("ww", EdgeKind.WW), ("wr", EdgeKind.WR), ("rw", EdgeKind.RW | EdgeKind.PREDICATE_RW))
    } | {"hubs": edges.nodes - edges.transactions}
