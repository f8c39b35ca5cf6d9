"""Slate's nodes by hand: the test moves the clock, delivers the messages, and decides when the power goes."""

from __future__ import annotations

from pathlib import Path

import pytest
from slate.messages import Answer, Copy, Request
from slate.node import SlateNode
from slate.system import Slate

from faultline.testing import FakePorts, HandCrankedCluster, TranscriptPlayer, check_transcript

STORIES = Path(__file__).parent / "stories"


class SlatePlayer(TranscriptPlayer):
    def do_write(self, words: list[str]) -> None:
        """write NODE KEY VALUE

        Ask NODE to write; print its answer, and deliver nothing else.
        """
        node, key, value = self.exactly(3, words, "write")
        self.hand(("client", self.running(node), Request(1, "write", key, int(value))))
        self.deliver(lambda _, target, __: target == "client")


def test_a_primary_answers_and_tells_the_others() -> None:
    ports = FakePorts("athens")
    node = SlateNode(ports, ("athens", "byzantium"), flushes=True)
    node.start()
    node.receive("client", Request(1, "write", "k", 7))
    assert ports.sent == [("byzantium", Copy("k", 7)), ("client", Answer(1))]


@pytest.mark.parametrize(
    "damage", [b'["k", ', b'["k", \0\0\0\n["k", 9]\n'], ids=["torn last line", "zeros before a line"]
)
def test_the_log_is_read_up_to_its_first_damaged_line(damage: bytes) -> None:
    ports = FakePorts("athens")
    ports.storage.append("log", b'["k", 7]\n' + damage)
    node = SlateNode(ports, ("athens",), flushes=True)
    node.start()
    assert node.values == {"k": 7}
    assert ports.storage.read("log") == b'["k", 7]\n'


@pytest.mark.parametrize(("planted_bugs", "kept"), [((), {"k": 7}), (("no-flush",), {})])
def test_an_acknowledged_write_outlives_the_primary(planted_bugs: tuple[str, ...], kept: dict[str, int]) -> None:
    cluster = HandCrankedCluster(Slate(), 3, planted_bugs)
    cluster.hand("client", "athens", Request(1, "write", "k", 7))
    cluster.deliver()
    assert cluster.inbox["client"] == [("athens", Answer(1))]
    cluster.restart("athens")
    assert cluster.nodes["athens"].values == kept


@pytest.mark.parametrize("story", sorted(STORIES.glob("*.txt")), ids=lambda path: path.stem)
def test_a_story_goes_as_it_is_told(story: Path) -> None:
    player = SlatePlayer(Slate())
    check_transcript(story, player.execute)
    player.finish()
