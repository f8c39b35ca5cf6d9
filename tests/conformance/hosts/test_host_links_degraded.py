"""Links between hosts are really bad, in the direction that was asked for, and healthy again afterwards.

What is shown here is the emulator of links, also where the kernel has a netem, which does some of it otherwise.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import pytest
from namespace_fixtures import on_namespaces, opened
from process_table import processes_with

from faultline.harness.errors import HarnessError
from faultline.harness.judge import judge
from faultline.harness.plan import PlannedFault
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.verdict import Verdict
from faultline.harness.world.faults import LinkQuality
from faultline.harness.world.hosts.namespaces.datagrams import socket_in
from faultline.harness.world.hosts.namespaces.host_set import NamespaceHosts
from faultline.harness.world.hosts.namespaces.own_network import BUFFER_BYTES, enlarge_buffers
from faultline.harness.world.hosts.run import run_on_hosts
from faultline.registry import resolve

pytestmark = pytest.mark.real

LINKS = [(one, other) for one in ("n1", "n2", "n3") for other in ("n1", "n2", "n3") if one != other]
LINK, BACK = ("n1", "n2"), ("n2", "n1")
MS = 1_000


@pytest.fixture(scope="module")
def hosts() -> Iterator[NamespaceHosts | HarnessError]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("faultline.harness.world.hosts.namespaces.host_set.NETEM_TRIAL", "false")
        hosts = opened(3)
        yield hosts
        if isinstance(hosts, NamespaceHosts):
            hosts.close()


@contextmanager
def degraded(hosts: NamespaceHosts, quality: LinkQuality) -> Iterator[bool]:
    """One link of this quality; False when this machine cannot do it, after a look at how it says so."""
    if hosts.qualities.refusals:
        with pytest.raises(HarnessError, match="cannot be degraded"):
            hosts.qualities.degrade([LINK], quality)
        yield False
        return
    hosts.qualities.degrade([LINK], quality)
    try:
        yield True
    finally:
        hosts.qualities.degrade(LINKS, LinkQuality())


def sent_over(hosts: NamespaceHosts, link: tuple[str, str], *, at_least: int = 200) -> tuple[list[bytes], float]:
    """Send 200 datagrams of the test's own; return those that arrive, in order, and the seconds that the first took.

    Once `at_least` have come, a second without a datagram ends the wait; before that, twenty seconds do.
    """
    address = {host.name: host.address for host in hosts.hosts}
    with ExitStack() as stack:
        source, target = (
            stack.enter_context(socket_in(hosts.network_of(name), address[name], type_of_service=0)) for name in link
        )
        # Packets that are sent twice exceed the buffer of a socket until a process reads them.
        enlarge_buffers(target, BUFFER_BYTES)
        began_s = time.monotonic()
        for number in range(200):
            source.sendto(f"{number:08d}".encode(), target.getsockname())
        arrived, first_s = [], 0.0
        try:
            while True:
                target.settimeout(1.0 if len(arrived) >= at_least else 20.0)
                arrived.append(target.recv(64))
                first_s = first_s or time.monotonic() - began_s
        except TimeoutError:
            return arrived, first_s


@on_namespaces
def test_loss_is_directed_and_ends(hosts: NamespaceHosts) -> None:
    with degraded(hosts, LinkQuality(loss=0.5)) as can:
        if can:
            assert 50 < len(sent_over(hosts, LINK, at_least=51)[0]) < 150
            assert len(sent_over(hosts, BACK)[0]) == 200
            assert hosts.qualities.qualities(LINKS) == dict.fromkeys(LINKS, LinkQuality()) | {
                LINK: LinkQuality(loss=0.5)
            }
    assert len(sent_over(hosts, LINK)[0]) == 200
    assert hosts.qualities.qualities(LINKS) == dict.fromkeys(LINKS, LinkQuality())


@on_namespaces
def test_delay_holds_back_and_keeps_the_order(hosts: NamespaceHosts) -> None:
    quality = LinkQuality(delay_us=60_000, jitter_us=10_000)
    with degraded(hosts, quality) as can:
        if can:
            arrived, first_s = sent_over(hosts, LINK)
            assert first_s >= 0.06 and len(arrived) == 200 and arrived == sorted(arrived)
            assert hosts.qualities.qualities([LINK]) == {LINK: quality}


@on_namespaces
def test_what_is_held_back_when_the_link_is_healed_arrives_in_order(hosts: NamespaceHosts) -> None:
    address = {host.name: host.address for host in hosts.hosts}
    with ExitStack() as stack:
        source, target = (stack.enter_context(socket_in(hosts.network_of(n), address[n], 0)) for n in LINK)
        with degraded(hosts, LinkQuality(delay_us=60_000_000)):
            for number in range(5):
                source.sendto(b"%d" % number, target.getsockname())
        target.settimeout(10)
        assert [target.recv(8) for _ in range(5)] == [b"0", b"1", b"2", b"3", b"4"]


@on_namespaces
def test_duplicates_arrive_twice_and_reordered_ones_overtake(hosts: NamespaceHosts) -> None:
    with degraded(hosts, LinkQuality(duplicate=0.5)) as can:
        if can:
            arrived, _ = sent_over(hosts, LINK, at_least=251)
            assert len(set(arrived)) == 200 and 250 < len(arrived) < 350
            assert hosts.qualities.qualities([LINK]) == {LINK: LinkQuality(duplicate=0.5)}
    with degraded(hosts, LinkQuality(delay_us=30_000, reorder=0.3)) as can:
        if can:
            arrived, _ = sent_over(hosts, LINK)
            assert len(arrived) == 200 and arrived != sorted(arrived)


@on_namespaces
def test_corrupted_packets_are_thrown_away_by_the_receiving_kernel_which_counts_them(hosts: NamespaceHosts) -> None:
    def spoilt() -> int:
        counters = hosts.fleet["n2"].run("grep '^Udp:' /proc/net/snmp").text.splitlines()
        names, values = (line.split() for line in counters)
        return int(values[names.index("InCsumErrors")])

    with degraded(hosts, LinkQuality(corrupt=0.5)) as can:
        if can:
            before = spoilt()
            arrived, _ = sent_over(hosts, LINK, at_least=51)
            assert spoilt() - before == 200 - len(arrived) > 50
            assert hosts.qualities.qualities([LINK]) == {LINK: LinkQuality(corrupt=0.5)}


@on_namespaces
def test_a_rate_narrows_a_stream_and_loses_nothing_of_it(hosts: NamespaceHosts) -> None:
    program = "head -c 100000 </dev/zero >/dev/tcp/n2/7999"
    listen = (
        'python3 -c \'import socket; s = socket.create_server(("0.0.0.0", 7999)); print(1, flush=True); '
        'c = s.accept()[0]; print(sum(map(len, iter(lambda: c.recv(65536), b""))))\''
    )
    with degraded(hosts, LinkQuality(rate_kbit_per_s=2_000)) as can:
        if can:
            channel = hosts.fleet["n2"].open(listen)
            assert channel.recv(2) == b"1\n"
            began_s = time.monotonic()
            hosts.fleet["n1"].run(f"bash -c '{program}'", timeout_s=30)
            assert channel.makefile("rb").read() == b"100000\n"
            assert time.monotonic() - began_s >= 0.4
            assert hosts.qualities.qualities([LINK]) == {LINK: LinkQuality(rate_kbit_per_s=2_000)}


@on_namespaces
def test_cuts_and_bad_links_are_proved_independently(hosts: NamespaceHosts) -> None:
    with degraded(hosts, LinkQuality(loss=1.0)) as can:
        if not can:
            return
        assert not hosts.links.is_cut(LINK)
        hosts.links.cut([LINK])
        assert hosts.links.is_cut(LINK)
        assert hosts.qualities.qualities([LINK]) == {LINK: LinkQuality(loss=1.0)}
        hosts.links.restore([LINK])
        assert not hosts.links.is_cut(LINK)
        hosts.qualities.degrade([LINK], LinkQuality())
        hosts.links.cut([LINK])
        assert hosts.qualities.qualities([LINK]) == {LINK: LinkQuality()}
        hosts.links.restore([LINK])


def end_emulator_of(hosts: NamespaceHosts) -> None:
    (emulator,) = processes_with(str(hosts.supervisor.folder / "link-emulator.socket"))
    process = os.pidfd_open(emulator)
    signal.pidfd_send_signal(process, signal.SIGKILL)
    assert select.select([process], [], [], 20)[0]
    os.close(process)


@on_namespaces
def test_a_means_that_has_died_is_noticed_by_the_datagrams_and_told(hosts: NamespaceHosts) -> None:
    other = NamespaceHosts(2)
    try:
        if other.qualities.refusals:
            return
        other.qualities.degrade([LINK], LinkQuality(loss=0.9))
        assert len(sent_over(other, LINK, at_least=1)[0]) < 100
        end_emulator_of(other)
        assert len(sent_over(other, LINK)[0]) == 200, "the kernel lets packets pass without a decision"
        with pytest.raises(HarnessError, match="The process that degrades links does not answer"):
            other.qualities.qualities([LINK])
    finally:
        other.close()


@pytest.mark.slow
@on_namespaces
def test_a_store_on_hosts_bears_bad_links_and_the_record_counts_its_packets(
    hosts: NamespaceHosts, tmp_path: Path
) -> None:
    if hosts.qualities.refusals:
        return
    faults = (
        PlannedFault("packet-loss", 100 * MS, 400 * MS, "all", {"loss": 0.2}),
        PlannedFault("packet-delay", 700 * MS, 400 * MS, "leader", {"delay_us": 10_000, "jitter_us": 5_000}),
        PlannedFault("packet-duplicate", 1_300 * MS, 300 * MS, "all", {"duplicate": 0.5}),
        PlannedFault("packet-corrupt", 1_800 * MS, 300 * MS, "all", {"corrupt": 0.2}),
        PlannedFault("packet-reorder", 2_300 * MS, 300 * MS, "leader", {"delay_us": 5_000, "reorder": 0.3}),
        PlannedFault("packet-rate", 2_800 * MS, 300 * MS, "all", {"rate_kbit_per_s": 1_000}),
    )
    request = RunRequest(system="consistent-core", world="hosts", seed=1, duration_s=8.0, faults=())
    parts = resolve(request)
    plan = msgspec.structs.replace(make_plan(request, parts), faults=faults)
    record = run_on_hosts(plan, parts, hosts, folder=tmp_path)
    assert record.errors == [] and record.breaches == []
    assert [(fault.kind, fault.applied) for fault in record.faults] == [(fault.kind, None) for fault in faults]
    judgement = judge(record, parts, run_id="degraded")
    assert judgement.verdict is Verdict.PASS, judgement.sentence
    counted = {name: count for name, count in record.statistics.items() if name.startswith("packets_")}
    met_with = ("seen", "delayed", "lost", "duplicated", "reordered", "corrupted")
    assert set(counted) == {f"packets_{name}" for name in met_with}
    assert all(counted.values()) and counted["packets_seen"] == max(counted.values())
