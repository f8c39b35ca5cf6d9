"""What a test on hosts of namespaces shows where there are none: that they are refused by name, with a next step."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable

from faultline.harness.errors import HarnessError
from faultline.hosts.namespaces.host_set import NamespaceHosts
from faultline.hosts.namespaces.requirements import lacks


def opened(count: int) -> NamespaceHosts | HarnessError:
    """Hosts, or the refusal to make them."""
    try:
        return NamespaceHosts(count)
    except HarnessError as refusal:
        return refusal


def groups_named(name: str) -> list[str]:
    """The control groups whose name begins so, of whatever version."""
    # Other groups come and go meanwhile, which a walk does not mind.
    found = [(folder, inner) for folder, below, _ in os.walk("/sys/fs/cgroup") for inner in below]
    return [f"{folder}/{inner}" for folder, inner in found if inner.startswith(name)]


def on_namespaces(test: Callable[..., None]) -> Callable[..., None]:
    """The test's argument `hosts` is what `opened` gave: with hosts run the test, with a refusal look at that."""

    @functools.wraps(test)
    def run(hosts: NamespaceHosts | HarnessError, **others: object) -> None:
        if isinstance(hosts, HarnessError):
            assert hosts.message and hosts.next_step and hosts.exit_code == 4
            assert all(lack.what in hosts.message for lack in lacks())
        else:
            test(hosts, **others)

    return run
