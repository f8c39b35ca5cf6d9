"""The choice of the faults named beside an anomaly: those that contributed to it, as far as that is known.

A violation of the simulated world is shrunk, and it needs the faults that are left. Without shrinking, the choice is
the faults in force at some time between the first shown operation and the anomaly. It also has the last fault before
that struck a leader, when operations went through that node later and no fault struck it again: a leader that was cut
off may keep a wrong state long after the heal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from faultline.harness.history import Row
from faultline.harness.judgement import Judgement
from faultline.harness.run_record import FaultInterval, RunRecord
from faultline.harness.verdict import Finding
from faultline.reports.sentences import fault_sentence
from faultline.reports.text import count, duration

__all__ = ["MOST_FAULTS", "FaultChoice", "Needed", "choose_faults", "needed_for", "settled_faults"]

MOST_FAULTS = 12
_LEADING = ("leader", "primary", "master")


@dataclass(frozen=True, slots=True)
class Needed:
    """The planned faults that a shrunken run still has, each by kind and time: without any one of them it no longer
    fails."""

    faults: frozenset[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class FaultChoice:
    """The faults to be named: in force in the shown time (`meanwhile`), and before it (`earlier`).

    `needed` are those of both that the counterexample is known to need, None when that was not tried. `left_out` is
    the number of further faults in force.
    """

    meanwhile: tuple[FaultInterval, ...] = ()
    earlier: tuple[FaultInterval, ...] = ()
    needed: tuple[FaultInterval, ...] | None = None
    left_out: int = 0
    start_us: int = 0

    @property
    def since_us(self) -> int:
        """The time at which the first of them, or else the shown time, began."""
        return min([self.start_us, *(fault.start_us for fault in (*self.meanwhile, *self.earlier))])

    def sentences(self, decimals: int = 3, limit: int = MOST_FAULTS) -> list[str]:
        """Return all faults in order of time, each with its role; at most `limit`, the needed ones first."""
        told = sorted((*self.earlier, *self.meanwhile), key=lambda fault: fault not in (self.needed or ()))[:limit]
        lines = [self._sentence(fault, decimals) for fault in sorted(told, key=_by_time)]
        left = self.left_out + len(self.earlier) + len(self.meanwhile) - len(told)
        return [*lines, f"and {count(left, 'further fault')}"] if left else lines

    def _sentence(self, fault: FaultInterval, decimals: int) -> str:
        parts = [fault_sentence(fault, decimals)]
        if fault in self.earlier:
            parts.append(f"ended {duration(self.start_us - fault.stop_us)} before the first of these operations")
        if self.needed is not None:
            parts.append("the counterexample needs it" if fault in self.needed else "it shows without this one")
        return "; ".join(parts)

    @property
    def silence(self) -> str:
        """The sentence for the case that no fault was in force; '' when one was."""
        if self.meanwhile:
            return ""
        without = ", and none is needed: it shows in a run without faults" if self.needed == () else ""
        return f"No fault was in force meanwhile{without}."


def needed_for(judgement: Judgement, finding: Finding) -> Needed | None:
    """Return the faults that `finding` needs: those that its shrunken run still has. None when it was not shrunk."""
    minimal: dict[str, Any] = judgement.detail.get("minimal") or judgement.detail.get("minimal_of") or {}
    first = next((each for each in judgement.findings if each.signature == minimal.get("signature")), None)
    if not minimal.get("complete") or first is not finding or "needs" not in minimal:
        return None
    return Needed(frozenset((kind, at_us) for kind, at_us in minimal["needs"]))


def settled_faults(record: RunRecord) -> list[FaultInterval]:
    """Return the faults of the run; one that never ended (the run was interrupted) is taken to last until its end."""
    end_us = record.history.end_us()
    return [fault if fault.stop_us >= fault.start_us else _lasting_until(fault, end_us) for fault in record.faults]


def _lasting_until(fault: FaultInterval, end_us: int) -> FaultInterval:
    return msgspec.structs.replace(fault, stop_us=max(end_us, fault.start_us))


def choose_faults(
    record: RunRecord, rows: Sequence[Row], start_us: int, stop_us: int, needed: Needed | None
) -> FaultChoice:
    """Return the faults that contributed to the anomaly that `rows` show from `start_us` to `stop_us`."""
    faults = settled_faults(record)
    meanwhile = [fault for fault in faults if fault.start_us <= stop_us and fault.stop_us >= start_us]
    before = [fault for fault in faults if fault.stop_us < start_us]
    kept = [fault for fault in faults if needed and (fault.kind, fault.start_us) in needed.faults]
    if needed is None or len(kept) < len(needed.faults) or any(fault.start_us > stop_us for fault in kept):
        # Without shrinking, or when the shrunken run shows another instance, its faults do not belong to these rows.
        earlier, proved = _guilty_before(record, rows, before, meanwhile), None
    else:
        earlier, proved = [fault for fault in kept if fault in before], tuple(kept)
    nearest = sorted(meanwhile, key=lambda fault: (proved is None or fault not in proved, -fault.start_us))
    return FaultChoice(
        meanwhile=tuple(sorted(nearest[:MOST_FAULTS], key=_by_time)),
        earlier=tuple(sorted(earlier, key=_by_time)),
        needed=proved,
        left_out=max(0, len(meanwhile) - MOST_FAULTS),
        start_us=start_us,
    )


def _by_time(fault: FaultInterval) -> tuple[int, int, str, tuple[str, ...]]:
    return fault.start_us, fault.stop_us, fault.kind, fault.nodes


def _guilty_before(
    record: RunRecord, rows: Sequence[Row], before: Sequence[FaultInterval], meanwhile: Sequence[FaultInterval]
) -> list[FaultInterval]:
    """Return the last fault that struck a leader, when operations went through that node and no fault struck it later.

    When no fault was in force meanwhile it is named in any case: it decided which nodes lead.
    """
    nodes = record.plan.nodes
    struck = {node for fault in meanwhile for node in _struck(fault, nodes)}
    asked = {row.node for row in rows if row.node} - struck
    last = [fault for fault in before if _struck_a_leader(fault, nodes)][-1:]
    return [fault for fault in last if not meanwhile or asked & _struck(fault, nodes)]


def _struck(fault: FaultInterval, nodes: Sequence[str]) -> set[str]:
    """Return the nodes that the fault acted on: in a partition, those that lost most of the others."""
    if not fault.links:
        return set(fault.nodes)
    cut = Counter(source for source, _ in fault.links)
    apart = {node for node, number in cut.items() if 2 * number > len(nodes) - 1}
    return apart or set(cut)


def _struck_a_leader(fault: FaultInterval, nodes: Sequence[str]) -> bool:
    struck = _struck(fault, nodes)
    if len(fault.roles) == len(fault.nodes) and fault.nodes:
        return any(role in _LEADING for node, role in zip(fault.nodes, fault.roles, strict=True) if node in struck)
    return fault.target == "leader" or any(role in _LEADING for role in fault.roles)
