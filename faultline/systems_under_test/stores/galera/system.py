"""MariaDB with Galera as a system under test: every member takes writes, and all certify them in one order.

Debian's `mariadb-server` and `galera-4`. A transaction runs at one member alone; at its COMMIT its rows are sent to all
in a total order, and each member decides by the same test whether it collides with an earlier one (certification;
Pedone, Guerraoui and Schiper, "The Database State Machine Approach", 2003). Only members of the *primary component*,
which has a majority, answer.

The reads of a transaction are not certified. So reads are as isolated as InnoDB makes them: at its usual repeatable
read an update may overwrite a value that it has never seen (`snapshot=on` forbids that, as
`innodb_snapshot_isolation`), and serializable takes locks at its own member only. A member applies the commits of
others a little later; with `read_mode=causal` it first catches up (`wsrep_sync_wait`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from faultline.harness.system import OptionDescription, StorePlace
from faultline.harness.world.ports import READY, NodeStatus
from faultline.systems_under_test.stores.conditions import RECORDS
from faultline.systems_under_test.stores.galera.features import FEATURES
from faultline.systems_under_test.stores.store import RealStore

if TYPE_CHECKING:
    from faultline.systems_under_test.stores.galera.client import GaleraClient

__all__ = ["Galera"]

_CLIENT_PORT = 3306
_GROUP_PORT = 4567
_USER = "faultline"
_SYNC_CHANGES, _SYNC_READS = 6, 1
"""Bits of `wsrep_sync_wait`: UPDATE and INSERT, and reads."""

_TABLES = (
    "CREATE DATABASE IF NOT EXISTS faultline",
    "CREATE TABLE IF NOT EXISTS faultline.objects (name VARCHAR(100) PRIMARY KEY, content LONGTEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS faultline.elements (name VARCHAR(100), element BIGINT, PRIMARY KEY (name, element))",
    f"CREATE TABLE IF NOT EXISTS faultline.records {RECORDS}",
)
# The server that carries this out serves no clients, and has not read its own tables yet.
_ACCOUNTS = """\
FLUSH PRIVILEGES;
DELETE FROM mysql.global_priv;
FLUSH PRIVILEGES;
CREATE USER {user}@'%' IDENTIFIED BY '{password}';
GRANT ALL ON *.* TO {user}@'%' WITH GRANT OPTION;
"""
_START = """\
as_owner() {{
  if [ "$(id -u)" = 0 ]; then setpriv --reuid=mysql --regid=mysql --init-groups "$@"; else "$@"; fi
}}
server="mariadbd --no-defaults --datadir={data} {settings}"
if [ -e bootstrap ]; then
  rm bootstrap
  as_owner $server --wsrep-cluster-address=gcomm://
else
  as_owner $server --wsrep-cluster-address=gcomm:// --wsrep-recover --log-error={data}/recover.log
  position=$(sed -n 's/.*Recovered position: *//p' {data}/recover.log | tail -n 1)
  as_owner $server --wsrep-cluster-address=gcomm://{members} ${{position:+--wsrep-start-position=$position}}
