"""The read set and the write set of each operation: which objects the operations of a workload read and write.

An object is what `key` names. Operations without a key concern one object, the store as a whole. Transactions (`txn`)
name their objects in their steps; one with a key of its own, a table, reads and writes that as a whole. The harness
uses the sets to find the objects that hold an acknowledged write, to read them after the heal, and to report which of
them were read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from faultline.harness.plan import PlannedOperation

__all__ = ["FINAL_OBJECTS_MAX", "READS", "USUAL_ACCESS", "Access", "access_of", "reads_of_the_rest"]

READS = ("read", "get")
"""The usual names of reads."""

FINAL_OBJECTS_MAX = 5_000
"""The most objects that are read after the heal. Of more written objects an even sample of this size is read."""

_STEPS = 8
"""The number of objects that one such transaction reads."""

_STEP_US = 4_000

Object = str | None


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """The functions of a workload by what they do to objects.

    `reads` show what an object holds. `writes` change it; None means every function that is not in `reads`.
    `final_read` is the function that reads one object after the heal, empty where the workload's own final operations
    read all of them. `final_readers` workers read each object then, or with None all of them, where an answer depends
    on the node. With `whole` all keys are parts of one object.
    """

    reads: tuple[str, ...] = READS
    writes: tuple[str, ...] | None = None
    final_read: str = ""
    final_readers: int | None = 2
    whole: bool = False

    def read_set(self, f: str, key: Object, value: Any) -> Iterable[Object]:
        """Return the objects whose contents the operation shows when it succeeds."""
        if f not in self.reads:
            return ()
        return _objects(key, value, reads=True) if f == "txn" else (None if self.whole else key,)

    def write_set(self, f: str, key: Object, value: Any) -> Iterable[Object]:
        """Return the objects that the operation changes when it succeeds."""
        if f == "txn":
            return _objects(key, value, reads=False)
        if f in self.reads if self.writes is None else f not in self.writes:
            return ()
        return (None if self.whole else key,)


USUAL_ACCESS = Access()
"""The access of a workload that declares none."""


def access_of(workload: object) -> Access:
    """Return the access that `workload` declares, else the usual one."""
    declared: Access = getattr(workload, "access", USUAL_ACCESS)
    return declared


def _objects(table: Object, steps: Any, *, reads: bool) -> list[Object]:
    """Return the objects that the steps `[function, object, value]` of a transaction read, or write; or its `table`."""
    if not isinstance(steps, list | tuple):
        return []
    known = [step for step in steps if isinstance(step, list | tuple) and len(step) > 1]
    found = [step[1] for step in known if (step[0] in ("r", "rp")) == reads]
    return [table] if table is not None and found else found


def reads_of_the_rest(
    access: Access, operations: Iterable[PlannedOperation], final: Sequence[PlannedOperation], workers: int, at_us: int
) -> Iterator[PlannedOperation]:
    """Yield reads, from `at_us` on, of the objects that `operations` write and the `final` operations do not read.

    At most FINAL_OBJECTS_MAX objects are read, each by as many workers as `access` asks for and the run has.
    """
    if not access.final_read:
        return
    covered = {each for one in final for each in access.read_set(one.f, one.key, one.value)}
    written = dict.fromkeys(each for one in operations for each in access.write_set(one.f, one.key, one.value))
    rest = [each for each in written if each not in covered]
    rest = rest[:: -(-len(rest) // FINAL_OBJECTS_MAX)] if rest else []
    readers = workers if access.final_readers is None else access.final_readers
    turn = 0
    for key, value in _asked(access.final_read, rest):
        for _ in range(min(readers, workers)):
            yield PlannedOperation(turn % workers, at_us + turn // workers * _STEP_US, access.final_read, key, value)
            turn += 1


def _asked(f: str, objects: Sequence[Object]) -> Iterator[tuple[Object, Any]]:
    """Yield the key and value of the operations `f` that together read all `objects`."""
    if f != "txn":
        yield from ((each, None) for each in objects)
        return
    for first in range(0, len(objects), _STEPS):
        yield None, [["r", each, None] for each in objects[first : first + _STEPS]]
