"""The player of stories about clocks, on `timestamped-kv`: writes and reads that carry the stamps of nodes' clocks."""

from __future__ import annotations

from typing import Any

from faultline.story.clock_cluster import SECOND_US, ClockCluster
from faultline.story.story_player import StoryPlayer
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import BEFORE_ALL, HybridTimestamp
from faultline.systems_under_test.reference.timestamped_kv.clocks import END_OF_TIME
from faultline.testing.hand_cranked import HandCrankedCluster

__all__ = ["ClockPlayer"]


class ClockPlayer(StoryPlayer):
    """One scene being played, with the largest stamp that each client has seen."""

    cluster_type = ClockCluster

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[str, HybridTimestamp] = {}

    def begin(self, cluster: HandCrankedCluster) -> None:
        self._seen.clear()
        super().begin(cluster)

    def message_words(self, source: str, target: str, message: Any) -> str:
        return ""

    def do_time(self, words: list[str]) -> None:
        """time NODE HH:MM:SS

        Make the wall clock of NODE show this time of day.
        """
        node, text = self.exactly(2, words, "time")
        self.cluster.set_clock(self.node(node), _seconds(text))

    def do_wait(self, words: list[str]) -> None:
        """wait SECONDS

        Let time pass for all alike.
        """
        (seconds,) = self.exactly(1, words, "wait")
        self.cluster.pass_seconds(float(seconds))

    def do_write(self, words: list[str]) -> None:
        """write CLIENT NODE LOCATION COUNT [unaware]

        Write a location's count at NODE, with the largest stamp that CLIENT has seen, or with none; print the stamp.
        """
        client, node, location, count, *rest = words if len(words) > 4 else self.exactly(4, words, "write")
        seen = BEFORE_ALL if rest == ["unaware"] else self._seen.get(client, BEFORE_ALL)
        before = len(self.cluster.inbox.get(client, ()))
        self.cluster.write(client, self.running(node), int(count), seen, location)
        self.cluster.deliver()
        self._tell_stamp(client, before)

    def do_answers(self, words: list[str]) -> None:
        """answers CLIENT

        Print the stamp of the client's latest write.
        """
        (client,) = self.exactly(1, words, "answers")
        self._tell_stamp(client, 0)

    def _tell_stamp(self, client: str, before: int) -> None:
        told = self.cluster.inbox.get(client, ())[before:]
        stamp = self.cluster.stamp_of(client) if told else None
        if stamp is None:
            error = self.cluster.error_of(client) if told else None
            self.lines.append(f"{client} {error or 'has no answer yet'}")
            return
        self._seen[client] = max(stamp, self._seen.get(client, BEFORE_ALL))
        self.lines.append(f"written at {self._words(stamp)}")

    def do_read(self, words: list[str]) -> None:
        """read CLIENT NODE LOCATION@NODE …

        Read each location where it is kept, at the time that the clock of NODE gives.
        """
        client, node, *places = words if len(words) > 2 else self.exactly(3, words, "read")
        time = self.cluster.read_time(client, self.running(node))
        counts = []
        for place in places:
            location, _, owner = place.partition("@")
            answer = self.cluster.read_at(client, self.running(owner), time, key=location)
            counts.append(f"{location} {'waits' if answer is None else answer.value}")
        self.lines.append(f"{node} reads at {self._words(time)}: {', '.join(counts)}")

    def _words(self, stamp: HybridTimestamp) -> str:
        if self.cluster.options.get("clock") == "lamport":
            return "the end of time" if stamp == END_OF_TIME else str(stamp.wall_us)
        minutes, seconds = divmod(stamp.wall_us // SECOND_US, 60)
        hours, minutes = divmod(minutes, 60)
        return f"({hours:02}:{minutes:02}:{seconds:02}, {stamp.ticks})"


def _seconds(text: str) -> int:
    hours, minutes, seconds = map(int, text.split(":"))
    return 3600 * hours + 60 * minutes + seconds
