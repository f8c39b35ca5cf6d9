"""One sentence that says, in words and with times, what a register did wrong."""

from __future__ import annotations

import json
from typing import Any

from faultline.checkers.common.words import counted
from faultline.checkers.linearizability.data_type import AnyCall, Clock, Cut, Evidence
from faultline.harness.history import OPEN, History

__all__ = ["describe_row", "describe_value", "explain", "moment", "seconds"]

_LONGEST_VALUE = 60


def explain(
    history: History, key: str | None, evidence: Evidence[AnyCall], core_size: int, clock: Clock = "seconds"
) -> str:
    """Return the anomaly as a sentence: who saw what when, what it contradicts, how few operations show it."""
    speaker = _Speaker(history, clock)
    if evidence.cut is not None:
        return f"{speaker.accusation(evidence.accused, key)}, {speaker.possible(evidence.accused, evidence.cut, key)}."
    enough = (
        f"{core_size} of {counted(len(history), 'operation')} {'suffice' if core_size > 1 else 'suffices'} to show it"
    )
    return (
        f"{speaker.accusation(evidence.accused, key)} {speaker.reason(evidence.anomaly, evidence.against)}; {enough}."
    )


def seconds(time_us: int) -> str:
    """Return a time in microseconds as seconds for readers."""
    return f"{time_us / 1_000_000:.3f} s"


def describe_value(value: Any) -> str:
    """Return a JSON value for a sentence, cut when it is long; None is `nothing`."""
    if value is None:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"


def moment(history: History, row: int, clock: Clock) -> str:
    """Return the moment at which the operation ended, or began if it never ended."""
    speaker = _Speaker(history, clock)
    ended = speaker.ended(row)
    return f"event {ended + 1}" if clock == "events" else seconds(ended)


def describe_row(history: History, row: int) -> str:
    """Return an operation as a noun: `client 2's read of 5`."""
    f = history.f[row]
    told = describe_value(history.result[row] if f in _READS else history.value[row])
    if f == "cas" and isinstance(history.value[row], (list, tuple)) and len(history.value[row]) == 2:
        told = " to ".join(map(describe_value, history.value[row]))
    return f"{_Speaker(history, clock='events').whose(row)} of {told}"


_READS = frozenset(("read", "get", "dequeue", "pop"))
_MUTATIONS = {"cas": "compare-and-set"}
_UNEXPLAINED = "which no order of the operations that respects real time can explain"


class _Speaker:
    """A speaker that puts rows of one history into words."""

    def __init__(self, history: History, clock: Clock) -> None:
        self.history = history
        self.clock = clock

    def accusation(self, row: int, key: str | None) -> str:
        """Tell the operation that shows the anomaly: when, by which client, what."""
        place = key if key is not None else "the register"
        did = f"read {describe_value(self.history.result[row])} from {place}"
        if self.history.f[row] == "cas":
            did = f"{self._replacement(row, was_refused=self.history.outcome[row] == 'fail')} in {place}"
        return f"{self._at(self.ended(row))} {self.client(row)} {did}"

    def reason(self, anomaly: str, other: int | None) -> str:
        """Tell what the operation contradicts: the operation in the row `other`, where there is one."""
        if anomaly == "garbage-read":
            return "although that value was never written"
        if other is None:
            return "although nothing else can have been there" if anomaly == "refused-cas" else _UNEXPLAINED
        if anomaly == "aborted-read":
            return f"although {self.whose(other)} of it had definitely failed ({self.history.error[other]})"
        if anomaly == "future-read":
            return f"although {self.whose(other)} of it began only {self._at(self.began(other), '')}"
        known = f"although {self.fact(other)} {self._at(self.ended(other), '')}"
        return f"{known}, and no later operation saw it" if anomaly == "lost-write" else known

    def possible(self, row: int, cut: Cut, key: str | None) -> str:
        """Tell what else could be there when the operation in `row` returned."""
        place = key if key is not None else "the register"
        ended = f"every order of the {counted(cut.ended, 'operation')} that had ended before"
        values = sorted(map(describe_value, cut.states))
        told = (
            " or ".join(filter(None, (", ".join(values[:-1]), *values[-1:]))) or "a value that no operation looks for"
        )
        if self.history.f[row] == "cas" and self.history.outcome[row] == "fail":
            return f"although {ended} leaves {told} in {place}, and none still under way changes that in time"
        return f"although {place} could only hold {told} by then: {ended} leaves that, and none still under way helps"

    def fact(self, row: int) -> str:
        """Tell what the contradicting operation had established by its end."""
        f = self.history.f[row]
        if f in ("read", "get"):
            return f"{self.client(row)} had already read {describe_value(self.history.result[row])}"
        if f == "cas":
            return f"{self.client(row)} had {self._replacement(row)}"
        return f"{self.whose(row)} of {describe_value(self.history.value[row])} had completed"

    def client(self, row: int) -> str:
        """Name the process that performed the operation."""
        return f"client {self.history.process[row]}"

    def whose(self, row: int) -> str:
        """Name an operation by its client: `client 2's write`."""
        f = self.history.f[row]
        return f"{self.client(row)}'s {_MUTATIONS.get(f, f)}"

    def began(self, row: int) -> int:
        """Return the moment of the invocation, by the clock of this speaker."""
        return self.history.invoke_index[row] if self.clock == "events" else self.history.invoke_us[row]

    def ended(self, row: int) -> int:
        """Return the moment of the completion, or of the invocation when there was none."""
        if self.history.complete_index[row] == OPEN:
            return self.began(row)
        return self.history.complete_index[row] if self.clock == "events" else self.history.complete_us[row]

    def _at(self, moment: int, first: str = "At") -> str:
        told = f"event {moment + 1}" if self.clock == "events" else seconds(moment)
        return f"{first or 'at'} {told}"

    def _replacement(self, row: int, was_refused: bool = False) -> str:
        expected, new = map(describe_value, self.history.value[row])
        return f"was refused to replace {expected} by {new}" if was_refused else f"replaced {expected} by {new}"
