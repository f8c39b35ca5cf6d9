"""The history of a run: every operation and every fault, in the harness's own order, kept as columns.

An operation is one *row*: its invocation and, once it completes, its outcome. Each invocation, completion and nemesis
event also takes the next *index* of one common order; checkers use that order and never compare clocks. An
operation that never completed has `complete_index == OPEN` and counts as `info`.

`history.jsonl` holds the same as one line per event, appended as it happens, so that a crash or Ctrl-C loses nothing:

    {"index":0,"time_us":1200,"type":"invoke","process":3,"worker":3,"node":"byzantium","f":"write","key":"k0","value":7}
{"index":1,"time_us":4310,"type":"ok","process":3,"f":"write","key":"k0","value":null}
{"index":2,"time_us":5000,"type":"info","process":"nemesis","f":"start-partition","value":{...}}"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Annotated, Any, Literal

import msgspec

from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome
from faultline.harness.untrusted import DamagedInput, decoded

__all__ = ["OPEN", "EventSink", "FaultEvent", "History", "Row"]

OPEN = -1
"""The completion index and time of an operation that never completed."""

EventSink = Callable[[bytes], object]


class Row(msgspec.Struct, frozen=True):
    """One operation with its outcome, for readers that want a record rather than columns."""

    row: int
    process: int
    worker: int
    node: str
    f: str
    key: str | None
    value: Any
    outcome: str
    result: Any
    error: str | None
    invoke_us: int
    complete_us: int
    invoke_index: int
    complete_index: int


class FaultEvent(msgspec.Struct, frozen=True):
    """A nemesis event: `f` is `start-KIND`, `stop-KIND` or `heal`; `value` has the request and its effect."""

    index: int
    time_us: int
    f: str
    value: dict[str, Any]


class _InvocationLine(msgspec.Struct, frozen=True, gc=False):
    """The JSON line of an invocation: a record is encoded in a third of the time that a dictionary takes."""

    index: int
    time_us: int
    type: str
    process: int
    worker: int
    node: str
    f: str
    key: str | None
    value: Any


class _CompletionLine(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The JSON line of a completion: it has `error` only if there was one, and `node` only if it changed."""

    index: int
    time_us: int
    type: str
    process: int
    f: str
    key: str | None
    value: Any
    error: str | None = None
    node: str | None = None


class _FaultLine(msgspec.Struct, frozen=True, gc=False):
    """The JSON line of a nemesis event."""

    index: int
    time_us: int
    type: str
    process: str
    f: str
    value: dict[str, Any]


_Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 60)]
_Number = Annotated[int, msgspec.Meta(ge=-(1 << 60), le=1 << 60)]


class _StoredLine(msgspec.Struct, frozen=True, gc=False):
    """Any of the three lines as it is read back: every field has its type, and a field that the line lacks is None."""

    index: _Count
    time_us: _Count
    type: Literal["invoke", "ok", "fail", "info"]
    process: _Number | Literal["nemesis"]
    f: str
    key: str | None = None
    value: Any = None
    worker: _Number | None = None
    node: str | None = None
    error: str | None = None


_EventLine = _InvocationLine | _CompletionLine | _FaultLine
_ENCODER = msgspec.json.Encoder()


