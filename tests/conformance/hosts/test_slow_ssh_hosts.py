"""Hosts that answer each SSH command late: faults come too late as well, and the run says that it tested little."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from namespace_fixtures import host_file_of, on_namespaces

from faultline.cli.main import perform
from faultline.harness.world.hosts.namespaces.host_set import NamespaceHosts

pytestmark = [pytest.mark.real, pytest.mark.slow]

SLOW_SHELL = b"""#!/bin/sh
sleep 0.3
exec /bin/sh "$@"
"""


def make_slow(hosts: NamespaceHosts) -> None:
    """Give root a login shell that takes 300 ms to start, as one with long start-up files does.

    sshd looks the shell up when a connection is made, so the connections of `hosts` stay as fast as they are.
    """
    for host in hosts.hosts:
        connection = hosts.fleet[host.name]
        connection.upload(SLOW_SHELL, "/etc/slow-shell")
        connection.run("chmod +x /etc/slow-shell && sed -i '1s#:/bin/sh$#:/etc/slow-shell#' /etc/passwd", root=True)


@on_namespaces
def test_a_run_whose_faults_come_too_late_on_slow_hosts_is_no_pass(
    hosts: NamespaceHosts, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_slow(hosts)
    where = ["--hosts", f"ssh:{host_file_of(hosts, tmp_path / 'hosts.toml')}", "--output", str(tmp_path)]
    code = perform(["run", *where, "--faults", "durability", "--duration", "3"])
    said = capsys.readouterr().out
    assert code == 3, said
    counted = re.search(r"\(faults-applied\): (\d) of (\d) planned faults took effect, below the floor", said)
    assert counted, said
    applied, planned = map(int, counted.groups())
    assert 2 * applied < planned, "most faults did not happen"
    (verdict,) = [json.loads(file.read_bytes()) for file in tmp_path.glob("runs/*/verdict.json")]
    assert verdict["verdict"] == "vacuous"
    assert [fault["applied"] for fault in verdict["exposure"]["faults"]].count(True) == applied
