"""One connection to a bucket of NATS JetStream, by nats-py with reconnecting off, and one client that uses it.

A bucket is a stream with a subject for each key; its newest message is the key's value, and that message's number in
the stream is the value's *revision* (NATS documentation, "Key/Value Store"). There is one conditional change: a message
that says which revision it expects to be the newest is stored only then. So every operation that depends on the value
of a key – compare-and-set, adding to a set, appending to a list, counting – is a read and a conditional write of the
new value, and a stale read only makes the write fail.

**Definite errors**, after which a change certainly did not happen:

| error | why nothing happened |
|---|---|
| `wrong-last-sequence` | the stream holds a newer revision than the expected one, and compares before it stores |
| `no-responders` | the server that was asked knows no subscriber that would take the message, and drops it |
| `read-failed` | the read before a conditional write failed, so nothing was written |
| `value-differs` | a compare-and-set read another value than it expected, so nothing was written |

The last is not reported as a mismatch, which would be an observation of the key's state: a read may be stale. All other
errors, and silence, are `info` after a change.

nats-py is asynchronous. Each connection has an event loop of its own, which runs only during a request.
"""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from faultline.harness.operation import Operation
from faultline.harness.outcome import NOT_CONNECTED, Outcome, OutcomeRegistry, ok
from faultline.systems_under_test.stores.client import ForeignAnswer, MemberClient, client_library

__all__ = ["CLIENT_PORT", "FUNCTIONS", "USER", "Bucket", "BucketClient", "BucketRefusal", "outcomes"]

CLIENT_PORT = 4222
USER = "faultline"
BUCKET = "faultline"
_SUBJECTS = f"$KV.{BUCKET}."
_FORGOTTEN_S = 2.0
"""The time without a listener after which a server ends a delivery."""

FUNCTIONS = ("read", "write", "cas", "add", "append", "increment", "generate")

WRONG_LAST_SEQUENCE = "wrong-last-sequence"
NO_RESPONDERS = "no-responders"
READ_FAILED = "read-failed"
VALUE_DIFFERS = "value-differs"
outcomes = OutcomeRegistry([NOT_CONNECTED, WRONG_LAST_SEQUENCE, NO_RESPONDERS, READ_FAILED, VALUE_DIFFERS])
"""The errors after which a change certainly did not happen."""

Answer = TypeVar("Answer")


class BucketRefusal(Exception):
    """JetStream answered, but not with a result; the text is one word."""


