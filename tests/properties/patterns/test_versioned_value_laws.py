"""Laws of versioned values: all layouts answer as a fold of the log does, and bytes keep the order of pairs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultline.systems_under_test.patterns.data_replication.versioned_value import (
    DELETED,
    IndexedVersions,
    OrderedVersions,
    VersionedStore,
)
from faultline.systems_under_test.patterns.data_replication.versioned_value_on_disk import (
    OnDiskVersions,
    decode_versioned_key,
    encode_versioned_key,
)

KEYS = st.sampled_from(["", "a", "aa", "a\0", "a\0b", "b", "\ud800", "é"])
VERSIONS = st.one_of(st.integers(0, 300), st.sampled_from([2**31, 2**31 - 1, 2**63 - 1, -(2**63), -1]))
LOGS = st.lists(st.tuples(KEYS, st.one_of(st.none(), st.integers(0, 9), st.just("gone"))), max_size=12)


@pytest.mark.rows("VVL-R14")
@given(st.tuples(st.one_of(KEYS, st.text()), VERSIONS), st.tuples(st.one_of(KEYS, st.text()), VERSIONS))
def test_bytes_are_ordered_as_the_pairs_they_encode(one: tuple[str, int], other: tuple[str, int]) -> None:
    assert (encode_versioned_key(*one) < encode_versioned_key(*other)) == (one < other)
    assert decode_versioned_key(encode_versioned_key(*one)) == one


@pytest.mark.rows("VVL-R14")
def test_a_version_beyond_64_bits_is_refused() -> None:
    with pytest.raises(OverflowError):
        encode_versioned_key("title", 2**63)


def folded(log: list[tuple[str, Any]], at: int) -> dict[str, Any]:
    """The plain store after the first `at` entries of the log."""
    state: dict[str, Any] = {}
    for key, value in log[:at]:
        state.pop(key, None)
        if value != "gone":
            state[key] = value
    return state


def filled(store: VersionedStore[int], log: list[tuple[str, Any]]) -> VersionedStore[int]:
    for version, (key, value) in enumerate(log, start=1):
        store.put(key, version, DELETED if value == "gone" else value)
    return store


@pytest.mark.rows("VVL-I3", "VVL-I4", "VVL-R11", "VVL-R12")
@given(LOGS, st.integers(0, 12), st.integers(0, 12))
def test_every_layout_answers_as_the_fold_of_the_log_does(log: list[tuple[str, Any]], at: int, mark: int) -> None:
    stores = [filled(store, log) for store in (OrderedVersions[int](), IndexedVersions[int](), OnDiskVersions())]
    keys = {key for key, _ in log} | {"absent"}
    for _ in range(2):
        expected = folded(log, at)
        for store in stores:
            assert {key: found.value for key in keys if (found := store.get(key, at)) is not None} == expected
        assert len({str(list(store.entries())) for store in stores}) == 1
        for store in stores:
            store.compact(min(mark, at))