class History:
    """Operations as parallel columns, faults as a list; grows while a run goes on.

    `node` is the node that answered, as far as is known, else `first_node`, the one that was asked first.
    `sink`, when given, receives every event as one encoded JSON line with its newline. After an OSError (a full
    disk) it receives no more: the run goes on and is judged by the history in memory. `problems` has a sentence for
    that, and for each answer of a client that could not be recorded: failures of the harness or of a plug-in.
    """

    def __init__(self, sink: EventSink | None = None) -> None:
        self.process: list[int] = []
        self.worker: list[int] = []
        self.first_node: list[str] = []
        self.node: list[str] = []
        self.f: list[str] = []
        self.key: list[str | None] = []
        self.value: list[Any] = []
        self.outcome: list[str] = []
        self.result: list[Any] = []
        self.error: list[str | None] = []
        self.invoke_us: list[int] = []
        self.complete_us: list[int] = []
        self.invoke_index: list[int] = []
        self.complete_index: list[int] = []
        self.faults: list[FaultEvent] = []
        self.problems: tuple[str, ...] = ()
        self.next_index = 0
        self._sink = sink

    def __len__(self) -> int:
        return len(self.process)

    def invoke(self, operation: Operation, time_us: int, worker: int, node: str) -> int:
        """Record an invocation by `worker` against `node`, and return its row."""
        row = len(self.process)
        self.process.append(operation.process)
        self.worker.append(worker)
        self.node.append(node)
        self.first_node.append(node)
        self.f.append(operation.f)
        self.key.append(operation.key)
        self.value.append(operation.value)
        self.outcome.append("info")
        self.result.append(None)
        self.error.append(None)
        self.invoke_us.append(time_us)
        self.complete_us.append(OPEN)
        self.invoke_index.append(self.next_index)
        self.complete_index.append(OPEN)
        self.next_index += 1
        if self._sink is not None:
            self._write(self._invocation(row))
        return row

    def complete(self, row: int, outcome: Outcome, time_us: int) -> None:
        """Record how the operation in `row` ended. Each row completes at most once."""
        assert self.complete_index[row] == OPEN, f"row {row} completed twice"
        self.outcome[row] = outcome.kind
        self.result[row] = outcome.value
        self.error[row] = outcome.error
        self.complete_us[row] = time_us
        self.complete_index[row] = self.next_index
        if outcome.node is not None:
            self.node[row] = outcome.node
        self.next_index += 1
        if self._sink is not None:
            self._write(self._completion(row))

    def fault(self, f: str, value: dict[str, Any], time_us: int) -> None:
        """Record a nemesis event."""
        event = FaultEvent(self.next_index, time_us, f, value)
        self.faults.append(event)
        self.next_index += 1
        if self._sink is not None:
            self._write(_fault_line(event))

    def _write(self, line: _EventLine) -> None:
        assert self._sink is not None
        try:
            self._sink(_encoded(line))
        except OSError as error:
            self._sink = None
            told = f"The history could not be written beyond event {line.index}: {error.strerror or error}."
            self.problems += (told,)

    def row(self, row: int) -> Row:
        """Return the operation in `row` as a record."""
        return Row(
            row,
            self.process[row],
            self.worker[row],
            self.node[row],
            self.f[row],
            self.key[row],
            self.value[row],
            self.outcome[row],
            self.result[row],
            self.error[row],
            self.invoke_us[row],
            self.complete_us[row],
            self.invoke_index[row],
            self.complete_index[row],
        )

    def rows(self) -> Iterator[Row]:
        """Return all operations in order of invocation."""
        return map(self.row, range(len(self)))

    def rows_by_key(self) -> dict[str | None, list[int]]:
        """Return the rows of each key, keys in order of first use, rows in order of invocation."""
        by_key: dict[str | None, list[int]] = {}
        for row, key in enumerate(self.key):
            by_key.setdefault(key, []).append(row)
        return by_key

    def head(self, rows: int) -> History:
        """Return the first `rows` operations, without faults: enough to recognise the kind of history."""
        beginning = History()
        for name, column in vars(self).items():
            if isinstance(column, list) and name != "faults":
                setattr(beginning, name, column[:rows])
        return beginning

    def end_us(self) -> int:
        """Return the time of the last event, 0 for an empty history."""
        last_fault = self.faults[-1].time_us if self.faults else 0
        return max([last_fault, *self.invoke_us, *self.complete_us], default=0)

    def events(self) -> Iterator[dict[str, Any]]:
        """Return every event as the dictionary of its JSON line, in order of index."""
        return (msgspec.to_builtins(line) for line in self._lines())

    def to_jsonl(self) -> bytes:
        """Return the whole history as the bytes of `history.jsonl`."""
        return _ENCODER.encode_lines(self._lines())

    def digest(self) -> str:
        """Return the SHA-256 of `to_jsonl`, in hexadecimal: equal digests mean the same execution."""
        import hashlib  # Imported late, because loading it takes longer than checking a small history.

        return hashlib.sha256(self.to_jsonl()).hexdigest()

    @classmethod
    def from_jsonl(cls, lines: Iterable[bytes | str], source: str = "history.jsonl") -> History:
        """Read a history back. A torn last line is dropped; any other malformed line raises DamagedInput."""
        history = cls()
        rows: dict[int, int] = {}
        torn: ValueError | None = None
        number = 0
        for number, line in enumerate(lines, start=1):
            if torn is not None:
                raise _malformed(source, number - 1, torn)
            try:
                event = decoded(line, _StoredLine)
            except ValueError as error:
                torn = error
                continue
            try:
                history._replay(event, rows)
            except ValueError as error:
                raise _malformed(source, number, error) from error
        if torn is not None and line[-1:] in (b"\n", "\n"):
            raise _malformed(source, number, torn)
        return history

    def _replay(self, event: _StoredLine, rows: dict[int, int]) -> None:
        """Take the next event; raise ValueError when it cannot follow those before it."""
        if event.index < self.next_index:
            raise ValueError(f"index {event.index} comes after index {self.next_index - 1}")
        self.next_index = event.index
        process = event.process
        if process == "nemesis":
            if not isinstance(event.value, dict):
                raise ValueError("the value of an event of the nemesis must be an object")
            self.fault(event.f, event.value, event.time_us)
        elif event.type == "invoke":
            if process in rows:
                raise ValueError(f"process {process} invokes while its operation before is still open")
            operation = Operation(process, event.f, event.key, event.value)
            worker = process if event.worker is None else event.worker
            rows[process] = self.invoke(operation, event.time_us, worker, event.node or "")
        else:
            if process not in rows:
                raise ValueError(f"process {process} completes an operation that it has not invoked")
            outcome = Outcome(event.type, event.value, event.error, event.node)
            self.complete(rows.pop(process), outcome, event.time_us)

    def _lines(self) -> list[_EventLine]:
        rows = range(len(self))
        lines: list[_EventLine] = list(map(self._invocation, rows))
        lines += [self._completion(row) for row in rows if self.complete_index[row] != OPEN]
        lines += map(_fault_line, self.faults)
        return sorted(lines, key=attrgetter("index"))

    def _invocation(self, row: int) -> _InvocationLine:
        return _InvocationLine(
            self.invoke_index[row],
            self.invoke_us[row],
            "invoke",
            self.process[row],
            self.worker[row],
            self.first_node[row],
            self.f[row],
            self.key[row],
            self.value[row],
        )

    def _completion(self, row: int) -> _CompletionLine:
        node = self.node[row]
        return _CompletionLine(
            self.complete_index[row],
            self.complete_us[row],
            self.outcome[row],
            self.process[row],
            self.f[row],
            self.key[row],
            self.result[row],
            self.error[row],
            None if node == self.first_node[row] else node,
        )


def _malformed(source: str, line: int, error: ValueError) -> DamagedInput:
    return DamagedInput(
        source,
        f"not an event of a history: {error}",
        place=f"line {line}",
        next_step="Each line must be one JSON object as `faultline run` writes it; see docs/reference/history.md.",
    )


def _fault_line(event: FaultEvent) -> _FaultLine:
    return _FaultLine(event.index, event.time_us, "info", "nemesis", event.f, event.value)


def _encoded(line: _EventLine) -> bytes:
    return _ENCODER.encode(line) + b"\n"
