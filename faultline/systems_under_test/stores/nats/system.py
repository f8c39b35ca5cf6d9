"""NATS JetStream as a system under test: a key-value bucket, replicated by NATS's own Raft, on each host a server.

Debian's `nats-server` (2.9 in Debian 12). Each stream is a Raft group of its own, so writes have one order, and
acknowledged writes are in the logs of a majority. Reads are another matter: with `read_mode=direct` any replica answers
from its own copy; with `read_mode=leader` the stream's leader does, without asking the others whether it still leads.
Both may be stale, the second only while two servers believe they lead, which lasts for seconds.

Its times matter in two ways: a follower waits four to nine seconds for its leader before it stands for election, so
faults must last longer than that to depose one (`--faults fail-over --duration 60`); and servers flush their files
every two minutes, so a majority that loses its power together loses acknowledged writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from faultline.harness.errors import UsageError
from faultline.harness.system import OptionDescription, StorePlace
from faultline.harness.world.ports import NodeStatus
from faultline.systems_under_test.stores.nats.bucket import CLIENT_PORT, FUNCTIONS, USER, Bucket, BucketRefusal
from faultline.systems_under_test.stores.nats.features import FEATURES
from faultline.systems_under_test.stores.nats.watches import WATCH_FUNCTIONS, WatchingBucketClient
from faultline.systems_under_test.stores.status_page import status_page
from faultline.systems_under_test.stores.store import RealStore

__all__ = ["NatsJetStream"]

ROUTE_PORT = 6222
MONITOR_PORT = 8222
REPLICAS_MAX = 5
HISTORY_MAX = 64
PROVISION_TIMEOUT_S = 10.0


class NatsJetStream(RealStore):
    """One nats-server on each host."""

    name = "nats"
    promise = "conditional writes are never lost or applied twice; reads may be stale"
    summary = "NATS JetStream's key-value bucket"
    functions = (*FUNCTIONS, *WATCH_FUNCTIONS)
    features = FEATURES
    options: ClassVar[Mapping[str, OptionDescription]] = {
        "read_mode": OptionDescription(
            default="leader",
            choices=("leader", "direct"),
            summary="who answers reads: the stream's leader, or any server that has a replica; both may be stale",
        ),
        "replicas": OptionDescription(default="3", summary="how many servers keep the bucket, one to five"),
        "history": OptionDescription(default="1", summary="how many values of a key the bucket keeps, one to 64"),
        "watch_skips": OptionDescription(
            default="told",
            choices=("told", "ignored"),
            summary="whether a watch tells of values that were discarded before it got them",
        ),
        "client_timeout_ms": OptionDescription(default="1500", summary="how long a client waits for an answer"),
    }
    programs: ClassVar[Mapping[str, str]] = {"nats-server": "nats-server"}
    libraries: ClassVar[Mapping[str, str]] = {"nats": "nats"}
    up_port = ROUTE_PORT
    client_port = CLIENT_PORT
    serving_timeout_s = 60.0
    steady_s = 2.5
    """A server that was cut off deposes the leader when they first speak again: within two heartbeats of a second
    each.
    """

    def files(self, place: StorePlace) -> Mapping[str, str]:
        """Return the server's configuration, with the names and addresses of all. Raises UsageError for one host."""
        if len(place.addresses) == 1:
            raise UsageError(
                "NATS on a single host never becomes ready: JetStream waits for other servers of its cluster.",
                "Use --hosts namespaces:3, with --option replicas=1 for a bucket on one of them.",
            )
        account = f"{USER}:{self.password}@" if self.password else ""
        routes = ", ".join(f'"nats://{account}{address}:{ROUTE_PORT}"' for address in place.addresses.values())
        guard = f'authorization {{ user: {USER}, password: "{self.password}" }}' if self.password else ""
        lines = [
            f"server_name: {place.node}",
            f'listen: "{place.address}:{CLIENT_PORT}"',
            f'http: "{place.address}:{MONITOR_PORT}"',
            f'jetstream {{ store_dir: "{place.data_folder}", max_file_store: 256MB, max_memory_store: 64MB }}',
            guard,
            f'cluster {{ name: faultline, listen: "{place.address}:{ROUTE_PORT}", {guard}\n routes: [{routes}] }}',
        ]
        return {"nats.conf": "\n".join(lines) + "\n"}

    def command(self, place: StorePlace) -> list[str]:
        """Return the command line; Debian keeps the server where only root's path finds it."""
        return ["env", "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/bin", "nats-server", "-c", "nats.conf"]

    def provision(self, addresses: Mapping[str, str], options: Mapping[str, str]) -> None:
        """Make the bucket on as many servers as the options say."""
        replicas = int(options["replicas"])
        if not 1 <= replicas <= min(len(addresses), REPLICAS_MAX):
            raise UsageError(
                f"A bucket cannot have {replicas} replicas on {len(addresses)} hosts.",
                f"Use --option replicas=N with as many hosts, at most {REPLICAS_MAX}.",
            )
        if not 1 <= int(options["history"]) <= HISTORY_MAX:
            raise UsageError(
                f"A bucket cannot keep {options['history']} values of a key.",
                f"Use --option history=N with N from 1 to {HISTORY_MAX}.",
            )
        bucket = Bucket(
            next(iter(addresses.values())), direct=False, timeout_s=PROVISION_TIMEOUT_S, password=self.password
        )
        try:
            bucket.make(replicas, int(options["history"]))
        except BucketRefusal as refusal:
            raise OSError(f"the bucket could not be made ({refusal}).") from refusal
        finally:
            bucket.close()

    def status(self, address: str, timeout_s: float) -> NodeStatus:
        """Return the leader of the bucket's stream as this server knows it; without a replica, that of the servers.

        NATS reports no generation. The number here tells which of the two groups is meant, as the stream's leader is
        the leader of the store. Of two servers that say they lead it, the one that more members name leads.
        """
        own = str(_monitored(address, "/varz", timeout_s)["server_name"])
        told = _monitored(address, "/jsz?accounts=1&streams=1", timeout_s)
        streams = [
            stream for account in told.get("account_details") or () for stream in account.get("stream_detail") or ()
        ]
        group = (streams[0] if streams else told).get("cluster" if streams else "meta_cluster") or {}
        leader = group.get("leader") or None
        replicas = group.get("replicas") or ()
        return NodeStatus(
            role="leader" if leader == own else "follower",
            generation=len(streams),
            leader=leader,
            detail={
                "current": leader != own or all(replica["current"] for replica in replicas),
                "leader_of_servers": (told.get("meta_cluster") or {}).get("leader") or None,
            },
        )

    def serving(self, statuses: Mapping[str, NodeStatus | None]) -> str | None:
        """Report that the leader serves, once all members of its group name it and its replicas are current.

        All servers must name a leader of their own group too: without one, no consumer can be made, so lists and
        watches fail.
        """
        known = [status for status in statuses.values() if status is not None]
        newest = max((status.generation for status in known), default=0)
        leaders = {status.leader for status in known if status.generation == newest}
        current = all(status.detail["current"] for status in known)
        of_servers = {status.detail["leader_of_servers"] for status in known}
        agree = len(known) == len(statuses) and len(leaders) == len(of_servers) == 1 and None not in of_servers
        return super().serving(statuses) if agree and current else None

    def store_client(
        self, address_of: Callable[[str], str], members: Sequence[str], node: str, options: Mapping[str, str]
    ) -> WatchingBucketClient:
        """Return a client that is connected to the server on `node` first."""
        return WatchingBucketClient(
            address_of,
            members,
            node,
            direct=options["read_mode"] == "direct",
            timeout_s=int(options["client_timeout_ms"]) / 1000,
            tells_skips=options["watch_skips"] == "told",
            password=self.password,
        )


def _monitored(address: str, path: str, timeout_s: float) -> dict[str, Any]:
    """Return the answer of the server at `address` on its monitoring port. Raises OSError."""
    page: dict[str, Any] = status_page(address, MONITOR_PORT, path, timeout_s).told
    return page
