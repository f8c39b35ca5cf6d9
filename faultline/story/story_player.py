"""Shared parts of the players of scenes: the cluster of one kind that each plays on, passing time, and the widgets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from faultline.story.log_words import stock_words
from faultline.testing.hand_cranked import HandCrankedCluster
from faultline.testing.transcript_commands import TranscriptPlayer
from faultline.workloads.transfer import OPENING

__all__ = ["PLACES", "LibraryPlayer", "StockPlayer", "StoryPlayer"]

PLACES = tuple(map(str.capitalize, OPENING))
"""The locations of the widgets, as the book writes them."""


class StoryPlayer(TranscriptPlayer):
    """A player of scenes on clusters of `cluster_type`; events of nodes have no words unless a subclass gives them."""

    cluster_type: type[Any]

    def new_cluster(
        self, size: int | Sequence[str], planted_bugs: tuple[str, ...], options: dict[str, str]
    ) -> HandCrankedCluster:
        # The scene names its system, by which this player was chosen.
        options.pop("system", None)
        cluster: HandCrankedCluster = self.placed(self.cluster_type)(size, planted_bugs, **options)
        return cluster

    def event_words(self, node: str, event: Any, *, in_brief: bool) -> str | None:
        return None


class LibraryPlayer(StoryPlayer):
    """A player on a `LibraryCluster`, whose time passes in milliseconds."""

    def do_wait(self, words: list[str]) -> None:
        """wait MILLISECONDS

        Let time pass for all alike; nodes talk.
        """
        (text,) = self.exactly(1, words, "wait")
        self.cluster.wait(int(text))


class StockPlayer(LibraryPlayer):
    """A player whose client library keeps the 183 widgets."""

    def do_stock(self, words: list[str]) -> None:
        """stock CLIENT

        Let the client library write the 183 widgets, each location to its partition.
        """
        (client,) = self.exactly(1, words, "stock")
        for place, count in zip(PLACES, OPENING.values(), strict=True):
            self.lines.append(f"{client}: {place} {self.cluster.ask('write', place, count, client).kind}")

    def do_count(self, words: list[str]) -> None:
        """count CLIENT

        Let the client library read each location.
        """
        (client,) = self.exactly(1, words, "count")
        counts = {place: self.cluster.ask("read", place, client=client).value for place in PLACES}
        self.lines.append(f"{client}: {stock_words(counts)}; {sum(count or 0 for count in counts.values())} in all")
