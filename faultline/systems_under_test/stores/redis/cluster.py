"""Redis Cluster: keys are spread over masters by hash slots, and each master has replicas that follow asynchronously.

Masters watch each other. When a majority of them no longer hears one for `node_timeout_ms`, one of its replicas is
elected in its place under a higher configuration epoch (Redis documentation, "Redis cluster specification"). The
specification names the two windows in which an acknowledged write is lost: a master that fails before it has passed the
write on, and a master that is cut off, which goes on acknowledging writes for `node_timeout_ms` until it notices that
it sees no majority of masters and refuses (`CLUSTERDOWN`). So the second window, unlike that of Sentinel, is short.

**The members.** The first `masters` members begin as masters with an equal share of the slots each, the others as their
replicas in turn: six hosts make three masters with a replica each. With three hosts there are no replicas, so no member
takes over; a fail-over needs a majority of at least three masters.

**The clients** follow the rules of Redis for cluster clients: fetch the table of slots, go to the owner of a key's
slot, follow `MOVED` and `ASK`, and fetch the table anew from another member after any other error.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

from faultline.harness.errors import HarnessError, UsageError
from faultline.harness.operation import Operation
from faultline.harness.outcome import NOT_CONNECTED, Outcome
from faultline.harness.system import OptionDescription, StorePlace
from faultline.harness.world.ports import NodeStatus
from faultline.systems_under_test.stores.client import client_library
from faultline.systems_under_test.stores.redis.client import RedisClient
from faultline.systems_under_test.stores.redis.commands import FUNCTIONS, execute
from faultline.systems_under_test.stores.redis.connection import RedisConnection, RedisRefusal, ask_once
from faultline.systems_under_test.stores.redis.features import CLUSTER_FEATURES
from faultline.systems_under_test.stores.redis.settings import OPTIONS, configuration, waiting_of
from faultline.systems_under_test.stores.store import RealStore

__all__ = ["ClusterClient", "RedisCluster", "shares"]

PORT = 7000
SLOTS = 16_384
_MASTERS_MIN = 3
_REDIRECTIONS_MAX = 5
_FORM_TIMEOUT_S = 30.0
_POLL_S = 0.05


def shares(masters: int) -> list[tuple[int, int]]:
    """Return the first and last slot of each of `masters` masters."""
    bounds = [SLOTS * number // masters for number in range(masters + 1)]
    return [(first, after - 1) for first, after in pairwise(bounds)]


class RedisCluster(RealStore):
    """One Redis in cluster mode on each host."""

    name = "redis-cluster"
    promise = "a linearizable register for each key while no fail-over happens; a fail-over loses acknowledged writes"
    summary = "Redis Cluster: three masters that share the keys, all other hosts carry replicas"
    functions = FUNCTIONS
    features = CLUSTER_FEATURES
    options: ClassVar[Mapping[str, OptionDescription]] = {
        **OPTIONS,
        "masters": OptionDescription(default="3", summary="how many members begin as masters; at least three"),
        "node_timeout_ms": OptionDescription(default="1000", summary="after how long a silent member counts as failed"),
    }
    programs: ClassVar[Mapping[str, str]] = {"redis-server": "redis-server"}
    libraries: ClassVar[Mapping[str, str]] = {"redis": "redis"}
    up_port = PORT
    client_port = PORT
    serving_timeout_s = 60.0

    def files(self, place: StorePlace) -> Mapping[str, str]:
        """Return the configuration, the same for all members; Redis writes the masters into `nodes.conf`."""
        timeout = f"cluster-node-timeout {place.options['node_timeout_ms']}"
        return {"redis.conf": configuration(place, PORT, self.password, "cluster-enabled yes", timeout)}

    def command(self, place: StorePlace) -> list[str]:
        """Return the command that starts Redis with its configuration."""
        return ["env", "LC_ALL=C", "redis-server", "redis.conf"]

    def form(self, addresses: Mapping[str, str], options: Mapping[str, str]) -> None:
        """Introduce the members, give slots and replicas to the masters, and wait until all agree."""
        known = list(addresses.values())
        masters = known[: _masters(options, len(known))]
        # The first member's epoch is the highest, so that faults which are aimed at the leader begin with it.
        for epoch, address in enumerate(reversed(known), 1):
            self._ask(address, "CLUSTER", "SET-CONFIG-EPOCH", epoch)
        for address, (first, last) in zip(masters, shares(len(masters))):
            self._ask(address, "CLUSTER", "ADDSLOTSRANGE", first, last)
        for address in known[1:]:
            self._ask(known[0], "CLUSTER", "MEET", address, PORT)
        _wait_until(lambda: all(len(self._table(address)) == len(known) for address in known), "meet")
        for number, address in enumerate(known[len(masters) :]):
            master = self._ask(masters[number % len(masters)], "CLUSTER", "MYID")
            self._ask(address, "CLUSTER", "REPLICATE", master)
        _wait_until(
            lambda: self.serving({address: self.status(address, 1.0) for address in known}) is not None, "agree"
        )

    def status(self, address: str, timeout_s: float) -> NodeStatus:
        """Return the member's role, its configuration epoch, and the owners of all slots as far as it knows.

        All masters lead, each its own slots; the one of the highest epoch, the latest to be elected, is the leader at
        which faults are aimed.
        """
        try:
            role = self._ask(address, "ROLE", timeout_s=timeout_s)
            table = self._table(address, timeout_s)
            state = self._ask(address, "CLUSTER", "INFO", timeout_s=timeout_s)
        except RedisRefusal as refusal:
            raise OSError(f"no status: {refusal}") from refusal
        mine = next(line for line in table if "myself" in line[2])
        return NodeStatus(
            role="leader" if role[0] == "master" else "follower",
            generation=int(mine[6]),
            detail={
                "state": "ok" if "cluster_state:ok" in state else "fail",
                "link": "up" if role[0] == "master" or role[3] == "connected" else role[3],
                "slots": sorted(f"{line[1].partition(':')[0]} {' '.join(line[8:])}" for line in table if line[8:]),
            },
        )

    def serving(self, statuses: Mapping[str, NodeStatus | None]) -> str | None:
        """Report that the store serves, once all members see the same owners of all slots and all replicas follow."""
        known = [status for status in statuses.values() if status is not None]
        if len(known) < len(statuses):
            return None
        healthy = all((status.detail["state"], status.detail["link"]) == ("ok", "up") for status in known)
        agreed = all(status.detail["slots"] == known[0].detail["slots"] for status in known)
        masters = [name for name, status in statuses.items() if status is not None and status.role == "leader"]
        # A master that has lost its slots has yet to become a replica.
        settled = len(masters) == len(known[0].detail["slots"])
        return f"{', '.join(masters)} are the masters" if healthy and agreed and settled else None

    def store_client(
        self, address_of: Callable[[str], str], members: Sequence[str], node: str, options: Mapping[str, str]
    ) -> ClusterClient:
        """Return a client that asks `node` for the table of slots first."""
        return ClusterClient(
            address_of,
            members,
            node,
            reads_replicas=options["read_from"] == "replica",
            waiting=waiting_of(options),
            timeout_s=int(options["client_timeout_ms"]) / 1000,
            password=self.password,
        )

    def _ask(self, address: str, *words: object, timeout_s: float = 1.0) -> Any:
        return ask_once(address, PORT, *words, timeout_s=timeout_s, password=self.password)

    def _table(self, address: str, timeout_s: float = 1.0) -> list[list[str]]:
        """Return the lines of CLUSTER NODES, in words: id, address, flags, master, times, epoch, link, slots."""
        text: Any = self._ask(address, "CLUSTER", "NODES", timeout_s=timeout_s)
        return [line.split() for line in text.splitlines()]


Place = tuple[str, int]
"""Address and port of a member."""


@dataclass(slots=True)
class _Session:
    """One client's view of the cluster: the owners of slots, each with its replicas, and connections to some."""

    table: list[tuple[int, int, list[Place]]]
    moved: dict[int, Place] = field(default_factory=dict)
    connections: dict[Place, RedisConnection] = field(default_factory=dict)
    asked: str = ""
    """The address of the member that was asked last."""

    def owner(self, slot: int, *, replica: bool) -> Place:
        """Return the member to ask for `slot`."""
        if slot in self.moved:
            return self.moved[slot]
        for first, last, places in self.table:
            if first <= slot <= last:
                return places[-1 if replica else 0]
        raise RedisRefusal("CLUSTERDOWN", f"no member has the slot {slot}")