class Bucket:
    """The bucket through the server at `address`. Raises OSError without a connection.

    With `direct` reads any server that has a replica answers, without them the leader of the stream does.
    """

    def __init__(self, address: str, *, direct: bool, timeout_s: float, password: str = "") -> None:
        nats = client_library("nats", extra="nats")
        self._nats_errors = nats.errors
        self._stream_errors = client_library("nats.js.errors", extra="nats")
        self._api = client_library("nats.js.api", extra="nats")
        self._direct = direct
        self._timeout_s = timeout_s
        self._loop = asyncio.new_event_loop()
        self._connection: Any = None
        try:
            self._connection = self._done(
                nats.connect(
                    f"nats://{address}:{CLIENT_PORT}",
                    allow_reconnect=False,
                    connect_timeout=timeout_s,
                    user=USER,
                    password=password,
                    error_cb=_ignore,
                )
            )
        except BaseException:
            self.close()
            raise
        self._stream = self._connection.jetstream(timeout=timeout_s)

    def is_open(self) -> bool:
        """Return whether the server has not hung up.

        It sends news of other servers unasked, so data that has arrived is not a sign of the end. The loop does not run
        here, as the harness asks from a thread with a loop of its own.
        """
        if not self._connection.is_connected:
            return False
        connection = self._connection._transport._io_writer.get_extra_info("socket")
        return connection.fileno() >= 0 and not _has_hung_up(connection)

    def make(self, replicas: int, history: int) -> None:
        """Make the bucket on so many servers, with so many values of a key, unless it exists.

        Raises the same errors as all other methods.
        """
        config = self._api.KeyValueConfig(bucket=BUCKET, replicas=replicas, history=history, direct=True)
        self._done(self._stream.create_key_value(config))

    def get(self, key: str) -> tuple[Any, int]:
        """Return the value of `key` and its revision; None and 0 when it has none."""
        try:
            message = self._done(self._stream.get_msg(f"KV_{BUCKET}", subject=f"{_SUBJECTS}{key}", direct=self._direct))
        except BucketRefusal as refusal:
            if str(refusal) == "not-found":
                return None, 0
            raise
        try:
            return msgspec.json.decode(message.data), message.seq
        except (msgspec.DecodeError, UnicodeDecodeError, TypeError) as error:
            raise ForeignAnswer(f"{key} holds no valid value: {error}") from error

    def put(self, key: str, value: Any, *, expected: int | None = None) -> int:
        """Set `key` to `value`, and return the revision; with `expected` only when that is the newest one."""
        headers = None if expected is None else {"Nats-Expected-Last-Subject-Sequence": str(expected)}
        return self._publish(key, msgspec.json.encode(value), headers)

    def delete(self, key: str) -> int:
        """Record that `key` has no value any more, and return the revision."""
        return self._publish(key, b"", {"KV-Operation": "DEL"})

    def _publish(self, key: str, content: bytes, headers: dict[str, str] | None) -> int:
        stored = self._done(self._stream.publish(f"{_SUBJECTS}{key}", content, headers=headers))
        if stored.stream != f"KV_{BUCKET}" or type(stored.seq) is not int:
            raise ForeignAnswer(f"a change of {key} was acknowledged as {stored!r:.80}")
        return int(stored.seq)

    def consume(self, start: int | None, *, heartbeat_s: float) -> tuple[Any, int]:
        """Return an inbox to which all messages are delivered, and their present number (`nats.feed`)."""
        return self._done(self._consume(start, heartbeat_s))

    async def _consume(self, start: int | None, heartbeat_s: float) -> tuple[Any, int]:
        subject = self._connection.new_inbox()
        inbox = await self._connection.subscribe(subject)
        policies = self._api.DeliverPolicy
        config = self._api.ConsumerConfig(
            deliver_subject=subject,
            deliver_policy=policies.LAST_PER_SUBJECT if start is None else policies.BY_START_SEQUENCE,
            opt_start_seq=start,
            filter_subject=f"{_SUBJECTS}>",
            ack_policy=self._api.AckPolicy.NONE,
            max_deliver=1,
            idle_heartbeat=heartbeat_s,
            inactive_threshold=_FORGOTTEN_S,
            num_replicas=1,
            mem_storage=True,
        )
        return inbox, int((await self._stream.add_consumer(f"KV_{BUCKET}", config)).num_pending)

    def received(self, inbox: Any, timeout_s: float) -> Any:
        """Return the next message in `inbox`. Raises OSError."""
        return self._done(inbox.next_msg(timeout=timeout_s))

    def end(self, inbox: Any) -> None:
        """Take no more messages; the server then forgets the consumer that sent them."""
        with suppress(OSError, BucketRefusal):
            self._done(inbox.unsubscribe())

    @staticmethod
    def key_of(subject: str) -> str:
        """Return the key that messages on `subject` are about."""
        return subject.removeprefix(_SUBJECTS)

    def close(self) -> None:
        """Close the connection, in any state."""
        if self._connection is not None:
            with suppress(Exception):
                self._loop.run_until_complete(asyncio.wait_for(self._connection.close(), self._timeout_s))
        self._loop.run_until_complete(_end_all_tasks())
        self._loop.close()

    def _done(self, request: Coroutine[Any, Any, Answer]) -> Answer:
        """Return the answer to `request`. Raises BucketRefusal, TimeoutError, ConnectionError or ForeignAnswer."""
        try:
            return self._loop.run_until_complete(asyncio.wait_for(request, self._timeout_s))
        except (TimeoutError, OSError):
            raise
        except self._nats_errors.Error as error:
            raise self._translated(error) from error
        except (ValueError, TypeError, KeyError) as error:
            # The library could not read the answer.
            raise ForeignAnswer(f"{type(error).__name__}: {error}") from error

    def _translated(self, error: Exception) -> Exception:
        errors = self._stream_errors
        if isinstance(error, self._nats_errors.TimeoutError):
            return TimeoutError(str(error))
        if isinstance(error, errors.NotFoundError):
            return BucketRefusal("not-found")
        if isinstance(error, (errors.NoStreamResponseError, self._nats_errors.NoRespondersError)):
            return BucketRefusal(NO_RESPONDERS)
        if isinstance(error, errors.APIError):
            is_conflict = error.err_code in (10071, 10164)
            return BucketRefusal(WRONG_LAST_SEQUENCE if is_conflict else f"error-{error.err_code}")
        return ConnectionError(f"{type(error).__name__}: {error}")


