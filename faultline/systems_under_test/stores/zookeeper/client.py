"""A client of one ZooKeeper ensemble over kazoo, and the meaning of each of its failures.

**Reads.** A member answers from its own copy; what the client sends before decides how old that may be (`tree`). The
read before a conditional write follows a commit in every mode, so that a compare-and-set that finds another value has
really seen it.

**Outcomes.** Definite are: a session that was not made; a version that had changed (`bad-version`, also after several
attempts: ZooKeeper refused each of them); a comparison that saw another value; an account that does not hold enough; a
read that failed. Loss of the connection, an expired session and a time-out are `info`: the request may have been
proposed, and may still be committed.

A client that changes members tells the new one the last transaction that it has seen (its `zxid`); a member that is
behind it refuses the client.
"""

from __future__ import annotations

import logging
import re
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from faultline.harness.operation import Operation
from faultline.harness.outcome import CAS_MISMATCH, NOT_CONNECTED, Outcome, OutcomeRegistry, ok
from faultline.systems_under_test.patterns.data_partitioning.transaction_client import Program, Refused, Write
from faultline.systems_under_test.reference.transactions.programs import INSUFFICIENT_BALANCE, program_of
from faultline.systems_under_test.stores.client import MemberClient
from faultline.systems_under_test.stores.zookeeper.tree import ROOT, Found, ReadMode, Tree

__all__ = ["BAD_VERSION", "CLIENT_PORT", "FUNCTIONS", "ZooKeeperClient", "make_root", "outcomes"]

CLIENT_PORT = 2181
BAD_VERSION = "bad-version"
_NO_SUCH_ACCOUNT = "no-such-account"
outcomes = OutcomeRegistry([NOT_CONNECTED, CAS_MISMATCH, BAD_VERSION, INSUFFICIENT_BALANCE, _NO_SUCH_ACCOUNT])
"""The errors after which a change certainly did not happen."""

_ATTEMPTS = 8
"""The attempts of an optimistic change."""

# kazoo logs every lost connection. This harness causes them, and the outcomes of operations show them.
logging.getLogger("kazoo").addHandler(logging.NullHandler())
logging.getLogger("kazoo").propagate = False


class ZooKeeperClient(MemberClient[KazooClient]):
    """One client process, which reads in its `read_mode`."""

    outcomes = outcomes
    failures = (OSError, KazooException, KazooTimeoutError)
    reads = frozenset({"read", "balances", "bookings"})

    def __init__(
        self,
        address_of: Callable[[str], str],
        members: Sequence[str],
        node: str,
        *,
        read_mode: ReadMode,
        timeout_s: float,
        session_s: float,
    ) -> None:
        super().__init__(address_of, members, node)
        self._read_mode = read_mode
        self._timeout_s = timeout_s
        self._session_s = session_s
        self._last_zxid = 0

    def connect(self, address: str) -> KazooClient:
        """Return a session through the member at `address`, which has all that this client has seen."""
        # kazoo would try a member that refuses the connection until the time is over.
        socket.create_connection((address, CLIENT_PORT), self._timeout_s).close()
        session = KazooClient(hosts=f"{address}:{CLIENT_PORT}", timeout=self._session_s)
        session.last_zxid = self._last_zxid
        if not session.start_async().wait(self._timeout_s):
            self.hang_up(session)
            raise ConnectionError("no session")
        return session

    def is_open(self, connection: KazooClient) -> bool:
        """Return whether the session is connected, as far as kazoo knows."""
        return bool(connection.connected)

    def hang_up(self, connection: KazooClient) -> None:
        """End the session, in a thread of its own: kazoo waits for an answer, which a stopped member does not give."""
        self._last_zxid = max(self._last_zxid, connection.last_zxid)
        threading.Thread(target=_end_session, args=(connection,), daemon=True).start()

    def perform(self, connection: KazooClient, operation: Operation, node: str) -> Outcome:
        """Perform `operation`, all steps of it within the client's time."""
        tree = Tree(connection, time.monotonic() + self._timeout_s)
        try:
            if operation.f == "read":
                return ok(_read(tree, operation, self._read_mode), node)
            return ok(_verb(operation)(tree, operation), node)
        except Refused as refusal:
            return outcomes.outcome(refusal.code, node)

    def word_for(self, error: Exception) -> str:
        """Return `timeout`, kazoo's own name (`connection-loss`, `session-expired-error`), or `connection-lost`."""
        if isinstance(error, (TimeoutError, KazooTimeoutError)):
            return "timeout"
        if isinstance(error, KazooException):
            return re.sub(r"(?<!^)(?=[A-Z])", "-", type(error).__name__).lower()
        return "connection-lost"


