"""The messages of a local run as the simulated world records them, out of the frames that crossed the harness.

They are decoded when a figure first asks for them, so a run that passes decodes none.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import overload

import msgspec

from faultline.harness.run_record import MessageRecord
from faultline.harness.world.framing import LENGTH_BYTES
from faultline.harness.world.local.kept_messages import LOST_S, KeptMessages
from faultline.harness.world.message_codec import MessageCodec, WireError
from faultline.harness.world.ports import Link

__all__ = ["DecodedMessages"]


class DecodedMessages(Sequence[MessageRecord]):
    """The `kept` messages in order of their sending, as the simulated world records them; decoded when first asked for.

    `start_us` is the moment 0 of the run on the machine's monotonic clock. What was sent before is left out.
    """

    def __init__(self, kept: KeptMessages, messages: Sequence[type[msgspec.Struct]], start_us: int) -> None:
        self._kept = kept
        self._codec = MessageCodec(messages)
        self._start_us = start_us

    @cached_property
    def _records(self) -> list[MessageRecord]:
        start_s = self._start_us / 1_000_000
        records = [self._record(*frame) for frame in self._kept.frames if frame[2] >= start_s]
        return sorted(records, key=lambda record: record.send_us)

    def _record(self, link: Link, frame: bytes, sent_s: float, received_s: float) -> MessageRecord:
        try:
            message = self._codec.decode(frame[LENGTH_BYTES:])
            name, text = type(message).__name__, str(message)
        except WireError as error:
            name, text = "unreadable", str(error)
        receive_us = -1 if received_s == LOST_S else self._run_us(received_s)
        return MessageRecord(*link, name, self._run_us(sent_s), receive_us, text)

    def _run_us(self, time_s: float) -> int:
        return int(time_s * 1_000_000) - self._start_us

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, place: int) -> MessageRecord: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[MessageRecord]: ...

    def __getitem__(self, place: int | slice) -> MessageRecord | Sequence[MessageRecord]:
        return self._records[place]
