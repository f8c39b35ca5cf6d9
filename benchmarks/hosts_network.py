"""The times in which hosts of namespaces start, answer, and get network faults, in milliseconds.

    python benchmarks/hosts_network.py
    python benchmarks/hosts_network.py --hosts 3 --repeat 20

Each row has the median, the least and the greatest of its repetitions. A fault is *in force* when the call that injects
it returns, and *proved* when datagrams or connections of the harness's own have met with it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Collection
from functools import partial
from statistics import median

from faultline.harness.world.faults import LinkQuality
from faultline.harness.world.hosts.namespaces.host_set import NamespaceHosts
from faultline.harness.world.hosts.network.links import HostLink
from faultline.nemesis.partition import SHAPES, links_of

__all__ = ["main"]

Links = Collection[HostLink]
QUALITIES = {
    "loss 20 %": LinkQuality(loss=0.2),
    "duplicate 50 %": LinkQuality(duplicate=0.5),
    "delay 50 ms": LinkQuality(delay_us=50_000),
    "rate 1000 kbit/s": LinkQuality(rate_kbit_per_s=1_000),
}


def row(what: str, seconds: list[float]) -> None:
    """Print one line."""
    times = [1_000 * one for one in seconds]
    print(f"{what:<44} {median(times):>8.1f} {min(times):>8.1f} {max(times):>8.1f}", flush=True)


def timed(action: Callable[[], object]) -> float:
    """Return the time that `action` takes."""
    began = time.monotonic()
    action()
    return time.monotonic() - began


def up_and_down(count: int, repeat: int) -> None:
    """Make sets of hosts and release them."""
    ups, downs = [], []
    for _ in range(repeat):
        began = time.monotonic()
        hosts = NamespaceHosts(count)
        ups.append(time.monotonic() - began)
        downs.append(timed(hosts.close))
    row(f"{count} hosts up, SSH answering", ups)
    row(f"{count} hosts down", downs)


def commands(hosts: NamespaceHosts, repeat: int) -> None:
    """Run a command on one host, and on all."""
    hosts.fleet.run("true")
    first = hosts.fleet[hosts.hosts[0].name]
    row("a command on a connected host", [timed(lambda: first.run("true")) for _ in range(repeat)])
    row("a command on all hosts", [timed(lambda: hosts.fleet.run("true")) for _ in range(repeat)])


def partitions(hosts: NamespaceHosts, repeat: int) -> None:
    """Cut and restore links in every shape."""
    names = tuple(host.name for host in hosts.hosts)
    for shape in SHAPES:
        links, _ = links_of(shape, nodes=names, victim=names[0], direction="in", chance=7)
        cut, proved, restored = [], [], []
        for _ in range(repeat):
            cut.append(timed(partial(hosts.links.cut, links)))
            proved.append(timed(partial(_prove_cut, hosts, links)))
            restored.append(timed(partial(hosts.links.restore, links)))
        row(f"partition {shape}, {len(links)} links, in force", cut)
        row(f"partition {shape}, proved", proved)
        row(f"partition {shape}, restored", restored)


def bad_links(hosts: NamespaceHosts, repeat: int) -> None:
    """Degrade all links and make them healthy."""
    names = [host.name for host in hosts.hosts]
    links = [(one, other) for one in names for other in names if one != other]
    hosts.qualities.prepare()
    for what, quality in QUALITIES.items():
        bad, proved, healthy = [], [], []
        for _ in range(repeat):
            bad.append(timed(partial(hosts.qualities.degrade, links, quality)))
            proved.append(timed(partial(_prove_bad, hosts, links, quality)))
            healthy.append(timed(partial(hosts.qualities.degrade, links, LinkQuality())))
        row(f"{what}, {len(links)} links, in force", bad)
        row(f"{what}, proved", proved)
        row(f"{what}, healthy again", healthy)


def cables_and_connections(hosts: NamespaceHosts, repeat: int) -> None:
    """Pull cables, and let connections be reset."""
    names = [host.name for host in hosts.hosts]
    links = [(one, other) for one in names for other in names if one != other]
    down, up, reset, proved = [], [], [], []
    for _ in range(repeat):
        down.append(timed(lambda: hosts.cables.take_down(names[0])))
        _require(hosts.cables.is_down(names[0]))
        up.append(timed(lambda: hosts.cables.bring_up(names[0])))
        reset.append(timed(lambda: hosts.connections.reset(links)))
        proved.append(timed(lambda: _require(hosts.connections.resets(links) == frozenset(links))))
        hosts.connections.admit(links)
    row("link down", down)
    row("link up", up)
    row(f"connections reset, {len(links)} links, in force", reset)
    row("connections reset, proved", proved)


def _prove_cut(hosts: NamespaceHosts, links: Links) -> None:
    _require(hosts.links.are_cut(links) == frozenset(links))


def _prove_bad(hosts: NamespaceHosts, links: Links, quality: LinkQuality) -> None:
    _require(set(hosts.qualities.qualities(links).values()) == {quality})


def _require(true: bool) -> None:
    if not true:
        raise SystemExit("A fault was not in force: this is no measurement.")


def main(arguments: list[str] | None = None) -> int:
    """Print all rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=5)
    asked = parser.parse_args(arguments)
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    print(f"{'':<44} {'median':>8} {'least':>8} {'greatest':>8}")
    up_and_down(asked.hosts, asked.repeat)
    hosts = NamespaceHosts(asked.hosts)
    try:
        commands(hosts, 10 * asked.repeat)
        partitions(hosts, asked.repeat)
        bad_links(hosts, asked.repeat)
        cables_and_connections(hosts, asked.repeat)
    finally:
        hosts.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
