"""RabbitMQ as a system under test: quorum queues, each a Raft group of its own on all members.

Debian's `rabbitmq-server` (3.10 in Debian 12). A *confirmed* element is in the logs of a majority; one that was only
sent may be on any member or none (RabbitMQ documentation, "Consumer Acknowledgements and Publisher Confirms"). On the
way out a queue promises one of two things. With `acknowledgements=manual` the element is only lent until it is
acknowledged, and acknowledgements are not confirmed: it comes out at least once. With `automatic` taking an element out
is one entry of the Raft log: it comes out at most once, and is gone when the answer gets lost; so many dequeues without
an answer excuse as many missing elements, and a run under faults often ends as `unknown`.

Each member is an Erlang machine with its own `epmd`, which tells the members each other's ports. Both descend from the
member's first process and die with it. Machines are named by their addresses, so hosts need not know names. A host on
which another epmd listens already is refused. A member counts as up when its `epmd` answers, not when clients can
connect: members that were killed together wait for each other before they let clients in.

The management plugin names the leader from the member's own copy of the metadata: a member that is cut off goes on
naming the leader it knew.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, ClassVar

from faultline.harness.system import OptionDescription, StorePlace
from faultline.harness.world.ports import NodeStatus
from faultline.systems_under_test.stores.rabbitmq.channel import CLIENT_PORT, USER, ChannelRefusal, QueueChannel
from faultline.systems_under_test.stores.rabbitmq.client import FUNCTIONS, QueueClient
from faultline.systems_under_test.stores.rabbitmq.features import FEATURES
from faultline.systems_under_test.stores.status_page import status_page
from faultline.systems_under_test.stores.store import RealStore

__all__ = ["RabbitMQ", "status_from"]

EPMD_PORT = 4369
MANAGEMENT_PORT = 15672
QUEUES = ("queue-0", "queue-1")
"""The queues that the workload `queue` uses, one or both of them."""
PROVISION_TIMEOUT_S = 20.0
_SERVER = "/usr/lib/rabbitmq/bin/rabbitmq-server"


class RabbitMQ(RealStore):
    """One RabbitMQ on each host."""

    name = "rabbitmq"
    promise = "a confirmed element comes out at least once, or at most once (acknowledgements=automatic)"
    summary = "RabbitMQ's quorum queues"
    functions = FUNCTIONS
    features = FEATURES
    options: ClassVar[Mapping[str, OptionDescription]] = {
        "confirms": OptionDescription(
            default="on",
            choices=("on", "off"),
            summary="does a publisher wait until a majority has the element, or not even until a member has it?",
        ),
        "acknowledgements": OptionDescription(
            default="manual",
            choices=("manual", "automatic"),
            summary="is an element gone when the client has acknowledged it, or as soon as it is handed out?",
        ),
        "partition_handling": OptionDescription(
            default="pause_minority",
            choices=("pause_minority", "ignore", "autoheal"),
            summary="what members do that no longer see all others, once they notice (cluster_partition_handling)",
        ),
        "client_timeout_ms": OptionDescription(default="2500", summary="how long a client waits for an answer"),
    }
    programs: ClassVar[Mapping[str, str]] = {_SERVER: "rabbitmq-server"}
    libraries: ClassVar[Mapping[str, str]] = {"pika": "rabbitmq"}
    up_port = EPMD_PORT
    client_port = CLIENT_PORT
    serving_timeout_s = 120.0

    def files(self, place: StorePlace) -> Mapping[str, str]:
        """Return the configuration, the plugin, and the secret by which the members know each other."""
        peers = [
            f"cluster_formation.classic_config.nodes.{number} = rabbit@{address}"
            for number, address in enumerate(place.addresses.values(), 1)
        ]
        lines = [
            f"listeners.tcp.1 = {place.address}:{CLIENT_PORT}",
            f"management.tcp.ip = {place.address}",
            f"management.tcp.port = {MANAGEMENT_PORT}",
            f"default_user = {USER}",
            f"default_pass = {self.password}",
            "log.console.level = info",
            f"cluster_partition_handling = {place.options['partition_handling']}",
            "cluster_formation.peer_discovery_backend = classic_config",
            *peers,
        ]
        return {
            "rabbitmq.conf": "\n".join(lines) + "\n",
            "enabled_plugins": "[rabbitmq_management].\n",
            # A process that knows this may run code on a member.
            ".erlang.cookie": self.password,
        }

    def preparation(self, place: StorePlace) -> str:
        """Return the commands that hide the secret: Erlang refuses one that others may read or change."""
        return "chmod 400 .erlang.cookie rabbitmq.conf"

    def command(self, place: StorePlace) -> list[str]:
        """Return the command line of the server, with one scheduler that does not spin, since many members share a
        machine.
        """
        settings = {
            "HOME": place.folder,
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_NODENAME": f"rabbit@{place.address}",
            "RABBITMQ_USE_LONGNAME": "true",
            "RABBITMQ_MNESIA_BASE": place.data_folder,
            "RABBITMQ_CONFIG_FILE": f"{place.folder}/rabbitmq.conf",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{place.folder}/enabled_plugins",
            "RABBITMQ_LOG_BASE": place.folder,
            "RABBITMQ_LOGS": "-",
            "ERL_EPMD_ADDRESS": place.address,
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": f"+S 1:1 +sbwt none{_listening_on(place.address)}",
        }
        return ["env", *(f"{name}={value}" for name, value in settings.items()), _SERVER]

    def provision(self, addresses: Mapping[str, str], options: Mapping[str, str]) -> None:
        """Make the queues, each on all members. Raises OSError."""
        channel = QueueChannel(
            next(iter(addresses.values())), PROVISION_TIMEOUT_S, confirms=False, password=self.password
        )
        try:
            for name in QUEUES:
                channel.declare(name, members=len(addresses))
        except ChannelRefusal as refusal:
            raise OSError(f"the queues could not be made ({refusal}).") from refusal
        finally:
            channel.close()

    def status(self, address: str, timeout_s: float) -> NodeStatus:
        """Return the leader of the first queue as this member knows it, and how many members it sees.

        RabbitMQ reports no generation: of two that say they lead, the one that more members name leads.
        """
        queues = _asked(address, "/api/queues?disable_stats=true&enable_queue_totals=true", timeout_s, self.password)
        nodes = _asked(address, "/api/nodes?columns=name,running", timeout_s, self.password)
        seen = sum(1 for node in nodes if node.get("running"))
        return status_from(address, queues, seen)

    def serving(self, statuses: Mapping[str, NodeStatus | None]) -> str | None:
        """Report that the store serves, once all members see each other and, with queues, name one leader."""
        known = [status for status in statuses.values() if status is not None]
        together = len(known) == len(statuses) and all(status.detail["seen"] == len(statuses) for status in known)
        if not together or len({status.leader for status in known}) != 1:
            return None
        return super().serving(statuses) or ("all members see each other" if known[0].leader is None else None)

    def store_client(
        self, address_of: Callable[[str], str], members: Sequence[str], node: str, options: Mapping[str, str]
    ) -> QueueClient:
        """Return a client that is connected to the member on `node` first, which passes requests on to the leader."""
        return QueueClient(
            address_of,
            members,
            node,
            confirms=options["confirms"] == "on",
            is_lent=options["acknowledgements"] == "manual",
            timeout_s=int(options["client_timeout_ms"]) / 1000,
            password=self.password,
        )


def status_from(address: str, queues: Sequence[Mapping[str, Any]], seen: int) -> NodeStatus:
    """Return the status of the member at `address` that sees `seen` members and reports these queues."""
    first = min(queues, key=lambda queue: str(queue["name"]), default={})
    told = str(first.get("leader") or first.get("node") or "")
    leader = told.removeprefix("rabbit@") or None
    return NodeStatus(role="leader" if leader == address else "follower", leader=leader, detail={"seen": seen})


def _asked(address: str, path: str, timeout_s: float, password: str) -> Any:
    """Return the answer of the management plugin at `address`. Raises OSError."""
    account = "Basic " + base64.b64encode(f"{USER}:{password}".encode()).decode()
    page = status_page(address, MANAGEMENT_PORT, path, max(timeout_s, 1.0), {"Authorization": account})
    if page.code != HTTPStatus.OK:
        raise OSError(f"no status: the management plugin answered {page.code}")
    return page.told


def _listening_on(address: str) -> str:
    """Return Erlang's arguments to take connections of members on `address` alone, if it is a number."""
    parts = address.split(".")
    if len(parts) != 4 or not all(part.isdecimal() for part in parts):
        return ""
    return f" -kernel inet_dist_use_interface {{{','.join(parts)}}}"
