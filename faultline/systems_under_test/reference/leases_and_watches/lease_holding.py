"""The leases a client holds: it keeps them alive, and knows when it must not act any more.

A refresh is sent after half of the time to live, and again soon without an answer, each to the leader as far as it is
known. Between two answers the owner trusts its own clock and nothing else. An answer counts however late it comes: it
extends the lease from the sending of its own refresh.
"""

from __future__ import annotations

from typing import NamedTuple

from faultline.harness.world.ports import NodeId, Ports
from faultline.systems_under_test.patterns.cluster_management.lease import NO_LEASE, HeldLease
from faultline.systems_under_test.reference.leases_and_watches.messages import (
    LeaseRefreshed,
    RefreshLease,
)
from faultline.systems_under_test.reference.leases_and_watches.settings import ServiceSettings

__all__ = ["LeaseHolding"]

_REFRESHES_PER_HALF = 4


class _Refresh(NamedTuple):
    """A refresh that was sent at `sent_us` and is not answered, and the server that was asked last."""

    held: HeldLease
    sent_us: int
    asked: NodeId


class LeaseHolding:
    """The leases of one client."""

    held_type: type[HeldLease] = HeldLease

    def __init__(self, ports: Ports, members: tuple[NodeId, ...], node: NodeId, settings: ServiceSettings) -> None:
        self._ports = ports
        self._members = members
        self._target = node
        self._settings = settings
        self._held: dict[str, HeldLease] = {}
        self._unanswered: dict[int, _Refresh] = {}
        self._numbers = 0

    def turn_to(self, node: NodeId) -> None:
        """Note that `node` leads, as it has answered a request."""
        self._target = node

    def granted(self, name: str, token: int, sent_us: int) -> None:
        """Note that the lease was granted to a request that was sent at `sent_us`."""
        settings = self._settings
        held = self.held_type(
            self._ports.clock,
            name,
            token,
            settings.lease_ttl_us,
            settings.lease_margin_percent,
            self.counted_from(sent_us),
        )
        self.drop(name)
        self._held[name] = held
        self._ports.timers.after(held.refresh_interval_us, lambda: self._keep_alive(held))

    def counted_from(self, sent_us: int) -> int:
        """Return the start of an owner's count: the core cannot have begun before the request was sent (LS-R17)."""
        return sent_us

    def held(self, name: str) -> HeldLease | None:
        """Return the lease of that name, if this client may still act as its owner."""
        held = self._held.get(name)
        if held is not None and not held.is_valid():
            self._ports.trace.sometimes("lease-lost")
            self.drop(name)
            return None
        return held

    def drop(self, name: str) -> None:
        """Act as the owner no longer, and refresh no longer."""
        self._held.pop(name, None)
        self._unanswered = {number: each for number, each in self._unanswered.items() if each.held.name != name}

    def _keep_alive(self, held: HeldLease) -> None:
        """Refresh, and come back: soon, in case no server answers, or when the next refresh is due."""
        if self._held.get(held.name) is not held or self.held(held.name) is None:
            return
        self._numbers += 1
        number = self._numbers
        self._unanswered[number] = _Refresh(held, self._ports.clock.monotonic_us(), self._target)
        self._ports.network.send(self._target, RefreshLease(held.name, held.token, number))
        self._ports.timers.after(
            held.refresh_interval_us // _REFRESHES_PER_HALF, lambda: self._look_after(held, number)
        )

    def _look_after(self, held: HeldLease, number: int) -> None:
        if number not in self._unanswered:
            rest_us = held.refresh_interval_us - held.refresh_interval_us // _REFRESHES_PER_HALF
            self._ports.timers.after(rest_us, lambda: self._keep_alive(held))
            return
        # A server that answered an earlier refresh meanwhile leads, and is asked again.
        if self._target == self._unanswered[number].asked:
            members = self._members
            self._target = members[(members.index(self._target) + 1) % len(members)]
        self._keep_alive(held)

    def receive(self, source: NodeId, answer: LeaseRefreshed) -> None:
        """Take the answer to a refresh: the lease lives on, or is lost, or another server is to be asked."""
        number, refresh = answer.correlation_id, self._unanswered.get(answer.correlation_id)
        if refresh is None:
            return
        held = refresh.held
        if answer.error is None:
            self._forget_until(number, held)
            self.turn_to(source)
            held.refreshed(self.counted_from(refresh.sent_us))
        elif answer.error == NO_LEASE:
            held.lost()
        elif answer.leader_id is not None:
            self._target = NodeId(answer.leader_id)
            self._unanswered[number] = refresh._replace(asked=self._target)
            self._ports.network.send(self._target, RefreshLease(held.name, held.token, number))

    def _forget_until(self, number: int, held: HeldLease) -> None:
        """Forget this refresh and the earlier ones: their answers would not extend the lease further."""
        for earlier in [each for each, sent in self._unanswered.items() if sent.held is held and each <= number]:
            del self._unanswered[earlier]
