"""SWIM: find out which nodes are alive by asking one at a time, and let the news travel by gossip.

*Problem.* If every node watches every other, messages grow with the square of the cluster. If each decides alone from
the heartbeats that reach it, views differ, and every heartbeat must reach all nodes.

*Idea.* Once per period each node asks another, chosen at random, whether it is alive. If no answer comes, it asks a few
helpers to ask in its place, because the link may be broken, and not the node. If that brings no answer either, the node
is declared dead, and that is news. A node passes news on at once, but only if it is new to the node, so each node tells
each piece of news once. A node that hears of its own death says that it is alive, under a higher *incarnation*, which
only the node itself can raise. Of two statements about one incarnation, death wins.

*Invariants.* GO-I6 a node that is up and connected for long enough is up in all views, and a node that is down for long
enough is down in all views.

*Tolerates.* Lost messages, a broken link between two nodes, and pauses: a node that was wrongly declared dead returns.

*Does not tolerate.* Use in place of agreement: a slow node counts as dead for a while.

*Workloads.* `metadata` with `detector=swim`.

*Checkers.* `convergence` (the views after the heal).

*Planted bugs.* None of its own; those of gossip run with it too.

Sources: Patterns of Distributed Systems ch. 28; Das, Gupta and Motivala, "SWIM: Scalable Weakly-consistent
Infection-style Process Group Membership Protocol" (DSN 2002) §3 and §4.1. Left out: the suspicion stage of §4.2 and
Lifeguard's refinements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

__all__ = ["Membership", "News", "Prober"]

_HELPERS = 3


class News(msgspec.Struct, frozen=True, array_like=True):
    """A statement about a node: dead or alive, in that incarnation."""

    node: str
    incarnation: int
    is_dead: bool

    @property
    def rank(self) -> tuple[int, bool]:
        """The rank: of two statements the one with the higher rank counts."""
        return self.incarnation, self.is_dead


class Membership:
    """The dead and live nodes, as far as the news has reached `own`."""

    def __init__(self, own: str, incarnation: int) -> None:
        self._own = own
        self._news: dict[str, News] = {own: News(own, incarnation, False)}

    def hear(self, news: Iterable[News]) -> list[News]:
        """Take the news in, and return those to pass on.

        These are the ones that were new; in place of news that this node is dead, that it is alive.
        """
        return [answer for item in news if (answer := self._hear(item)) is not None]

    def _hear(self, item: News) -> News | None:
        if item.node == self._own:
            return self._contradict(item)
        known = self._news.get(item.node)
        # Old news are not passed on, so that each node tells each piece once and the flood ends.
        if known is not None and item.rank <= known.rank:
            return None
        self._news[item.node] = item
        return item

    def _contradict(self, item: News) -> News | None:
        """Contradict news of this node's own death, in an incarnation above that of the rumour."""
        if not item.is_dead:
            return None
        # Within one incarnation death wins, so only a higher one can take the statement back.
        if item.incarnation >= self._news[self._own].incarnation:
            self._news[self._own] = News(self._own, item.incarnation + 1, False)
        return self._news[self._own]

    def declare_dead(self, node: str) -> list[News]:
        """Declare `node`, which answers no node, dead; return the news, empty when it was known."""
        known = self._news.get(node)
        return self.hear([News(node, known.incarnation if known else 0, True)])

    def is_dead(self, node: str) -> bool:
        """Return whether `node` is dead, as far as is known here."""
        known = self._news.get(node)
        return known is not None and known.is_dead

    def all(self) -> list[News]:
        """Return everything that was heard, by node."""
        return [self._news[node] for node in sorted(self._news)]


class Prober:
    """The prober of one node per period; `ping` sends a question, `ask_for_me` has another node send it."""

    def __init__(
        self,
        ping: Callable[[str, int], None],
        ask_for_me: Callable[[str, str, int], None],
        declare_dead: Callable[[str], None],
    ) -> None:
        self._ping = ping
        self._ask_for_me = ask_for_me
        self._declare_dead = declare_dead
        self._number = 0
        self._target: str | None = None

    def probe(self, target: str) -> None:
        """End the last period, with a verdict on its node, and begin a period with `target`."""
        if self._target is not None:
            self._declare_dead(self._target)
        self._number += 1
        self._target = target
        self._ping(target, self._number)

    def ask_helpers(self, helpers: Iterable[str]) -> None:
        """Let `helpers` ask the node, which has not answered in time."""
        if self._target is None:
            return
        for helper, _ in zip(helpers, range(_HELPERS), strict=False):
            self._ask_for_me(helper, self._target, self._number)

    def acknowledged(self, node: str, number: int) -> None:
        """Note that `node` is alive, as it or a helper says in answer to question `number`."""
        if node == self._target and number == self._number:
            self._target = None
