"""The common part of clients of Redis, whether Sentinels or a cluster tell them which member to ask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from faultline.systems_under_test.stores.client import MemberClient
from faultline.systems_under_test.stores.redis.commands import Waiting, outcomes
from faultline.systems_under_test.stores.redis.connection import RedisRefusal

__all__ = ["RedisClient"]

Connection = TypeVar("Connection")


class RedisClient(MemberClient[Connection]):
    """One client process; with `reads_replicas` it may read from a replica."""

    outcomes = outcomes
    failures = (OSError, RedisRefusal)

    def __init__(
        self,
        address_of: Callable[[str], str],
        members: Sequence[str],
        node: str,
        *,
        reads_replicas: bool,
        waiting: Waiting,
        timeout_s: float,
        password: str = "",
    ) -> None:
        super().__init__(address_of, members, node)
        self._names = {address_of(member): member for member in members}
        self._reads_replicas = reads_replicas
        self._waiting = waiting
        self._timeout_s = timeout_s
        self._password = password

    def word_for(self, error: Exception) -> str:
        """Return the first word of Redis's error, `timeout`, or `connection-lost`."""
        if isinstance(error, RedisRefusal):
            return error.word
        return "timeout" if isinstance(error, TimeoutError) else "connection-lost"
