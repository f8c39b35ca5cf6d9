"""The write-ahead log by itself, under a store of one server: WAL-S1 to S3, S6, S8 to S10, and the flush policies."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from faultline.systems_under_test.patterns.data_replication.flush_policy import (
    FlushEachAppend,
    FlushInGroups,
)
from faultline.systems_under_test.patterns.data_replication.logged_store import (
    AddCommand,
    LoggedStore,
    SetOnceCommand,
    SetValueCommand,
    deserialize,
    serialize,
)
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import (
    DATA,
    CorruptLog,
    LogEntry,
    LogUnusable,
    WriteAheadLog,
)
from faultline.testing.fake_ports import FakePorts
from faultline.testing.memory_storage import Crash, MemoryStorage, keep_all, keep_nothing

Keep = Callable[[int], int]


def opened(storage: MemoryStorage, policy=FlushEachAppend, **options: int) -> LoggedStore:
    store = LoggedStore(storage, policy, **options)
    store.open()
    return store


def recovered(storage: MemoryStorage, keep: Keep = keep_nothing) -> dict[str, str]:
    storage.crash(keep)
    return dict(opened(storage).values)


# -- commands ---------------------------------------------------------------------------------------------------------


@pytest.mark.rows("WAL-R6")
def test_a_command_is_a_tag_and_three_strings_with_their_lengths() -> None:
    data = serialize(SetValueCommand("titel", "Übung", "lease-1"))
    assert data == b"\0\0\0\1" + b"\0\5titel" + b"\0\6\xc3\x9cbung" + b"\0\7lease-1"
    assert deserialize(data) == SetValueCommand("titel", "Übung", "lease-1")
    assert SetValueCommand("k", "v").attach_lease == ""


@pytest.mark.rows("WAL-R6", "WAL-R7")
def test_each_kind_of_command_is_told_by_its_tag() -> None:
    add = AddCommand(3, 1, {"boston": -40, "pune": 40})
    assert deserialize(serialize(add)) == add
    assert deserialize(b"\0\0\0\x63 whatever") is None


@pytest.mark.rows("WAL-S7", "WAL-R11")
def test_a_late_repetition_of_a_write_does_not_bring_the_old_value_back() -> None:
    store = opened(MemoryStorage())
    answers = []
    for command in (SetOnceCommand(1, 1, "title", "old"), SetOnceCommand(2, 1, "title", "new")) * 2:
        store.log.append(LogEntry(store.log.last_index + 1, 0, DATA, serialize(command)))
        answers.append(store.apply(store.log.entry(store.log.last_index)).answer)
    assert store.get("title") == "new"
    assert answers == ["1", "2", "1", "2"]


def test_an_addition_to_a_text_changes_nothing_and_says_so() -> None:
    store = opened(MemoryStorage())
    store.put("title", "a text")
    store.log.append(LogEntry(2, 0, DATA, serialize(AddCommand(1, 1, {"title": 1, "count": 1}))))
    assert store.apply(store.log.entry(2)).answer == ""
    assert dict(store.values) == {"title": "a text"}


@pytest.mark.rows("WAL-R5")
def test_an_entry_has_index_kind_data_time_and_generation_and_survives_with_all_of_them() -> None:
    storage = MemoryStorage()
    log = WriteAheadLog(storage)
    log.recover()
    log.append(LogEntry(1, 4, DATA, b"payload", 1_700_000_000_000_000))
    log.flush()
    again = WriteAheadLog(storage)
    again.recover()
    assert again.entry(1) == LogEntry(index=1, generation=4, kind=DATA, data=b"payload", time_us=1_700_000_000_000_000)


@pytest.mark.rows("WAL-R7")
def test_commands_of_unknown_kinds_do_not_change_the_map() -> None:
    storage = MemoryStorage()
    store = opened(storage)
    store.put("title", "known")
    store.log.append(LogEntry(2, 0, DATA, b"\0\0\0\x63 from a later version"))
    store.log.flush()
    assert recovered(storage) == {"title": "known"}


# -- the order of things ----------------------------------------------------------------------------------------------


@pytest.mark.rows("WAL-R1")
def test_the_log_has_a_change_before_the_map_has_it() -> None:
    seen = []

    class Watching(LoggedStore):
        def apply(self, entry: LogEntry) -> None:
            seen.append((self.log.entry(entry.index) == entry, self.get("title")))
            super().apply(entry)

    store = Watching(MemoryStorage())
    store.open()
    store.put("title", "new")
    assert seen == [(True, None)]
    assert store.get("title") == "new"


@pytest.mark.rows("WAL-R3", "WAL-R4", "WAL-I2")
def test_all_changes_go_to_one_log_under_indexes_without_gaps() -> None:
    storage = MemoryStorage()
    store = opened(storage)
    for number in range(5):
        store.put(f"key{number}", "value")
        store.add(1, number + 1, {"count": 1})
    assert [entry.index for entry in store.log.entries(1, 99)] == list(range(1, 11))
    assert storage.files() == ["kv_1.log"]


@pytest.mark.rows("WAL-R17")
def test_reading_touches_no_file() -> None:
    class NoReads(MemoryStorage):
        reads = 0

        def read(self, file: str) -> bytes:
            self.reads += 1
            return super().read(file)

    storage = NoReads()
    store = opened(storage)
    store.put("title", "value")
    reads, effects = storage.reads, storage.effects
    assert store.get("title") == "value"
    assert store.get("nothing") is None
    assert (storage.reads, storage.effects) == (reads, effects)


@pytest.mark.rows("WAL-R2", "WAL-S1", "WAL-I1")
@pytest.mark.parametrize("count", range(1, 6))
def test_what_was_told_survives_the_crash_of_the_machine(count: int) -> None:
    storage = MemoryStorage()
    store = opened(storage)
    told: list[str] = []
    for number in range(count):
        store.put(f"key{number}", "value", lambda number=number: told.append(f"key{number}"))
    assert len(told) == count
    assert recovered(storage) == dict.fromkeys(told, "value")


@pytest.mark.rows("WAL-S2", "WAL-I3", "WAL-I4")
@pytest.mark.parametrize("keep", [keep_nothing, keep_all])
@pytest.mark.parametrize("steps", range(7))
def test_a_crash_at_any_step_leaves_the_fold_of_the_log_with_everything_that_was_told(keep: Keep, steps: int) -> None:
    storage = MemoryStorage()
    store = opened(storage)
    told: list[str] = []
    storage.effects_max = steps
    with suppress(Crash, LogUnusable):
        for value in "abc":
            store.put("title", value, lambda value=value: told.append(value))
    value = recovered(storage, keep).get("title")
    asked = "abc"[: len(told) + 1]
    assert value in ([*asked] if told else [None, *asked])
    assert not told or value >= told[-1]


# -- replay -----------------------------------------------------------------------------------------------------------


@pytest.mark.rows("WAL-R15", "WAL-S9", "WAL-I6")
def test_replay_writes_nothing_and_can_be_interrupted_and_repeated() -> None:
    storage = MemoryStorage()
    store = opened(storage)
    for number in range(1, 6):
        store.add(1, number, {"count": 1})
    storage.crash(keep_nothing)
    before = {file: storage.read(file) for file in storage.files()}

    class Interrupted(LoggedStore):
        def apply(self, entry: LogEntry) -> None:
            if entry.index == 3:
                raise Crash("in the middle of the replay")
            super().apply(entry)

    for _ in range(2):
        with pytest.raises(Crash):
            Interrupted(storage).open()
        again = opened(storage)
        assert (again.get("count"), again.log.last_index) == ("5", 5)
    assert {file: storage.read(file) for file in storage.files()} == before


@pytest.mark.rows("WAL-R11", "WAL-S6")
def test_a_repeated_request_is_in_the_log_twice_and_takes_effect_once() -> None:
    storage = MemoryStorage()
    store = opened(storage)
    for _ in range(2):
        store.add(7, 1, {"count": 1})
    assert (store.get("count"), store.log.last_index) == ("1", 2)
    assert recovered(storage) == {"count": "1"}


def test_a_repetition_so_late_that_its_answer_is_forgotten_has_no_effect_either() -> None:
    storage = MemoryStorage()
    store = opened(storage)
    for number in (1, 2, 3, 4, 5, 6, 7, 1):
        store.add(7, number, {"count": 1})
    assert store.get("count") == "7"
    assert recovered(storage) == {"count": "7"}


@pytest.mark.rows("WAL-S8")
@pytest.mark.parametrize("keep", [keep_nothing, keep_all])
@pytest.mark.parametrize("steps", range(5))
def test_a_transfer_between_boston_and_pune_happens_whole_or_not_at_all(keep: Keep, steps: int) -> None:
    """SYS-S1: 40 widgets from boston's 50 to pune's 75, and a crash at every step."""
    storage = MemoryStorage()
    store = opened(storage)
    store.put("boston", "50")
    store.put("pune", "75")
    storage.effects_max = storage.effects + steps
    with suppress(Crash, LogUnusable):
        store.add(1, 1, {"boston": -40, "pune": 40})
    after = recovered(storage, keep)
    assert after in ({"boston": "50", "pune": "75"}, {"boston": "10", "pune": "115"})
    assert sum(map(int, after.values())) == 125


# -- snapshots --------------------------------------------------------------------------------------------------------


@pytest.mark.rows("WAL-R8", "LWM-R5", "WAL-I3")
def test_a_snapshot_and_the_entries_after_it_give_the_same_state_as_the_whole_log() -> None:
    storage = MemoryStorage()
    store = opened(storage)
    for number in range(1, 7):
        store.add(1, number, {"count": number})
        if number == 3:
            snapshot = store.take_snapshot()
    assert snapshot.index == 3
    replayed: list[int] = []

    class Watching(LoggedStore):
        def replay(self, entry: LogEntry) -> None:
            replayed.append(entry.index)
            super().replay(entry)

    again = Watching(storage)
    again.open(snapshot)
    assert replayed == [4, 5, 6]
    assert again.values == opened(storage).values == {"count": "21"}
    again.add(1, 6, {"count": 6})
    assert again.get("count") == "21"


@pytest.mark.rows("LWM-R5", "LWM-S2", "LWM-S3")
def test_a_snapshot_holds_exactly_the_entries_up_to_its_index_while_others_wait() -> None:
    """The log runs ahead of what is applied; what waits may yet be lost, and must not be in the snapshot."""
    timers, storage = FakePorts(), MemoryStorage()
    store = opened(storage, lambda log: FlushInGroups(log, timers))
    store.put("title", "applied")
    timers.ring()
    store.put("title", "waiting")
    snapshot = store.take_snapshot()
    assert (snapshot.index, store.log.last_index) == (1, 2)
    storage.crash(keep_nothing)
    again = LoggedStore(storage)
    again.open(snapshot)
    assert again.values == {"title": "applied"}


# -- a disk that refuses ----------------------------------------------------------------------------------------------


@pytest.mark.rows("WAL-R16", "WAL-S10")
@pytest.mark.parametrize("operation", ["append", "fsync"])
def test_a_disk_that_refuses_changes_nothing_in_memory_and_no_writer_is_told(operation: str) -> None:
    storage, told = MemoryStorage(), []
    store = opened(storage)
    store.put("title", "old")
    storage.failing = operation
    with pytest.raises(LogUnusable, match=f"{operation} failed"):
        store.put("title", "new", lambda: told.append("new"))
    assert (store.get("title"), told) == ("old", [])


@pytest.mark.rows("WAL-R16", "WAL-S10")
@pytest.mark.parametrize("operation", ["append", "fsync"])
def test_a_refused_write_is_not_tried_again_however_well_the_disk_works_by_then(operation: str) -> None:
    storage, told = MemoryStorage(), []
    store = opened(storage)
    store.put("title", "old")
    storage.failing = operation
    with pytest.raises(LogUnusable):
        store.put("title", "new")
    storage.failing = ""
    with pytest.raises(LogUnusable, match="recover the log first"):
        store.put("title", "newer", lambda: told.append("newer"))
    assert (store.get("title"), told) == ("old", [])
    assert recovered(storage, keep_all)["title"] in ("old", "new")


@pytest.mark.rows("WAL-R16")
def test_a_half_written_record_is_not_followed_by_another() -> None:
    storage = MemoryStorage()
    store = opened(storage)
    store.put("title", "old")
    storage.failing = "append"
    with pytest.raises(LogUnusable):
        store.put("title", "half of this reaches the disk")
    storage.failing = ""
    again = opened(storage)
    again.put("title", "next")
    assert recovered(storage) == {"title": "next"}


@pytest.mark.rows("WAL-R10", "WAL-S5")
def test_a_store_with_a_changed_log_does_not_open() -> None:
    storage = MemoryStorage()
    store = opened(storage)
    for value in "abc":
        store.put("title", value)
    storage.damage("kv_1.log", 30)
    with pytest.raises(CorruptLog):
        opened(storage)
