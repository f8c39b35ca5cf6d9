"""The control channel between the harness and one node process: a socket pair the process is born with.

It carries the secret of the run, the node's listening port, status and clock questions, and it is the lifeline: when
the harness ends, however it ends, the node reads the end of the stream and ends too. Questions are numbered, so that
the late answer of a node that was paused is never taken for the answer to a newer question.
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from typing import TypeVar

import msgspec

from faultline.harness.world.framing import FrameDecoder, encode_frame
from faultline.harness.world.local.clock import ClockSetting
from faultline.harness.world.local.handshake import RunSecret
from faultline.harness.world.ports import NodeStatus

__all__ = [
    "Answer",
    "AskClock",
    "AskStatus",
    "ClockReading",
    "ControlChannel",
    "Question",
    "SetClock",
    "Started",
    "StatusReply",
    "decode_question",
    "encode_control",
]


class Started(msgspec.Struct, frozen=True, tag=True):
    """The node listens on `port` and has recovered from its storage."""

    port: int
    number: int = 0


class AskStatus(msgspec.Struct, frozen=True, tag=True):
    """The question which node leads, as the asked one believes."""

    number: int


class StatusReply(msgspec.Struct, frozen=True, tag=True):
    """The node's status."""

    number: int
    status: NodeStatus


class AskClock(msgspec.Struct, frozen=True, tag=True):
    """The question for the readings of the clocks."""

    number: int


class SetClock(msgspec.Struct, frozen=True, tag=True):
    """Follow `setting` from now on, then say what your clocks show."""

    number: int
    setting: ClockSetting


class ClockReading(msgspec.Struct, frozen=True, tag=True):
    """The node's wall clock, true time at the same moment, and the drift in force."""

    number: int
    wall_us: int
    true_us: int
    rate_ppm: int


Question = AskStatus | AskClock | SetClock
Answer = Started | StatusReply | ClockReading
AnswerT = TypeVar("AnswerT", Started, StatusReply, ClockReading)

_QUESTIONS = msgspec.msgpack.Decoder(Question)
_ANSWERS = msgspec.msgpack.Decoder(Answer)
_ENCODER = msgspec.msgpack.Encoder()


def encode_control(message: Question | Answer) -> bytes:
    """Return `message` as a frame."""
    return encode_frame(_ENCODER.encode(message))


def decode_question(payload: bytes) -> Question:
    """Return the question in `payload`."""
    question: Question = _QUESTIONS.decode(payload)
    return question


class ControlChannel:
    """The harness's end: blocking, one question at a time, every wait with a deadline."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._decoder = FrameDecoder()
        self._arrived: list[Answer] = []
        self._number = 0
        self._lock = threading.Lock()

    def hand_over(self, secret: RunSecret) -> None:
        """Tell the node the secret of the run, before all else."""
        # A process that has ended already is reported by the thread that waits for it to come up.
        with suppress(OSError):
            self._connection.sendall(secret.reveal())

    def started(self, timeout_s: float) -> Started:
        """Wait until the node listens. Raises TimeoutError or ConnectionError."""
        with self._lock:
            return self._wait_for(Started, 0, timeout_s)

    def status(self, timeout_s: float) -> NodeStatus:
        """Ask for the node's status. Raises TimeoutError or ConnectionError."""
        with self._lock:
            return self._ask(AskStatus(self._next()), StatusReply, timeout_s).status

    def clock(self, timeout_s: float) -> ClockReading:
        """Ask what the node's clocks show. Raises TimeoutError or ConnectionError."""
        with self._lock:
            return self._ask(AskClock(self._next()), ClockReading, timeout_s)

    def set_clock(self, setting: ClockSetting, timeout_s: float) -> ClockReading:
        """Put the node's clock under `setting`. Raises TimeoutError or ConnectionError."""
        with self._lock:
            return self._ask(SetClock(self._next(), setting), ClockReading, timeout_s)

    def close(self) -> None:
        """Let go of the lifeline: the node ends, if it has not ended yet."""
        self._connection.close()

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _ask(self, question: Question, answer_type: type[AnswerT], timeout_s: float) -> AnswerT:
        self._connection.settimeout(timeout_s)
        self._connection.sendall(encode_control(question))
        return self._wait_for(answer_type, question.number, timeout_s)

    def _wait_for(self, answer_type: type[AnswerT], number: int, timeout_s: float) -> AnswerT:
        deadline_s = time.monotonic() + timeout_s
        while True:
            while self._arrived:
                answer = self._arrived.pop(0)
                if isinstance(answer, answer_type) and answer.number == number:
                    return answer
            self._read(deadline_s - time.monotonic())

    def _read(self, timeout_s: float) -> None:
        if timeout_s <= 0:
            raise TimeoutError("the node did not answer in time")
        self._connection.settimeout(timeout_s)
        data = self._connection.recv(65536)
        if not data:
            raise ConnectionError("the node process has ended")
        self._arrived += [_ANSWERS.decode(payload) for payload in self._decoder.feed(data)]
