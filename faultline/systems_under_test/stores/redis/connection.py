"""One connection to one Redis or Sentinel, by redis-py with all its retries off.

A retry inside a client library falsifies the history: the first attempt may have been executed. So this module uses the
library's `Connection` below its clients, pools and retry policies. Callers hang up on any error, so that a connection
that failed is never used again (redis-py would silently open a new one).

The library's exceptions become three: `RedisRefusal` when Redis answered with an error, TimeoutError, and
ConnectionError. So no other module here needs to import the library.
"""

from __future__ import annotations

from typing import Any

from faultline.systems_under_test.stores.client import client_library

__all__ = ["RedisConnection", "RedisRefusal", "ask_once"]

_WORDS = {
    "ReadOnlyError": "READONLY",
    "MasterDownError": "MASTERDOWN",
    "ClusterDownError": "CLUSTERDOWN",
    "MovedError": "MOVED",
    "AskError": "ASK",
    "TryAgainError": "TRYAGAIN",
    "BusyLoadingError": "LOADING",
    "OutOfMemoryError": "OOM",
    "NoScriptError": "NOSCRIPT",
    "ClusterCrossSlotError": "CROSSSLOT",
}
"""Errors of which redis-py keeps the first word as a class, and takes it off the text."""


class RedisRefusal(Exception):
    """Redis answered with an error: its first word, and the rest of it."""

    def __init__(self, word: str, text: str) -> None:
        super().__init__(f"{word} {text}")
        self.word = word
        self.text = text


class RedisConnection:
    """An open connection to the Redis at `address`, with its `password`, if there is one.

    Raises OSError when it cannot be made.
    """

    def __init__(self, address: str, port: int, timeout_s: float, password: str = "") -> None:
        redis = client_library("redis", extra="redis")
        self._errors = redis.exceptions
        self._connection = redis.Connection(
            host=address,
            port=port,
            password=password or None,
            protocol=2,
            decode_responses=True,
            socket_timeout=timeout_s,
            socket_connect_timeout=timeout_s,
            retry=client_library("redis.retry", extra="redis").Retry(
                client_library("redis.backoff", extra="redis").NoBackoff(), 0
            ),
        )
        try:
            self._connection.connect()
        except self._errors.RedisError as error:
            raise self._translated(error) from error

    def ask(self, *words: object) -> Any:
        """Send one command and wait for its answer. Raises RedisRefusal, TimeoutError or ConnectionError."""
        try:
            self._connection.send_command(*words)
            return self._connection.read_response()
        except self._errors.RedisError as error:
            raise self._translated(error) from error

    def is_open(self) -> bool:
        """Return whether Redis has not hung up: it sends nothing unasked on these connections."""
        try:
            return not self._connection.can_read(0)
        except (OSError, self._errors.RedisError):
            return False

    def close(self) -> None:
        """Close the connection."""
        self._connection.disconnect()

    def _translated(self, error: Exception) -> Exception:
        kept = _WORDS.get(type(error).__name__)
        if kept is not None:
            return RedisRefusal(kept, str(error))
        if isinstance(error, self._errors.ResponseError):
            word, _, text = str(error).partition(" ")
            return RedisRefusal(word, text) if word.isupper() else RedisRefusal("ERR", str(error))
        if isinstance(error, self._errors.TimeoutError):
            return TimeoutError(str(error))
        return ConnectionError(str(error))


def ask_once(address: str, port: int, *words: object, timeout_s: float = 1.0, password: str = "") -> Any:
    """Send one command over a connection of its own, and return the answer.

    Raises the same errors as the connection.
    """
    connection = RedisConnection(address, port, timeout_s, password)
    try:
        return connection.ask(*words)
    finally:
        connection.close()
