"""A server on loopback, the host it stands for, and a connection to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ssh_server import HOST, SshServer

from faultline.harness.world.hosts.machines.connection import Connection, Patience
from faultline.harness.world.hosts.machines.host import Host

QUICK = Patience(connect_s=30.0, attempts=2, pause_s=0.01, command_s=30.0)
"""Tries again soon; a busy machine has time enough for each try."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SshServer]:
    server = SshServer(tmp_path)
    yield server
    server.close()


@pytest.fixture
def host(server: SshServer) -> Host:
    return Host(
        name="n1", address=HOST, port=server.port, key=str(server.key_file), known_hosts=(str(server.known_hosts),)
    )


@pytest.fixture
def connection(host: Host) -> Iterator[Connection]:
    connection = Connection(host, QUICK)
    yield connection
    connection.close()
