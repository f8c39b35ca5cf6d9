"""A snapshot of the key-value store holds all of it: a restored server answers as if it had applied every entry."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from faultline.systems_under_test.patterns.data_replication.idempotent_receiver import ClientSessions
from faultline.systems_under_test.reference.raft.key_value_store import KeyValueStore, encode_command
from faultline.systems_under_test.reference.shared.client_messages import (
    ClientCommand,
    CompareAndSet,
    RegisterClient,
    SetValue,
)


def commands(seed: int, count: int) -> list[bytes]:
    """Two clients register, then write and compare, with every fifth request or so repeated."""
    rng = Random(seed)
    made = [encode_command(RegisterClient()), encode_command(RegisterClient())]
    numbers = {1: 0, 2: 0}
    while len(made) < count:
        client = rng.choice((1, 2))
        if rng.random() < 0.2 and len(made) > 2:
            made.append(rng.choice(made[2:]))
            continue
        numbers[client] += 1
        key, value = rng.choice("xyz"), rng.randrange(3)
        command = SetValue(key, value) if rng.random() < 0.5 else CompareAndSet(key, rng.randrange(3), value)
        made.append(encode_command(ClientCommand(client, numbers[client], command)))
    return made


def store() -> KeyValueStore:
    return KeyValueStore(ClientSessions())


@pytest.mark.rows("LWM-I1", "LWM-I5", "LWM-R5")
@pytest.mark.parametrize("seed", range(10))
def test_a_restored_store_goes_on_exactly_as_the_one_it_was_taken_from(seed: int) -> None:
    made = commands(seed, 80)
    whole, restored = store(), store()
    for index, data in enumerate(made[:40], start=1):
        whole.apply(index, data)
    restored.apply(1, made[0])
    restored.restore(whole.snapshot())
    for index, data in enumerate(made[40:], start=41):
        assert restored.apply(index, data) == whole.apply(index, data)
    assert restored.snapshot() == whole.snapshot()


def test_a_snapshot_does_not_change_with_the_store_it_was_taken_from() -> None:
    whole = store()
    for index, data in enumerate(commands(1, 20), start=1):
        whole.apply(index, data)
    taken = whole.snapshot()
    other = store()
    other.restore(taken)
    other.values["x"] = "changed"
    assert whole.snapshot() == taken


@pytest.mark.parametrize("state", [b"", b"\xc1", msgspec.msgpack.encode([{}]), msgspec.msgpack.encode({"values": {}})])
def test_bytes_that_are_no_state_are_refused_and_change_nothing(state: bytes) -> None:
    whole = store()
    for index, data in enumerate(commands(2, 20), start=1):
        whole.apply(index, data)
    before = whole.snapshot()
    with pytest.raises(msgspec.MsgspecError):
        whole.restore(state)
    assert whole.snapshot() == before
