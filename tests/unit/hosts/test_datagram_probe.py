"""The probe of datagrams works on a loaded machine too; a link that lets none pass is never called open."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from faultline.harness.world.hosts.namespaces import datagrams
from faultline.harness.world.hosts.namespaces.datagrams import DatagramProbe, HostSockets

LINK = ("n1", "n2")
ADDRESS = "127.0.0.1"


class LosingSocket(socket.socket):
    """Loses the first datagrams that are sent through it."""

    losses = 0
    sent = 0

    def sendto(self, *message: object) -> int:
        """Count it, and send it once enough are lost."""
        self.sent += 1
        return 0 if self.sent <= self.losses else super().sendto(*message)


class Bench:
    """A probe between two hosts that are sockets on loopback."""

    def __init__(self, folder: Path) -> None:
        self.source, self.target = (LosingSocket(socket.AF_INET, socket.SOCK_DGRAM) for _ in LINK)
        for made in (self.source, self.target):
            made.bind((ADDRESS, 0))
        waiting = iter((self.target, self.source))  # the receiver is asked for first
        self.probe = DatagramProbe({}, lambda _: folder)
        self.probe._sockets = HostSockets(dict.fromkeys(LINK, ADDRESS), lambda _: folder, lambda *_: next(waiting))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.probe.close()


def test_a_link_is_open_though_the_first_datagrams_were_dropped(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datagrams, "PASSING_TIMEOUT_S", 30.0)
    bench.source.losses = 2
    assert bench.probe.passes(LINK, expected=True)
    assert bench.source.sent == 3


def test_a_link_that_should_be_cut_is_asked_once(bench: Bench) -> None:
    bench.source.losses = 1
    assert not bench.probe.passes(LINK, expected=False)
    assert bench.source.sent == 1


def test_a_link_that_lets_nothing_pass_is_cut_however_often_it_is_asked(bench: Bench) -> None:
    bench.source.losses = 1_000
    assert not bench.probe.passes(LINK, expected=True)


@pytest.mark.parametrize("expected", [True, False])
def test_what_arrived_while_the_harness_slept_past_its_deadline_counts(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, expected: bool
) -> None:
    hours = itertools.count(0, 3_600)
    monkeypatch.setattr(datagrams.time, "monotonic", lambda: next(hours))
    assert bench.probe.passes(LINK, expected=expected)


def test_late_ones_of_an_earlier_question_do_not_count(bench: Bench) -> None:
    bench.source.sendto(b"0", bench.target.getsockname())
    bench.source.losses = 1_000
    assert not bench.probe.passes(LINK, expected=False)
