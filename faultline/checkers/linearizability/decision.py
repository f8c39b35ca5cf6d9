"""The one answer of every engine: is this part of a history linearizable, and on what grounds.

A *part* is a sequence of operations on one object; operations are named by their positions in it. The slot search, the
zones, the monitors, the generic search and the port of Porcupine all answer with a `Decision`, so that whatever asks
them (the checker, the evidence, a replay) reads one type and need not know which of them it asked.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    from faultline.checkers.linearizability.certificates import Certificate, Contradiction

__all__ = ["Decision", "EngineName", "Legality", "hand_over", "illegal", "legal", "worst"]


class Legality(enum.StrEnum):
    """A part is linearizable, is not, or that was not decided. The values are the words of Porcupine."""

    LEGAL = "Ok"
    ILLEGAL = "Illegal"
    UNKNOWN = "Unknown"


EngineName = Literal["zones", "slots", "monitor", "generic", "port"]
"""The engines: two for registers, the monitors of data types, and two searches for any model."""


class Decision(msgspec.Struct, frozen=True):
    """The decision of an `engine` on one part.

    `order`: the linearization of a legal part, otherwise the longest partial one that was found.
    `furthest`: how many completed operations, in order of return, can be placed before one cannot; all of them when
    legal, -1 when the zones refused, because they do not look in that order.
    `core`: of an illegal part, the operations that the engine names as contradicting each other, if it names any.
    `refuted`: an illegal part is illegal by the return of the completed operation number `refuted`. This is later than
    `furthest` when a look-ahead foresaw the end.
    `reason`: in words, why a monitor refused the part, or why it cannot decide it.
    `handed_over`: why the engine that was asked first did not decide.
    `steps`: the configurations visited. `is_confirmed`: a replay of the order, a second engine, or the verifier agrees.
    `contradiction`: the rule that a monitor says is broken, before that is verified.
    `certificate`: of an illegal part, the verified certificate, if one was made.
    """

    legality: Legality
    engine: EngineName
    order: Sequence[int] = ()
    furthest: int = 0
    steps: int = 0
    core: tuple[int, ...] = ()
    refuted: int = 0
    reason: str = ""
    handed_over: str = ""
    is_confirmed: bool = False
    contradiction: Contradiction | None = None
    certificate: Certificate[Any] | None = None

    @property
    def is_legal(self) -> bool:
        """True when the part is linearizable, in `order`."""
        return self.legality is Legality.LEGAL

    @property
    def is_illegal(self) -> bool:
        """True when the part has no linearization."""
        return self.legality is Legality.ILLEGAL

    @property
    def is_unknown(self) -> bool:
        """True when the engine gave up, or does not decide parts of this kind."""
        return self.legality is Legality.UNKNOWN

    def renamed(self, names: Sequence[int] | Mapping[int, int]) -> Decision:
        """Return the decision with `names[i]` for each operation i; a certificate keeps its own numbers."""
        core, order = tuple(names[i] for i in self.core), [names[i] for i in self.order]
        return msgspec.structs.replace(self, core=core, order=order)


def legal(order: Sequence[int]) -> Decision:
    """Return the decision of a monitor that found the linearization `order`."""
    return Decision(Legality.LEGAL, "monitor", tuple(order))


def illegal(core: Iterable[int], reason: str, contradiction: Contradiction | None = None) -> Decision:
    """Return the decision of a monitor that `core` has no linearization, whatever else the part holds."""
    named = tuple(sorted(set(core)))
    return Decision(Legality.ILLEGAL, "monitor", core=named, reason=reason, contradiction=contradiction)


def hand_over(reason: str) -> Decision:
    """Return the decision of a monitor that leaves the part to the search, for `reason`."""
    return Decision(Legality.UNKNOWN, "monitor", reason=reason)


def worst(decisions: Iterable[Decision]) -> Legality:
    """Return the legality of a history whose parts were decided so: one illegal part makes all of it illegal."""
    found = {decision.legality for decision in decisions}
    return next((each for each in (Legality.ILLEGAL, Legality.UNKNOWN) if each in found), Legality.LEGAL)
