"""A database that keeps a level is never accused of breaking it, and breaks the next stronger one for all to see."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_databases import Causal, ReadAtomic, ReadCommitted, Serial, Snapshot, history_of

from faultline.checkers.isolation.strong import SerializabilityChecker, SnapshotIsolationChecker
from faultline.checkers.isolation.weak import CausalConsistencyChecker, ReadAtomicChecker, ReadCommittedChecker
from faultline.harness.verdict import Verdict

LEVELS = (
    ReadCommittedChecker,
    ReadAtomicChecker,
    CausalConsistencyChecker,
    SnapshotIsolationChecker,
    SerializabilityChecker,
)
STRONGEST = {ReadCommitted: 1, ReadAtomic: 2, Causal: 3, Snapshot: 4, Serial: 5}
"""The number of levels that each database keeps."""


@pytest.mark.parametrize("database", STRONGEST, ids=lambda database: database.__name__)
@given(seed=st.integers(0, 2**32))
def test_no_level_that_a_database_keeps_is_said_to_be_broken(database, seed):
    history = history_of(database, seed)
    for make in LEVELS[: STRONGEST[database]]:
        assert make().check(history).verdict is Verdict.PASS


@pytest.mark.parametrize("database", list(STRONGEST)[:-1], ids=lambda database: database.__name__)
def test_the_next_stronger_level_is_seen_to_be_broken(database):
    make = LEVELS[STRONGEST[database]]
    verdicts = [make().check(history_of(database, seed)).verdict for seed in range(20)]
    assert verdicts.count(Verdict.VIOLATION) >= 5
