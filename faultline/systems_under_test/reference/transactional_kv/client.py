"""The client of `transactional-kv`: carries out one transaction at a time, with timers and messages.

`transaction_client` decides which node is asked for what, and what is tried again. This module numbers requests,
repeats them until a node answers, and gives up when the client's time is over. The outcome is then *info* if a commit
was asked for and not answered; otherwise it is a definite failure, because no coordinator commits unasked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
from faultline.systems_under_test.reference.transactional_kv.group_messages import ToGroup
from faultline.systems_under_test.reference.transactional_kv.groups import GroupLocations, groups_of
from faultline.systems_under_test.reference.transactional_kv.messages import REQUESTS, AskRollback, Reply
from faultline.systems_under_test.reference.transactional_kv.options import TransactionSettings, host_of
from faultline.systems_under_test.reference.transactional_kv.programs import (
    INSUFFICIENT_BALANCE,
    only_reads,
    program_of,
)

__all__ = ["DEFINITE_ERRORS", "GroupClient", "TransactionalKvClient"]

_ABORTED = "transaction-aborted"
_NOT_COMMITTED = "not-committed"
_FORGOTTEN = "outcome-forgotten"

DEFINITE_ERRORS = OutcomeRegistry((INSUFFICIENT_BALANCE, _ABORTED, _NOT_COMMITTED, UNSUPPORTED))
"""The errors after which nothing of the transaction has happened or will happen. Every other error is indefinite."""


class TransactionalKvClient:
    """One logical client: implements `PortClient` over its ports."""

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], settings: TransactionSettings) -> None:
        self._ports = ports
        self._settings = settings
        self._executor = TransactionExecutor(
            lambda key: host_of(members, key),
            settings.attempts_max,
            time_server=members[0] if settings.clock == "oracle" else None,
        )
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
        reads_only = self._settings.snapshot_reads and only_reads(operation)
        execute = self._executor.read_at_one_time if reads_only else self._executor.execute
        self._steps = execute(program)
        self._open.begin(done, self._settings.client_timeout_us)
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
        longest_us = self._settings.retry_pause_us * 2 ** min(3, pause.failed_attempts - 1)
        return self._ports.random.uniform_us("retry-pause", 1_000, 1_001 + longest_us)

    def _after_pause(self) -> None:
        if self._open.is_overdue:
            self._give_up()
        else:
            self._go_on(None)

    def _transmit(self) -> None:
        assert self._call is not None
        self._open.expect(self._settings.request_timeout_us, self._handle_silence)
        node, verb, arguments = self._call
        self._send(node, REQUESTS[verb](self._number, *arguments))

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


class GroupClient(TransactionalKvClient):
    """The client of a replicated `transactional-kv`: it asks groups instead of nodes, and must find their leaders.

    An answer comes from the leader itself, so the client learns its place; when none comes, it asks the next member.
    """

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], settings: TransactionSettings) -> None:
        groups = groups_of(members, settings.replicas)
        super().__init__(ports, tuple(groups), settings)
        self._locations = GroupLocations(groups, ports.clock, settings.client_timeout_us)

    def receive(self, source: NodeId, message: Reply) -> None:
        """Take an answer, and note the node it came from."""
        if self._call is not None and message.number == self._number:
            self._locations.heard(self._call.node, source)
        super().receive(source, message)

    def _send(self, to: NodeId, request: Any) -> None:
        self._ports.network.send(self._locations.leader_of(to), ToGroup(to, self._ports.node_id, request))

    def _handle_silence(self) -> None:
        if self._call is not None:
            self._locations.try_next(self._call.node)
        super()._handle_silence()
