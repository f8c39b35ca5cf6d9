"""A data node as a member: a lease of its own in the core, and a key that lives as long as the lease.

The index at which the lease was granted is the member's *incarnation*, the value of its key, and part of its name
in every appointment. A node that was paused or cut off for too long finds its lease lost, by its own clock before the
core's, and becomes a member again as another incarnation. So does a node that was restarted, once the lease that it has
forgotten is over.

Sources: Patterns of Distributed Systems ch. 26 and ch. 27, group membership by leases and watches.
"""

from __future__ import annotations

from collections.abc import Callable

from faultline.harness.outcome import Outcome
from faultline.harness.world.ports import Ports
from faultline.systems_under_test.reference.coordinated_kv.core import Core
from faultline.systems_under_test.reference.coordinated_kv.messages import MembershipBegan

__all__ = ["MEMBERS", "Membership"]

MEMBERS = "members"
"""The path of all members' keys."""

_TRY_AGAIN_US = 50_000


class Membership:
    """One node's membership; `began` is called with each new incarnation."""

    def __init__(self, ports: Ports, session: Core, began: Callable[[], None]) -> None:
        self._ports = ports
        self._session = session
        self._began = began
        self._key = f"{MEMBERS}/{ports.node_id}"
        self._is_joining = False
        self.incarnation = 0

    def start(self) -> None:
        """Become a member, and do so again after each loss of the lease."""
        self._look_after()
        self._ports.timers.every(_TRY_AGAIN_US, self._look_after)

    def is_valid(self) -> bool:
        """Return whether this node may still act as a member."""
        return self.incarnation != 0 and self._session.held(self._key) is not None

    def _look_after(self) -> None:
        if not self._is_joining and not self.is_valid():
            self.incarnation = 0
            self._is_joining = True
            self._session.ask("acquire", self._key, None, self._handle_lease)

    def _handle_lease(self, outcome: Outcome) -> None:
        held = self._session.held(self._key)
        if held is None:
            self._is_joining = False
            return
        value = {"value": held.token, "lease": self._key}
        self._session.ask("attach", self._key, value, lambda attached: self._handle_key(held.token, attached))

    def _handle_key(self, incarnation: int, outcome: Outcome) -> None:
        """Begin the membership if the key is stored; without it no other node would know of this member."""
        self._is_joining = False
        if outcome.kind == "ok":
            self.incarnation = incarnation
            self._ports.trace.emit(MembershipBegan(incarnation))
            self._began()
