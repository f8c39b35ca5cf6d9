"""Real stores let in only who knows the password of the run, and it stands nowhere that others can read."""

from __future__ import annotations

import shlex
import threading
from pathlib import Path
from typing import Any

import pytest
from namespace_fixtures import on_namespaces
from store_runs import run_store

from faultline.harness.operation import Operation
from faultline.harness.world.hosts.namespaces.host_set import NamespaceHosts
from faultline.harness.world.hosts.store_cluster import StoreCluster

pytestmark = [pytest.mark.real, pytest.mark.slow]

GUARDED = ["postgresql", "patroni", "galera", "redis-sentinel", "redis-cluster", "nats", "rabbitmq"]
BOUND = [*GUARDED, "etcd", "zookeeper"]
STALE = {"nats": {"stale-read"}}
"""The anomalies that a store may show without a fault. A leader of NATS reads without confirming its leadership."""
SSH = "22"


class Look:
    """A look at the open ports, the readable files and the answer to a stranger, once, as soon as the store serves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, hosts: NamespaceHosts) -> None:
        self.hosts = hosts
        self.clusters: list[StoreCluster] = []
        self.open_doors: dict[str, list[str]] = {}
        self.readable: list[str] = []
        self.stranger: Any = None
        make = StoreCluster.__init__

        def noted(cluster: StoreCluster, *arguments: Any) -> None:
            make(cluster, *arguments)
            self.clusters.append(cluster)

        monkeypatch.setattr(StoreCluster, "__init__", noted)

    def __call__(self, _sentence: str) -> None:
        cluster = self.clusters[-1]
        if not cluster.has_served or self.open_doors:
            return
        for host in self.hosts.hosts:
            listening = self.hosts.fleet[host.name].run("ss -Hltn").text.splitlines()
            places = {line.split()[3] for line in listening}
            own = (f"{host.address}:", "127.", "[::1]:")
            self.open_doors[host.name] = sorted(
                place for place in places if not place.startswith(own) and place.rpartition(":")[2] != SSH
            )
        self.look_for(cluster.secret.password())
        knocking = threading.Thread(target=self.knock, args=(cluster,))
        knocking.start()
        knocking.join()

    def look_for(self, password: str) -> None:
        """Find the password in command lines, and files that others than their owners can read."""
        others = "setpriv --reuid=65534 --regid=65534 --clear-groups cat"
        for host in self.hosts.hosts:
            connection = self.hosts.fleet[host.name]
            # What is looked for goes in by the standard input: it would stand in a command line otherwise.
            lines = connection.run("cat /proc/[0-9]*/cmdline 2>/dev/null; true").stdout.split(b"\0")
            self.readable += [str(line) for line in lines if password.encode() in line]
            files = f"grep -rslF -f - {shlex.quote(host.folder)}"
            loop = f'{files} | while read -r file; do {others} "$file" >/dev/null 2>&1 && echo "$file"; done; true'
            self.readable += connection.run(loop, stdin=password.encode()).text.splitlines()

    def knock(self, cluster: StoreCluster) -> None:
        """As a client that does not know the password."""
        store: Any = cluster._store
        store.password, known = "not-the-password", store.password
        try:
            client = store.store_client(cluster._host_address, cluster.nodes, cluster.nodes[0], cluster.plan.options)
            operation = Operation(0, "dequeue" if "dequeue" in store.functions[:3] else "read", "queue-0", None)
            self.stranger = client.invoke(operation)
            client.close()
        finally:
            store.password = known


# nats-py leaves its connection to the collector where it is not let in.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@on_namespaces
@pytest.mark.parametrize("system", BOUND)
def test_a_store_is_closed_to_strangers_and_keeps_the_password_to_itself(
    hosts: NamespaceHosts,
    system: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    look = Look(monkeypatch, hosts)
    workload = "queue" if system == "rabbitmq" else "register"
    result = run_store(hosts, tmp_path, system, [], workload=workload, duration_s=1.0, progress=look)
    if result is None:
        return
    found = {finding.anomaly for finding in result[1].findings}
    assert found <= STALE.get(system, set()), result[1].sentence
    assert look.open_doors == {host.name: [] for host in hosts.hosts}
    assert look.readable == []
    if system in GUARDED:
        assert look.stranger.kind != "ok", "a stranger was let in"
    secret, password = look.clusters[-1].secret.reveal(), look.clusters[-1].secret.password()
    output = capfd.readouterr()
    assert password not in output.out + output.err
    for file in tmp_path.rglob("*"):
        content = file.read_bytes() if file.is_file() else b""
        for told in (secret, secret.hex().encode(), password.encode()):
            assert told not in content, file
