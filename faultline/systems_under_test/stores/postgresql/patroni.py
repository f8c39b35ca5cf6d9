"""PostgreSQL with Patroni as a system under test: a lease in etcd decides which server is the primary.

Debian's `patroni` (3.0 in Debian 12). Each host carries an etcd, a Patroni and the PostgreSQL that this Patroni
starts, stops, promotes and rewinds. The primary holds a key in etcd that lives for `ttl_s`; a primary that cannot renew
it demotes itself, and when it is gone a standby takes it and is promoted (Patroni documentation, "Architecture";
pattern: Lease, "Patterns of Distributed Systems" ch. 21).

With `synchronous=on` (Patroni's `synchronous_mode`) only a standby that has confirmed every commit may be promoted.
With `synchronous=off` any standby may be promoted that is not too far behind, and commits that the old primary had
acknowledged but not sent are lost: documented, and the reason for the other mode.

**Not in the promise.** A primary that is stopped for longer than its lease and goes on is not fenced (Patroni would use
a watchdog device for that): until its Patroni has looked at the clock, it answers reads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar

import msgspec

from faultline.harness.errors import HarnessError
from faultline.harness.system import OptionDescription, StoreClient, StorePlace
from faultline.harness.world.ports import NodeStatus
from faultline.systems_under_test.stores.etcd.system import Etcd
from faultline.systems_under_test.stores.postgresql.features import PATRONI_FEATURES
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
    settings,
)
from faultline.systems_under_test.stores.status_page import status_page
from faultline.systems_under_test.stores.store import RealStore

__all__ = ["Patroni"]

REST_PORT = 8008
_ETCD_PORT = 2379
_POLL_S = 0.1
_POLL_TIMEOUT_S = 5.0


class Patroni(RealStore):
    """An etcd, a Patroni and a PostgreSQL on each host."""

    name = "patroni"
    promise = "transactions are strictly serializable, also across fail-overs (synchronous=on, read_from=primary)"
    summary = "PostgreSQL with Patroni over etcd, from Debian's packages, on hosts"
    functions = FUNCTIONS
    answer_forms = ("conditions",)
    features = PATRONI_FEATURES
    options: ClassVar[Mapping[str, OptionDescription]] = {
        **OPTIONS,
        "ttl_s": OptionDescription(
            default="5", summary="how long the primary's key in etcd lives; Patroni looks every second"
        ),
    }
    programs: ClassVar[Mapping[str, str]] = {"patroni": "patroni", **PROGRAMS, "etcd": "etcd-server", "bash": "bash"}
    libraries: ClassVar[Mapping[str, str]] = {"psycopg": "postgresql"}
    up_port = Etcd.up_port
    """etcd answers its peers from the start; PostgreSQL answers once Patroni has made or copied a database."""
    client_port = PORT
    serving_timeout_s = 120.0

    def files(self, place: StorePlace) -> Mapping[str, str]:
        """Return Patroni's configuration and the start script of etcd and Patroni: when either ends, so does the
        member.
        """
        etcd = " ".join(Etcd().command(_etcd_place(place)))
        start = f"{AS_OWNER}{etcd} & as_owner patroni {place.folder}/patroni.yml & wait -n\n"
        # JSON is YAML, too.
        configuration = msgspec.json.format(msgspec.json.encode(_configuration(place, self.password))).decode()
        return {"patroni.yml": configuration, "start.sh": start}

    def preparation(self, place: StorePlace) -> str:
        """Return the commands that make PostgreSQL's own folder, in which Patroni makes the database."""
        return f"{hide(place, 'patroni.yml')} && {make_folder(_home(place))}"

    def command(self, place: StorePlace) -> list[str]:
        """Return the command that runs both programs in one shell."""
        return ["bash", f"{place.folder}/start.sh"]

    def form(self, addresses: Mapping[str, str], options: Mapping[str, str]) -> None:
        """Wait until Patroni has made one database and copied it to all others. Raises HarnessError."""
        deadline_s = time.monotonic() + self.serving_timeout_s
        while len(_streaming(addresses)) < len(addresses) - 1 or not _primary(addresses):
            if time.monotonic() > deadline_s:
                raise HarnessError(f"Only {_streaming(addresses)} follow the primary {_primary(addresses)!r}.")
            time.sleep(_POLL_S)

    def provision(self, addresses: Mapping[str, str], options: Mapping[str, str]) -> None:
        """Make the tables at the primary. Raises OSError or HarnessError."""
        primary = _primary(addresses)
        if not primary:
            raise HarnessError("No member says that it is the primary.")
        make_tables(primary, _POLL_TIMEOUT_S, self.password)

    def status(self, address: str, timeout_s: float) -> NodeStatus:
        """Return the report of the member's Patroni about its PostgreSQL. Raises OSError when it does not answer."""
        said = _ask_patroni(address, timeout_s)
        is_primary = said.get("role") in ("master", "primary") and said.get("state") == "running"
        return NodeStatus(
            role="leader" if is_primary else "standby",
            generation=int(said.get("timeline", 0)),
            detail={
                "streaming": [
                    standby["application_name"]
                    for standby in said.get("replication", ())
                    if standby["state"] == "streaming"
                ]
            },
        )

    def serving(self, statuses: Mapping[str, NodeStatus | None]) -> str | None:
        """Report that the only primary serves, once most members answer and another streams from it.

        The rest may take minutes. A former primary with commits that its successor never got may not come back at all:
        Patroni waits for its PostgreSQL, which waits for the rest of a timeline that has ended and answers no client
        meanwhile.
        """
        answering = [status for status in statuses.values() if status]
        leaders = [status for status in answering if status.role == "leader"]
        if len(leaders) != 1 or 2 * len(answering) <= len(statuses):
            return None
        follows = not statuses.keys().isdisjoint(leaders[0].detail["streaming"])
        return super().serving(statuses) if follows or len(statuses) == 1 else None

    def isolation(self, options: Mapping[str, str]) -> str:
        """Return the consistency model that transactions keep with these options."""
        return isolation_of(options)

    def store_client(
        self, address_of: Callable[[str], str], members: Sequence[str], node: str, options: Mapping[str, str]
    ) -> StoreClient:
        """Return a client that reads at `node` first, and sends changes to the present primary."""
        return make_client(address_of, members, node, options, self.password)