def _has_hung_up(connection: socket.socket) -> bool:
    """Return whether the other end has closed `connection`, also while data of it is still to be read."""
    arrivals = select.poll()
    arrivals.register(connection, select.POLLRDHUP)
    return bool(arrivals.poll(0))


async def _end_all_tasks() -> None:
    """End the tasks that the library has left in this loop."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


async def _ignore(_error: Exception) -> None:
    """Ignore an error of a connection: it shows in the next answer."""


_CHANGES: dict[str, Callable[[Any, Any], Any]] = {
    "cas": lambda _, value: value[1],
    "add": lambda held, value: [*(held or []), value],
    "append": lambda held, value: [*(held or []), value],
    "increment": lambda held, value: (held or 0) + (1 if value is None else value),
    "generate": lambda held, _: (held or 0) + 1,
}
"""The value of a key after a change, from the value before."""


class BucketClient(MemberClient[Bucket]):
    """One client process."""

    outcomes = outcomes
    failures = (OSError, BucketRefusal)

    def __init__(
        self,
        address_of: Callable[[str], str],
        members: Sequence[str],
        node: str,
        *,
        direct: bool,
        timeout_s: float,
        password: str = "",
    ) -> None:
        super().__init__(address_of, members, node)
        self._password = password
        self._direct = direct
        self._timeout_s = timeout_s

    def connect(self, address: str) -> Bucket:
        """Return a connection to the server at `address`, which passes requests on to others."""
        return Bucket(address, direct=self._direct, timeout_s=self._timeout_s, password=self._password)

    def is_open(self, connection: Bucket) -> bool:
        """Return whether the server has not hung up."""
        return connection.is_open()

    def hang_up(self, connection: Bucket) -> None:
        """Close the connection."""
        connection.close()

    def perform(self, connection: Bucket, operation: Operation, node: str) -> Outcome:
        """Read, write, or write a value that depends on the one that was read."""
        key, f = str(operation.key), operation.f
        if f == "read":
            return ok(connection.get(key)[0], node)
        if f == "write":
            connection.put(key, operation.value)
            return ok(operation.value, node)
        return self._change(connection, operation, node)

    def word_for(self, error: Exception) -> str:
        """Return the refusal, `timeout`, or `connection-lost`."""
        if isinstance(error, BucketRefusal):
            return str(error)
        return "timeout" if isinstance(error, TimeoutError) else "connection-lost"

    def _change(self, bucket: Bucket, operation: Operation, node: str) -> Outcome:
        """Write the new value that follows from the present one, unless the key has changed by then."""
        key = str(operation.key)
        try:
            held, revision = bucket.get(key)
        except self.failures as error:
            # The write was never sent, so the failure of the read is definite for the whole operation.
            raise BucketRefusal(READ_FAILED) from error
        if operation.f == "cas" and held != operation.value[0]:
            # Definite, but not a mismatch: the value may be stale, and the history must not take it for an observation.
            return outcomes.outcome(VALUE_DIFFERS, node)
        after = _CHANGES[operation.f](held, operation.value)
        try:
            bucket.put(key, after, expected=revision)
        except BucketRefusal as refusal:
            if str(refusal) != WRONG_LAST_SEQUENCE:
                raise
            return outcomes.outcome(WRONG_LAST_SEQUENCE, node)
        return ok(after if operation.f in ("increment", "generate") else operation.value, node)