class ClusterClient(RedisClient[_Session]):
    """One client process; with `reads_replicas` it reads from a replica of the key's master where there is one."""

    def connect(self, address: str) -> _Session:
        """Return the table of slots as the member at `address` has it."""
        rows = ask_once(address, PORT, "CLUSTER", "SLOTS", timeout_s=self._timeout_s, password=self._password)
        return _Session([(first, last, [(at[0], int(at[1])) for at in places]) for first, last, *places in rows])

    def hang_up(self, connection: _Session) -> None:
        """Close all connections."""
        for each in connection.connections.values():
            each.close()

    def perform(self, connection: _Session, operation: Operation, node: str) -> Outcome:
        """Ask the owner of the key's slot, and the members to which it sends the client."""
        slot = _slot_of(str(operation.key))
        place = connection.owner(slot, replica=self._reads_replicas and operation.f in self.reads)
        is_asking = False
        for _ in range(_REDIRECTIONS_MAX):
            try:
                return self._perform_at(connection, place, operation, is_asking)
            except RedisRefusal as refusal:
                # A redirection comes before the command is executed, so the command may be sent again without doing it
                # twice.
                if refusal.word not in ("MOVED", "ASK"):
                    raise
                place, is_asking = _redirection(refusal), refusal.word == "ASK"
                if not is_asking:
                    connection.moved[slot] = place
        raise RedisRefusal("MOVED", f"more than {_REDIRECTIONS_MAX} times")

    def answering(self, connection: _Session, operation: Operation, node: str) -> str:
        """Return the member that was asked last, or the one that gave the table when the table names none to ask."""
        return self._names.get(connection.asked, node)

    def _perform_at(self, session: _Session, place: Place, operation: Operation, is_asking: bool) -> Outcome:
        session.asked = place[0]
        connection = self._connection_to(session, place)
        if is_asking:
            connection.ask("ASKING")
        return execute(connection, operation, self._names[place[0]], self._waiting)

    def _connection_to(self, session: _Session, place: Place) -> RedisConnection:
        """Return the connection to `place`.

        A failure to connect is a definite refusal: the member that sent the client here has executed nothing.
        """
        known = session.connections.get(place)
        if known is not None and not known.is_open():
            session.connections.pop(place).close()
        if place not in session.connections:
            try:
                made = RedisConnection(*place, self._timeout_s, self._password)
                session.connections[place] = made
                if self._reads_replicas:
                    made.ask("READONLY")
            except OSError as error:
                raise RedisRefusal(NOT_CONNECTED, str(error)) from error
        return session.connections[place]


def _slot_of(key: str) -> int:
    """Return the slot of `key`, as Redis's own library computes it."""
    slot: int = client_library("redis.crc", extra="redis").key_slot(key.encode())
    return slot


def _redirection(refusal: RedisRefusal) -> Place:
    """Return the place to which `MOVED 3999 127.0.0.1:6381` sends the client."""
    host, _, port = refusal.text.split()[-1].rpartition(":")
    return host, int(port)


def _masters(options: Mapping[str, str], members: int) -> int:
    masters = int(options["masters"])
    if not _MASTERS_MIN <= masters <= members:
        raise UsageError(
            f"Redis Cluster cannot have {masters} masters on {members} hosts.",
            f"Use at least {_MASTERS_MIN}, and as many hosts: --nodes 6 --hosts namespaces:6 gives each a replica.",
        )
    return masters


def _wait_until(condition: Callable[[], bool], aim: str) -> None:
    deadline_s = time.monotonic() + _FORM_TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline_s:
            raise HarnessError(f"The members do not {aim} after {_FORM_TIMEOUT_S:g} s.")
        time.sleep(_POLL_S)
