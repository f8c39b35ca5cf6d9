"""The kept messages: the latest within bounds, in the time of the run, and decoded only when they are looked at."""

from __future__ import annotations

import msgspec
import pytest

from faultline.harness.run_record import MessageRecord
from faultline.harness.world.framing import encode_frame
from faultline.harness.world.local.decoded_messages import DecodedMessages
from faultline.harness.world.local.kept_messages import LOST_S, KeptMessages
from faultline.harness.world.message_codec import MessageCodec
from faultline.harness.world.ports import NodeId

LINK = (NodeId("athens"), NodeId("byzantium"))
START_US = 5_000_000


class Write(msgspec.Struct, frozen=True, tag=True):
    """A message."""

    key: str


FRAME = MessageCodec([Write]).encode_frame(Write("k1"))


def decoded(kept: KeptMessages) -> list[MessageRecord]:
    return list(DecodedMessages(kept, [Write], START_US))


def test_a_kept_message_is_told_as_in_the_simulated_world_in_the_time_of_the_run_and_in_order_of_sending() -> None:
    kept = KeptMessages()
    kept.note(LINK, FRAME, 6.5, 6.75)
    kept.note(LINK, FRAME, 6.25, LOST_S)
    name, text = "Write", str(Write("k1"))
    assert decoded(kept) == [
        MessageRecord("athens", "byzantium", name, 1_250_000, -1, text),
        MessageRecord("athens", "byzantium", name, 1_500_000, 1_750_000, text),
    ]


def test_what_was_sent_before_the_cluster_served_is_left_out() -> None:
    kept = KeptMessages()
    kept.note(LINK, FRAME, 4.75, 5.25)
    assert decoded(kept) == []


def test_bytes_that_are_no_message_of_the_system_are_told_as_unreadable() -> None:
    kept = KeptMessages()
    kept.note(LINK, encode_frame(b"\xff"), 6.0, 6.0)
    (message,) = decoded(kept)
    assert message.name == "unreadable"
    assert "is not a message of this system" in message.summary


@pytest.mark.parametrize("bounds", [{"messages_max": 2}, {"bytes_max": 2 * len(FRAME)}])
def test_beyond_the_bounds_the_oldest_are_dropped_and_counted_with_the_time_of_the_latest_of_them(
    bounds: dict[str, int],
) -> None:
    kept = KeptMessages(**bounds)
    for sent_s in (6.0, 7.0, 8.0, 9.0):
        kept.note(LINK, FRAME, sent_s, sent_s)
    assert [message.send_us for message in decoded(kept)] == [3_000_000, 4_000_000]
    assert (kept.dropped, kept.dropped_s) == (2, 7.0)


def test_nothing_is_decoded_until_it_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = KeptMessages()
    kept.note(LINK, FRAME, 6.0, 6.0)
    asked: list[bytes] = []
    monkeypatch.setattr(MessageCodec, "decode", lambda _codec, payload: asked.append(payload))
    messages = DecodedMessages(kept, [Write], START_US)
    assert asked == []
    assert len(messages) == len(asked) == 1
