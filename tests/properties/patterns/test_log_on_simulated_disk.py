"""The segmented log on the simulator's disk: fsyncs lag behind the node and share, and crashes fall anywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultline.harness.world.simulated.storage import SimulatedDisk, Sync
from faultline.systems_under_test.patterns.data_replication.segmented_log import SegmentedLog


class _LaggingDisk:
    """The `Storage` port of a node whose fsyncs end only when told to; one is under way at a time, as in a host."""

    def __init__(self, disk: SimulatedDisk) -> None:
        self.disk = disk
        self.sync: Sync | None = None
        self.wanted = False
        for operation in ("files", "read", "append", "write", "truncate", "rename", "delete"):
            setattr(self, operation, getattr(disk, operation))

    def fsync(self, file: str) -> None:
        self.disk.want_sync(file)
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
        st.sampled_from(["append", "append", "append", "flush", "truncate", "finish", "crash"]), st.integers(1, 20)
    ),
    max_size=60,
)


def _log(disk: SimulatedDisk, size_max: int) -> tuple[_LaggingDisk, SegmentedLog]:
    storage = _LaggingDisk(disk)
    log = SegmentedLog(storage, "wal", size_max)
    log.recover()
    return storage, log


@pytest.mark.rows("WAL-I5", "SEG-R9")
@given(STEPS, st.integers(1, 80), st.integers(0, 2**60))
def test_a_log_is_never_found_corrupt_and_always_a_prefix_of_what_it_was(
    steps: list[tuple[str, int]], size_max: int, salt: int
) -> None:
    disk = SimulatedDisk()
    storage, log = _log(disk, size_max)
    content: list[bytes] = []
    states = [content]
    for number, (kind, argument) in enumerate(steps):
        if kind == "append":
            content = [*content, bytes([number]) * argument]
            log.append(content[-1])
        elif kind == "flush":
            log.flush()
        elif kind == "truncate":
            log.truncate_from(argument)
            content = content[: argument - 1]
        elif kind == "finish":
            storage.finish()
        else:
            disk.crash(salt, number)
            storage, log = _log(disk, size_max)
            recovered = log.read_from(1)
            assert any(recovered == state[: len(recovered)] for state in states)
            content, states = recovered, []
        states.append(content)
    assert log.read_from(1) == content
