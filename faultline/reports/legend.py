"""The signs of a report: one glyph and word per status, one hatch and glyph per family of faults.

No fact is shown by colour alone. Even in a palette for every kind of colour vision, colours lie close together
(measured: an OKLab distance below 10), so each status also has its own glyph and each fault its own hatch.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FAULT_FAMILIES", "STATUSES", "FaultFamily", "Status", "fault_family", "status"]


@dataclass(frozen=True, slots=True)
class Status:
    """The status of a run, a cell or a campaign. `name` is the key in files and the class in pages."""

    name: str
    glyph: str
    word: str
    meaning: str


STATUSES = (
    Status("violation", "✖", "violation", "a promise was broken, and there is a counterexample"),
    Status("expected", "≈", "expected violation", "a promise was broken where the plan expected it"),
    Status(
        "harness-error", "!", "harness error", "the harness or its machine failed; this says nothing about the store"
    ),
    Status("unknown", "?", "unknown", "a checker ran out of its budget before it could decide"),
    Status("vacuous", "∅", "vacuous", "the run tested nothing that could have failed"),
    Status("pass", "✔", "pass", "every check held"),
    Status("not-run", "·", "not run", "planned, but not executed"),
)
"""All statuses, the ones that need attention first."""

_STATUS_BY_NAME = {status.name: status for status in STATUSES}


def status(name: str) -> Status:
    """Return the status called `name`; an unknown name is shown as it is, under the sign of `unknown`."""
    return _STATUS_BY_NAME.get(name.replace("_", "-")) or Status("unknown", "?", name, "")


@dataclass(frozen=True, slots=True)
class FaultFamily:
    """Kinds of faults that look alike in a figure. `begin` and `end` mark where such a fault starts and is healed."""

    name: str
    begin: str
    end: str
    meaning: str
    words: tuple[str, ...]


FAULT_FAMILIES = (
    FaultFamily("partition", "⊘", "○", "links cut", ("partition", "cut", "isolate", "bridge", "ring")),
    FaultFamily("kill", "✕", "↻", "process killed … restarted", ("kill", "crash", "restart", "power")),
    FaultFamily("pause", "‖", "▷", "process paused … resumed", ("pause", "stop", "suspend")),
    FaultFamily("clock", "◷", "○", "clock stepped or drifting", ("clock", "strobe", "drift", "skew")),
    FaultFamily("packet", "≋", "○", "packets lost, delayed or duplicated", ("packet", "loss", "delay", "dup", "slow")),
    FaultFamily("other", "◆", "○", "another fault", ()),
)
"""The families of faults, each with its own hatch in the figures."""


def fault_family(kind: str) -> FaultFamily:
    """Return the family of the fault `kind`, by the words in its name."""
    for family in FAULT_FAMILIES:
        if any(word in kind for word in family.words):
            return family
    return FAULT_FAMILIES[-1]
