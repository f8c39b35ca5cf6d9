"""The segmented log on the simulator's disks: fsyncs lag behind the node and share, and crashes fall anywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultline.harness.world.simulated.page_cache import PageCacheDisk
from faultline.harness.world.simulated.storage import Disk, DiskSync, SimulatedDisk
from faultline.systems_under_test.patterns.data_replication.segmented_log import SegmentedLog


class _LaggingDisk:
    """The `Storage` port of a node whose fsyncs end only when told to; one is under way at a time, as in a host."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.sync: DiskSync | None = None
        self.wanted = False
        for operation in ("files", "read", "append", "write", "truncate", "rename", "delete"):
            setattr(self, operation, getattr(disk, operation))

    def fsync(self, file: str) -> None:
        self.disk.want_sync(file)
        self._begin()

    def fsync_folder(self) -> None:
        if self.disk.want_folder_sync():
            self._begin()

    def _begin(self) -> None:
        if self.sync is None:
            self.sync = self.disk.begin_sync()
        else:
            self.wanted = True

    def finish(self) -> None:
        if self.sync is not None:
            self.sync.finish()
            self.sync = self.disk.begin_sync() if self.wanted else None
            self.wanted = False


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "append", "flush", "truncate", "finish", "crash", "kill"]),
        st.integers(1, 20),
    ),
    max_size=60,
)


def _log(disk: Disk, size_max: int) -> tuple[_LaggingDisk, SegmentedLog]:
    storage = _LaggingDisk(disk)
    log = SegmentedLog(storage, "wal", size_max)
    log.recover()
    return storage, log


@pytest.mark.rows("WAL-I5", "SEG-R9")
@pytest.mark.parametrize("kind_of_disk", [SimulatedDisk, PageCacheDisk])
@given(STEPS, st.integers(1, 1_500), st.integers(1, 90), st.integers(0, 2**60))
def test_a_log_is_never_found_corrupt_and_always_a_prefix_of_what_it_was_that_holds_what_was_synced(
    kind_of_disk: type[Disk], steps: list[tuple[str, int]], size_max: int, scale: int, salt: int
) -> None:
    disk = kind_of_disk()
    storage, log = _log(disk, size_max)
    content: list[bytes] = []
    states, flushed, promised = [content], content, content
    for number, (kind, argument) in enumerate(steps):
        if kind == "append":
            content = [*content, bytes([number + 1]) * (argument * scale)]
            log.append(content[-1])
        elif kind == "flush":
            log.flush()
            flushed = content
        elif kind == "truncate":
            log.truncate_from(argument)
            content, flushed, promised = (each[: argument - 1] for each in (content, flushed, promised))
        elif kind == "finish":
            storage.finish()
            if storage.sync is None:
                promised = flushed
        else:
            disk.crash(salt, number, process_only=kind == "kill")
            storage, log = _log(disk, size_max)
            recovered = log.read_from(1)
            assert any(recovered == state[: len(recovered)] for state in states)
            assert recovered[: len(promised)] == promised
            # Recovery asks for a sync of all that it found. Until then a loss of power can bring older states back.
            content, flushed = recovered, recovered
            states = states if kind == "kill" else []
        states.append(content)
    assert log.read_from(1) == content
