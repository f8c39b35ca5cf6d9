"""The client of a transactional system: carries out one transaction at a time, with timers and messages.

`transaction_client` decides which node is asked for what, and what is tried again. This module numbers requests,
repeats them until a node answers, and gives up when the client's time is over. The outcome is then *info* if a commit
was asked for and not answered; otherwise it is a definite failure, because no coordinator commits unasked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol

import msgspec

from faultline.harness.operation import Operation
from faultline.harness.outcome import UNSUPPORTED, Outcome, OutcomeRegistry, ok
from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.data_partitioning.transaction_client import (
    Answer,
    Call,
    OutcomeUnknown,
    Pause,
    Refused,
    TransactionAborted,
    TransactionExecutor,
)
from faultline.systems_under_test.reference.shared.open_operation import TIMEOUT, OpenOperation
from faultline.systems_under_test.reference.transactions.messages import REQUESTS, AskRollback, Reply
from faultline.systems_under_test.reference.transactions.programs import (
    INSUFFICIENT_BALANCE,
    only_reads,
    program_of,
)

__all__ = ["DEFINITE_ERRORS", "ClientTimes", "TransactionClient"]

_ABORTED = "transaction-aborted"
_NOT_COMMITTED = "not-committed"
_FORGOTTEN = "outcome-forgotten"

DEFINITE_ERRORS = OutcomeRegistry((INSUFFICIENT_BALANCE, _ABORTED, _NOT_COMMITTED, UNSUPPORTED))
"""The errors after which nothing of the transaction has happened or will happen. Every other error is indefinite."""


class ClientTimes(Protocol):
    """The times that such a client waits, in microseconds."""

    @property
    def client_timeout_us(self) -> int:
        """The time after which it gives up."""

    @property
    def request_timeout_us(self) -> int:
        """The time after which it asks again."""

    @property
    def retry_pause_us(self) -> int:
        """The longest random wait before a second attempt."""


class TransactionClient:
    """One logical client: implements `PortClient` over its ports. `requests` has the message for each verb."""

    requests: ClassVar[Mapping[str, type[msgspec.Struct]]] = REQUESTS

    def __init__(
        self, ports: Ports, times: ClientTimes, executor: TransactionExecutor, *, snapshot_reads: bool
    ) -> None:
        """Read at one time, without locks, in transactions that only read, if `snapshot_reads` is set."""
        self._ports = ports
        self._times = times
        self._executor = executor
        self._snapshot_reads = snapshot_reads
        self._open = OpenOperation(ports)
        self._steps: Any = None
        self._call: Call | None = None
        self._number = 0

    def start(self) -> None:
        """Do nothing: there is nothing to prepare."""

    def invoke(self, operation: Operation, done: Callable[[Outcome], None]) -> None:
        """Perform `operation`, one of the functions in `programs`."""
        program = program_of(operation)
        if program is None:
            done(DEFINITE_ERRORS.outcome(UNSUPPORTED))
            return
        reads_only = self._snapshot_reads and only_reads(operation)
        execute = self._executor.read_at_one_time if reads_only else self._executor.execute
        self._steps = execute(program)
        self._open.begin(done, self._times.client_timeout_us)
        self._go_on(None)

    def receive(self, source: NodeId, message: Reply) -> None:
        """Take an answer; one to an earlier request is late, and ignored."""
        if self._open and self._call is not None and message.number == self._number:
            self._call = None
            self._go_on(Answer(message.error, message.value, message.ref, message.time))

    def _go_on(self, answer: Answer | None) -> None:
        """Take the next step: a request, a pause, or the end."""
        try:
            step = self._steps.send(answer)
        except StopIteration as end:
            self._open.end(ok(end.value))
        except Refused as refusal:
            self._open.end(DEFINITE_ERRORS.outcome(refusal.code))
        except OutcomeUnknown:
            self._open.end(DEFINITE_ERRORS.outcome(_FORGOTTEN))
        except TransactionAborted:
            self._open.end(DEFINITE_ERRORS.outcome(_ABORTED))
        else:
            self._take(step)

    def _take(self, step: Call | Pause) -> None:
        if isinstance(step, Pause):
            self._ports.trace.sometimes("transaction-tried-again")
            self._open.expect(self._pause_us(step), self._after_pause)
        else:
            self._number += 1
            self._call = step
            self._transmit()

    def _pause_us(self, pause: Pause) -> int:
        longest_us = self._times.retry_pause_us * 2 ** min(3, pause.failed_attempts - 1)
        return self._ports.random.uniform_us("retry-pause", 1_000, 1_001 + longest_us)

    def _after_pause(self) -> None:
        if self._open.is_overdue:
            self._give_up()
        else:
            self._go_on(None)

    def _transmit(self) -> None:
        assert self._call is not None
        self._open.expect(self._times.request_timeout_us, self._handle_silence)
        node, verb, arguments = self._call
        self._send(node, self.requests[verb](self._number, *arguments))

    def _send(self, to: NodeId, request: Any) -> None:
        self._ports.network.send(to, request)

    def _handle_silence(self) -> None:
        if self._open.is_overdue:
            self._give_up()
        else:
            self._ports.trace.sometimes("client-retried")
            self._transmit()

    def _give_up(self) -> None:
        """End the operation, because its time is over."""
        # A transaction that cannot be committed is rolled back, so that its locks do not wait for a timeout. One in
        # doubt is left alone: it may be committed already, and only the coordinator knows.
        ref, in_doubt = self._executor.ref, self._executor.in_doubt
        self._call = None
        if ref is not None and not in_doubt:
            self._number += 1
            self._send(NodeId(ref.id.server), AskRollback(self._number, ref.id))
        self._open.end(DEFINITE_ERRORS.outcome(TIMEOUT if in_doubt else _NOT_COMMITTED))
