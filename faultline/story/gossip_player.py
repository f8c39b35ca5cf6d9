"""The player of stories about gossip, on `gossip`: who meets whom, and what each node has heard by then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from faultline.story.gossip_cluster import GossipCluster
from faultline.story.story_player import StoryPlayer
from faultline.systems_under_test.reference.gossip.messages import GossipDigest, GossipReply, GossipStates, GossipWhole

__all__ = ["GossipPlayer"]


class GossipPlayer(StoryPlayer):
    """One scene being played."""

    cluster_type = GossipCluster

    def message_words(self, source: str, target: str, message: Any) -> str:
        link = f"{source} → {target}:"
        if isinstance(message, GossipWhole | GossipStates):
            return f"{link} {_said(message.states)}"
        if isinstance(message, GossipReply):
            return f"{link} {_said(message.states)}; knows {', '.join(sorted(message.digest))}"
        if isinstance(message, GossipDigest):
            return f"{link} knows {', '.join(sorted(message.digest))}"
        return super().message_words(source, target, message)

    def do_say(self, words: list[str]) -> None:
        """say NODE KEY VALUE

        Let NODE say something of itself; deliver nothing.
        """
        node, key, value = self.exactly(3, words, "say")
        self.cluster.say(self.running(node), key, value)

    def do_gossip(self, words: list[str]) -> None:
        """gossip NODE PEER

        Let chance choose PEER for NODE, which opens an exchange; deliver nothing.
        """
        node, peer = self.exactly(2, words, "gossip")
        self.cluster.open_exchange(self.running(node), self.node(peer))

    def do_rounds(self, words: list[str]) -> None:
        """rounds COUNT NODE KEY

        Let every node gossip COUNT times with peers of its own choice; say after each round how many nodes know what
        NODE said under KEY.
        """
        count, owner, key = self.exactly(3, words, "rounds")
        for number in range(1, int(count) + 1):
            self.cluster.rounds(1)
            told = [name for name in self.cluster.nodes if self.cluster.known(name, self.node(owner), key) is not None]
            self.lines.append(f"round {number}: {len(told)} of {len(self.cluster.members)} nodes know {owner}'s {key}")

    def do_show(self, words: list[str]) -> None:
        """show known KEY [NODE …] | nodes|messages|breaches [NODE …]

        Print the values of KEY that nodes know, the nodes of which they have heard, or what every player shows.
        """
        what, *rest = words or [""]
        if what == "known" and rest:
            key, *names = rest
            for name in names or self.cluster.nodes:
                known = self.cluster.knowledge(self.running(name), key)
                self.lines.append(f"{name}: {', '.join(f'{who} {value}' for who, value in sorted(known.items()))}")
        elif what == "nodes":
            for name in rest or self.cluster.nodes:
                self.lines.append(f"{name} knows of {', '.join(self.cluster.acquaintances(self.running(name)))}")
        else:
            super().do_show(words)


def _said(states: Mapping[str, Any]) -> str:
    """Return the statements of a message in words: the nodes that made them, with their keys and values."""
    said = [
        f"{node}'s {key} {'gone' if entry.deleted else entry.value}"
        for node, delta in sorted(states.items())
        for key, entry in delta.entries.items()
    ]
    return ", ".join(said) or "nothing new"
