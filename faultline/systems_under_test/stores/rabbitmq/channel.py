"""One connection to a RabbitMQ with one channel on it, by pika's callbacks, with a limit on every wait.

pika's blocking connection waits for an answer as long as the connection lives, which is for ever after a network cut.
So this module uses its `SelectConnection`, whose event loop runs here only during a request, and at most for
`timeout_s`. The loop does not run in between, so heartbeats are off: a connection that broke meanwhile shows in the
next answer.

The library's exceptions become three: `ChannelRefusal` when RabbitMQ answered with an error, TimeoutError, and
ConnectionError. So no other module here needs to import the library.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from faultline.systems_under_test.stores.client import ForeignAnswer, client_library

__all__ = ["CLIENT_PORT", "USER", "ChannelRefusal", "QueueChannel"]

logging.getLogger("pika").addHandler(logging.NullHandler())
logging.getLogger("pika").propagate = False  # failures are in the history

CLIENT_PORT = 5672
USER = "faultline"
_FAREWELL_S = 0.2
_RETURNED = object()
"""The answer to a publication that no queue took."""


class ChannelRefusal(Exception):
    """RabbitMQ answered, but not with a result; the text is one word."""


class QueueChannel:
    """A channel to the RabbitMQ at `address`. Raises OSError or ChannelRefusal when it cannot be made.

    With `confirms` a publication waits until RabbitMQ says that the element is safe.
    """

    def __init__(self, address: str, timeout_s: float, *, confirms: bool, password: str = "") -> None:
        pika = client_library("pika", extra="rabbitmq")
        self._errors = client_library("pika.exceptions", extra="rabbitmq")
        self._specification = client_library("pika.spec", extra="rabbitmq")
        self._persistent = pika.BasicProperties(delivery_mode=2)
        self._timeout_s = timeout_s
        self._confirms = confirms
        self._answers: list[Any] = []
        parameters = pika.ConnectionParameters(
            host=address,
            port=CLIENT_PORT,
            heartbeat=0,
            socket_timeout=timeout_s,
            stack_timeout=timeout_s,
            credentials=pika.PlainCredentials(USER, password),
        )
        self._connection = pika.SelectConnection(
            parameters,
            on_open_callback=self._answer,
            on_open_error_callback=self._broken,
            on_close_callback=self._broken,
        )
        try:
            self._wait(timeout_s + _FAREWELL_S)  # pika gives up before that, and tidies up
            self._channel = self._asked(lambda: self._connection.channel(on_open_callback=self._answer))
            self._prepare()
        except BaseException:
            self.close()
            raise

    def declare(self, name: str, *, members: int) -> None:
        """Make the quorum queue `name` on so many members, unless it exists."""
        arguments = {"x-queue-type": "quorum", "x-quorum-initial-group-size": members}
        self._asked(lambda: self._channel.queue_declare(name, durable=True, arguments=arguments, callback=self._answer))

    def publish(self, queue: str, body: bytes) -> None:
        """Put `body` into `queue`. With confirms, raises ChannelRefusal `nacked` or `unroutable`."""
        self._sent(lambda: self._channel.basic_publish("", queue, body, self._persistent, mandatory=self._confirms))
        if not self._confirms:
            self._turn()
            return
        answer = self._wait()
        is_returned = answer is _RETURNED
        if is_returned:
            answer = self._wait()  # RabbitMQ confirms what it has returned, too
        confirmation, basic = getattr(answer, "method", None), self._specification.Basic
        if not isinstance(confirmation, (basic.Ack, basic.Nack)):
            raise ForeignAnswer(f"a publication was answered with {answer!r:.80}")
        if is_returned or isinstance(confirmation, basic.Nack):
            raise ChannelRefusal("unroutable" if is_returned else "nacked")

    def get(self, queue: str, *, is_lent: bool) -> tuple[bytes, int] | None:
        """Return the next element of `queue` and its number on this channel, None when there is none.

        When it `is_lent`, it goes back to the queue with the end of this channel, unless acknowledged before.
        """
        got: tuple[bytes, int] | None = self._asked(
            lambda: self._channel.basic_get(queue, self._got, auto_ack=not is_lent)
        )
        return got

    def acknowledge(self, queue: str, number: int) -> None:
        """Acknowledge all elements up to `number`, and wait until the channel's member has heard it.

        RabbitMQ does not answer acknowledgements. But it handles the requests of a channel in order, so the answer to a
        later request shows that the member has heard it; a majority may not have heard it yet.
        """
        self._sent(lambda: self._channel.basic_ack(number, multiple=True))
        self._asked(lambda: self._channel.queue_declare(queue, passive=True, callback=self._answer))

    def is_open(self) -> bool:
        """Return whether neither side has closed the channel, as far as is known here."""
        self._turn()
        return bool(self._connection.is_open and self._channel.is_open)

    def close(self) -> None:
        """Close the connection, with a short farewell."""
        with suppress(OSError, self._errors.AMQPError):
            if self._connection.is_open:
                self._connection.close()
                self._turn_until(lambda: self._connection.is_closed, _FAREWELL_S)
            if not self._connection.is_closed and self._connection._transport is not None:
                self._connection._transport.abort()  # no member is there to answer the farewell
                self._turn()
        self._connection.ioloop.close()

    def _prepare(self) -> None:
        self._channel.add_on_close_callback(self._broken)
        self._channel.add_on_return_callback(lambda *_: self._answer(_RETURNED))
        self._channel.add_callback(lambda _: self._answer(None), [self._specification.Basic.GetEmpty], False)
        if self._confirms:
            self._asked(lambda: self._channel.confirm_delivery(self._answer, callback=self._answer))

    def _got(self, _channel: Any, method: Any, _properties: Any, body: bytes) -> None:
        self._answer((body, method.delivery_tag))

    def _answer(self, answer: Any) -> None:
        self._answers.append(answer)
        self._connection.ioloop.stop()

    def _broken(self, _connection_or_channel: Any, reason: Exception | str) -> None:
        self._answer(self._translated(reason))

    def _asked(self, ask: Callable[[], Any]) -> Any:
        """Send `ask`, and return its answer; for a new channel, that channel."""
        self._sent(ask)
        return self._wait()

    def _sent(self, ask: Callable[[], Any]) -> None:
        """Hand `ask` to the network. Raises the failure of the channel that is known by now."""
        try:
            ask()
        except self._errors.AMQPError as error:
            raise self._translated(error) from error

    def _wait(self, timeout_s: float | None = None) -> Any:
        """Return the next answer. Raises ChannelRefusal, TimeoutError or ConnectionError."""
        self._turn_until(lambda: bool(self._answers), timeout_s or self._timeout_s)
        if not self._answers:
            raise TimeoutError(f"no answer within {self._timeout_s:g} s")
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _turn_until(self, is_done: Callable[[], bool], timeout_s: float) -> None:
        """Run the loop until `is_done` or the time is over; every answer stops it."""
        loop = self._connection.ioloop
        deadline_s = time.monotonic() + timeout_s
        timer = loop.call_later(timeout_s, loop.stop)
        while not is_done() and time.monotonic() < deadline_s:
            loop.start()
        loop.remove_timeout(timer)

    def _turn(self) -> None:
        """Let the loop send and receive all that it can at once."""
        loop = self._connection.ioloop
        loop.call_later(0, loop.stop)
        loop.start()

    def _translated(self, reason: Exception | str) -> Exception:
        if isinstance(reason, self._errors.ChannelClosedByBroker):
            return ChannelRefusal(f"error-{reason.reply_code}")
        return ConnectionError(f"{type(reason).__name__}: {reason}")
