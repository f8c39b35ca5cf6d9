"""A key-value store with leases, deletions, guarded writes and a record of all changes.

`ServicedStore` is put in front of whatever store the options ask for. Like that store it is a function of the log:
leases, attachments, event numbers and what is kept of the past are the same on every server that has applied the same
entries, and all of it stands in the snapshot.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from faultline.systems_under_test.patterns.cluster_management.lease import (
    DUPLICATE_LEASE,
    NO_LEASE,
    STALE_TOKEN,
    DuplicateLease,
    Lease,
    LeaseTable,
    NoLease,
)
from faultline.systems_under_test.patterns.cluster_management.state_watch import (
    BoundedHistory,
    EventSource,
    KeyState,
    Position,
    StoredState,
    VersionedHistory,
    WatchEvent,
    is_below,
)
from faultline.systems_under_test.reference.leases_and_watches.settings import ServiceSettings
from faultline.systems_under_test.reference.raft.key_value_store import Applied, KeyValueStore
from faultline.systems_under_test.reference.shared.client_messages import ClientResponse, ExpireLease
from faultline.systems_under_test.reference.shared.key_commands import (
    Command,
    DeleteKey,
    GuardedWrite,
    RegisterLease,
    RevokeLease,
    SetValue,
    SetWithLease,
)

__all__ = ["LeaseChange", "ServicedStore", "new_source"]


class LeaseChange(msgspec.Struct, frozen=True):
    """The entry at `index` granted or ended `lease`; `reason` is `granted`, `expired` or `revoked`."""

    index: int
    lease: Lease
    reason: str


class _ServicedState(msgspec.Struct, frozen=True, array_like=True):
    """The content of a snapshot: that of the store beneath, leases, numbers of values, and what is kept of events."""

    store: bytes
    leases: list[Lease]
    positions: dict[str, Position]
    complete_after: Position
    events: list[WatchEvent]


_STATE_DECODER = msgspec.msgpack.Decoder(_ServicedState)


def new_source(settings: ServiceSettings) -> EventSource:
    """Return the source of missed events that the options ask for."""
    if settings.watch_source == "state":
        return StoredState()
    return (BoundedHistory if settings.watch_source == "history" else VersionedHistory)(settings.watch_history_max)


class ServicedStore(KeyValueStore):
    """Leases and events on top of a key-value store; `serve` makes it ready for use."""

    leases: LeaseTable
    events: EventSource

    def serve(self, leases: LeaseTable, events: EventSource, settings: ServiceSettings) -> None:
        """Begin with these leases and this source of events."""
        self.leases = leases
        self.events = events
        self.positions: dict[str, Position] = {}
        self.happened: list[WatchEvent] = []
        """The events of the entry applied last."""
        self.lease_changes: list[LeaseChange] = []
        """The leases that it granted or ended."""
        self._settings = settings
        self._index = 0
        self._served: dict[type, Callable[[Any], tuple[str | None, Any]]] = {
            RegisterLease: self._register_lease,
            RevokeLease: self._revoke_lease,
            SetWithLease: self._set_with_lease,
            DeleteKey: self._delete_key,
            GuardedWrite: self._guarded_write,
        }

    def apply(self, index: int, data: bytes) -> Applied:
        """Apply the entry, and note what it changed."""
        self._index = index
        self.happened = []
        self.lease_changes = []
        return super().apply(index, data)

    def execute(self, request_number: int, command: Command) -> ClientResponse:
        """Execute `command`; an update is answered with its index, the number of its event."""
        serve = self._served.get(type(command))
        if serve is not None:
            error, answer = serve(command)
            return ClientResponse(request_number, error, answer)
        before = self.values.get(command.key)
        response = super().execute(request_number, command)
        after = self.values.get(command.key)
        if type(command) is SetValue:
            self.leases.detach(command.key)
            self.note(command.key, after)
            return msgspec.structs.replace(response, value=self._index)
        if after != before:
            self.note(command.key, after)
        return response

    def state(self, path: str) -> tuple[KeyState, ...]:
        """Return the values at and below `path`, in the order of the keys."""
        keys = sorted(key for key in self.values if self.is_listed(path, key))
        return tuple(KeyState(key, self.values[key], *self.positions[key]) for key in keys)

    def is_listed(self, path: str, key: str) -> bool:
        """Return whether reading `path` shows `key`."""
        return is_below(path, key)

    # Commands.

    def _register_lease(self, command: RegisterLease) -> tuple[str | None, Any]:
        try:
            lease = self.leases.register(command.key, command.ttl_us, self._index)
        except DuplicateLease:
            return DUPLICATE_LEASE, None
        self.lease_changes.append(LeaseChange(self._index, lease, "granted"))
        return None, lease.incarnation

    def _revoke_lease(self, command: RevokeLease) -> tuple[str | None, Any]:
        return (None, None) if self.end_lease(command.key, command.incarnation, "revoked") else (NO_LEASE, None)

    def expire_lease(self, command: ExpireLease) -> None:
        """End a lease that was not refreshed, as the leader found."""
        self.end_lease(command.name, command.incarnation, "expired")

    def end_lease(self, name: str, incarnation: int, reason: str) -> bool:
        """End a lease, and remove its keys in the same step (LS-I4); False if it was not there any more."""
        lease = self.leases.end(name, incarnation)
        if lease is None:
            return False
        self.lease_changes.append(LeaseChange(self._index, lease, reason))
        for key in lease.keys:
            del self.values[key]
            self.note_removal(key)
        return True

    def note_removal(self, key: str) -> None:
        """Note that a key went with its lease, an event like any other (LS-R20)."""
        self.note(key, None, is_deleted=True)

    def _set_with_lease(self, command: SetWithLease) -> tuple[str | None, Any]:
        if not self.attach(command):
            return NO_LEASE, None
        self.values[command.key] = command.value
        self.note(command.key, command.value)
        return None, self._index

    def attach(self, command: SetWithLease) -> bool:
        """Let the key live as long as the lease, if there is one."""
        try:
            self.leases.attach(command.lease, command.key)
        except NoLease:
            return False
        return True

    def _delete_key(self, command: DeleteKey) -> tuple[str | None, Any]:
        if command.key not in self.values:
            return None, None
        del self.values[command.key]
        self.leases.detach(command.key)
        self.note(command.key, None, is_deleted=True)
        return None, self._index

    def _guarded_write(self, command: GuardedWrite) -> tuple[str | None, Any]:
        held = self.values.get(command.key)
        if self._settings.fencing and self.is_stale(held, command.token):
            return STALE_TOKEN, None
        value = {"token": command.token, "value": command.value}
        self.values[command.key] = value
        self.note(command.key, value)
        return None, self._index

    def is_stale(self, held: Any, token: int) -> bool:
        """Return whether the resource has accepted a greater token before."""
        return held is not None and token < held["token"]

    def note(self, key: str, value: Any, *, is_deleted: bool = False) -> None:
        """Note a change of `key`, under the next number of this entry."""
        event = WatchEvent(self._index, len(self.happened), key, value, is_deleted)
        if is_deleted:
            del self.positions[key]
        else:
            self.positions[key] = event.position
        self.happened.append(event)
        self.record(event)

    def record(self, event: WatchEvent) -> None:
        """Keep it for those who miss it now: on every server, since any may lead next (WA-R27)."""
        self.events.record(event)

    # Snapshots.

    def snapshot(self) -> bytes:
        """Return the whole state, leases and events included."""
        complete_after, events = self.events.content()
        return msgspec.msgpack.encode(
            _ServicedState(super().snapshot(), self.leases.content(), self.positions, complete_after, events)
        )

    def restore(self, state: bytes) -> None:
        """Put the state of a snapshot in the place of this one. Raises msgspec.MsgspecError when it is none."""
        content = _STATE_DECODER.decode(state)
        super().restore(content.store)
        self.leases.restore(content.leases)
        self.positions = content.positions
        self.events.restore(content.complete_after, content.events)