def _statuses(addresses: Mapping[str, str]) -> dict[str, NodeStatus]:
    """Return the status of each member that answers."""
    statuses = {}
    for name, address in addresses.items():
        with suppress(OSError):
            statuses[name] = Patroni().status(address, _POLL_TIMEOUT_S)
    return statuses


def _primary(addresses: Mapping[str, str]) -> str:
    """Return the address of the primary, or an empty text."""
    return next((addresses[name] for name, status in _statuses(addresses).items() if status.role == "leader"), "")


def _streaming(addresses: Mapping[str, str]) -> set[str]:
    """Return the members that stream from another; a database that is being copied also streams, under another name."""
    return addresses.keys() & {name for status in _statuses(addresses).values() for name in status.detail["streaming"]}


def _home(place: StorePlace) -> str:
    return f"{place.data_folder}/postgresql"


def _etcd_place(place: StorePlace) -> StorePlace:
    """Return the same host, as etcd sees it; its data lies on the same disk."""
    defaults = {name: option.default for name, option in Etcd.options.items()}
    return msgspec.structs.replace(place, folder=f"{place.data_folder}/etcd", options=defaults)


def _configuration(place: StorePlace, password: str) -> dict[str, Any]:
    address, ttl_s = place.address, int(place.options["ttl_s"])
    account = {"username": USER, "password": password}
    return {
        "scope": "faultline",
        "name": place.node,
        "restapi": {
            "listen": f"{address}:{REST_PORT}",
            "connect_address": f"{address}:{REST_PORT}",
            "authentication": account,
        },
        "etcd3": {"hosts": [f"{member}:{_ETCD_PORT}" for member in place.addresses.values()]},
        "bootstrap": {
            "dcs": {
                "ttl": ttl_s,
                "loop_wait": 1,
                "retry_timeout": max(1, (ttl_s - 1) // 2),
                "synchronous_mode": place.options["synchronous"] == "on",
                "postgresql": {"use_pg_rewind": True, "parameters": settings()},
            },
            "initdb": [{"encoding": "UTF8"}, {"locale": "C"}, "data-checksums"],
        },
        "postgresql": {
            "listen": f"{address}:{PORT}",
            "connect_address": f"{address}:{PORT}",
            "data_dir": f"{_home(place)}/database",
            "pgpass": f"{_home(place)}/pgpass",
            "bin_dir": BINARIES,
            "parameters": {"unix_socket_directories": ""},
            "pg_hba": host_rules(place.addresses.values()),
            "authentication": {"superuser": account, "replication": account, "rewind": account},
        },
    }


def _ask_patroni(address: str, timeout_s: float) -> dict[str, Any]:
    """Return the report of Patroni's REST interface; its status code is for load balancers, and is ignored."""
    page: dict[str, Any] = status_page(address, REST_PORT, "/patroni", timeout_s).told
    return page
