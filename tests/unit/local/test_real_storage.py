"""Storage: a crash loses exactly what was not fsynced. A crash here is: forget the object, read the folder again."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultline.harness.world.local.storage import BufferedStorage, Commit, Disk


class Machine:
    """A folder with the storage of the process that runs on it; fsyncs are carried out at once, unless held back."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.held: list[Commit] | None = None
        self.boot()

    def boot(self) -> None:
        self.disk = Disk(self.folder)
        self.storage = BufferedStorage(self.commit, self.disk.content())

    def commit(self, commit: Commit) -> None:
        if self.held is not None:
            self.held.append(commit)
        else:
            self.disk.carry_out([commit])

    def crash(self) -> BufferedStorage:
        self.disk.close()
        self.boot()
        return self.storage


@pytest.fixture
def machine(tmp_path: Path):
    machine = Machine(tmp_path / "data")
    yield machine
    machine.disk.close()


def test_what_was_appended_is_read_back_before_any_fsync(machine: Machine) -> None:
    machine.storage.append("log", b"one")
    machine.storage.append("log", b"two")
    assert machine.storage.read("log") == b"onetwo"


def test_a_crash_loses_what_was_not_fsynced_and_nothing_else(machine: Machine) -> None:
    machine.storage.append("log", b"kept")
    machine.storage.fsync("log")
    machine.storage.append("log", b"lost")
    assert machine.crash().read("log") == b"kept"


def test_fsync_of_one_file_does_not_save_the_bytes_of_another(machine: Machine) -> None:
    machine.storage.append("a", b"kept")
    machine.storage.append("b", b"lost")
    machine.storage.fsync("a")
    storage = machine.crash()
    assert (storage.read("a"), storage.read("b")) == (b"kept", b"")
    assert storage.files() == ["a", "b"], "the creation of b was durable with the fsync of a"


def test_write_fsync_rename_replaces_a_file_as_a_whole(machine: Machine) -> None:
    storage = machine.storage
    storage.write("vote", b"old")
    storage.fsync("vote")
    storage.write("vote.new", b"new")
    storage.fsync("vote.new")
    storage.rename("vote.new", "vote")
    assert storage.read("vote") == b"new"
    assert machine.crash().read("vote") == b"old", "a rename is durable only after the next fsync"
    storage = machine.storage
    storage.rename("vote.new", "vote")
    storage.fsync("vote")
    storage = machine.crash()
    assert (storage.files(), storage.read("vote")) == (["vote"], b"new")


def test_a_file_renamed_before_its_fsync_can_come_back_empty(machine: Machine) -> None:
    machine.storage.write("vote.new", b"new")
    machine.storage.rename("vote.new", "vote")
    machine.storage.append("other", b"")
    machine.storage.fsync("other")
    assert machine.crash().read("vote") == b""


def test_a_rename_keeps_the_bytes_it_carries_pending(machine: Machine) -> None:
    machine.storage.write("vote.new", b"new")
    machine.storage.rename("vote.new", "vote")
    machine.storage.fsync("vote")
    assert machine.crash().read("vote") == b"new"


def test_deletion_and_truncation_are_durable_after_fsync(machine: Machine) -> None:
    storage = machine.storage
    storage.append("log", b"0123456789")
    storage.append("old", b"x")
    storage.fsync("log")
    storage.truncate("log", 4)
    storage.delete("old")
    assert (storage.read("log"), storage.files()) == (b"0123", ["log"])
    storage.fsync("log")
    storage = machine.crash()
    assert (storage.read("log"), storage.files()) == (b"0123", ["log"])


def test_a_file_created_anew_after_deletion_has_no_past(machine: Machine) -> None:
    storage = machine.storage
    storage.append("log", b"past")
    storage.fsync("log")
    storage.delete("log")
    storage.append("log", b"present")
    storage.fsync("log")
    assert machine.crash().read("log") == b"present"


def test_truncating_beyond_the_end_changes_nothing(machine: Machine) -> None:
    machine.storage.append("log", b"abc")
    machine.storage.truncate("log", 10)
    machine.storage.fsync("log")
    assert machine.crash().read("log") == b"abc"


def test_names_with_slashes_and_umlauts_are_just_names(machine: Machine) -> None:
    machine.storage.append("segments/größe 1%", b"x")
    machine.storage.fsync("segments/größe 1%")
    assert machine.crash().files() == ["segments/größe 1%"]


def test_commits_that_wait_together_share_one_fsync(machine: Machine) -> None:
    machine.storage.append("log", b"0")
    machine.storage.fsync("log")
    machine.held, before = [], machine.disk.fsyncs
    for number in range(10):
        machine.storage.append("log", b"%d" % number)
        machine.storage.fsync("log")
    machine.disk.carry_out(machine.held)
    assert machine.disk.fsyncs == before + 1
    assert machine.crash().read("log") == b"00123456789"


def test_what_a_commit_cut_off_is_durable_before_a_later_one_writes_there(machine: Machine) -> None:
    machine.storage.append("log", b"old")
    machine.storage.fsync("log")
    machine.held, before = [], machine.disk.fsyncs
    machine.storage.truncate("log", 0)
    machine.storage.fsync("log")
    machine.storage.append("log", b"new")
    machine.storage.fsync("log")
    machine.disk.carry_out(machine.held)
    assert machine.disk.fsyncs == before + 2
    assert machine.crash().read("log") == b"new"


def test_a_slow_disk_is_waited_for_once_per_round(tmp_path: Path) -> None:
    asked: list[int] = []

    def delay_us() -> int:
        asked.append(100)
        return 100

    disk = Disk(tmp_path / "slow", delay_us)
    held: list[Commit] = []
    storage = BufferedStorage(held.append)
    for number in range(3):
        storage.append("log", b"%d" % number)
        storage.fsync("log")
    disk.carry_out(held)
    disk.close()
    assert asked == [100]


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.sampled_from("ab"), st.binary(min_size=1, max_size=5)),
        st.tuples(st.just("write"), st.sampled_from("ab"), st.binary(max_size=5)),
        st.tuples(st.just("truncate"), st.sampled_from("ab"), st.integers(0, 8)),
        st.tuples(st.just("rename"), st.sampled_from("ab"), st.sampled_from("abc")),
        st.tuples(st.just("delete"), st.sampled_from("abc"), st.none()),
    ),
    max_size=20,
)


@given(actions=ACTIONS)
def test_after_fsync_of_every_file_a_crash_changes_nothing(
    actions: list[tuple[str, str, object]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    machine = Machine(tmp_path_factory.mktemp("machine"))
    for name, file, argument in actions:
        arguments = (file,) if name == "delete" else (file, argument)
        getattr(machine.storage, name)(*arguments)
    storage = machine.storage
    for file in storage.files():
        storage.fsync(file)
    storage.fsync("no such file")
    expected = {file: storage.read(file) for file in storage.files()}
    after = machine.crash()
    machine.disk.close()
    assert {file: after.read(file) for file in after.files()} == expected
