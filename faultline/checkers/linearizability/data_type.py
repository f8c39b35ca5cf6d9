"""The road from the rows of a history to what is told of a key, and the stops at which kinds of objects differ.

    rows ── calls ──> calls ── decide ──> Decision ── evidence ──> Evidence ── finding ──> Finding

A `DataType` is one kind of object on that road: registers (`registers`), strings (`kv`), and the objects that have
monitors (`objects`). `judgement` walks the road; nothing there asks which kind it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from faultline.checkers.linearizability.decision import Decision
from faultline.checkers.porcupine.budget import Budget
from faultline.harness.history import History
from faultline.harness.verdict import Finding

if TYPE_CHECKING:
    from faultline.checkers.linearizability.certificates import Certificate

__all__ = ["NON_LINEARIZABLE", "AnyCall", "Clock", "Cut", "DataType", "Evidence", "TimedCall"]

Clock = Literal["seconds", "events"]
"""The unit in which findings give moments: seconds, or the number of the event where a history has no times."""

NON_LINEARIZABLE = "non-linearizable"
"""The anomaly of an illegal key that no other name fits."""


class TimedCall(Protocol):
    """One operation of a key, with its row in the history; it returns at `operations.INFINITY` when it never did."""

    @property
    def row(self) -> int: ...
    @property
    def call(self) -> int: ...
    @property
    def return_(self) -> int: ...


AnyCall = TypeVar("AnyCall", bound=TimedCall)


class Cut(NamedTuple):
    """All that is possible when an operation returns: every order of the `ended` ones before it leaves one of `states`.

    Values are as the history has them; none of the operations then open leads to what the one that returns demands.
    """

    ended: int
    states: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Evidence(Generic[AnyCall]):
    """The few operations that show that a key is illegal, confirmed by a certificate or a second engine.

    `core` holds the operations as far as they constrain; of them, `refused` is the one that cannot be placed. `order`
    is the longest way to place others before it, `state` the value where that ends, as the history has it.
    `longest_prefix` counts the completed operations of the whole key, in order of return, before the first that cannot
    be placed. The `anomaly` is shown by the operation in the row `accused`, and contradicts the one in `against`.

    Where many operations are needed, there is a `cut` instead, and `core` holds those open at it.
    """

    core: tuple[AnyCall, ...]
    refused: AnyCall
    longest_prefix: int
    is_minimal: bool
    order: tuple[AnyCall, ...] = ()
    state: Any = None
    anomaly: str = NON_LINEARIZABLE
    accused: int = 0
    against: int | None = None
    cut: Cut | None = None


class DataType(Protocol[AnyCall]):
    """One kind of object: how its rows are read, which engines decide about it, and how a decision is told."""

    def calls(self, history: History, rows: Sequence[int]) -> list[AnyCall]:
        """Return the operations in `rows`, all of one key and in order of invocation, that tell anything about it.

        Raises UsageError for a row that the data type does not know.
        """

    def decide_together(self, history: History, budget: Budget) -> list[tuple[str | None, Decision]] | None:
        """Decide all keys of `history` in one call, in order of first use; None when no engine takes them together.

        A decision that is not legal names operations by their rows in the history.
        """

    def decide(self, calls: Sequence[AnyCall], budget: Budget, known: Decision | None = None) -> Decision:
        """Decide one key; positions in the decision are those in `calls`.

        `known` is the decision of `decide_together` on this key, where there is one.
        """

    def certificate(self, calls: Sequence[AnyCall], decision: Decision, budget: Budget) -> Certificate[Any] | None:
        """Return the certificate that the key is illegal, as `decision` says; None when none could be made."""

    def evidence(
        self, history: History, rows: Sequence[int], calls: Sequence[AnyCall], decision: Decision, budget: Budget
    ) -> Evidence[AnyCall] | None:
        """Return why `decision` is not legal; None when that cannot be shown within the budget.

        An undecided key may have evidence too: trouble close to where a search stopped is found without searching on.
        """

    def finding(
        self, history: History, key: str | None, evidence: Evidence[AnyCall], decision: Decision, clock: Clock
    ) -> Finding:
        """Return the evidence as a finding, told in one sentence."""

    def undecided(
        self,
        history: History,
        key: str | None,
        calls: Sequence[AnyCall],
        decision: Decision,
        budget: Budget,
        clock: Clock,
    ) -> dict[str, object]:
        """Return the record of `undecided.undecided`: what is known of a key without a verdict."""
