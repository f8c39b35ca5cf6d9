"""`data-grid` as the harness sees it: options that are refused, limits of the promise, and the table on the disk."""

from __future__ import annotations

import pytest

from faultline.harness.errors import UsageError
from faultline.harness.options import effective_options
from faultline.harness.promises import Asked
from faultline.harness.system import NodeSystem
from faultline.systems_under_test.patterns.data_replication.file_format import CorruptLog
from faultline.systems_under_test.reference.data_grid.options import GridSettings
from faultline.systems_under_test.reference.data_grid.system import DataGrid
from faultline.systems_under_test.reference.data_grid.table import Entry, GridTable, Holder
from faultline.systems_under_test.reference.data_grid.table_log import TableLog
from faultline.testing.fake_ports import FakePorts
from faultline.testing.memory_storage import MemoryStorage

TABLE = GridTable(5, ("athens",), (Entry(5, (Holder("athens", 1),)),))


def asked(*faults: str, kinds: frozenset[str] = frozenset(), **options: str) -> Asked:
    system = DataGrid()
    chosen = effective_options(system, options, ())
    return Asked(workload="register", functions=("read",), options=chosen, nodes=5, faults=faults, fault_kinds=kinds)


def test_the_grid_fulfils_the_protocol_of_systems() -> None:
    system: NodeSystem = DataGrid()
    assert system.name == "data-grid"
    assert len(system.options) == 15


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"lease_ms": "99"}, "lease_ms"),
        ({"failure_timeout_ms": "99"}, "failure_timeout_ms"),
        ({"partitions": "1025"}, "partitions"),
        ({"minimum_size": "some"}, "minimum_size"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: dict[str, str], named: str) -> None:
    with pytest.raises(UsageError, match=named):
        GridSettings.read(options)


@pytest.mark.parametrize(
    ("question", "clause"),
    [
        (asked(minimum_size="none"), "both halves"),
        (asked(join_attempts="5"), "gives up"),
        (asked("runaway-clocks"), "run away"),
        (asked("kill", kinds=frozenset({"kill"})), "in memory"),
        (asked("leadership", kinds=frozenset({"kill"}), backups="1"), "two crashes"),
        (asked(failure_timeout_ms="1200"), "later than a run"),
        (asked(seeds="5", join_timeout_ms="400"), "late in a run"),
    ],
)
def test_the_promise_has_limits_that_are_told_in_a_clause(question: Asked, clause: str) -> None:
    assert clause in (DataGrid().not_promised(question) or "")


def test_one_crash_at_a_time_is_within_the_promise() -> None:
    assert DataGrid().not_promised(asked("leadership", "partition", kinds=frozenset({"kill", "partition"}))) is None


@pytest.mark.rows("EL-I11")
def test_a_promise_and_a_table_survive_a_restart_and_bind() -> None:
    storage = MemoryStorage()
    log = TableLog(FakePorts(storage=storage))
    log.recover()
    assert log.follow(TABLE)
    assert log.promise(9)
    again = TableLog(FakePorts(storage=storage))
    again.recover()
    assert (again.promised, again.table) == (9, TABLE)
    assert again.is_frozen
    assert not again.promise(8)
    assert not again.follow(GridTable(8))
    assert again.follow(GridTable(9))
    assert not again.is_frozen


def test_a_table_file_is_replaced_when_it_has_grown_and_reads_the_same() -> None:
    storage = MemoryStorage()
    log = TableLog(FakePorts(storage=storage))
    log.recover()
    for version in range(1, 3_000):
        log.follow(GridTable(version, TABLE.members, TABLE.entries))
    assert len(storage.read("table.log")) < 70_000
    again = TableLog(FakePorts(storage=storage))
    again.recover()
    assert again.table.version == 2_999


def test_a_table_that_changed_on_the_disk_is_refused() -> None:
    storage = MemoryStorage()
    log = TableLog(FakePorts(storage=storage))
    log.recover()
    log.follow(TABLE)
    log.promise(9)
    data = bytearray(storage.read("table.log"))
    data[12] ^= 0xFF
    storage.write("table.log", bytes(data))
    with pytest.raises(CorruptLog):
        TableLog(FakePorts(storage=storage)).recover()
