"""The messages between the harness and the link emulator, as lines of JSON over a Unix socket."""

from __future__ import annotations

import msgspec

from faultline.harness.world.faults import LinkQuality
from faultline.harness.world.hosts.namespaces.emulated_link import PacketCounters

__all__ = ["Answer", "LinkReport", "LinkSetting", "Order"]


class LinkSetting(msgspec.Struct, frozen=True):
    """The link of `queue`: the bridge's port that leads to its target, the head of its frames, and its quality."""

    queue: int
    source: str
    target: str
    frame_head: str
    quality: LinkQuality


class Order(msgspec.Struct, frozen=True):
    """An order of the harness: `links` are to be so from now on."""

    links: tuple[LinkSetting, ...] = ()


class LinkReport(msgspec.Struct, frozen=True):
    """The counts of a link: its packets, and the harness's probes that are done with, lost or passed on."""

    source: str
    target: str
    packets: PacketCounters
    probes: int


class Answer(msgspec.Struct, frozen=True):
    """The reports of all links that were ever set; `problem` is empty, or says why an order was not followed."""

    links: tuple[LinkReport, ...] = ()
    problem: str = ""
