"""ZooKeeper's tree of nodes, as one operation of one client sees it: values with their versions, until a deadline.

A value is JSON in a node's data. ZooKeeper has no transactions that read, but every node has a version, and a change
may demand one (`setData` with a version, `check` in a `multi`; ZooKeeper Programmer's Guide, "Data Access"). So an
operation that reads before it writes is *optimistic*: it writes on condition that the versions it has read are still
the present ones. A request that ZooKeeper refuses for a version has changed no node, also none of the others in its
`multi`.

**Reads.** A member answers a read from its own copy, in the order of its connection. What the client sends before the
read decides how old that copy may be:

- `commit`: a transaction that changes nothing, a `check` of the node above all others. It is proposed to a majority as
  every change is (`PrepRequestProcessor`, 3.8), so the member that answers it has applied all that was committed
  before. The read is linearizable.
- `sync`: the member catches up with the leader; but the leader does not ask a majority whether it still leads
  (ZooKeeper Programmer's Guide, "Consistency Guarantees"). One that was cut off answers from old state, until it
  notices: after five ticks without its followers, and they may have elected another one by then.
- `local`: nothing. The copy may be as old as its member is cut off.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal, NamedTuple

import msgspec
from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError

from faultline.systems_under_test.stores.client import ForeignAnswer

__all__ = ["ROOT", "Found", "ReadMode", "Tree"]

ROOT = "/faultline"
"""The node above all others."""

ReadMode = Literal["commit", "sync", "local"]
"""The request that goes before a read."""

_ANY_VERSION = -1
_AT_LEAST_S = 0.001


class Found(NamedTuple):
    """The value of a node, and its version; a node without data of its own has the value None."""

    value: Any
    version: int


class Tree:
    """The nodes under ROOT, through `session`; a wait past `deadline_s` raises kazoo's time-out."""

    def __init__(self, session: KazooClient, deadline_s: float) -> None:
        self._session = session
        self._deadline_s = deadline_s

    def find(self, key: str, read_mode: ReadMode = "commit") -> Found | None:
        """Return the node of `key`, None if it does not exist; what a change is built on is read after a commit."""
        if read_mode == "commit":
            self._commit_nothing()
        elif read_mode == "sync":
            self._wait(self._session.sync_async(_path(key)))
        try:
            data, stat = self._wait(self._session.get_async(_path(key)))
        except NoNodeError:
            return None
        return Found(msgspec.json.decode(data), stat.version)

    def find_or_make(self, key: str) -> Found:
        """Return the node of `key`, made without a value if it did not exist: only an existing node has a version."""
        self.make(key)
        found = self.find(key)
        assert found is not None, "no client deletes nodes"
        return found

    def make(self, key: str) -> None:
        """Make the node of `key` without a value, unless it exists."""
        with suppress(NodeExistsError):
            self._wait(self._session.create_async(_path(key), _encoded(None)))

    def put(self, key: str, value: Any) -> None:
        """Write `value` unconditionally."""
        try:
            self._wait(self._session.set_async(_path(key), _encoded(value)))
        except NoNodeError:
            self.make(key)
            self._wait(self._session.set_async(_path(key), _encoded(value)))

    def replace(self, key: str, found: Found | None, value: Any) -> bool:
        """Write `value` if `found` is still the present state; return whether it was."""
        try:
            if found is None:
                self._wait(self._session.create_async(_path(key), _encoded(value)))
            else:
                self._wait(self._session.set_async(_path(key), _encoded(value), found.version))
        except (BadVersionError, NodeExistsError):
            return False
        return True

    def replace_all(self, found: Mapping[str, Found], written: Mapping[str, Any]) -> bool:
        """Write all of `written` at once if all of `found` is still the present state; return whether it was."""
        transaction = self._session.transaction()
        for key, (_, version) in found.items():
            if key in written:
                transaction.set_data(_path(key), _encoded(written[key]), version)
            else:
                transaction.check(_path(key), version)
        results = self._wait(transaction.commit_async())
        if any(isinstance(result, Exception) for result in results):
            return False
        if len(results) != len(found):
            raise ForeignAnswer(f"a transaction of {len(found)} steps was answered with {len(results)} results")
        return True

    def children(self, key: str) -> list[str]:
        """Return the names of the nodes under that of `key`, in the order of their names."""
        return sorted(self._wait(self._session.get_children_async(_path(key))))

    def make_child(self, key: str, name: str, *, numbered: bool = False) -> str:
        """Make a node under that of `key`, which is made too if it does not exist.

        Return its name, to which ZooKeeper adds a number if `numbered`.
        """
        path = f"{_path(key)}/{name}"
        try:
            made = self._wait(self._session.create_async(path, sequence=numbered))
        except NoNodeError:
            self.make(key)
            made = self._wait(self._session.create_async(path, sequence=numbered))
        return str(made).rpartition("/")[2]

    def _commit_nothing(self) -> None:
        transaction = self._session.transaction()
        transaction.check(ROOT, _ANY_VERSION)
        (result,) = self._wait(transaction.commit_async())
        if isinstance(result, Exception):
            raise result

    def _wait(self, answer: Any) -> Any:
        """Return the result of kazoo's `answer`. Raises its error, or a time-out."""
        return answer.get(timeout=max(self._deadline_s - time.monotonic(), _AT_LEAST_S))


def _path(key: str) -> str:
    return f"{ROOT}/{key}"


def _encoded(value: Any) -> bytes:
    return msgspec.json.encode(value)
