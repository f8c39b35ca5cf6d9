"""The player of stories about one server and its files, `location-files`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from faultline.story.location_files import LocationFiles, LocationServer, Move, Moved
from faultline.story.log_words import stock_words
from faultline.testing.hand_cranked import HandCrankedCluster
from faultline.testing.transcript_commands import TranscriptPlayer
from faultline.testing.transcripts import CommandError

__all__ = ["FilePlayer"]


class FilePlayer(TranscriptPlayer):
    """One scene being played, with the numbers of its requests."""

    def __init__(self) -> None:
        super().__init__(LocationFiles())
        self._number = 0

    def new_cluster(
        self, size: int | Sequence[str], planted_bugs: tuple[str, ...], options: dict[str, str]
    ) -> HandCrankedCluster:
        options.pop("system", None)
        return super().new_cluster(size, planted_bugs, options)

    def message_words(self, source: str, target: str, message: Any) -> str:
        if isinstance(message, Moved):
            return f"{source} → {target}: #{message.number} {message.error or 'ok'}"
        return super().message_words(source, target, message)

    def event_words(self, node: str, event: Any, *, in_brief: bool) -> str | None:
        return None

    def do_transfer(self, words: list[str]) -> None:
        """transfer CLIENT NODE AMOUNT FROM TO

        Send a transfer of widgets; print what NODE answers at once.
        """
        client, node, amount, source, target = self.exactly(5, words, "transfer")
        self._number += 1
        self.hand((client, self.running(node), Move(self._number, source, target, int(amount))))
        self.deliver(lambda *_: True)

    def do_write_file(self, words: list[str]) -> None:
        """write-file NODE

        Let NODE write its next file; print what it answers then.
        """
        (node,) = self.exactly(1, words, "write-file")
        ports = self.cluster.ports[self.running(node)]
        if ports.next_timer() is None:
            raise CommandError(f"{node} has no file to write")
        ports.ring()
        self.deliver(lambda *_: True)

    def do_show(self, words: list[str]) -> None:
        """show files|messages|breaches [NODE …]

        Print the counts in the files of nodes, what is under way, which invariants broke.
        """
        what, *names = words or [""]
        if what != "files":
            super().do_show(words)
            return
        for name in names or self.cluster.members:
            counts = self.cluster.look(self.running(name), LocationServer.counts)
            self.lines.append(f"{name}: {stock_words(counts)}; {sum(counts.values())} in all")
