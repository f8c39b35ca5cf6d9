"""PostgreSQL as a system under test: one primary, and standbys that stream its log.

Debian's `postgresql-15`. The first member is the primary, for good: streaming replication has no fail-over of its own,
so after a kill the primary is started again, and until then no client can write (`patroni` has fail-over). With
`synchronous=on` a commit is acknowledged when any one standby has it on its disk too (`synchronous_standby_names = 'ANY
1 (...)'`; PostgreSQL documentation, "Log-Shipping Standby Servers").

The isolation level, and not replication, decides what transactions may see of each other: `isolation=serializable`
(Ports and Grittner, "Serializable Snapshot Isolation in PostgreSQL", VLDB 2012) is the default here, `read-committed`
is PostgreSQL's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from faultline.harness.system import OptionDescription, StoreClient, StorePlace
from faultline.harness.world.ports import NodeStatus
from faultline.systems_under_test.stores.postgresql.features import FEATURES
from faultline.systems_under_test.stores.postgresql.options import (
    AS_OWNER,
    BINARIES,
    FUNCTIONS,
    OPTIONS,
    PORT,
    PROGRAMS,
    USER,
    hide,
    host_rules,
    isolation_of,
    make_client,
    make_folder,
    make_tables,
    password_file,
    settings,
)
from faultline.systems_under_test.stores.store import RealStore

__all__ = ["PostgreSQL"]

_STATUS = """
    SELECT pg_is_in_recovery(), timeline_id, (SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming')
    FROM pg_control_checkpoint()"""


class PostgreSQL(RealStore):
    """A primary on the first host and a streaming standby on each other one."""

    name = "postgresql"
    promise = "transactions are strictly serializable (isolation=serializable, read_from=primary); no fail-over"
    summary = "PostgreSQL from Debian's package, one primary with streaming standbys, on hosts"
    functions = FUNCTIONS
    answer_forms = ("conditions",)
    features = FEATURES
    options: ClassVar[Mapping[str, OptionDescription]] = OPTIONS
    programs: ClassVar[Mapping[str, str]] = PROGRAMS
    libraries: ClassVar[Mapping[str, str]] = {"psycopg": "postgresql"}
    up_port = PORT
    client_port = PORT
    serving_timeout_s = 60.0

    def files(self, place: StorePlace) -> Mapping[str, str]:
        """Return the rules of access and the start script.

        A standby without a database begins with a copy of the primary's.
        """
        own = settings() | {
            "listen_addresses": place.address,
            "unix_socket_directories": "",
            "hba_file": f"{place.folder}/pg_hba.conf",
            "synchronous_standby_names": _confirming(place),
        }
        chosen = " ".join(f"-c {name}='{value}'" for name, value in own.items())
        # The standbys' own connections to the primary read it, too.
        knows = f"export PGPASSFILE={place.folder}/pgpass\n"
        start = f"{AS_OWNER}{knows}{_copy(place)}as_owner {BINARIES}/postgres -D {_database(place)} {chosen}\n"
        rules = "".join(f"{rule}\n" for rule in host_rules(place.addresses.values()))
        secret = {"pgpass": password_file(self.password), "password": f"{self.password}\n"}
        return {"pg_hba.conf": rules, "start.sh": start, **secret}

    def preparation(self, place: StorePlace) -> str:
        """Return the commands that make PostgreSQL's own folder, with an empty database for the primary."""
        own = f"{hide(place, 'pgpass', 'password')} && {make_folder(_database(place))}"
        if not _is_primary(place):
            return own
        access = f"-U {USER} -A scram-sha-256 --pwfile={place.folder}/password"
        return f"{AS_OWNER}{own} && as_owner {BINARIES}/initdb -D {_database(place)} {access} -E UTF8 --no-locale"

    def command(self, place: StorePlace) -> list[str]:
        """Return the command that starts the server, as the user postgres when root runs it."""
        return ["/bin/sh", f"{place.folder}/start.sh"]

    def provision(self, addresses: Mapping[str, str], options: Mapping[str, str]) -> None:
        """Make the tables at the primary. Raises OSError."""
        make_tables(next(iter(addresses.values())), self.serving_timeout_s, self.password)

    def status(self, address: str, timeout_s: float) -> NodeStatus:
        """Return the role, the timeline, and the number of standbys that stream from the member. Raises OSError."""
        from faultline.systems_under_test.stores.postgresql.session import ask

        is_standby, timeline, streaming = ask(address, timeout_s, [_STATUS], self.password)
        role = "standby" if is_standby else "leader"
        return NodeStatus(role=role, generation=timeline, detail={"streaming": streaming})

    def serving(self, statuses: Mapping[str, NodeStatus | None]) -> str | None:
        """Report that the primary serves, once all others stream from it: without any, a commit would wait."""
        leading = super().serving(statuses)
        streaming = max((status.detail.get("streaming", 0) for status in statuses.values() if status), default=0)
        return leading if streaming == len(statuses) - 1 else None

    def isolation(self, options: Mapping[str, str]) -> str:
        """Return the consistency model that transactions keep with these options."""
        return isolation_of(options)

    def store_client(
        self, address_of: Callable[[str], str], members: Sequence[str], node: str, options: Mapping[str, str]
    ) -> StoreClient:
        """Return a client that reads at `node` first, and sends changes to the primary."""
        return make_client(address_of, members, node, options, self.password)


def _database(place: StorePlace) -> str:
    """Return the database's own folder within the data folder: PostgreSQL wants its own owner and mode on it."""
    return f"{place.data_folder}/postgresql"


def _is_primary(place: StorePlace) -> bool:
    return place.node == place.members[0]


def _copy(place: StorePlace) -> str:
    """Return the shell commands by which a standby gets its database, if it has none; the primary makes its own."""
    if _is_primary(place):
        return ""
    database, primary = _database(place), place.addresses[place.members[0]]
    source = f"host={primary} user=postgres application_name={place.node} connect_timeout=2"
    return (
        f"until [ -e {database}/PG_VERSION ]; do\n"
        f"  as_owner find {database} -mindepth 1 -delete\n"
        f"  as_owner {BINARIES}/pg_basebackup -D {database} -R -X stream -c fast -d '{source}' || sleep 0.3\n"
        "done\n"
    )


def _confirming(place: StorePlace) -> str:
    standbys = place.members[1:]
    return f"ANY 1 ({','.join(standbys)})" if standbys and place.options["synchronous"] == "on" else ""
