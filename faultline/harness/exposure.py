"""The exposure ledger of a run: everything the run did to the system, independent of the verdict.

A pass is worth as much as the test behind it. The ledger counts the operations by outcome, follows each fault from the
plan to its proof, and names the objects that hold an acknowledged write and were not read after the heal. If such an
object was lost, no checker could have seen it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from faultline.harness.access import FINAL_OBJECTS_MAX, Access
from faultline.harness.history import OPEN, History
from faultline.harness.outcome import NOT_CONNECTED
from faultline.harness.run_record import FaultInterval, RunRecord

__all__ = [
    "UNANSWERED",
    "Exposure",
    "FaultExposure",
    "OperationsInFlight",
    "exposure",
    "exposure_parts",
    "unread_after",
]

UNANSWERED = frozenset(
    (NOT_CONNECTED, "timeout", "connection-lost", "connection-loss", "client-raised", "foreign-answer", "read-failed")
)
"""The error codes of operations that the store did not answer; any other failure is an answer. Adapters use
the words of their store, such as `connection-loss` of ZooKeeper, and histories keep them."""

_NAMED = 20


class OperationsInFlight:
    """A count of the operations of `history` that were in flight in an interval; open ones are in flight until its
    end."""

    def __init__(self, history: History) -> None:
        end_us = history.end_us()
        self._invoked = sorted(history.invoke_us)
        self._completed = sorted([end_us if each == OPEN else each for each in history.complete_us])

    def during(self, start_us: int, stop_us: int) -> int:
        """Return how many operations were invoked by `stop_us` and had not completed before `start_us`."""
        return bisect_right(self._invoked, stop_us) - bisect_left(self._completed, start_us)


class FaultExposure(msgspec.Struct, frozen=True, kw_only=True):
    """One planned fault: whether it was `applied`, whether a probe `proved` it, and which operations it met.

    `operations_in_flight` counts the operations that were in flight at some moment while the fault was in force.
    `waited` marks a fault with a trigger whose event did not come before the heal. Unset it is not written, as in
    verdicts of runs without such faults.
    """

    kind: str
    start_us: int
    duration_us: int = 0
    applied: bool
    proved: bool
    operations_in_flight: int = 0
    waited: bool | msgspec.UnsetType = msgspec.UNSET


class Exposure(msgspec.Struct, frozen=True, kw_only=True):
    """The ledger of one run.

    `answered` operations got an answer from the store, which may be a refusal; `refused` operations found no
    connection. `written` objects hold an acknowledged write, `read_after_heal` of them were read after the heal and
    after the last such write, and `unread` names some of the others. `features` counts how often each declared
    feature of the system was entered.
    """

    operations: int = 0
    ok: int = 0
    fail: int = 0
    info: int = 0
    answered: int = 0
    refused: int = 0
    faults: tuple[FaultExposure, ...] = ()
    written: int = 0
    read_after_heal: int = 0
    unread: tuple[str, ...] = ()
    features: dict[str, int] = {}

    @property
    def faults_due(self) -> int:
        """The number of planned faults that were to take effect: all but those whose event did not come."""
        return len(self.faults) - self.faults_waited

    @property
    def faults_waited(self) -> int:
        """The number of planned faults that waited for an event that did not come."""
        return sum(bool(fault.waited) for fault in self.faults)

    @property
    def faults_applied(self) -> int:
        """The number of faults that a probe proved to have taken effect."""
        return sum(fault.proved for fault in self.faults)

    @property
    def faults_struck(self) -> int:
        """The number of proved faults that met operations in flight."""
        return sum(fault.proved and fault.operations_in_flight > 0 for fault in self.faults)

    @property
    def due(self) -> int:
        """The number of written objects that must be read after the heal: all of them, or FINAL_OBJECTS_MAX."""
        return min(self.written, FINAL_OBJECTS_MAX)

    def figures(self) -> dict[str, int]:
        """Return the figures of the ledger that can be added up over runs."""
        return {
            "operations": self.operations,
            "answered": self.answered,
            "refused": self.refused,
            "faults_planned": self.faults_due,
            "faults_applied": self.faults_applied,
            "faults_struck": self.faults_struck,
            "objects_written": self.written,
            "objects_read_after_heal": self.read_after_heal,
        } | ({"faults_waited": self.faults_waited} if self.faults_waited else {})


def exposure(record: RunRecord, access: Access, features: Iterable[str] = ()) -> Exposure:
    """Return the ledger of `record`, a run of a workload with `access` on a system that declares `features`."""
    history = record.history
    written = _last_written_us(history, access)
    unread = _unread(written, history, access, record.healed_us)
    ok, fail = history.outcome.count("ok"), history.outcome.count("fail")
    failures = Counter(
        error for outcome, error in zip(history.outcome, history.error, strict=True) if outcome == "fail"
    )
    unanswered = sum(failures[error] for error in UNANSWERED)
    return Exposure(
        operations=len(history),
        ok=ok,
        fail=fail,
        info=len(history) - ok - fail,
        answered=ok + fail - unanswered,
        refused=history.error.count(NOT_CONNECTED),
        faults=_faults(record),
        written=len(written),
        read_after_heal=len(written) - len(unread),
        unread=tuple("the whole" if each is None else each for each in unread[:_NAMED]),
        features={feature: record.marks.get(feature, 0) for feature in features},
    )


def unread_after(history: History, access: Access, healed_us: int) -> list[str | None]:
    """Return the objects with an acknowledged write that no operation has read after the heal and after that write.

    A read that began before the last acknowledged write was answered may miss it, and rightly so: it shows nothing.
    """
    return _unread(_last_written_us(history, access), history, access, healed_us)


def exposure_parts(figures: Mapping[str, int]) -> list[str]:
    """Return the clauses that tell `figures`, of one ledger or of several added up."""
    parts = [f"{figures['answered']:,} of {figures['operations']:,} operations answered"]
    if figures["refused"]:
        parts.append(f"{figures['refused']:,} found no connection")
    if figures["faults_planned"]:
        parts.append(
            f"{figures['faults_applied']:,} of {figures['faults_planned']:,} planned faults took effect, "
            f"{figures['faults_struck']:,} while operations were in flight"
        )
    if figures.get("faults_waited"):
        parts.append(f"{figures['faults_waited']:,} more waited for an event that did not come")
    if figures["objects_written"]:
        read = f"{figures['objects_read_after_heal']:,} of {figures['objects_written']:,}"
        parts.append(f"{read} written objects read after the heal")
    return parts


def _faults(record: RunRecord) -> tuple[FaultExposure, ...]:
    """Return every planned fault: first those that were recorded, then those that never began."""
    in_flight = OperationsInFlight(record.history)
    begun = [_fault(fault, in_flight) for fault in record.faults]
    triggered = [number for number, fault in enumerate(record.plan.faults) if fault.trigger is not msgspec.UNSET]
    struck = {event.value.get("fault") for event in record.history.faults if event.f.startswith("start-")}
    waited = [record.plan.faults[number] for number in triggered if number not in struck]
    timed = sorted((fault for fault in record.plan.faults if fault.trigger is msgspec.UNSET), key=lambda it: it.at_us)
    never = timed[len(begun) - (len(triggered) - len(waited)) :]
    return (
        *begun,
        *(FaultExposure(kind=each.kind, start_us=each.at_us, applied=False, proved=False) for each in never),
        *(
            FaultExposure(kind=each.kind, start_us=each.at_us, applied=False, proved=False, waited=True)
            for each in waited
        ),
    )


def _fault(fault: FaultInterval, in_flight: OperationsInFlight) -> FaultExposure:
    applied = fault.applied is None or bool(fault.nodes or fault.links)
    return FaultExposure(
        kind=fault.kind,
        start_us=fault.start_us,
        duration_us=fault.stop_us - fault.start_us,
        applied=applied,
        proved=fault.applied is None,
        operations_in_flight=in_flight.during(fault.start_us, fault.stop_us) if applied else 0,
    )


def _last_written_us(history: History, access: Access) -> dict[str | None, int]:
    """Return for each object with an acknowledged write when the last of these was answered."""
    columns = zip(history.f, history.key, history.value, history.outcome, history.complete_us, strict=True)
    written: dict[str | None, int] = {}
    for f, key, value, outcome, complete_us in columns:
        if outcome == "ok":
            for each in access.write_set(f, key, value):
                written[each] = max(complete_us, written.get(each, 0))
    return written


def _unread(written: Mapping[str | None, int], history: History, access: Access, healed_us: int) -> list[str | None]:
    last_read_us = _last_read_us(history, access, healed_us)
    return [each for each, written_us in written.items() if last_read_us.get(each, -1) < max(healed_us, written_us)]


def _last_read_us(history: History, access: Access, since_us: int) -> dict[str | None, int]:
    """Return for each object that was read since then when the last answered read of it was invoked."""
    columns = zip(history.f, history.key, history.value, history.outcome, history.invoke_us, strict=True)
    read: dict[str | None, int] = {}
    for f, key, value, outcome, invoke_us in columns:
        if invoke_us >= since_us and outcome == "ok":
            for each in access.read_set(f, key, value):
                read[each] = max(invoke_us, read.get(each, 0))
    return read
