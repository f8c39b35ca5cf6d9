"""The interpreter turns a generator into invocations, and records their completions, without any I/O.

It owns the workers and their processes; a world owns time, clients and the network. The world takes the operations that
may start now from `poll`, performs them, and reports each answer with `complete`. A process whose operation ended in
`info` always retires, because that operation may still be running, and its worker goes on under the next process id
(Jepsen, `generator/interpreter.clj`).

    world: poll(now) -> dispatches ... complete(worker, outcome, now) -> poll(now) ... until finished

The world polls after every completion and at `next_wake_us()`. Faults are not driven here: the plan has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from faultline.harness.errors import HarnessError
from faultline.harness.generator.chance import chance_of
from faultline.harness.generator.core import FOREVER, Context, Draft, Event, Generator
from faultline.harness.history import History
from faultline.harness.incremental import Watch
from faultline.harness.operation import AnswerOf, Operation
from faultline.harness.outcome import Outcome, info, unrecordable

__all__ = ["Dispatch", "Interpreter"]

_IDLE = -1
_CLIENT_ERROR = "The client of the system gave an outcome that cannot be recorded,"


class Dispatch(msgspec.Struct, frozen=True, gc=False):
    """An invocation that has been recorded in `row` of the history: the client of `worker` must now perform it."""

    worker: int
    operation: Operation
    row: int


class Interpreter:
    """Drives `generator` for client workers 0 … `workers` - 1, recording in `history`.

    `node_of(worker)` names the node a worker's client talks to first; it is asked at each invocation. `watch` judges
    while the run goes on: at the first certain violation the interpreter abandons the rest, as `abandon` does.
    `remembered` are the answers on which the values of operations depend.
    """

    def __init__(
        self,
        generator: Generator,
        *,
        workers: int,
        seed: int,
        history: History,
        node_of: Callable[[int], str],
        watch: Watch | None = None,
        remembered: Iterable[AnswerOf] = (),
    ) -> None:
        self._generator = generator
        self._listens = generator.listens
        self._workers = workers
        self._seed = seed
        self._history = history
        self._node_of = node_of
        self._watch = watch
        self._answers: dict[AnswerOf, Any] = dict.fromkeys(remembered)
        self._everyone = ((1 << workers) - 1) << 1
        self._free = self._everyone
        self._count = 0
        self._chance = chance_of(seed, 0)
        self._processes = list(range(workers))
        self._rows = [_IDLE] * workers
        self._held: set[int] = set()
        self._wake_us: int | None = None
        self._exhausted = False
        self._abandoned = False

    @property
    def finished(self) -> bool:
        """True when the generator is exhausted and no operation is in flight, or the rest has been abandoned."""
        return self._exhausted and (self._is_idle() or self._abandoned)

    def process_of(self, worker: int) -> int:
        """Return the process id under which `worker` invokes at present."""
        return self._processes[worker]

    def in_flight(self) -> list[int]:
        """Return the rows of the operations that have been invoked and have not completed, by worker."""
        return [row for row in self._rows if row != _IDLE]

    def next_wake_us(self) -> int | None:
        """Return when to poll again if nothing completes before, as of the last poll; None: only after a completion."""
        return self._wake_us

    def poll(
        self, now_us: int, due_us: int | None = None, is_ready: Callable[[int], bool] | None = None
    ) -> list[Dispatch]:
        """Return the operations that may start at `now_us`, recorded as invoked, in the order in which to perform them.

        With `due_us` no operation starts that is due later, whatever the time. A worker that `is_ready` refuses is held
        instead, and keeps its operation.
        """
        dispatches: list[Dispatch] = []
        due_us = now_us if due_us is None else min(now_us, due_us)
        self._wake_us = None
        while not self._exhausted:
            offer, following = self._generator.op(Context(due_us, self._chance, self._free, self._everyone))
            if offer is None:
                self._exhausted = True
                break
            # A draft that is dropped leaves the generator as it was: asking commits to nothing, so the operation is
            # offered again later. Only a pending answer or a performed draft moves the generator on.
            if type(offer) is not Draft:
                self._generator = following
            elif offer.at_us <= due_us and is_ready is not None and not is_ready(offer.worker):
                self._free ^= 1 << (offer.worker + 1)
                # Ask again without this worker: another free worker may have an operation that is due.
                self._held.add(offer.worker)
                continue
            elif offer.at_us <= due_us:
                self._generator = following
                dispatches.append(self._invoke(offer, now_us))
                continue
            if offer.at_us != FOREVER:
                self._wake_us = offer.at_us
            elif self._is_idle() and not self._held:
                raise HarnessError(
                    f"The generator waits at {now_us} us for a completion, but no operation is in flight.",
                    "Try it with `faultline.harness.generator.simulate`, which stops at the same place.",
                )
            break
        return dispatches

    def _is_idle(self) -> bool:
        """Return whether no operation is in flight."""
        return self._free.bit_count() + len(self._held) == self._workers

    def _invoke(self, draft: Draft, now_us: int) -> Dispatch:
        worker = draft.worker
        bit = 1 << (worker + 1)
        if not self._free & bit:
            raise HarnessError(
                f"The generator gave worker {worker} an operation at {now_us} us, but it is busy or no client.",
                "A draft that names its worker must name a free one of its context.",
            )
        self._free ^= bit
        self._count += 1
        self._chance = chance_of(self._seed, self._count)
        value = draft.value if draft.answer_of is None else [draft.value, self._answers[draft.answer_of]]
        operation = Operation(self._processes[worker], draft.f, draft.key, value)
        row = self._history.invoke(operation, now_us, worker, self._node_of(worker))
        if self._watch is not None:
            self._watch.invoke(row, operation)
        self._rows[worker] = row
        return Dispatch(worker, operation, row)

    def complete(
        self, worker: int, outcome: Outcome, now_us: int, row: int | None = None, *, hold: bool = False
    ) -> bool:
        """Record the outcome of `worker`'s operation; return whether its process retired and needs a fresh client.

        With `hold` the worker gets no operation until `release`: its client has no connection.

        An operation completes at most once: a second completion raises HarnessError (pass the `row` of the dispatch to
        catch one that comes when the worker is already on its next operation). After `abandon` nothing is recorded. An
        answer that is no outcome, or that a history cannot hold, says nothing about the operation: it becomes `info`,
        and the client's error goes to the history's problems."""
        if self._abandoned:
            return False
        open_row = self._rows[worker]
        if open_row == _IDLE or (row is not None and row != open_row):
            raise HarnessError(
                f"Worker {worker} completed an operation at {now_us} us that it does not have in flight.",
                "A client must call its completion exactly once per operation.",
            )
        problem = unrecordable(outcome)
        if problem:
            outcome = info("unrecordable-outcome")
            self._note(open_row, problem)
        self._history.complete(open_row, outcome, now_us)
        if self._answers and outcome.kind == "ok":
            self._remember(worker, open_row, outcome.value)
        self._rows[worker] = _IDLE
        if self._watch is not None and self._watch.complete(open_row, outcome, now_us):
            self.abandon(now_us)
        if hold:
            self._held.add(worker)
        else:
            self._free |= 1 << (worker + 1)
        if self._listens:
            self._tell(worker, open_row, outcome, now_us)
        if outcome.kind != "info":
            return False
        self._processes[worker] += self._workers
        return True

    def release(self, worker: int) -> None:
        """Let `worker`, which was held, go on."""
        self._held.remove(worker)
        self._free |= 1 << (worker + 1)

    def _note(self, row: int, problem: str) -> None:
        """Keep the first such error only: a client that makes it once makes it at every operation."""
        history = self._history
        if not any(told.startswith(_CLIENT_ERROR) for told in history.problems):
            history.problems += (f"{_CLIENT_ERROR} of operation {row} ({history.f[row]}): {problem}.",)

    def _remember(self, worker: int, row: int, answer: Any) -> None:
        asked = AnswerOf(worker, self._history.f[row], self._history.key[row])
        if asked in self._answers:
            self._answers[asked] = answer

    def _tell(self, worker: int, row: int, outcome: Outcome, now_us: int) -> None:
        history = self._history
        event = Event(outcome.kind, worker, history.f[row], history.key[row], history.value[row], outcome.value, now_us)
        context = Context(now_us, self._chance, self._free, self._everyone)
        self._generator = self._generator.update(context, event)

    def go_on(self, generator: Generator) -> None:
        """Take operations from `generator`, where the one before is exhausted; not after `abandon`."""
        if not self._abandoned:
            self._generator, self._listens, self._exhausted = generator, generator.listens, False

    def abandon(self, now_us: int) -> None:
        """Stop: invoke nothing more, and leave operations in flight open, which counts as `info`.

        `now_us` ends the waiting; it is not written anywhere, because nothing completes then.
        """
        self._exhausted = True
        self._abandoned = True
        self._wake_us = None
