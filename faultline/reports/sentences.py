"""The sentences of a report, in the order and the words that a reader needs.

A checker or the judge writes the verdict's own sentence; this module adds its sign, its length limit, and the numbered
list of the counterexample, which pages, terminal and tickets share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from faultline.harness.exposure import Exposure, exposure_parts
from faultline.harness.history import OPEN, Row
from faultline.harness.judgement import Judgement
from faultline.harness.robust import ENOUGH_SEEDS
from faultline.harness.run_record import FaultInterval, MessageRecord, RunRecord
from faultline.reports.descriptions import predicate
from faultline.reports.legend import status
from faultline.reports.text import NOTHING, count, duration, shorten, time_point, value_text, visible

__all__ = [
    "SENTENCE_LIMIT",
    "client_name",
    "decimals_for",
    "ending_sentence",
    "exposure_sentence",
    "fault_sentence",
    "fault_subject",
    "judgement_sentence",
    "message_text",
    "operation_sentence",
    "other_seeds_sentence",
    "racks_sentence",
    "undecided_sentences",
    "universe_sentence",
    "verdict_sentence",
]

_NODES_NAMED_MAX = 9

SENTENCE_LIMIT = 600
"""The characters of the first line of a report: a hostile value must not push the rest off the page."""


def verdict_sentence(verdict: str, sentence: str) -> str:
    """Return the first line of every report: the sign of the verdict and the sentence, on one line."""
    one_line = " ".join(visible(shorten(sentence, SENTENCE_LIMIT)).split())
    return f"{status(verdict).glyph} {one_line or _bare_sentence(verdict)}"


def _bare_sentence(verdict: str) -> str:
    known = status(verdict)
    return f"{known.word.capitalize()}: {known.meaning}." if known.meaning else f"{known.word.capitalize()}."


def judgement_sentence(judgement: Judgement) -> str:
    """Return the first line of the report on one run."""
    return verdict_sentence(judgement.verdict.value, judgement.sentence)


def undecided_sentences(judgement: Judgement) -> list[str]:
    """Return the facts about checks that did not decide, without those of the first line."""
    told = [known["sentence"] for check in judgement.checks for known in check.detail.get("undecided", ())]
    return [sentence for sentence in told if sentence not in judgement.sentence]


def universe_sentence(universe: Mapping[str, str]) -> str:
    """Return the sentence on the values that were drawn for a run: its sizes, its weather and its options."""
    return f"Universe: {', '.join(f'{name}={value}' for name, value in universe.items()) or 'all calm'}."


def racks_sentence(racks: Mapping[str, Sequence[str]]) -> str:
    """Return the sentence on the racks of a run: the nodes of each, or how many each has where that would be long."""
    if sum(map(len, racks.values())) <= _NODES_NAMED_MAX:
        told = [f"{name} ({' '.join(nodes)})" for name, nodes in racks.items()]
        return f"Racks: {', '.join(told)}."
    least, most = (choose(map(len, racks.values())) for choose in (min, max))
    return f"Racks: {len(racks)}, of {least if least == most else f'{least} to {most}'} nodes."


def other_seeds_sentence(minimal: Mapping[str, Any]) -> str:
    """Return the sentence on the other seeds that show the violation of a minimal plan; '' when none was tried."""
    tried = minimal.get("other_seeds")
    if not tried:
        return ""
    share = f"It fails in {minimal['failing_seeds']} of {tried} other seeds"
    robust = minimal.get("robust")
    if robust:
        size = f"{count(robust['operations'], 'operation')} and {count(robust['faults'], 'fault')}"
        return f"{share}. Robust: {size} fail in {robust['failing_seeds']} of {tried}."
    is_enough = minimal["failing_seeds"] >= ENOUGH_SEEDS
    return f"{share}." if is_enough else f"{share}; no plan that fails in {ENOUGH_SEEDS} was found."


def ending_sentence(record: RunRecord) -> str:
    """Return the sentence on a run that ended before its plan did; '' for any other."""
    if record.interrupted:
        return "The run was interrupted; this is the record until then."
    if record.stopped_by is None:
        return ""
    planned, stopped = count(len(record.plan.operations), "planned operation"), record.stopped_by
    when = f"at {duration(stopped.time_us)}, after {len(record.history):,} of {planned}"
    return f"The run was stopped {when}: the check {stopped.checker} was certain of a violation by then."


def decimals_for(times_us: Iterable[int]) -> int:
    """Return the number of decimals of a second, from 3 to 6, that keeps different moments different."""
    distinct = set(times_us)
    written = (len({time_point(time_us, decimals) for time_us in distinct}) for decimals in (3, 4, 5))
    return next((decimals for decimals, different in enumerate(written, start=3) if different == len(distinct)), 6)


def client_name(process: int) -> str:
    """Return the name of the logical client with this process id."""
    return f"client {process}"


def operation_sentence(row: Row, decimals: int = 3) -> str:
    """Return the operation as a sentence: the client, its predicate, the node, the time, and the outcome."""
    node = f" through {value_text(row.node, 40)}" if row.node else ""
    return f"{client_name(row.process).capitalize()} {predicate(row)}{node}, {_when(row, decimals)}."


def _when(row: Row, decimals: int) -> str:
    began = time_point(row.invoke_us, decimals)
    error = f" ({value_text(row.error, 80)})" if row.error else ""
    if row.complete_index == OPEN:
        return f"from {began} on, and was never answered: it may have happened, or may still happen{error}"
    span = f"from {began} to {time_point(row.complete_us, decimals)}"
    if row.outcome == "info":
        return f"{span}, without learning whether it happened{error}"
    return f"{span}; it certainly did not happen{error}" if row.outcome == "fail" else span


def message_text(message: MessageRecord) -> str:
    """Return the kind and the text of the message; many texts begin with their kind."""
    told = message.summary.startswith(message.name)
    return message.summary if told else f"{message.name} {message.summary}".strip()


def fault_sentence(fault: FaultInterval, decimals: int = 3) -> str:
    """Return the fault as a sentence fragment: its kind, target and time, and whether it took effect."""
    when = f"{time_point(fault.start_us, decimals)} to {time_point(fault.stop_us, decimals)}"
    length = duration(max(0, fault.stop_us - fault.start_us))
    bite = "" if fault.applied is None else f" – did not take effect: {visible(shorten(fault.applied, 200))}"
    return f"{fault_subject(fault)}, {when} ({length}){bite}"


def fault_subject(fault: FaultInterval) -> str:
    """Return the kind and target of the fault: `partition of athens | byzantium cyrene`."""
    if fault.description:
        named = fault.description.startswith(fault.kind)
        return visible(shorten(fault.description if named else f"{fault.kind}: {fault.description}", 120))
    whom = _whom(fault.nodes) or _links(fault.links) or fault.target
    return visible(shorten(f"{fault.kind}: {whom}" if whom and whom != NOTHING else fault.kind, 120))


def _whom(nodes: Sequence[str]) -> str:
    return ", ".join(nodes)


def _links(links: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{source}→{target}" for source, target in links[:6]) + ("…" if len(links) > 6 else "")


def exposure_sentence(exposure: Exposure) -> str:
    """Return the ledger of the run in one line; '' for a verdict that has none."""
    if not exposure.operations:
        return ""
    parts = exposure_parts(exposure.figures())
    if exposure.features:
        entered = sum(times > 0 for times in exposure.features.values())
        parts.append(f"{entered} of {count(len(exposure.features), 'declared feature')} entered")
    return f"Exposure: {'; '.join(parts)}."