fi
"""


class Galera(RealStore):
    """One MariaDB on each host, all alike."""

    name = "galera"
    promise = "each row is linearizable (read_mode=causal); transactions are isolated as their options say, no more"
    summary = "MariaDB with Galera from Debian's packages, on hosts"
    functions = ("read", "write", "cas", "add", "append", "txn", "transfer", "balances", "book", "bookings")
    answer_forms = ("conditions",)
    features = FEATURES
    options: ClassVar[Mapping[str, OptionDescription]] = {
        "isolation": OptionDescription(
            default="repeatable-read",
            choices=("serializable", "repeatable-read", "read-committed"),
            summary="of every transaction, at the member where it runs",
        ),
        "snapshot": OptionDescription(
            default="off",
            choices=("on", "off"),
            summary="may a transaction not overwrite what has changed since it began? (innodb_snapshot_isolation)",
        ),
        "read_mode": OptionDescription(
            default="causal",
            choices=("causal", "local"),
            summary="a member catches up before it reads, or answers from what it has applied",
        ),
        "client_timeout_ms": OptionDescription(default="2500", summary="how long a client waits for an answer"),
    }
    programs: ClassVar[Mapping[str, str]] = {
        "mariadbd": "mariadb-server",
        "/usr/lib/galera/libgalera_smm.so": "galera-4",
        "rsync": "rsync",
        "setpriv": "util-linux",
    }
    libraries: ClassVar[Mapping[str, str]] = {"pymysql": "galera"}
    up_port = _CLIENT_PORT
    client_port = _CLIENT_PORT
    starts_in_order = True
    serving_timeout_s = 120.0

    def files(self, place: StorePlace) -> Mapping[str, str]:
        """Return the start script: the first member makes the cluster, once.

        The others, and later that one too, join.
        """
        settings = " ".join(f"--{name}={value}" for name, value in _settings(place).items())
        members = ",".join(place.addresses.values())
        start = _START.format(data=_database(place), settings=settings, members=members)
        accounts = _ACCOUNTS.format(user=_USER, password=self.password)
        return {"start.sh": start, "accounts.sql": accounts} | (
            {"bootstrap": ""} if place.node == place.members[0] else {}
        )

    def preparation(self, place: StorePlace) -> str:
        """Return the commands that make an empty database with one account, which has the password of the run."""
        database = _database(place)
        own = f"mkdir -p {database} && {{ [ $(id -u) != 0 ] || chown mysql: {database}; }}"
        user = "$([ $(id -u) != 0 ] || echo --user=mysql)"
        make = f"mariadb-install-db --no-defaults {user} --datadir={database} --skip-test-db --skip-name-resolve"
        give = f"mariadbd --no-defaults {user} --datadir={database} --bootstrap <accounts.sql && rm accounts.sql"
        return f"chmod 711 . && {own} && {make} --auth-root-authentication-method=normal && {give}"

    def command(self, place: StorePlace) -> list[str]:
        """Return the command that starts the server, as the user mysql when root runs it."""
        return ["/bin/sh", f"{place.folder}/start.sh"]

    def provision(self, addresses: Mapping[str, str], options: Mapping[str, str]) -> None:
        """Make the tables at the first member; Galera carries them to the others. Raises OSError."""
        _ask(next(iter(addresses.values())), 10.0, _TABLES, self.password)

    def status(self, address: str, timeout_s: float) -> NodeStatus:
        """Return the status: ready for a member of the primary component that is not behind.

        Raises OSError without an answer.
        """
        said = dict(_ask(address, max(timeout_s, 1.0), ["SHOW STATUS LIKE 'wsrep_%%'"], self.password))
        is_ready = said.get("wsrep_ready") == "ON" and said.get("wsrep_local_state_comment") == "Synced"
        size = int(said.get("wsrep_cluster_size", 0))
        return NodeStatus(role=READY if is_ready else "joining", detail={"size": size})

    def serving(self, statuses: Mapping[str, NodeStatus | None]) -> str | None:
        """Report that the store serves, once all members have found each other; all serve alike."""
        together = [status for status in statuses.values() if status and status.role == READY]
        if all(status.detail["size"] == len(statuses) for status in together) and len(together) == len(statuses):
            return "all members are ready"
        return None

    def isolation(self, options: Mapping[str, str]) -> str:
        """Return read committed: no level of its own holds across members, since reads are not certified."""
        return "read-committed"

    def store_client(
        self, address_of: Callable[[str], str], members: Sequence[str], node: str, options: Mapping[str, str]
    ) -> GaleraClient:
        """Return a client that talks to `node` first."""
        from faultline.systems_under_test.stores.galera.client import GaleraClient

        return GaleraClient(
            address_of,
            members,
            node,
            settings=_session_settings(options),
            timeout_s=int(options["client_timeout_ms"]) / 1000,
            password=self.password,
        )


def _session_settings(options: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of sessions.

    Changes always catch up first, so that a failed comparison has seen the newest value.
    """
    waits = _SYNC_CHANGES + (_SYNC_READS if options["read_mode"] == "causal" else 0)
    return {
        "tx_isolation": f"'{options['isolation'].upper()}'",
        "innodb_snapshot_isolation": options["snapshot"].upper(),
        "wsrep_sync_wait": str(waits),
    }


def _database(place: StorePlace) -> str:
    return f"{place.data_folder}/mariadb"


def _settings(place: StorePlace) -> dict[str, str]:
    database = _database(place)
    return {
        "bind-address": place.address,
        "socket": f"{database}/s.sock",
        "pid-file": f"{database}/mariadbd.pid",
        "innodb-buffer-pool-size": "32M",
        "innodb-log-file-size": "16M",
        "binlog-format": "ROW",
        "innodb-autoinc-lock-mode": "2",
        "wsrep-on": "ON",
        "wsrep-provider": "/usr/lib/galera/libgalera_smm.so",
        "wsrep-provider-options": f"gcache.size=32M;gmcast.listen_addr=tcp://{place.address}:{_GROUP_PORT}",
        "wsrep-cluster-name": "faultline",
        "wsrep-node-address": place.address,
        "wsrep-node-name": place.node,
        "wsrep-sst-method": "rsync",
    }


def _ask(address: str, timeout_s: float, statements: Sequence[str], password: str) -> Sequence[tuple[str, str]]:
    """Return the rows of the last of `statements` to the member at `address`. Raises OSError."""
    import pymysql

    from faultline.systems_under_test.stores.galera.client import open_session

    try:
        session = open_session(address, timeout_s, {}, password)
        try:
            *before, last = statements
            for statement in before:
                session.changes(statement)
            return [(str(row[0]), str(row[1])) for row in session.rows(last)]
        finally:
            session.connection.close()
    except pymysql.MySQLError as error:
        raise OSError(str(error)) from error
