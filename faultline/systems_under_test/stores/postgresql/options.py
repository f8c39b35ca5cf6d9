"""Options and scripts that PostgreSQL has in common with and without Patroni."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from faultline.harness.system import OptionDescription, StoreClient

if TYPE_CHECKING:
    from faultline.systems_under_test.stores.postgresql.client import PostgresClient

__all__ = [
    "AS_OWNER",
    "BINARIES",
    "FUNCTIONS",
    "HOST_RULES",
    "OPTIONS",
    "PORT",
    "PROGRAMS",
    "make_client",
    "make_folder",
    "make_tables",
    "settings",
]

PORT = 5432
BINARIES = "/usr/lib/postgresql/15/bin"
PROGRAMS: Mapping[str, str] = {f"{BINARIES}/postgres": "postgresql-15", "setpriv": "util-linux"}
FUNCTIONS = (
    *("read", "write", "cas", "add", "append", "increment", "generate", "transfer"),
    *("txn", "balances", "book", "bookings"),
)
"""What a client can be asked to do."""

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
        summary="what only reads goes to the primary, or to the member the client is at, which may be behind",
    ),
    "client_timeout_ms": OptionDescription(default="1500", summary="how long a client waits for an answer"),
}

HOST_RULES = "host all all 0.0.0.0/0 trust\nhost replication all 0.0.0.0/0 trust\n"
"""Who may connect: everybody, since nobody else is on the hosts' network."""

AS_OWNER = """\
as_owner() {
  if [ "$(id -u)" = 0 ]; then setpriv --reuid=postgres --regid=postgres --init-groups "$@"; else "$@"; fi
}
"""
"""A shell function: PostgreSQL refuses to run as root."""


def settings() -> dict[str, str]:
    """The server's parameters: small, quick to notice a silent peer, and otherwise PostgreSQL's own."""
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


def make_folder(path: str) -> str:
    """The shell command for a folder that belongs to PostgreSQL's user, and to nobody else."""
    return f"mkdir -p {path} && chmod 700 {path} && {{ [ $(id -u) != 0 ] || chown postgres: {path}; }}"


def make_tables(address: str, timeout_s: float) -> None:
    """Make what the workloads use, at the primary. Raises OSError."""
    from faultline.systems_under_test.stores.postgresql.session import ask
    from faultline.systems_under_test.stores.postgresql.statements import TABLES

    ask(address, timeout_s, [*TABLES, "SELECT 1"])


def make_client(
    address_of: Callable[[str], str], members: Sequence[str], node: str, options: Mapping[str, str]
) -> StoreClient:
    """A client that talks to `node` first, as `options` want it."""
    from faultline.systems_under_test.stores.postgresql.client import PostgresClient, ReadsAnywhere

    def one(primary_only: bool, isolation: str) -> PostgresClient:
        return PostgresClient(
            address_of,
            members,
            node,
            isolation=isolation.replace("-", " "),
            primary_only=primary_only,
            timeout_s=int(options["client_timeout_ms"]) / 1000,
        )

    changing = one(True, options["isolation"])
    if options["read_from"] == "primary":
        return changing
    # A standby knows of no serializable transactions, and refuses them.
    return ReadsAnywhere(changing, one(False, "repeatable-read"))
