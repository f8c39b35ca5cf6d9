"""Append-only logs with offsets, as Kafka has them (Jepsen's `kafka`).

The shape of operations is in `log_shape`. Values are sent to a key at most once. From all sends and polls the checker
learns the log of each key: the value at each offset.

| anomaly               | meaning                                                                                     |
|-----------------------|----------------------------------------------------------------------------------------------|
| `inconsistent-offset` | two values were seen at one offset of one key                                               |
| `duplicated-message`  | one value is at two offsets                                                                 |
| `lost-write`          | an acknowledged value was never polled, though a later offset was                           |
| `aborted-read`        | a value was polled whose send certainly failed (G1a)                                        |
| `garbage-read`        | a value was polled that had never been sent                                                 |
| `future-read`         | a value was polled before its send began                                                    |
| `poll-skip`           | a consumer went from one offset to a later one over offsets that are known to hold something |
| `nonmonotonic-poll`   | a consumer was given an offset that is not behind the one it had been given before          |
| `nonmonotonic-send`   | a producer's later send to a key was put at a smaller offset than its earlier one           |

Skips and steps back are *internal* within one operation and *external* between two of one process; an `assign`,
`subscribe` or failed poll in between sets a new position, and under `subscribe`, where the group moves partitions at
will, external ones are only counted (`tolerated`). Empty offsets, such as transaction markers, are no skip.

`lost-write` assumes that a consumer polls each key from its beginning (`from_beginning`); otherwise only values between
polled offsets are lost. Acknowledged values after all polled ones are *unseen*, and make the verdict *unknown*: the end
of the log was not read.

Not judged: cycles between transactions, and committed offsets. Everything is linear but for sorting and binary search.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

from faultline.checkers.classic.log_shape import Log, Poll, Send
from faultline.checkers.classic.misreads import accuse_misreads
from faultline.checkers.common.conclusion import Case, Conclusion
from faultline.checkers.common.shape import wrong_shape
from faultline.checkers.common.words import client, counted, told
from faultline.harness.history import History
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Cause, CheckResult

__all__ = ["LogChecker"]

_Key = tuple[str, Any]
"""A key of the log with a value, or with an offset."""


class LogChecker:
    """A checker that every acknowledged message is once in the log, in its place, and consumers see the log in
    order."""

    name = "log"

    def __init__(self, *, from_beginning: bool = True) -> None:
        self.from_beginning = from_beginning

    def check(self, history: History, run: RunRecord | None = None) -> CheckResult:
        """Return the verdict on every key of the log; of `run` nothing is needed."""
        judge = _Judge(self.name, history)
        judge.offsets()
        judge.sources()
        judge.losses(self.from_beginning)
        judge.consumers()
        judge.producers()
        counts = judge.conclusion.counts
        if not counts["acknowledged"] and not counts["polled"]:
            judge.conclusion.doubt("No message was acknowledged and none was polled, so nothing is known.")
        return judge.conclusion.result(
            f"All {counted(counts['acknowledged'], 'acknowledged message')} were polled, in order and once each."
        )


class _Judge:
    """The values and offsets of the log, and the cases against it."""

    def __init__(self, name: str, history: History) -> None:
        self.history = history
        self.conclusion = Conclusion(name, history)
        self.log = Log.read(name, history)
        self.sent: dict[_Key, Send] = {}
        self.values_at: dict[_Key, dict[Any, int]] = {}
        self.offsets_of: dict[_Key, dict[int, int]] = {}
        self.polled: dict[_Key, int] = {}
        self.polled_offsets: dict[str, list[int]] = {}
        for send in self.log.sends:
            self._learn_send(send)
        for row, polls in self.log.polls.items():
            for poll in polls:
                self._learn_poll(row, poll)
        self.known = _sorted_offsets(self.values_at)
        acknowledged = sum(history.outcome[send.row] == "ok" for send in self.log.sends)
        self.conclusion.counts.update(sent=len(self.log.sends), acknowledged=acknowledged, polled=len(self.polled))

    def _learn_send(self, send: Send) -> None:
        if self.sent.setdefault((send.key, send.value), send) is not send:
            problem = f"sends {told(send.value)} to {send.key} a second time"
            raise wrong_shape(self.conclusion.checker, self.history, send.row, problem, "values that are sent once.")
        if send.offset is not None:
            self._stand(send.key, send.offset, send.value, send.row)

    def _learn_poll(self, row: int, poll: Poll) -> None:
        for offset, value in poll.messages:
            self._stand(poll.key, offset, value, row)
            self.polled.setdefault((poll.key, value), row)
            self.polled_offsets.setdefault(poll.key, []).append(offset)

    def _stand(self, key: str, offset: int, value: Any, row: int) -> None:
        self.values_at.setdefault((key, offset), {}).setdefault(value, row)
        self.offsets_of.setdefault((key, value), {}).setdefault(offset, row)

    def offsets(self) -> None:
        """Report two values at one offset, and one value at two."""
        divided = [(place, values) for place, values in self.values_at.items() if len(values) > 1]
        self.conclusion.accuse(
            "inconsistent-offset",
            [Case(f"{key}@{offset}", tuple(values.values())[:2]) for (key, offset), values in divided],
            lambda case: f"the offset {case.what} was seen to hold two different values",
            noun="inconsistent offset",
        )
        doubled = [(place, offsets) for place, offsets in self.offsets_of.items() if len(offsets) > 1]
        self.conclusion.accuse(
            "duplicated-message",
            [Case(value, tuple(offsets.values())[:2]) for (_, value), offsets in doubled],
            lambda case: f"{told(case.what)} was sent once and is at two offsets",
            noun="duplicated message",
        )

    def sources(self) -> None:
        """Report polled values that were not sent, or whose send failed."""
        sends = [(row, value, self.sent.get((key, value))) for (key, value), row in self.polled.items()]
        polled = [(row, value, None if send is None else send.row) for row, value, send in sends]
        accuse_misreads(self.conclusion, polled, did="polled")

    def losses(self, from_beginning: bool) -> None:
        """Report acknowledged messages that were never polled, although a later offset was."""
        lost, unseen = [], 0
        for send in self.log.sends:
            if self.history.outcome[send.row] != "ok" or (send.key, send.value) in self.polled:
                continue
            offsets = self.polled_offsets.get(send.key)
            if send.offset is None or offsets is None or send.offset > max(offsets):
                unseen += 1
            elif from_beginning or send.offset > min(offsets):
                lost.append(Case(send.value, (send.row, self._witness(send))))
        self.conclusion.counts["unseen"] += unseen
        self._accuse("lost-write", lost, "polled beyond {what}, which was acknowledged and never polled", "lost write")
        if unseen:
            self.conclusion.doubt(
                f"{counted(unseen, 'acknowledged message')} were not polled by the end of the run.", Cause.NOT_READ_OUT
            )

    def _witness(self, send: Send) -> int:
        """Return an operation that polled an offset behind the lost message."""
        known = self.known[send.key]
        beyond = known[bisect_right(known, send.offset or 0) :]
        return next(
            row for offset in beyond for value in self.values_at[send.key, offset]
            if (row := self.polled.get((send.key, value))) is not None
        )  # fmt: skip

    def consumers(self) -> None:
        """Report skips and steps back, within one operation and between those of one process."""
        cases: dict[str, list[Case]] = {"poll-skip": [], "nonmonotonic-poll": []}
        for anomaly, key, offset, before, row, is_tolerated in self._steps():
            if is_tolerated:
                self.conclusion.counts["tolerated"] += 1
            else:
                cases[anomaly].append(Case(f"{key}@{offset}", (before, row)))
        skipped = "came to {what} over earlier messages, without having been given them"
        self._accuse("poll-skip", cases["poll-skip"], skipped, "skip")
        back = "was given {what} after it had been given a message at or behind that"
        self._accuse("nonmonotonic-poll", cases["nonmonotonic-poll"], back, "step back")

    def _steps(self) -> Iterator[tuple[str, str, int, int, int, bool]]:
        """Yield each wrong step: anomaly, key, offset, the row of the step before, its own row, whether it is
        tolerated."""
        history = self.history
        positions: dict[int, dict[str, tuple[int, int]]] = {}
        subscribed: dict[int, bool] = {}
        for row, f in enumerate(history.f):
            process = history.process[row]
            if f in ("assign", "subscribe", "crash"):
                positions[process] = {}
                subscribed[process] = f == "subscribe"
            elif history.outcome[row] != "ok":
                positions[process] = {}
            for poll in self.log.polls.get(row, ()):
                position = positions.setdefault(process, {})
                for offset, _ in poll.messages:
                    before = position.get(poll.key)
                    anomaly = self._step(poll.key, before[0], offset) if before is not None else None
                    if anomaly is not None and before is not None:
                        yield (
                            anomaly,
                            poll.key,
                            offset,
                            before[1],
                            row,
                            before[1] != row and subscribed.get(process, False),
                        )
                    position[poll.key] = (offset, row)

    def _step(self, key: str, before: int, offset: int) -> str | None:
        if offset <= before:
            return "nonmonotonic-poll"
        known = self.known[key]
        return "poll-skip" if bisect_left(known, offset) - bisect_right(known, before) > 0 else None

    def producers(self) -> None:
        """Report sends of a process to a key that are not in the order in which it sent them."""
        last: dict[tuple[int, str], Send] = {}
        back = []
        for send in self.log.sends:
            if send.offset is None:
                continue
            who = (self.history.process[send.row], send.key)
            before = last.get(who)
            if before is not None and before.offset is not None and send.offset <= before.offset:
                back.append(Case(send.value, (before.row, send.row)))
            last[who] = send
        said = "sent {what}, which was put before a message that it had sent earlier"
        self._accuse("nonmonotonic-send", back, said, "such send")

    def _accuse(self, anomaly: str, cases: Sequence[Case], said: str, noun: str) -> None:
        self.conclusion.accuse(
            anomaly,
            cases,
            lambda case: f"{client(self.history, case.rows[-1])} {said.replace('{what}', told(case.what))}",
            noun=noun,
        )


def _sorted_offsets(values_at: dict[_Key, dict[Any, int]]) -> dict[str, list[int]]:
    offsets: dict[str, list[int]] = {}
    for key, offset in values_at:
        offsets.setdefault(key, []).append(offset)
    return {key: sorted(found) for key, found in offsets.items()}
