"""TPC-M10, a write lock that reading takes away: in transactional-kv no client reads after write locks are taken, which
happens in the prepare phase. So no campaign can show it; here it breaks the claim of the lock itself."""

from __future__ import annotations

import pytest

from faultline.systems_under_test.patterns.data_partitioning.transaction_locks import (
    Lock,
    LockManager,
    LockMode,
    WaitPolicy,
    WriteConflict,
)
from faultline.systems_under_test.patterns.data_partitioning.transaction_messages import TransactionId, TransactionRef
from faultline.systems_under_test.patterns.distributed_time.hybrid_clock import HybridTimestamp


class _DowngradedLock(Lock):
    @staticmethod
    def mode_after(held: LockMode, asked: LockMode) -> LockMode:
        return asked


class _DowngradingLocks(LockManager):
    lock_class = _DowngradedLock


def reader_beside_a_writer_that_also_reads(locks_class: type[LockManager]) -> None:
    """Raises WriteConflict when the lock holds what it promises."""
    locks = locks_class(WaitPolicy.ERROR, lambda _: False, lambda *_: None)
    names = [TransactionId(number, "athens") for number in (1, 2)]
    writer, reader = (
        TransactionRef(name, HybridTimestamp(name.number, 0), HybridTimestamp(1, 0), name) for name in names
    )
    locks.acquire(writer, "x", LockMode.WRITE)
    locks.acquire(writer, "x", LockMode.READ)
    locks.acquire(reader, "x", LockMode.READ).result()


@pytest.mark.rows("TPC-M10")
def test_a_write_lock_that_reading_downgrades_lets_others_read() -> None:
    reader_beside_a_writer_that_also_reads(_DowngradingLocks)
    with pytest.raises(WriteConflict):
        reader_beside_a_writer_that_also_reads(LockManager)
