"""Certificates: what stands behind a verdict on one key, so that it can be verified without a search.

A legal key has an order. An illegal one has a set of *configurations*, the places where an execution can stand just
before a return. A configuration says which completed operation returns next (its `rank`, in order of return), what
the state is, which operations open at that moment were linearized `ahead` of their return, and which pending
operations were `used`. The set is *inductive*: it holds the beginning, no rule of `verify` leads out of it, and none
of its members comes to the end. So no execution does.

The set may speak of a *relaxation* of the key: a history that each linearization of the key is one of as well. Then it
is small where few operations contradict each other. A monitor names a *contradiction* instead: a rule of the object and
the operations that break it.

There are two kinds of subject. Registers and strings are `Columns`, and the states of their configurations are values.
Any other object is `ObjectCalls`, under a model, and its states are told as the steps that lead there.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from faultline.checkers.linearizability.engine.columns import PENDING, Columns
from faultline.checkers.linearizability.operations import SWAP, WRITE
from faultline.checkers.porcupine.model import AnyModel, Operation

__all__ = [
    "BEFORE_ALL",
    "Certificate",
    "Configuration",
    "Configurations",
    "Contradiction",
    "ObjectCalls",
    "Relaxed",
    "relaxed_columns",
]

Subject = TypeVar("Subject")

BEFORE_ALL = -(1 << 62)
"""The call of an operation that was relaxed to begin before all others."""


class Configuration(NamedTuple):
    """A point of an execution before the return number `rank`. Operations and states are numbers.

    Of a register the state is the number of its value, or `problem.DEAD` when no operation that returns from here on
    looks for it.
    """

    rank: int
    state: int
    ahead: tuple[int, ...]
    used: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Configurations:
    """Configurations as columns, in order of rank. Those ahead in number k are
    `ahead[ahead_begin[k]:ahead_begin[k+1]]`.

    All columns are of 32-bit integers; the kernel fills and reads them.
    """

    rank: array[int]
    state: array[int]
    ahead_begin: array[int]
    ahead: array[int]
    used_begin: array[int]
    used: array[int]

    @classmethod
    def of(cls, members: Iterable[Configuration]) -> Configurations:
        """Return the columns of `members`."""
        columns = cls(*(array("i") for _ in range(6)))
        columns.ahead_begin.append(0)
        columns.used_begin.append(0)
        for member in members:
            columns.rank.append(member.rank)
            columns.state.append(member.state)
            columns.ahead.extend(member.ahead)
            columns.used.extend(member.used)
            columns.ahead_begin.append(len(columns.ahead))
            columns.used_begin.append(len(columns.used))
        return columns

    def __len__(self) -> int:
        return len(self.rank)

    def __iter__(self) -> Iterator[Configuration]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, k: int) -> Configuration:
        ahead, used = self.ahead_begin, self.used_begin
        return Configuration(
            self.rank[k],
            self.state[k],
            tuple(self.ahead[ahead[k] : ahead[k + 1]]),
            tuple(self.used[used[k] : used[k + 1]]),
        )


class Relaxed(msgspec.Struct, frozen=True, array_like=True):
    """Operation number `operation` as it stands in a relaxation.

    `is_early`: it may take effect before its call. `is_late`: it may take effect after its return, or never.
    `is_blind`: a compare-and-set counts as a write of its new value.
    """

    operation: int
    is_early: bool = False
    is_late: bool = False
    is_blind: bool = False


class Contradiction(msgspec.Struct, frozen=True, array_like=True):
    """A rule of an object by name (`contradictions`), and the operations that break it, whatever else happened."""

    rule: str
    operations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ObjectCalls:
    """The operations on one object, and the model that says what they may do.

    `name` is that of the model in `data_types.MODEL_FACTORIES`; it is empty for a model of one's own.
    """

    model: AnyModel[Any, Any, Any]
    operations: Sequence[Operation[Any, Any]]
    name: str = ""


class Certificate(msgspec.Struct, Generic[Subject], frozen=True):
    """The grounds of the verdict on one key: an `order`, `configurations` that refute it, or a `contradiction` in it.

    The configurations speak of the operations in `relaxed`, by their position there, where that is not None. Of an
    object, `steps` says of each state but the first, numbered 1 and up, from which earlier state it comes and by which
    operation; and `still` names one of each kind of operations that change nothing where it matters.
    """

    subject: Subject
    order: Sequence[int] | None = None
    relaxed: tuple[Relaxed, ...] | None = None
    configurations: Configurations | None = None
    steps: tuple[tuple[int, int], ...] = ()
    still: tuple[int, ...] = ()
    contradiction: Contradiction | None = None


def relaxed_columns(columns: Columns, relaxed: Sequence[Relaxed]) -> Columns:
    """Return the operations that `relaxed` keeps, as they stand there; `row` says what they are in `columns`."""
    made = Columns(columns.keys, columns.values, edge_from=columns.edge_from, edge_to=columns.edge_to)
    for operation, is_early, is_late, is_blind in map(msgspec.structs.astuple, relaxed):
        kind = columns.kind[operation]
        is_write = kind == SWAP and is_blind
        made.key.append(0)
        made.kind.append(WRITE if is_write else kind)
        made.demand.append(0 if is_write else columns.demand[operation])
        made.produce.append(columns.produce[operation])
        made.call.append(BEFORE_ALL if is_early else columns.call[operation])
        made.return_.append(PENDING if is_late else columns.return_[operation])
        made.row.append(operation)
    return made
