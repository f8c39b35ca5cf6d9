"""The two sides of a join: a node looks for a cluster, and a coordinator answers those that it admitted.

A node that belongs to no cluster asks the nodes it knows, one after another. A seed that gets no answer founds a
cluster of its own, the first seed soonest, the others later in turn, so that two do not found two clusters at the same
start. A restarted seed asks the other seeds first: the cluster may be running. A seed whose group dissolved into one
that is not to be found does the same, for two groups may have dissolved into each other. Limit: while no seed lives,
nodes that belong to no cluster go on asking.

A joiner that is answered before the other members know it would be a stranger to them. So its answer waits for their
acknowledgements, but not for ever: a member that is down and not noticed yet must not hold up all joiners.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from faultline.harness.world.ports import Ports, Timer
from faultline.systems_under_test.reference.membership.settings import MemberSettings

__all__ = ["JoinReplies", "Joining"]

_ROUNDS_BEFORE_FOUNDING = 2


class Joining:
    """The attempts of one node to join; at rest while it belongs to a cluster."""

    def __init__(
        self,
        ports: Ports,
        seeds: Sequence[str],
        settings: MemberSettings,
        ask: Callable[[str, int], None],
        found: Callable[[int], None],
    ) -> None:
        self.version_seen = 0
        self._ports = ports
        self._seeds = seeds
        self._settings = settings
        self._ask = ask
        self._found = found
        self._contacts: list[str] = []
        self._attempts = 0
        self._timer: Timer | None = None

    def begin(self, version_seen: int = 0, contacts: Sequence[str] = ()) -> None:
        """Look for a cluster, `contacts` before the seeds."""
        own = self._ports.node_id
        self.version_seen = max(self.version_seen, version_seen)
        self._contacts = [contact for contact in dict.fromkeys((*contacts, *self._seeds)) if contact != own]
        self._attempts = 0
        self._try()

    def end(self, version: int) -> None:
        """End the attempts: the node belongs to a cluster at `version`."""
        self.version_seen = max(self.version_seen, version)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _try(self) -> None:
        if self._ports.node_id in self._seeds and self._attempts >= self._patience():
            self._found(self.version_seen)
            return
        if self._gave_up() or not self._contacts:
            return
        contact = self._contacts[self._attempts % len(self._contacts)]
        self._attempts += 1
        self._ask(contact, self.version_seen)
        self._timer = self._ports.timers.after(self._settings.join_timeout_us, self._try)

    def _patience(self) -> int:
        """Return the attempts of a seed before it founds a cluster: none when it is the only one."""
        rank = self._seeds.index(self._ports.node_id)
        return _ROUNDS_BEFORE_FOUNDING * len(self._contacts) * (rank + 1) if self._contacts else 0

    def _gave_up(self) -> bool:
        return 0 < self._settings.join_attempts <= self._attempts


class JoinReplies:
    """The joiners that wait for their answers, and the members whose acknowledgements are missing."""

    def __init__(self, ports: Ports, limit_us: int, welcome: Callable[[str, int], None]) -> None:
        self._ports = ports
        self._limit_us = limit_us
        self._welcome = welcome
        self._waiting: dict[tuple[str, int], tuple[int, set[str]]] = {}

    def expect(self, joiner: str, instance: int, version: int, others: Iterable[str]) -> None:
        """Answer `joiner` once all `others` have acknowledged `version`, at the latest after the limit."""
        place = (joiner, instance)
        self._waiting[place] = (version, set(others))
        self._ports.timers.after(self._limit_us, lambda: self._answer(place))
        self._answer_if_complete(place)

    def acknowledged(self, member: str, version: int) -> None:
        """Note that `member` has come to `version`."""
        for place, (wanted, missing) in list(self._waiting.items()):
            if version >= wanted:
                missing.discard(member)
                self._answer_if_complete(place)

    def clear(self) -> None:
        """Forget all joiners: this node coordinates no more, and they will ask again."""
        self._waiting.clear()

    def _answer_if_complete(self, place: tuple[str, int]) -> None:
        if not self._waiting[place][1]:
            self._answer(place)

    def _answer(self, place: tuple[str, int]) -> None:
        if self._waiting.pop(place, None) is not None:
            self._welcome(*place)
