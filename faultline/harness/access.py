"""Which objects the operations of a workload read and write: the read set and the write set of each operation.

An object is what `key` names; operations without a key are about one object, the store as a whole, and transactions
(`txn`) name theirs in their steps. From this the harness knows which objects hold an acknowledged write, so that it can
read every one of them after the heal, and say afterwards which were read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from faultline.harness.plan import PlannedOperation

__all__ = ["FINAL_OBJECTS_MAX", "READS", "Access", "reads_of_the_rest"]

READS = ("read", "get")
"""What reads are usually called."""

FINAL_OBJECTS_MAX = 5_000
"""So many objects are read after the heal at most, evenly drawn from all that were written: the stated sample."""

_READERS = 2
"""How many workers read each object after the heal, where the workload's own final operations do not read it."""

_STEPS = 8
"""How many objects one transaction reads then."""

_STEP_US = 4_000

Object = str | None


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """The functions of a workload by what they do to objects.

    `reads` show what an object holds; `writes` change it, None stands for all others. `final_read` reads one object
    after the heal; it is empty where the workload's own final operations read everything. With `whole` all keys are
    parts of one object.
    """

    reads: tuple[str, ...] = READS
    writes: tuple[str, ...] | None = None
    final_read: str = ""
    whole: bool = False

    def read_set(self, f: str, key: Object, value: Any) -> Iterable[Object]:
        """The objects that the operation shows when it succeeds."""
        if f not in self.reads:
            return ()
        return _objects(value, reads=True) if f == "txn" else (self._object(key),)

    def write_set(self, f: str, key: Object, value: Any) -> Iterable[Object]:
        """The objects that the operation changes when it succeeds."""
        if f == "txn":
            return _objects(value, reads=False)
        if f in self.reads if self.writes is None else f not in self.writes:
            return ()
        return (self._object(key),)

    def _object(self, key: Object) -> Object:
        return None if self.whole else key


def _objects(steps: Any, *, reads: bool) -> list[Object]:
    """The objects that the steps `[function, object, value]` of a transaction read, or write."""
    if not isinstance(steps, list | tuple):
        return []
    return [step[1] for step in steps if isinstance(step, list | tuple) and len(step) > 1 and (step[0] == "r") == reads]


def reads_of_the_rest(
    access: Access, operations: Iterable[PlannedOperation], final: Sequence[PlannedOperation], workers: int, at_us: int
) -> Iterator[PlannedOperation]:
    """Reads, from `at_us` on, of what `operations` write and the `final` operations of the workload do not read.

    Each object is read by two workers, as far as there are two, and FINAL_OBJECTS_MAX objects at most.
    """
    if not access.final_read:
        return
    covered = {each for one in final for each in access.read_set(one.f, one.key, one.value)}
    written = dict.fromkeys(each for one in operations for each in access.write_set(one.f, one.key, one.value))
    rest = [each for each in written if each not in covered]
    rest = rest[:: -(-len(rest) // FINAL_OBJECTS_MAX)] if rest else []
    turn = 0
    for key, value in _asked(access.final_read, rest):
        for _ in range(min(_READERS, workers)):
            yield PlannedOperation(turn % workers, at_us + turn // workers * _STEP_US, access.final_read, key, value)
            turn += 1


def _asked(f: str, objects: Sequence[Object]) -> Iterator[tuple[Object, Any]]:
    """Key and value of the operations `f` that read all `objects`."""
    if f != "txn":
        yield from ((each, None) for each in objects)
        return
    for first in range(0, len(objects), _STEPS):
        yield None, [["r", each, None] for each in objects[first : first + _STEPS]]
