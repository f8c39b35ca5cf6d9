"""A member of a cluster: it joins, watches the others, and coordinates when it is the oldest.

A node that belongs to no cluster is described in `joining`, the watch over silent members in `watching`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from faultline.harness.world.ports import READY, NodeId, NodeStatus, Ports
from faultline.systems_under_test.patterns.cluster_management.emergent_leader import Membership, absorbs
from faultline.systems_under_test.patterns.data_replication.generation_clock import GenerationClock
from faultline.systems_under_test.reference.membership.joining import Joining, JoinReplies
from faultline.systems_under_test.reference.membership.messages import (
    Heartbeat,
    HeartbeatRequest,
    JoinRequest,
    JoinResponse,
    MembershipAcknowledged,
    MembershipInstalled,
    MembershipMade,
    MergeInto,
    NodeStarted,
    Removed,
    SilenceChecked,
    SilenceReport,
    SplitBrainJoin,
    SplitBrainMerge,
    UpdateMembership,
)
from faultline.systems_under_test.reference.membership.settings import MemberSettings
from faultline.systems_under_test.reference.membership.watching import NEIGHBOURS, Silence, neighbours
from faultline.systems_under_test.reference.shared.handler_table import HandlerTable

__all__ = ["ClusterMember", "MemberParts"]


@dataclass(frozen=True, slots=True)
class MemberParts:
    """The parts that a member is built from; a planted bug changes one of them."""

    silence: Callable[..., Silence] = Silence
    absorbs: Callable[..., bool] = absorbs


class ClusterMember:
    """One node without anything to serve: implements `Node` over its ports. A system adds handlers of its own."""

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], settings: MemberSettings, parts: MemberParts) -> None:
        self.ports = ports
        self.settings = settings
        self.parts = parts
        self.membership: Membership | None = None
        self._seeds = members[: settings.seeds]
        self._reported: dict[str, int] = {}
        self._handlers = HandlerTable(
            {
                JoinRequest: self._handle_join,
                JoinResponse: self._handle_welcome,
                UpdateMembership: self._handle_update,
                MembershipAcknowledged: self._handle_acknowledgement,
                Heartbeat: self._handle_heartbeat,
                HeartbeatRequest: self._handle_heartbeat_request,
                Removed: self._handle_removed,
                SilenceReport: self._handle_report,
                SplitBrainJoin: self._handle_split_brain,
                SplitBrainMerge: self._handle_merge,
                MergeInto: self._handle_merge_into,
            }
        )

    def start(self) -> None:
        """Begin a new instance, durable before any message carries it, and look for a cluster."""
        starts = GenerationClock(self.ports.storage, "instance")
        starts.recover()
        starts.adopt(starts.generation + 1)
        self.instance = starts.generation
        self._largest = GenerationClock(self.ports.storage, "largest")
        self._largest.recover()
        settings = self.settings
        self._silence = self.parts.silence(
            self.ports.clock, settings.failure_timeout_us, settings.heartbeat_interval_us
        )
        self._looked = SilenceChecked(settings.heartbeat_interval_us + settings.failure_timeout_us)
        self._join_replies = JoinReplies(self.ports, settings.acknowledgement_us, self._welcome)
        self.joining = Joining(self.ports, self._seeds, settings, self._ask_to_join, self._found)
        self.ports.trace.emit(NodeStarted(self.instance))
        self.joining.begin()
        self.ports.timers.every(settings.heartbeat_interval_us, self._tick)
        self.ports.timers.every(settings.merge_interval_us, self._search_for_the_failed)

    def receive(self, source: NodeId, message: Any) -> None:
        """Handle one message from a member, a stranger or a client."""
        self._handlers[type(message)](source, message)

    def status(self) -> NodeStatus:
        """Return the role: faults aimed at the leader hit each node that believes to be the coordinator."""
        membership = self.membership
        if membership is None:
            return NodeStatus(role="joining")
        leader = membership.coordinator.address
        role = "leader" if leader == self.address else READY
        return NodeStatus(role=role, generation=membership.version, leader=leader)

    @property
    def address(self) -> str:
        """The address of this node."""
        return self.ports.node_id

    @property
    def is_coordinator(self) -> bool:
        """True if this node is the oldest member, as far as it knows."""
        return self.membership is not None and self.membership.coordinator.address == self.address

    def _ask_to_join(self, contact: str, version_seen: int) -> None:
        request = JoinRequest(self.address, self.instance, version_seen, max(1, self._largest.generation))
        self._send(contact, request)

    def _found(self, version_seen: int) -> None:
        """Found a cluster: no node answered this seed."""
        largest = max(1, self._largest.generation)
        founded = Membership.founded_by(self.address, self.instance, version_seen + 1, largest)
        self._make(founded, None)

    def _make(self, membership: Membership, before: Membership | None, silent: tuple[str, ...] = ()) -> None:
        """As the coordinator, follow a new membership, and send it to all that were members before."""
        self.ports.trace.emit(MembershipMade(membership, before, silent))
        self._install(membership)
        # New members get it with the answer to their join, once the others know them.
        for member in before.live if before is not None else ():
            if member in membership.live and member.address != self.address:
                self._send(member.address, UpdateMembership(membership))

    def _install(self, membership: Membership) -> None:
        joined = self.membership is None
        for member in membership.live:
            if self.membership is None or member not in self.membership.live:
                self._silence.forget(member.address)
                self._reported.pop(member.address, None)
        self.membership = membership
        self._largest.adopt(max(self._largest.generation, membership.largest))
        self._silence.watch(self._watched())
        self.joining.end(membership.version)
        self.ports.trace.emit(MembershipInstalled(membership, joined))

    def leave(self, contact: str) -> None:
        """Leave the cluster, and join the one that `contact` is in."""
        membership = self.membership
        assert membership is not None
        known = [member.address for member in (*membership.live, *membership.failed)]
        self.membership = None
        self._join_replies.clear()
        self._silence.watch(())
        self.joining.begin(membership.version, [contact, *(address for address in known if address != self.address)])

    def _others(self) -> list[str]:
        assert self.membership is not None
        return [member.address for member in self.membership.live if member.address != self.address]

    def _handle_join(self, _: NodeId, request: JoinRequest) -> None:
        membership = self.membership
        if membership is None or request.joiner == membership.coordinator.address != self.address:
            return
        if not self.is_coordinator:
            self._send(membership.coordinator.address, request)
            return
        known = membership.member(request.joiner)
        if known is not None and known.instance >= request.instance:
            if known.instance == request.instance:
                self._send(request.joiner, JoinResponse(request.instance, membership))
            return
        self._admit(membership, request, was_here=known is not None or membership.is_failed(request.joiner))

    def _admit(self, membership: Membership, request: JoinRequest, *, was_here: bool) -> None:
        self.ports.trace.sometimes("member-rejoined" if was_here else "member-joined")
        admitted = membership.with_member(request.joiner, request.instance, request.version_seen, request.largest_seen)
        others = [address for address in self._others() if address != request.joiner]
        self._make(admitted, membership)
        self._join_replies.expect(request.joiner, request.instance, admitted.version, others)

    def _welcome(self, joiner: str, instance: int) -> None:
        if self.membership is not None and self.is_coordinator:
            self._send(joiner, JoinResponse(instance, self.membership))

    def _handle_welcome(self, _: NodeId, response: JoinResponse) -> None:
        # A seed that heard nothing for long has founded a cluster. A late answer ends that cluster as long as it has no
        # other member. Otherwise two groups would serve until the next search.
        is_alone = self.membership is None or len(self.membership.live) == 1
        if is_alone and response.instance == self.instance:
            self._take_if_newer(response.membership)

    def _handle_update(self, source: NodeId, update: UpdateMembership) -> None:
        self._take_if_newer(update.membership)
        self._prevail(update.membership)
        if self.membership is not None and self.membership.version >= update.membership.version:
            self._send(source, MembershipAcknowledged(update.membership.version))

    def _take_if_newer(self, membership: Membership) -> None:
        """Follow the membership if this start of the node is in it, and it is newer than all that was followed."""
        if membership.version <= self._version_seen():
            return
        own = membership.member(self.address)
        if own is not None and own.instance == self.instance:
            self._install(membership)
        elif self.membership is not None:
            self._learn_removal(membership)

    def _version_seen(self) -> int:
        return self.joining.version_seen if self.membership is None else self.membership.version

    def _handle_acknowledgement(self, source: NodeId, message: MembershipAcknowledged) -> None:
        self._join_replies.acknowledged(source, message.version)

    def _handle_removed(self, _: NodeId, message: Removed) -> None:
        own = message.membership.member(self.address)
        is_newer = message.membership.version > self._version_seen()
        if self.membership is not None and is_newer and (own is None or own.instance != self.instance):
            self._learn_removal(message.membership)

    def _learn_removal(self, membership: Membership) -> None:
        self.ports.trace.sometimes("removal-learned")
        self.leave(membership.coordinator.address)

    def _tick(self) -> None:
        """Send heartbeats, and judge the silent members."""
        silent = self._silence.check()
        self.ports.trace.emit(self._looked)
        if self.membership is None:
            return
        for address in self._watchers():
            self._send_heartbeat(address, self.membership)
        if silent is None:
            self.ports.trace.sometimes("slept-through")
            return
        if self.settings.heartbeats == "ring":
            self._look_past(silent)
        self._judge(silent)

    def _look_past(self, silent: Collection[str]) -> None:
        """Watch past the silent ones: the member before one of them may have no watcher left, so ask it."""
        watched = self._watched(silent)
        self._silence.watch(watched)
        for address in watched[NEIGHBOURS:]:
            self._send(address, HeartbeatRequest())

    def _handle_heartbeat_request(self, source: NodeId, _: HeartbeatRequest) -> None:
        if self.membership is not None:
            self._send_heartbeat(source, self.membership)

    def _send_heartbeat(self, address: str, membership: Membership) -> None:
        self._send(address, Heartbeat(self.instance, membership.version, membership.coordinator.address))

    def _judge(self, silent: tuple[str, ...]) -> None:
        assert self.membership is not None
        if silent and self.settings.heartbeats == "ring":
            for address in self._others():
                self._send(address, SilenceReport(silent))
        now_us = self.ports.clock.monotonic_us()
        reported = [address for address, until_us in self._reported.items() if until_us > now_us]
        gone = tuple(dict.fromkeys((*silent, *(a for a in reported if self.membership.member(a) is not None))))
        if gone and self._may_remove(self.membership, gone):
            self._remove(self.membership, gone)

    def _may_remove(self, membership: Membership, gone: tuple[str, ...]) -> bool:
        return self.is_coordinator or membership.may_claim(self.address, gone)

    def _remove(self, membership: Membership, gone: tuple[str, ...]) -> None:
        self.ports.trace.sometimes("members-failed" if self.is_coordinator else "coordinator-claimed")
        self._make(membership.without(gone), membership, gone)

    def _handle_heartbeat(self, source: NodeId, heartbeat: Heartbeat) -> None:
        membership = self.membership
        if membership is None:
            return
        member = membership.member(source)
        if member is None or member.instance > heartbeat.instance:
            self._send(source, Removed(membership))
        elif member.instance == heartbeat.instance:
            self._silence.heard(source)
            self._reported.pop(source, None)
            if heartbeat.version < membership.version and self._may_repair():
                self.ports.trace.sometimes("update-repaired")
                self._send(source, UpdateMembership(membership))
            elif heartbeat.version == membership.version and heartbeat.coordinator != membership.coordinator.address:
                # Two clusters list each other's members: the other coordinator learns of it, and may prevail.
                self._send(heartbeat.coordinator, UpdateMembership(membership))

    def _may_repair(self) -> bool:
        """Return whether this node is to repair old versions: the coordinator sees all, each node of a ring a few."""
        return self.is_coordinator or self.settings.heartbeats == "ring"

    def _handle_report(self, source: NodeId, report: SilenceReport) -> None:
        if self.membership is None or self.membership.member(source) is None:
            return
        until_us = self.ports.clock.monotonic_us() + self.settings.failure_timeout_us
        for address in report.silent:
            if address != self.address:
                self._reported[address] = until_us

    def _watchers(self) -> list[str]:
        """Return the members that hear this node: all others, or the next ones in the ring."""
        return self._neighbours(1) if self.settings.heartbeats == "ring" else self._others()

    def _watched(self, silent: Collection[str] = ()) -> list[str]:
        """Return the members that this node hears: all others, or those before it in the ring, past silent ones."""
        return self._neighbours(-1, silent) if self.settings.heartbeats == "ring" else self._others()

    def _neighbours(self, direction: int, silent: Collection[str] = ()) -> list[str]:
        assert self.membership is not None
        return neighbours(self.address, [member.address for member in self.membership.live], direction, silent)

    def _search_for_the_failed(self) -> None:
        membership = self.membership
        if membership is None or not self.is_coordinator:
            return
        # A seed may have founded a cluster that does not know of this one, nor this one of it.
        strangers = (address for address in self._seeds if membership.member(address) is None)
        for address in dict.fromkeys((*(member.address for member in membership.failed), *strangers)):
            self._send(address, SplitBrainJoin(membership.coordinator, len(membership.live)))

    def _handle_split_brain(self, _: NodeId, message: SplitBrainJoin) -> None:
        membership = self.membership
        if membership is None or membership.member(message.coordinator.address) is not None:
            return
        if not self.is_coordinator:
            self._send(membership.coordinator.address, message)
        elif self.parts.absorbs(membership, message.count, message.coordinator):
            answer = SplitBrainMerge(membership.coordinator, len(membership.live))
            self._send(message.coordinator.address, answer)
        else:
            self._dissolve(message.coordinator.address)

    def _handle_merge(self, _: NodeId, message: SplitBrainMerge) -> None:
        membership = self.membership
        if membership is None or not self.is_coordinator:
            return
        stranger = membership.member(message.coordinator.address) is None
        if stranger and not self.parts.absorbs(membership, message.count, message.coordinator):
            self._dissolve(message.coordinator.address)

    def _prevail(self, other: Membership) -> None:
        """Make the own membership the later one if `other` has its version, and this group is the one that stays."""
        own = self.membership
        if own is None or not self.is_coordinator or own.version != other.version:
            return
        if own.coordinator != other.coordinator and self.parts.absorbs(own, len(other.live), other.coordinator):
            self.ports.trace.sometimes("groups-merged")
            self._make(own.made_later(), own)

    def _dissolve(self, target: str) -> None:
        """Give this group up: all its members join the other one, as its youngest."""
        self.ports.trace.sometimes("groups-merged")
        for address in self._others():
            self._send(address, MergeInto(target))
        self.leave(target)

    def _handle_merge_into(self, source: NodeId, message: MergeInto) -> None:
        membership = self.membership
        if membership is not None and source == membership.coordinator.address != message.target:
            self.leave(message.target)

    def _send(self, address: str, message: Any) -> None:
        self.ports.network.send(NodeId(address), message)
