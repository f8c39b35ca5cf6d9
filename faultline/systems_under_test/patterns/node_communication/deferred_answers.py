"""Receivers of a pipeline and of batches whose requests take time: each answer leaves when it is known, in its turn.

`SequencedReceiver` and `BatchReceiver` execute a request while its message is handled. A server that must first
replicate a request knows the answer later, and it knows the answers of several requests in any order. So here the
execution returns a promise. The pipeline holds an answer until all before it have left, because its sender treats any
other order as a protocol error. A batch is answered as a whole, when its last request is done, and each answer carries
the number of its own request.

An answer goes over the connection that brought its request last. When that one has ended the answer is kept, for the
repetition that comes over the next connection.

*Does not tolerate.* A request that is never answered holds up all behind it until the sender gives up and begins a new
epoch.

Sources: Patterns of Distributed Systems ch. 31 and 32; HTTP/1.1 pipelining (RFC 9112, section 9.3.2), which answers in
the order of requests.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from faultline.systems_under_test.patterns.node_communication.pipelined_sender import (
    SAVED_RESPONSES_MAX,
    SequencedReceiver,
    SequencedRequest,
    SequencedResponse,
    SequenceRejected,
)
from faultline.systems_under_test.patterns.node_communication.request_batch import (
    BatchResponse,
    NumberedRequest,
    NumberedResponse,
    RequestBatch,
)
from faultline.systems_under_test.patterns.promise import Promise

__all__ = ["DeferredBatchReceiver", "DeferredSequencedReceiver"]

Respond = Callable[[SequencedResponse | SequenceRejected], None]


class _Turn:
    """One request that was begun, and its result once there is one."""

    __slots__ = ("request", "result")

    def __init__(self, request: SequencedRequest) -> None:
        self.request = request
        self.result: bytes | None = None


class DeferredSequencedReceiver(SequencedReceiver):
    """The receiver of one sender's pipeline; `begin` starts a request and promises its answer."""

    def __init__(
        self,
        begin: Callable[[SequencedRequest], Promise[bytes]],
        saved_responses_max: int = SAVED_RESPONSES_MAX,
    ) -> None:
        super().__init__(lambda _: b"", saved_responses_max)
        self._start = begin
        self._turns: dict[str, deque[_Turn]] = {}
        self._responds: dict[tuple[str, int, int], Respond] = {}

    def take(self, request: SequencedRequest, respond: Respond) -> None:
        """Begin `request` if it is the next, and let `respond` have its answer, now or in its turn."""
        key = (request.sender, request.epoch, request.sequence)
        # An older connection may have brought it before. An answer over that one would be lost.
        self._responds[key] = respond
        answer = self.receive(request)
        if answer is not None:
            self._responds.pop(key, None)
            respond(answer)

    def _begin(self, sender: str, epoch: int) -> None:
        super()._begin(sender, epoch)
        for turn in self._turns.pop(sender, ()):
            self._responds.pop((sender, turn.request.epoch, turn.request.sequence), None)

    def _perform(self, request: SequencedRequest) -> None:
        turn = _Turn(request)
        self._turns.setdefault(request.sender, deque()).append(turn)
        self._start(request).then(lambda result: self._executed(turn, result))

    def _executed(self, turn: _Turn, result: bytes) -> None:
        turn.result = result
        sender = turn.request.sender
        turns = self._turns.get(sender, deque())
        while turns and turns[0].result is not None:
            self._answer(turns.popleft())

    def _answer(self, turn: _Turn) -> None:
        request = turn.request
        assert turn.result is not None
        response = SequencedResponse(request.epoch, request.sequence, turn.result)
        self._save(request.sender, response)
        respond = self._responds.pop((request.sender, request.epoch, request.sequence), None)
        if respond is not None:
            respond(response)


class DeferredBatchReceiver:
    """The server's side of batches: `begin` starts one request and promises its answer.

    It recognises no batch that comes again: that is the work of the pipeline that carries the batches.
    """

    def __init__(self, begin: Callable[[bytes], Promise[bytes]]) -> None:
        self._start = begin

    def process(self, batch: RequestBatch) -> Promise[BatchResponse]:
        """Begin all requests of `batch`, in order, and promise their answers."""
        answered: Promise[BatchResponse] = Promise()
        done: list[NumberedResponse] = []

        def finished(response: NumberedResponse) -> None:
            done.append(response)
            if len(done) == len(batch.requests):
                answered.complete(BatchResponse(batch.number, self._in_order(batch, done)))

        for request in batch.requests:
            self._begin(request, finished)
        return answered

    def _begin(self, request: NumberedRequest, finished: Callable[[NumberedResponse], None]) -> None:
        self._start(request.command).then(
            lambda result: finished(NumberedResponse(request.number, None, result)),
            lambda error: finished(NumberedResponse(request.number, str(error))),
        )

    # A step of its own, so that a planted bug can override it.

    def _in_order(self, batch: RequestBatch, done: list[NumberedResponse]) -> list[NumberedResponse]:
        """Return the answers in the order of their requests; they were done in any."""
        return sorted(done, key=lambda response: response.number)
