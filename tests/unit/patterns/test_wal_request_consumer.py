"""One consumer owns the log: one entry per request, in order, answered after the write and not before (SUQ-R10)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from faultline.systems_under_test.patterns.data_replication.flush_policy import FlushInGroups
from faultline.systems_under_test.patterns.data_replication.singular_update_queue import QueueShutDown
from faultline.systems_under_test.patterns.data_replication.wal_request_consumer import WalRequestConsumer
from faultline.systems_under_test.patterns.data_replication.write_ahead_log import LogUnusable, WriteAheadLog
from faultline.testing.fake_ports import FakePorts
from faultline.testing.memory_storage import MemoryStorage


def after_a_crash(storage: MemoryStorage) -> WriteAheadLog:
    """The log that a new process would find; the storage itself goes on."""
    disk = copy.deepcopy(storage)
    disk.crash()
    log = WriteAheadLog(disk)
    log.recover()
    return log


def consumer(**options: Any) -> tuple[WalRequestConsumer, WriteAheadLog, MemoryStorage]:
    storage = MemoryStorage()
    log = WriteAheadLog(storage)
    log.recover()
    return WalRequestConsumer(log, **options), log, storage


@pytest.mark.rows("SUQ-R10", "SUQ-I4", "SUQ-I2")
def test_an_answer_says_the_index_of_an_entry_that_is_on_disk() -> None:
    writer, log, storage = consumer()
    answers: list[int] = []

    def respond(index: int) -> None:
        assert after_a_crash(storage).last_index >= index
        answers.append(index)

    for message in (b"one", b"two", b"three"):
        writer.accept(message, respond, pytest.fail)
    assert answers == [1, 2, 3]
    assert [entry.data for entry in log.entries(1, 10)] == [b"one", b"two", b"three"]


@pytest.mark.rows("SUQ-R10")
def test_an_error_is_answered_with_an_error() -> None:
    writer, _, storage = consumer()
    errors: list[Exception] = []
    storage.failing = "fsync"
    writer.accept(b"one", pytest.fail, errors.append)
    assert [type(error) for error in errors] == [LogUnusable]
    storage.failing = ""
    writer.accept(b"two", pytest.fail, errors.append)
    assert [type(error) for error in errors] == 2 * [LogUnusable]


@pytest.mark.rows("SUQ-R10", "WAL-R9")
def test_requests_of_a_group_are_answered_after_the_flush_that_they_share() -> None:
    ports = FakePorts()
    log = WriteAheadLog(ports.storage)
    log.recover()
    writer = WalRequestConsumer(log, policy=FlushInGroups(log, ports, group_max=3))
    answers: list[int] = []
    for message in (b"one", b"two"):
        writer.accept(message, answers.append, pytest.fail)
    assert (log.last_index, answers) == (2, [])
    writer.accept(b"three", answers.append, pytest.fail)
    assert answers == [1, 2, 3]


@pytest.mark.rows("SUQ-S8", "SUQ-R15")
def test_what_was_queued_at_a_crash_is_neither_written_nor_answered() -> None:
    runs: list[Callable[[], None]] = []
    writer, log, storage = consumer(schedule=runs.append)
    answers: list[Any] = []
    promises = [writer.accept(message, answers.append, answers.append) for message in (b"one", b"two")]
    assert not any(promise.done for promise in promises)
    assert (after_a_crash(storage).last_index, log.last_index, answers) == (0, 0, [])


@pytest.mark.rows("SUQ-R6")
def test_what_waits_at_a_shutdown_is_answered_with_an_error() -> None:
    runs: list[Callable[[], None]] = []
    writer, _, _ = consumer(schedule=runs.append)
    errors: list[Exception] = []
    writer.accept(b"one", pytest.fail, errors.append)
    writer.shutdown()
    assert [type(error) for error in errors] == [QueueShutDown]