def make_root(addresses: Sequence[str], timeout_s: float) -> None:
    """Make the node above all others. Raises OSError."""
    session = KazooClient(hosts=",".join(f"{address}:{CLIENT_PORT}" for address in addresses))
    try:
        session.start(timeout_s)
        session.ensure_path(ROOT)
    except (KazooException, KazooTimeoutError) as error:
        raise OSError(f"{ROOT} could not be made: {error!r}") from error
    finally:
        _end_session(session)


def _end_session(session: KazooClient) -> None:
    # kazoo raises a variety of errors when the connection is broken already; there is no more to do then.
    with suppress(Exception):
        session.stop()
    with suppress(Exception):
        session.close()


def _read(tree: Tree, operation: Operation, read_mode: ReadMode) -> Any:
    """Return the node's value; when it has none, its children, if any."""
    found = tree.find(_key(operation), read_mode)
    if found is None or found.value is not None:
        return found and found.value
    return [int(name) for name in tree.children(_key(operation))] or None


def _write(tree: Tree, operation: Operation) -> Any:
    tree.put(_key(operation), operation.value)
    return operation.value


def _compare_and_set(tree: Tree, operation: Operation) -> Any:
    expected, new = operation.value
    found = tree.find(_key(operation))
    if (found.value if found else None) != expected:
        raise Refused(CAS_MISMATCH)
    if not tree.replace(_key(operation), found, new):
        raise Refused(BAD_VERSION)
    return operation.value


def _add(tree: Tree, operation: Operation) -> Any:
    """Add an element of a set: a child of its node."""
    tree.make_child(_key(operation), str(operation.value))
    return operation.value


def _generate(tree: Tree, operation: Operation) -> int:
    """Return a new identifier: the number of a sequential node."""
    return int(tree.make_child(_key(operation), "", numbered=True))


def _append(tree: Tree, operation: Operation) -> Any:
    _change(tree, operation, lambda before: [*(before or ()), operation.value])
    return operation.value


def _increment(tree: Tree, operation: Operation) -> Any:
    amount = 1 if operation.value is None else operation.value
    return _change(tree, operation, lambda before: (before or 0) + amount)


def _transfer(tree: Tree, operation: Operation) -> None:
    """Transfer between the accounts of one object."""
    source, target, amount = (operation.value[name] for name in ("from", "to", "amount"))

    def moved(before: dict[str, int] | None) -> dict[str, int]:
        if before is None or not before.keys() >= {source, target}:
            raise Refused(_NO_SUCH_ACCOUNT)
        if before[source] < amount:
            raise Refused(INSUFFICIENT_BALANCE)
        return {**before, source: before[source] - amount, target: before[target] + amount}

    _change(tree, operation, moved)


def _change(tree: Tree, operation: Operation, change: Callable[[Any], Any]) -> Any:
    """Replace a value by the result of `change`, and return the new value."""
    for _ in range(_ATTEMPTS):
        found = tree.find(_key(operation))
        new = change(found.value if found else None)
        if tree.replace(_key(operation), found, new):
            return new
    raise Refused(BAD_VERSION)


def _transact(tree: Tree, operation: Operation) -> Any:
    """Run the operation's program until none of its reads has changed meanwhile, and write all of its values or
    none.
    """
    program = program_of(operation)
    assert program is not None, f"{operation.f} stands in FUNCTIONS, but has no program"
    for _ in range(_ATTEMPTS):
        found: dict[str, Found] = {}
        written: dict[str, Any] = {}
        answer = _run_dry(tree, program(), found, written)
        if tree.replace_all(found, written):
            return answer
    raise Refused(BAD_VERSION)


def _run_dry(tree: Tree, program: Program, found: dict[str, Found], written: dict[str, Any]) -> Any:
    """Return the program's answer; its reads go into `found`, and its writes into `written`."""
    answer = None
    while True:
        try:
            step = program.send(answer)
        except StopIteration as end:
            return end.value
        if step.key not in found:
            found[step.key] = tree.find_or_make(step.key)
        if isinstance(step, Write):
            written[step.key] = step.value
        answer = written.get(step.key, found[step.key].value)


_VERBS: Mapping[str, Callable[[Tree, Operation], Any]] = {
    "write": _write,
    "cas": _compare_and_set,
    "add": _add,
    "generate": _generate,
    "append": _append,
    "increment": _increment,
    "transfer": _transfer,
    "txn": _transact,
    "balances": _transact,
    "book": _transact,
    "bookings": _transact,
}
FUNCTIONS = ("read", *_VERBS)
"""The functions of a client."""


def _verb(operation: Operation) -> Callable[[Tree, Operation], Any]:
    """Return the verb: a transfer under a key is within that object.

    Without a key the accounts are objects themselves.
    """
    return _transact if operation.key is None else _VERBS[operation.f]


def _key(operation: Operation) -> str:
    assert operation.key is not None, f"{operation.f} is an operation on one object"
    return operation.key
