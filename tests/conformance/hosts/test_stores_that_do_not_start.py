"""A member of a store that does not come up is one sentence, with what matters of its log."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest
from namespace_fixtures import on_namespaces

from faultline.harness.errors import HarnessError
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.system import StorePlace
from faultline.harness.world.hosts.namespaces.host_set import NamespaceHosts
from faultline.harness.world.hosts.run import run_on_hosts
from faultline.registry import resolve
from faultline.systems_under_test.stores.etcd.system import Etcd

pytestmark = [pytest.mark.real, pytest.mark.slow]

LISTENER = """
import socket, sys
taken = socket.create_server(("0.0.0.0", {port}))
print("listens", flush=True)
sys.stdin.read()
"""


class Misspelt(Etcd):
    """Refuses to start and says why in the middle of what it logs."""

    programs: ClassVar[Mapping[str, str]] = {"sh": "dash"}

    def command(self, place: StorePlace) -> list[str]:
        noise = "; ".join(f"echo reading chapter {number}" for number in range(6))
        return ["sh", "-c", f"{noise}; echo FATAL: no such directive: apendonly; {noise}; exit 3"]


def refused(hosts: NamespaceHosts, store: Etcd, folder: Path) -> HarnessError:
    request = RunRequest(system="etcd", world="hosts", seed=1, duration_s=1.0, faults=())
    parts = resolve(request)
    plan = make_plan(request, parts)
    parts = type(parts)(**{name: getattr(parts, name) for name in parts.__slots__} | {"system": store})
    with pytest.raises(HarnessError) as caught:
        run_on_hosts(plan, parts, hosts, folder=folder)
    assert caught.value.exit_code == 4
    return caught.value


@on_namespaces
def test_the_line_of_the_log_that_matters_is_told(hosts: NamespaceHosts, tmp_path: Path) -> None:
    error = refused(hosts, Misspelt(), tmp_path)
    # With what follows it, which often says more; without the six chapters before.
    following = "( / reading chapter [0-2])*"
    assert re.fullmatch(rf"\w+ did not come up on n\d: FATAL: no such directive: apendonly{following}", error.message)
    assert "node.log" in error.next_step


@on_namespaces
def test_a_port_that_is_taken_is_told_as_such(hosts: NamespaceHosts, tmp_path: Path) -> None:
    listener = hosts.fleet["n1"].open(f"exec python3 -c {shlex.quote(LISTENER.format(port=Etcd.up_port))}")
    assert listener.recv(7) == b"listens"
    try:
        error = refused(hosts, Misspelt(), tmp_path)
    finally:
        listener.shutdown_write()
        listener.recv_exit_status()
        listener.close()
    assert error.message == "athens cannot start on n1: something else listens on its port 2380 already."
    assert "ss -ltnp" in error.next_step
