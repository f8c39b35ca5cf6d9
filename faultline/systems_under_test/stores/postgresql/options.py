"""Options and scripts of PostgreSQL, with and without Patroni."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from ipaddress import ip_network
from typing import TYPE_CHECKING

from faultline.harness.system import OptionDescription, StoreClient, StorePlace

if TYPE_CHECKING:
    from faultline.systems_under_test.stores.postgresql.client import PostgresClient

__all__ = [
    "AS_OWNER",
    "BINARIES",
    "FUNCTIONS",
    "OPTIONS",
    "PORT",
    "PROGRAMS",
    "USER",
    "hide",
    "host_rules",
    "isolation_of",
    "make_client",
    "make_folder",
    "make_tables",
    "password_file",
    "settings",
]

PORT = 5432
BINARIES = "/usr/lib/postgresql/15/bin"
PROGRAMS: Mapping[str, str] = {f"{BINARIES}/postgres": "postgresql-15", "setpriv": "util-linux"}
FUNCTIONS = (
    *("read", "write", "cas", "add", "append", "increment", "generate", "transfer"),
    *("txn", "balances", "book", "bookings"),
)
"""The functions of a client."""

_ISOLATION: Mapping[str, str] = {
    "serializable": "strict-serializable",
    "repeatable-read": "strong-snapshot-isolation",
    "read-committed": "read-committed",
}
"""The consistency model of the transactions at the primary, by the option `isolation`."""

OPTIONS: Mapping[str, OptionDescription] = {
    "isolation": OptionDescription(
        default="serializable",
        choices=("serializable", "repeatable-read", "read-committed"),
        summary="of every transaction; all but serializable allow write skew, and read committed lost updates",
    ),
    "synchronous": OptionDescription(
        default="on", choices=("on", "off"), summary="does a commit wait until a standby has it on its disk?"
    ),
    "read_from": OptionDescription(
        default="primary",
        choices=("primary", "any"),
        summary="operations that only read go to the primary, or to the client's own member, which may be behind",
    ),
    "client_timeout_ms": OptionDescription(default="1500", summary="how long a client waits for an answer"),
}

USER = "postgres"

AS_OWNER = """\
as_owner() {
  if [ "$(id -u)" = 0 ]; then setpriv --reuid=postgres --regid=postgres --init-groups "$@"; else "$@"; fi
}
"""
"""A shell function: PostgreSQL refuses to run as root."""


def isolation_of(options: Mapping[str, str]) -> str:
    """Return the consistency model of transactions with these options.

    Transactions that only read see a snapshot at a standby, which may be behind, and together with serializable ones at
    the primary they need not be serializable.
    """
    promised = _ISOLATION[options["isolation"]]
    return promised if options["read_from"] == "primary" or promised == "read-committed" else "snapshot-isolation"


def settings() -> dict[str, str]:
    """Return the server's parameters: small, quick to notice a silent peer, and otherwise PostgreSQL's own."""
    return {
        "shared_buffers": "32MB",
        "max_connections": "80",
        "wal_level": "replica",
        "wal_log_hints": "on",
        "hot_standby": "on",
        "wal_sender_timeout": "2s",
        "wal_receiver_timeout": "2s",
        "wal_receiver_status_interval": "1s",
        "wal_retrieve_retry_interval": "200ms",
        "log_line_prefix": "%m [%p] ",
    }


def host_rules(addresses: Iterable[str]) -> list[str]:
    """Return the rules of access: with the password from any host, and for replication from the members' hosts only.

    Clients may come from any host, since the harness may be on any.
    """
    replicating = [f"host replication {USER} {_only(address)} scram-sha-256" for address in addresses]
    return [f"host all {USER} all scram-sha-256", *replicating]


def _only(address: str) -> str:
    """Return `address` as a rule names it: a number with the length of its mask, or a name."""
    with suppress(ValueError):
        return str(ip_network(address))
    return address


def password_file(password: str) -> str:
    """Return the file from which libpq reads the password, for every server."""
    return f"*:*:*:{USER}:{password}\n"


def hide(place: StorePlace, *files: str) -> str:
    """Return the shell command that lets PostgreSQL's user alone read these of the member's `files`."""
    names = " ".join(files)
    return f"chmod 600 {names} && {{ [ $(id -u) != 0 ] || chown postgres: {names}; }} && chmod 711 {place.folder}"


def make_folder(path: str) -> str:
    """Return the shell command that makes a folder to which PostgreSQL's user alone has access."""
    return f"mkdir -p {path} && chmod 700 {path} && {{ [ $(id -u) != 0 ] || chown postgres: {path}; }}"


def make_tables(address: str, timeout_s: float, password: str) -> None:
    """Make the tables of the workloads at the primary. Raises OSError."""
    from faultline.systems_under_test.stores.postgresql.session import ask
    from faultline.systems_under_test.stores.postgresql.statements import TABLES

    ask(address, timeout_s, [*TABLES, "SELECT 1"], password)


def make_client(
    address_of: Callable[[str], str], members: Sequence[str], node: str, options: Mapping[str, str], password: str
) -> StoreClient:
    """Return a client with these `options` that talks to `node` first."""
    from faultline.systems_under_test.stores.postgresql.client import PostgresClient, ReadsAnywhere

    def one(primary_only: bool, isolation: str) -> PostgresClient:
        return PostgresClient(
            address_of,
            members,
            node,
            isolation=isolation.replace("-", " "),
            primary_only=primary_only,
            timeout_s=int(options["client_timeout_ms"]) / 1000,
            password=password,
        )

    changing = one(True, options["isolation"])
    if options["read_from"] == "primary":
        return changing
    # A standby knows of no serializable transactions, and refuses them.
    return ReadsAnywhere(changing, one(False, "repeatable-read"))
