"""A key-value store on one server whose every change goes through a write-ahead log: the pattern by itself.

This is the store of the pattern's text. `put` turns a change into a command, appends the command to the log, and
changes the map after the log is flushed. `open` replays the log into an empty map. A read never accesses the log.
Commands that must not take effect twice (`add`, `set_once`) carry the client and the number of the request. A repeated
command has no second effect, however often it is in the log.

A command is one log entry, so a change of several keys, such as a transfer, happens whole or not at all. Snapshots, the
state with the index of the last applied command, give the cleaner its low-water mark.

*Does not tolerate.* The loss of its disk; the replicated log does.

*Workloads.* Those of the system `logged-store`. *Checkers.* Linearizability, the invariants WAL-I2, WAL-I3 and WAL-I6.

*Planted bugs.* `replay-without-the-newest-entry`, `repeated-requests-count-again`.

Source: Patterns of Distributed Systems ch. 3, classes KVStore and SetValueCommand. The tag and the length-prefixed
strings are those of the text; Java's modified UTF-8 is not imitated.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, MutableMapping
from typing import NamedTuple

import msgspec

from faultline.harness.world.ports import Storage
from faultline.systems_under_test.patterns.data_replication.flush_policy import FlushEachAppend, FlushPolicy
from faultline.systems_under_test.patterns.data_replication.idempotent_receiver import ClientSessions, RequestDiscarded
from faultline.systems_under_test.patterns.data_replication.snapshot_store import Snapshot
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import DATA, LogEntry, WriteAheadLog

__all__ = [
    "AddCommand",
    "Applied",
    "Command",
    "LoggedStore",
    "SetOnceCommand",
    "SetValueCommand",
    "deserialize",
    "serialize",
]

SET_VALUE_TYPE = 1
ADD_TYPE = 2
SET_ONCE_TYPE = 3

_TAG = struct.Struct(">i")
_LENGTH = struct.Struct(">H")


class SetValueCommand(msgspec.Struct, frozen=True):
    """Write `value` to `key`; `attach_lease` names the lease with which the key will expire, empty for none."""

    key: str
    value: str
    attach_lease: str = ""


class AddCommand(msgspec.Struct, frozen=True):
    """Request `number` of `client`: add to each key its amount, all at once."""

    client: int
    number: int
    amounts: dict[str, int]


class SetOnceCommand(msgspec.Struct, frozen=True):
    """Request `number` of `client`: write `value` to `key`, unless that was done."""

    client: int
    number: int
    key: str
    value: str


Command = SetValueCommand | AddCommand | SetOnceCommand


class Applied(NamedTuple):
    """The effect of an entry: an answer, and whether the command was `executed`, as a repetition is not.

    A write is answered with the index of its entry, an addition with the new numbers, or nothing where a value is no
    number. The answer is None for a repetition so late that it is forgotten.
    """

    answer: str | None
    executed: bool = True


def serialize(command: Command) -> bytes:
    """Return the bytes of `command` in a log entry: its tag, then its fields."""
    if isinstance(command, SetValueCommand):
        fields = (command.key, command.value, command.attach_lease)
        return _TAG.pack(SET_VALUE_TYPE) + b"".join(map(_text, fields))
    tag = ADD_TYPE if isinstance(command, AddCommand) else SET_ONCE_TYPE
    return _TAG.pack(tag) + msgspec.msgpack.encode(command)


def deserialize(data: bytes) -> Command | None:
    """Return the command in `data`; None for a tag that this store does not know, which changes nothing here."""
    (tag,) = _TAG.unpack_from(data)
    if tag == SET_VALUE_TYPE:
        return SetValueCommand(*_texts(data, _TAG.size))
    kind = _KINDS.get(tag)
    return None if kind is None else msgspec.msgpack.decode(data[_TAG.size :], type=kind)


_KINDS: Mapping[int, type[AddCommand | SetOnceCommand]] = {ADD_TYPE: AddCommand, SET_ONCE_TYPE: SetOnceCommand}


def _text(text: str) -> bytes:
    data = text.encode()
    return _LENGTH.pack(len(data)) + data


def _texts(data: bytes, position: int) -> list[str]:
    texts = []
    while position < len(data):
        (length,) = _LENGTH.unpack_from(data, position)
        position += _LENGTH.size
        texts.append(data[position : position + length].decode())
        position += length
    return texts


class _State(msgspec.Struct, frozen=True):
    values: dict[str, str]
    sessions: dict[int, tuple[int, dict[int, str]]]


def _ignore() -> None:
    """Do nothing: the writer does not wait for the entry."""


class LoggedStore:
    """The store; `open` must come first."""

    def __init__(
        self,
        storage: Storage,
        policy: Callable[[WriteAheadLog], FlushPolicy] = FlushEachAppend,
        *,
        segment_size_bytes_max: int = 65536,
        sessions: ClientSessions[str] | None = None,
    ) -> None:
        self.log = WriteAheadLog(storage, name="kv", segment_size_bytes_max=segment_size_bytes_max)
        self.last_applied = 0
        self._policy = policy(self.log)
        self._values: MutableMapping[str, str] = {}
        self._sessions: ClientSessions[str] = ClientSessions() if sessions is None else sessions

    def open(self, snapshot: Snapshot | None = None) -> None:
        """Rebuild the state from the snapshot, if there is one, and the log after it. Raises `CorruptLog`."""
        if snapshot is None:
            self.log.recover()
        else:
            self.log.recover(snapshot.index, snapshot.generation)
            self.initialise_from_snapshot(snapshot)
        for entry in self.left_to_replay():
            self.replay(entry)

    def left_to_replay(self) -> list[LogEntry]:
        """Return the recovered entries that the state does not have yet."""
        return self.log.entries(self.last_applied + 1, self.log.last_index)

    def initialise_from_snapshot(self, snapshot: Snapshot) -> None:
        """Replace this state with that of `snapshot`; later changes are in the log."""
        state = msgspec.msgpack.decode(snapshot.state, type=_State)
        self._values = state.values
        self._sessions.restore(state.sessions)
        self.last_applied = snapshot.index

    def take_snapshot(self) -> Snapshot:
        """Return the state, under the index of the last command applied to it."""
        state = msgspec.msgpack.encode(_State(dict(self._values), self._sessions.content()))
        return Snapshot(self.last_applied, self.log.generation_at(self.last_applied), state)

    @property
    def values(self) -> Mapping[str, str]:
        """The whole map; not to be changed."""
        return self._values

    def get(self, key: str) -> str | None:
        """Return the value of `key`, from memory."""
        return self._values.get(key)

    def put(self, key: str, value: str, tell: Callable[[], None] = _ignore, *, attach_lease: str = "") -> None:
        """Write `value` to `key`; `tell` is called when that is as safe as the policy makes it.

        Raises `LogUnusable`.
        """
        self._change(SetValueCommand(key, value, attach_lease), tell)

    def add(self, client: int, number: int, amounts: dict[str, int], tell: Callable[[], None] = _ignore) -> None:
        """Add to several keys at once; a repeated `number` of `client` has no second effect. Raises `LogUnusable`."""
        self._change(AddCommand(client, number, amounts), tell)

    def _change(self, command: Command, tell: Callable[[], None]) -> None:
        """Log first, change the map second: when the log fails, the map has not changed and the writer is not
        answered.
        """
        entry = LogEntry(self.log.last_index + 1, 0, DATA, serialize(command))
        self.log.append(entry)

        def safe() -> None:
            self.apply(entry)
            tell()

        self._policy.appended(safe)

    def replay(self, entry: LogEntry) -> None:
        """Apply a recovered entry to the map only: the log has it already."""
        self.apply(entry)

    def apply(self, entry: LogEntry) -> Applied:
        """Execute the command of `entry` on the map."""
        command = deserialize(entry.data)
        self.last_applied = entry.index
        if isinstance(command, SetValueCommand):
            self._values[command.key] = command.value
            return Applied(str(entry.index))
        return Applied("") if command is None else self._execute_once(command)

    def _execute_once(self, command: AddCommand | SetOnceCommand) -> Applied:
        if self._sessions.session(command.client) is None:
            self._sessions.register(command.client)

        def action() -> str:
            return self._add(command.amounts) if isinstance(command, AddCommand) else self._set(command)

        try:
            return Applied(*self._sessions.execute(command.client, command.number, action))
        except RequestDiscarded:
            # The answer to a very late repetition is forgotten already; that it was executed is not.
            return Applied(None, False)

    def _set(self, command: SetOnceCommand) -> str:
        self._values[command.key] = command.value
        return str(self.last_applied)

    def _add(self, amounts: Mapping[str, int]) -> str:
        try:
            sums = {key: str(int(self._values.get(key, "0")) + amount) for key, amount in amounts.items()}
        except ValueError:
            return ""
        self._values.update(sums)
        return " ".join(sums.values())
