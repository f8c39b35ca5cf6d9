"""One set of three hosts for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from namespace_fixtures import opened

from faultline.harness.errors import HarnessError
from faultline.harness.world.hosts.namespaces.host_set import NamespaceHosts


@pytest.fixture(scope="module")
def hosts() -> Iterator[NamespaceHosts | HarnessError]:
    hosts = opened(3)
    yield hosts
    if isinstance(hosts, NamespaceHosts):
        hosts.close()
