"""The consumer that owns a write-ahead log: requests are written one at a time, and answered after the write.

*Problem.* Many connections submit requests that must all go to one file, each once and in one order. No client may get
its answer before its entry is on disk.

*Idea.* One singular update queue stands in front of the log; its handler appends the request and makes it durable. The
answer is sent when the promise of that request completes, outside the handler, so that a slow client holds up no other:
chained work belongs to another queue. An error becomes an error answer. A *batch* of requests is what waits when the
consumer runs (`schedule`), or what shares one flush (`policy`).

*Invariants.* SUQ-I2 the order of the log is the order of acceptance. SUQ-I4 an answer leaves after the write.

*Tolerates.* A failing disk: the client and every later client get an error, because the log accepts no further entry.

*Does not tolerate.* A crash between write and answer: the client must ask again, and the receiver be idempotent.

*Workloads.* Those of `logged-store`; `consistent-core` does the same with a replicated log in the place of this one.

*Checkers.* Linearizability. *Planted bugs.* `answered-when-queued` and `answered-before-the-flush` in `logged-store`.

Sources: Patterns of Distributed Systems ch. 13 (`WalRequestConsumer`, which answers an error with a null response).
"""

from __future__ import annotations

from collections.abc import Callable

from faultline.systems_under_test.patterns.data_replication.flush_policy import FlushEachAppend, FlushPolicy
from faultline.systems_under_test.patterns.data_replication.singular_update_queue import SingularUpdateQueue
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import DATA, LogEntry, WriteAheadLog
from faultline.systems_under_test.patterns.promise import Promise

__all__ = ["WalRequestConsumer"]

Schedule = Callable[[Callable[[], None]], object]


class WalRequestConsumer:
    """The consumer, which writes each message to `log` as one entry of `generation`; `policy` says when it is safe."""

    def __init__(
        self,
        log: WriteAheadLog,
        *,
        generation: int = 0,
        capacity: int = 100,
        schedule: Schedule | None = None,
        policy: FlushPolicy | None = None,
    ) -> None:
        self._log = log
        self._generation = generation
        self._policy = policy or FlushEachAppend(log)
        self._wal_writer: SingularUpdateQueue[tuple[bytes, Promise[int]], None] = SingularUpdateQueue(
            self._write_entry, capacity, schedule=schedule
        )

    def accept(
        self, message: bytes, respond: Callable[[int], None], respond_error: Callable[[Exception], None]
    ) -> Promise[int]:
        """Queue `message`; later either `respond` is called with the index of its entry, or `respond_error`.

        Raises `QueueFull` or `QueueShutDown`, and then calls neither.
        """
        written: Promise[int] = Promise()
        written.then(respond, respond_error)
        self._wal_writer.submit((message, written)).then(lambda _: None, written.fail)
        return written

    def shutdown(self) -> None:
        """Accept nothing more; waiting messages are answered with an error."""
        self._wal_writer.shutdown()

    def _write_entry(self, item: tuple[bytes, Promise[int]]) -> None:
        message, written = item
        index = self._log.last_index + 1
        self._log.append(LogEntry(index, self._generation, DATA, message))
        self._policy.appended(lambda: written.complete(index))
