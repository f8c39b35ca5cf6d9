"""etcd as a system under test: its command line, its leader, its clients, and its promise.

Debian's `etcd-server` (3.4 in Debian 12). etcd is Raft's best-known implementation: writes go through the leader's log,
reads ask a majority whether the leader still leads – unless they are *serializable*, in which case a member answers
from its own copy (`--option read_mode=serializable`, for which staleness is documented and not a bug).
"""

from __future__ import annotations

import http.client
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from faultline.harness.system import OptionDescription, StorePlace
from faultline.harness.world.ports import NodeStatus
from faultline.systems_under_test.stores.etcd.features import FEATURES
from faultline.systems_under_test.stores.etcd.gateway import CLIENT_PORT, ask
from faultline.systems_under_test.stores.etcd.locks import EtcdLocks
from faultline.systems_under_test.stores.etcd.watches import PROGRESS_S, WATCH_FUNCTIONS
from faultline.systems_under_test.stores.lock_owner import FENCING, LOCK_FUNCTIONS, LockOwner
from faultline.systems_under_test.stores.store import RealStore

__all__ = ["Etcd"]

PEER_PORT = 2380


class Etcd(RealStore):
    """One etcd on each host."""

    name = "etcd"
    promise = "each key is a linearizable register, a lock has one owner; with serializable reads, reads may be stale"
    summary = "etcd from Debian's package, over its JSON gateway"
    functions = ("read", "write", "cas", *LOCK_FUNCTIONS, *WATCH_FUNCTIONS)
    features = FEATURES
    options: ClassVar[Mapping[str, OptionDescription]] = {
        "read_mode": OptionDescription(
            default="linearizable",
            choices=("linearizable", "serializable"),
            summary="serializable reads are answered by one member alone and may be stale",
        ),
        "client_timeout_ms": OptionDescription(default="1500", summary="how long a client waits for an answer"),
        "lease_ttl_s": OptionDescription(
            default="2",
            summary="how long a lease lives that is not refreshed; etcd gives 1.5 election time-outs at least",
        ),
        "watch_resume": OptionDescription(
            default="last-revision",
            choices=("last-revision", "now"),
            summary="where a watch whose stream broke goes on; `now` misses what happened meanwhile and does not tell",
        ),
        "history_s": OptionDescription(
            default="0", summary="after how many seconds etcd compacts what was overwritten; 0: never"
        ),
        "fencing": FENCING,
        "election_timeout_ms": OptionDescription(
            default="1000", summary="of etcd; it sends heartbeats ten times as often"
        ),
    }
    programs: ClassVar[Mapping[str, str]] = {"etcd": "etcd-server"}
    up_port = PEER_PORT
    """Peers are answered from the start; clients only once a majority is up."""
    client_port = CLIENT_PORT

    def command(self, place: StorePlace) -> list[str]:
        """Return the member's command line; the same for the first start and each later one."""
        history_s = int(place.options["history_s"])
        compaction = ["--auto-compaction-mode=periodic", f"--auto-compaction-retention={history_s}s"]
        own, election_ms = place.address, int(place.options["election_timeout_ms"])
        members = ",".join(f"{name}=http://{address}:{PEER_PORT}" for name, address in place.addresses.items())
        return [
            "etcd",
            f"--name={place.node}",
            f"--data-dir={place.data_folder}",
            f"--listen-client-urls=http://{own}:{CLIENT_PORT}",
            f"--advertise-client-urls=http://{own}:{CLIENT_PORT}",
            f"--listen-peer-urls=http://{own}:{PEER_PORT}",
            f"--initial-advertise-peer-urls=http://{own}:{PEER_PORT}",
            f"--initial-cluster={members}",
            "--initial-cluster-token=faultline",
            "--initial-cluster-state=new",
            f"--election-timeout={election_ms}",
            f"--heartbeat-interval={max(election_ms // 10, 1)}",
            f"--experimental-watch-progress-notify-interval={PROGRESS_S * 1000:.0f}ms",
            *(compaction if history_s else ()),
            "--logger=zap",
        ]

    def status(self, address: str, timeout_s: float) -> NodeStatus:
        """Return the member's own report of its status. Raises OSError when it does not answer."""
        connection = http.client.HTTPConnection(address, CLIENT_PORT, timeout=timeout_s)
        try:
            answer = ask(connection, "/v3/maintenance/status", {})
        except OSError:
            raise
        except Exception as error:
            raise OSError(f"no status: {error!r}") from error
        finally:
            connection.close()
        leads = "leader" in answer and answer["leader"] == answer["header"]["member_id"]
        return NodeStatus(role="leader" if leads else "follower", generation=int(answer.get("raftTerm", 0)))

    def store_client(
        self, address_of: Callable[[str], str], members: Sequence[str], node: str, options: Mapping[str, str]
    ) -> LockOwner:
        """Return a client that talks to `node` first."""
        client = EtcdLocks(
            address_of,
            members,
            node,
            serializable=options["read_mode"] == "serializable",
            timeout_s=int(options["client_timeout_ms"]) / 1000,
            lease_ttl_s=int(options["lease_ttl_s"]),
            resumes_at_now=options["watch_resume"] == "now",
            is_fenced=options["fencing"] == "on",
        )
        return LockOwner(client)
