"""The reader of a history of an append-only log: its sends and its polls.

Both Jepsen's transactions and plain operations are understood:

    txn        [["send", k, v], ["poll"]]      ok: [["send", k, [offset, v]], ["poll", {k: [[offset, v], …]}]]
    send       v on the operation's key        ok: the offset, or [offset, v]
    poll       on the operation's key          ok: [[offset, v], …]; without a key: {k: [[offset, v], …]}
    assign, subscribe [k, …], crash            new positions; `subscribe` lets the group move partitions at will

An operation called `send` or `poll` whose value is a list of micro-operations is read as a transaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from faultline.checkers.common.shape import expect_functions, wrong_shape
from faultline.checkers.common.words import token, told
from faultline.harness.history import History

__all__ = ["FUNCTIONS", "Log", "Message", "Poll", "Send"]

FUNCTIONS = ("send", "poll", "txn", "assign", "subscribe", "crash")

_EXPECTED = "`send`, `poll` or `txn` of [[send, k, v], [poll]], answered with offsets; `assign` and `subscribe`."

Message = tuple[int, Any]
"""An offset and the value that was found there."""


@dataclass(frozen=True, slots=True)
class Send:
    """One value sent to one key; `offset` is None when the log did not answer it."""

    row: int
    key: str
    value: Any
    offset: int | None


@dataclass(frozen=True, slots=True)
class Poll:
    """The messages that one ok operation polled of one key, in the order of delivery."""

    row: int
    key: str
    messages: tuple[Message, ...]


@dataclass(slots=True)
class Log:
    """All sends and polls of a history in order of invocation, and the rows of each process's operations."""

    checker: str
    history: History
    sends: list[Send] = field(default_factory=list)
    polls: dict[int, list[Poll]] = field(default_factory=dict)

    @classmethod
    def read(cls, checker: str, history: History) -> Log:
        """Read `history`; raise UsageError for an operation that is not one on a log."""
        expect_functions(checker, history, FUNCTIONS, _EXPECTED)
        log = cls(checker, history)
        for row, f in enumerate(history.f):
            if f in ("send", "poll", "txn"):
                log._take(row)
        return log

    def _take(self, row: int) -> None:
        is_ok = self.history.outcome[row] == "ok"
        polled: dict[str, list[Message]] = {}
        for f, key, value, answer in self._micro(row):
            if f == "send":
                offset = self._offset(row, answer) if is_ok else None
                self.sends.append(Send(row, str(key), token(value), offset))
            elif is_ok:
                for polled_key, messages in self._messages(row, key, answer).items():
                    polled.setdefault(polled_key, []).extend(messages)
        if is_ok:
            self.polls[row] = [Poll(row, key, tuple(messages)) for key, messages in polled.items()]

    def _micro(self, row: int) -> Iterator[tuple[str, Any, Any, Any]]:
        """Yield the micro-operations of a row: function, key, value sent, answer."""
        history = self.history
        f, value, result = history.f[row], history.value[row], history.result[row]
        if not _is_transaction(value):
            if f == "txn":
                raise self._wrong(row, f"has {told(value)} where a list of micro-operations belongs")
            yield f, history.key[row], value, result
            return
        answers = result if history.outcome[row] == "ok" else [None] * len(value)
        if not isinstance(answers, list | tuple) or len(answers) != len(value):
            raise self._wrong(row, f"answered {told(answers)}, which does not match the request")
        for asked, answer in zip(value, answers, strict=True):
            name = str(asked[0]).removeprefix(":")
            if name == "send":
                yield name, asked[1], asked[2], None if answer is None else answer[2]
            else:
                yield name, None, None, None if answer is None or len(answer) < 2 else answer[1]

    def _offset(self, row: int, answer: Any) -> int | None:
        offset = answer[0] if isinstance(answer, list | tuple) and len(answer) == 2 else answer
        offset = offset.get("offset") if isinstance(offset, dict) else offset
        if offset is not None and type(offset) is not int:
            raise self._wrong(row, f"answered {told(answer)} where an offset belongs")
        return offset

    def _messages(self, row: int, key: Any, answer: Any) -> dict[str, list[Message]]:
        by_key = {} if answer is None else answer if isinstance(answer, dict) else {key: answer}
        messages: dict[str, list[Message]] = {}
        for name, found in by_key.items():
            if not isinstance(found, list | tuple) or not all(map(_is_message, found)):
                raise self._wrong(row, f"polled {told(found)} where [[offset, value], …] belongs")
            messages[str(name)] = [(offset, token(value)) for offset, value in found]
        return messages

    def _wrong(self, row: int, problem: str) -> Exception:
        return wrong_shape(self.checker, self.history, row, problem, _EXPECTED)


def _is_transaction(value: Any) -> bool:
    return (
        isinstance(value, list | tuple)
        and len(value) > 0
        and all(isinstance(m, list | tuple) and m and str(m[0]).removeprefix(":") in ("send", "poll") for m in value)
    )


def _is_message(pair: Any) -> bool:
    return isinstance(pair, list | tuple) and len(pair) == 2 and type(pair[0]) is int
