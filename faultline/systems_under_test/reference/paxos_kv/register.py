"""The value that Paxos decides for a key of `paxos-kv`: a register with the answers it owes.

A request may arrive twice, at two nodes: the client got no answer and asked elsewhere. Both copies may be proposed, so
the record of executed requests must be part of the value that is agreed on. So each version of a key holds, beside the
value, the number and the answer of the last request of every client that changed it. A proposer that builds on a
version in which the request stands has nothing left to propose. A compare-and-set that does not match is decided and
remembered like any other, because a second copy of it might match a later version, after the client was told that it
failed.

A client has one request under way at a time, so one answer per client suffices; a lower number is a late copy that no
client waits for, and is dropped. Limit: the table of a key grows with the number of clients that ever changed it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from faultline.systems_under_test.patterns.data_replication.paxos_store import Commit
from faultline.systems_under_test.reference.shared.key_commands import Command, GetValue, executed

__all__ = ["EMPTY", "Answer", "Register", "register_in"]


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """The outcome of a client's last request on this key."""

    request_number: int
    error: str | None = None
    value: Any = None


class Register(msgspec.Struct, frozen=True, array_like=True):
    """One version of a key. Never changed: the next version is another object."""

    value: Any
    answers: dict[str, Answer]

    def after(self, client: str, request_number: int, command: Command) -> Register:
        """Return the register after `command` was executed as that request."""
        if type(command) is GetValue:
            return self
        effect = executed(self.value, command)
        return Register(effect.value, {**self.answers, client: Answer(request_number, effect.error, effect.answer)})

    def last_request(self, client: str) -> int:
        """Return the number of the client's last request that was executed on this key; 0 for none."""
        answer = self.answers.get(client)
        return 0 if answer is None else answer.request_number

    def encoded(self) -> bytes:
        """Return the bytes that Paxos agrees on."""
        return _ENCODER.encode(self)


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Register)

EMPTY = Register(None, {})
"""The register of every key before its first version."""


def register_in(commit: Commit | None) -> Register:
    """Return the register that was committed; `EMPTY` before the first commit."""
    return EMPTY if commit is None else _DECODER.decode(commit.value)
