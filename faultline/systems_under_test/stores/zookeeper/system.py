"""ZooKeeper as a system under test: its configuration, its leader, its clients, and its promise.

Debian's `zookeeper` (3.8 in Debian 12), one Java process on each host. Writes go through the leader and are committed
by a majority (Zab; Junqueira, Reed and Serafini, "Zab: High-performance broadcast for primary-backup systems", DSN
2011); reads are answered by the member that the client talks to, from its own copy. `--option read_mode=local` reads in
that way, and `read_mode=sync` after a `sync`, which the leader answers without asking a majority whether it still leads
(ZooKeeper Programmer's Guide, "Consistency Guarantees": "sync is not a quorum operation"). Stale reads are documented
for both, and no bug. The default puts a commit before each read (`tree`), after which it is linearizable.

**Versions.** 3.8.0 loses acknowledged writes when members are killed (ZOOKEEPER-4643). The option `jars` runs another
version; `jars=pyspark` is the one that comes with PySpark, 3.9.5 in PySpark 4.3.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar, cast

from faultline.harness.errors import UsageError
from faultline.harness.system import OptionDescription, StorePlace
from faultline.harness.world.ports import NodeStatus
from faultline.systems_under_test.stores.lock_owner import FENCING, LOCK_FUNCTIONS, LockOwner
from faultline.systems_under_test.stores.store import RealStore
from faultline.systems_under_test.stores.zookeeper.features import FEATURES
from faultline.systems_under_test.stores.zookeeper.tree import ReadMode

__all__ = ["ZooKeeper"]

PEER_PORT = 2888
ELECTION_PORT = 3888
_CLIENT_PORT = 2181
_LOG_TIME = "yyyy-MM-dd HH:mm:ss.SSSZ"
_DEBIAN_JARS = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar"
_EPOCH_SHIFT = 32
"""A transaction's number (zxid) has the leader's epoch in its upper half."""


class ZooKeeper(RealStore):
    """One ZooKeeper server on each host."""

    name = "zookeeper"
    promise = "each node is linearizable for reads after a commit; other reads may be stale, but never go back"
    summary = "Apache ZooKeeper from Debian's package, over kazoo, on hosts"
    functions = (
        *("read", "write", "cas", "add", "generate", "append", "increment"),
        *("transfer", "txn", "balances", "book", "bookings"),
        *LOCK_FUNCTIONS,
    )
    features = FEATURES
    options: ClassVar[Mapping[str, OptionDescription]] = {
        "read_mode": OptionDescription(
            default="commit",
            choices=("commit", "sync", "local"),
            summary="what goes before each read; a leader that was deposed answers a sync, a member alone a local read",
        ),
        "client_timeout_ms": OptionDescription(default="1500", summary="how long a client waits for an answer"),
        "session_timeout_ms": OptionDescription(
            default="3000", summary="after how long without its client a session ends; at least two ticks, at most 20"
        ),
        "fencing": FENCING,
        "jars": OptionDescription(
            default="", is_text=True, summary="the class path of another ZooKeeper, or `pyspark` for the one in PySpark"
        ),
        "tick_ms": OptionDescription(
            default="200", summary="ZooKeeper's tickTime; a member that is silent for five of them is given up"
        ),
    }
    programs: ClassVar[Mapping[str, str]] = {
        "/usr/share/zookeeper/bin/zkServer.sh": "zookeeper",
        "java": "default-jre-headless",
    }
    libraries: ClassVar[Mapping[str, str]] = {"kazoo": "zookeeper"}
    up_port = ELECTION_PORT
    client_port = _CLIENT_PORT
    serving_timeout_s = 60.0
    """A Java machine on a busy host starts slowly."""

    def files(self, place: StorePlace) -> Mapping[str, str]:
        """Return the configuration, and the member's number in the data folder, as ZooKeeper demands."""
        settings = {
            "tickTime": place.options["tick_ms"],
            "initLimit": "50",
            "syncLimit": "5",
            "dataDir": place.data_folder,
            "clientPort": str(_CLIENT_PORT),
            "clientPortAddress": place.address,
            "maxClientCnxns": "0",
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "srvr",
        }
        for number, address in enumerate(place.addresses.values(), 1):
            settings[f"server.{number}"] = f"{address}:{PEER_PORT}:{ELECTION_PORT}"
        lines = "".join(f"{name}={value}\n" for name, value in settings.items())
        return {"zoo.cfg": lines, "data/myid": f"{place.members.index(place.node) + 1}\n"}

    def command(self, place: StorePlace) -> list[str]:
        """Return the member's command line; the cheapest collector and compiler, since three share a machine."""
        return [
            *("java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            # Without a format the logger writes milliseconds since its start, which cannot be compared with other logs.
            *("-Dorg.slf4j.simpleLogger.showDateTime=true", f"-Dorg.slf4j.simpleLogger.dateTimeFormat={_LOG_TIME}"),
            # Newer versions log through log4j, and without a configuration only errors.
            "-Dorg.apache.logging.log4j.level=INFO",
            "-Djava.net.preferIPv4Stack=true",
            "-cp",
            _class_path(place.options["jars"]),
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
            f"{place.folder}/zoo.cfg",
        ]

    def provision(self, addresses: Mapping[str, str], options: Mapping[str, str]) -> None:
        """Make the node above all others. Raises OSError."""
        from faultline.systems_under_test.stores.zookeeper.client import make_root

        make_root(list(addresses.values()), self.serving_timeout_s)

    def status(self, address: str, timeout_s: float) -> NodeStatus:
        """Return the member's own report of its status. Raises OSError when it does not answer."""
        said = dict(line.partition(": ")[::2] for line in _server_statistics(address, timeout_s).splitlines())
        epoch = int(said.get("Zxid", "0x0"), 16) >> _EPOCH_SHIFT
        return NodeStatus(role=said.get("Mode", "electing"), generation=epoch)

    def serving(self, statuses: Mapping[str, NodeStatus | None]) -> str | None:
        """Report that the store serves, once one member leads and all others follow; any other refuses its clients."""
        roles = {status.role if status else "" for status in statuses.values()}
        return super().serving(statuses) if roles <= {"leader", "follower"} else None

    def store_client(
        self, address_of: Callable[[str], str], members: Sequence[str], node: str, options: Mapping[str, str]
    ) -> LockOwner:
        """Return a client that talks to `node` first."""
        from faultline.systems_under_test.stores.zookeeper.locks import ZooKeeperLocks

        client = ZooKeeperLocks(
            address_of,
            members,
            node,
            read_mode=cast(ReadMode, options["read_mode"]),
            timeout_s=int(options["client_timeout_ms"]) / 1000,
            session_s=_session_s(options),
            is_fenced=options["fencing"] == "on",
        )
        return LockOwner(client)


def _class_path(jars: str) -> str:
    """Return the class path that the option names. Raises UsageError when it means PySpark's and there is none."""
    if jars != "pyspark":
        return jars or _DEBIAN_JARS
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise UsageError("jars=pyspark needs PySpark, which is not installed.", "Run: pip install pyspark")
    return str(Path(spec.origin).parent / "jars" / "*")


def _session_s(options: Mapping[str, str]) -> float:
    """Return the time-out of a session: ZooKeeper grants the requested one within these bounds."""
    tick_ms = int(options["tick_ms"])
    return min(max(int(options["session_timeout_ms"]), 2 * tick_ms), 20 * tick_ms) / 1000


def _server_statistics(address: str, timeout_s: float) -> str:
    """Return the answer to the four-letter word `srvr`, after which the member hangs up."""
    with socket.create_connection((address, _CLIENT_PORT), timeout_s) as connection:
        connection.sendall(b"srvr")
        with connection.makefile(encoding="utf-8", errors="replace") as answer:
            return answer.read()
