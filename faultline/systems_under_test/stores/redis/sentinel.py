"""Redis with Sentinel: one master, replicas that follow it asynchronously, and on each host a Sentinel that watches.

When a majority of the Sentinels no longer hears the master, one of them promotes the replica with the most data (Redis
documentation, "High availability with Redis Sentinel"). Writes that the old master had acknowledged and not yet passed
on are lost then, which the documentation says plainly. These are not only the writes of the last moments: a master that
is cut off from its replicas and all other Sentinels, but not from its clients, goes on acknowledging writes until the
cut heals *and* the Sentinels have told it that it is a replica now, some ten seconds later; all writes in between are
discarded. `min_replicas_to_write` narrows that to `min_replicas_max_lag_s`, and `wait_replicas` (WAIT) does not report
a write as done that has not reached others. Neither makes Redis linearizable, since a write that is not acknowledged is
executed and read all the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from faultline.harness.errors import HarnessError
from faultline.harness.system import OptionDescription, StorePlace
from faultline.harness.world.ports import NodeStatus
from faultline.systems_under_test.stores.lock_owner import FENCING, LOCK_FUNCTIONS, LockOwner
from faultline.systems_under_test.stores.redis.commands import FUNCTIONS
from faultline.systems_under_test.stores.redis.connection import RedisRefusal, ask_once
from faultline.systems_under_test.stores.redis.features import SENTINEL_FEATURES
from faultline.systems_under_test.stores.redis.locks import SentinelLocks
from faultline.systems_under_test.stores.redis.sentinel_client import MASTER, REDIS_PORT, SENTINEL_PORT
from faultline.systems_under_test.stores.redis.settings import OPTIONS, configuration, waiting_of
from faultline.systems_under_test.stores.store import RealStore

__all__ = ["RedisSentinel"]

_FORM_TIMEOUT_S = 30.0
_POLL_S = 0.05
_START_BOTH = "redis-server sentinel.conf --sentinel & redis-server redis.conf & wait -n"
"""Both processes are the member: when one ends of itself, so does the member."""
_HURRY_MS = {"INFO-PERIOD": 200, "PUBLISH-PERIOD": 200}
_USUAL_PACE_MS = {"INFO-PERIOD": 10_000, "PUBLISH-PERIOD": 2_000}


class RedisSentinel(RealStore):
    """One Redis and one Sentinel on each host."""

    name = "redis-sentinel"
    promise = "a linearizable register for each key while no fail-over happens; a fail-over loses acknowledged writes"
    summary = "Redis, one master and replicas, with a Sentinel on each host"
    functions = (*FUNCTIONS, *LOCK_FUNCTIONS)
    features = SENTINEL_FEATURES
    options: ClassVar[Mapping[str, OptionDescription]] = {
        **OPTIONS,
        "down_after_ms": OptionDescription(default="1000", summary="after how long a silent master counts as down"),
        "lease_ttl_ms": OptionDescription(default="2000", summary="how long a lock lives that is not refreshed"),
        "fencing": FENCING,
        "failover_timeout_ms": OptionDescription(default="5000", summary="how long a fail-over may take"),
    }
    programs: ClassVar[Mapping[str, str]] = {"redis-server": "redis-server", "bash": "bash"}
    libraries: ClassVar[Mapping[str, str]] = {"redis": "redis"}
    up_port = REDIS_PORT
    client_port = REDIS_PORT
    serving_timeout_s = 60.0

    def files(self, place: StorePlace) -> Mapping[str, str]:
        """Return the configurations.

        The first member begins as the master, and both programs rewrite them when roles change.
        """
        first = place.addresses[place.members[0]]
        following = () if place.address == first else (f"replicaof {first} {REDIS_PORT}",)
        majority = len(place.members) // 2 + 1
        sentinel = [
            f"port {SENTINEL_PORT}",
            f"bind {place.address}",
            "protected-mode no",
            f"dir {place.data_folder}",
            f"sentinel monitor {MASTER} {first} {REDIS_PORT} {majority}",
            f"sentinel down-after-milliseconds {MASTER} {place.options['down_after_ms']}",
            f"sentinel failover-timeout {MASTER} {place.options['failover_timeout_ms']}",
        ]
        if self.password:
            sentinel += [f"requirepass {self.password}", f"sentinel auth-pass {MASTER} {self.password}"]
        return {
            "redis.conf": configuration(place, REDIS_PORT, self.password, *following),
            "sentinel.conf": "\n".join(sentinel) + "\n",
        }

    def command(self, place: StorePlace) -> list[str]:
        """Return the command that runs Redis and its Sentinel beside each other."""
        return ["env", "LC_ALL=C", "bash", "-c", _START_BOTH]

    def form(self, addresses: Mapping[str, str], options: Mapping[str, str]) -> None:
        """Wait until all Sentinels know each other and all replicas: before that there is no fail-over.

        Sentinels hear of replicas every ten seconds and of each other every two. So that a run need not wait for that,
        they work faster until they know each other, and at their usual pace from then on.
        """
        others = len(addresses) - 1
        deadline_s = time.monotonic() + _FORM_TIMEOUT_S
        obstacles = dict.fromkeys(addresses.values(), "does not answer")
        while any(obstacles.values()) and time.monotonic() < deadline_s:
            time.sleep(_POLL_S)
            obstacles = {address: _obstacle(address, others, self.password) for address in obstacles}
        for address, obstacle in obstacles.items():
            if obstacle:
                raise HarnessError(f"The member at {address} {obstacle}, after {_FORM_TIMEOUT_S:g} s.")
            _set_pace(address, _USUAL_PACE_MS, self.password)

    def status(self, address: str, timeout_s: float) -> NodeStatus:
        """Return the role that Redis gives itself, in the epoch in which its own Sentinel last saw a master chosen.

        A deposed master still says `leader`, and its Sentinel, cut off with it, still reports the old epoch.
        """
        try:
            role = ask_once(address, REDIS_PORT, "ROLE", timeout_s=timeout_s, password=self.password)
            master = _master(address, timeout_s, self.password)
        except RedisRefusal as refusal:
            raise OSError(f"no status: {refusal}") from refusal
        leads = role[0] == "master"
        link = "up" if leads or role[3] == "connected" else role[3]
        return NodeStatus(
            role="leader" if leads else "follower",
            generation=int(master["config-epoch"]),
            detail={"link": link, "master": address if leads else role[1], "sentinel": master["ip"]},
        )

    def serving(self, statuses: Mapping[str, NodeStatus | None]) -> str | None:
        """Report that the master serves, once it is the only one, all others follow it, and all Sentinels know it."""
        known = {name: status for name, status in statuses.items() if status is not None}
        leaders = [name for name, status in known.items() if status.role == "leader"]
        if len(known) < len(statuses) or len(leaders) != 1:
            return None
        masters = {status.detail[place] for status in known.values() for place in ("master", "sentinel")}
        linked = all(status.detail["link"] == "up" for status in known.values())
        return f"{leaders[0]} is the master" if len(masters) == 1 and linked else None

    def store_client(
        self, address_of: Callable[[str], str], members: Sequence[str], node: str, options: Mapping[str, str]
    ) -> LockOwner:
        """Return a client that asks the Sentinel beside `node` first."""
        client = SentinelLocks(
            address_of,
            members,
            node,
            reads_replicas=options["read_from"] == "replica",
            waiting=waiting_of(options),
            timeout_s=int(options["client_timeout_ms"]) / 1000,
            ttl_ms=int(options["lease_ttl_ms"]),
            is_fenced=options["fencing"] == "on",
            password=self.password,
        )
        return LockOwner(client)


def _master(address: str, timeout_s: float, password: str) -> dict[str, str]:
    """Return the master's state as the Sentinel at `address` knows it, by Redis's names."""
    asked = ("SENTINEL", "MASTER", MASTER)
    told = ask_once(address, SENTINEL_PORT, *asked, timeout_s=timeout_s, password=password)
    return dict(zip(told[::2], told[1::2]))


def _obstacle(address: str, others: int, password: str) -> str:
    """Return why the member at `address` is not ready for a fail-over; empty when it is."""
    try:
        _set_pace(address, _HURRY_MS, password)
        knows = _master(address, 1.0, password)
        role = ask_once(address, REDIS_PORT, "ROLE", password=password)
    except (OSError, RedisRefusal) as error:
        return f"does not answer ({error})"
    if role[0] != "master" and role[3] != "connected":
        return f"stands beside a replica that is not linked to its master ({role[3]})"
    sentinels, replicas = int(knows["num-other-sentinels"]), int(knows["num-slaves"])
    return "" if (sentinels, replicas) == (others, others) else f"knows {sentinels} others and {replicas} replicas"


def _set_pace(address: str, periods_ms: Mapping[str, int], password: str) -> None:
    """Set the intervals at which the Sentinel at `address` asks others and reports to them."""
    words = (word for pair in periods_ms.items() for word in pair)
    ask_once(address, SENTINEL_PORT, "SENTINEL", "DEBUG", *words, password=password)
