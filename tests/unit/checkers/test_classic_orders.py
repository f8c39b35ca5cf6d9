"""Orders that reads must agree on: long forks, causal registers, causal reverse, G2, monotonic values, sessions."""

from __future__ import annotations

import pytest
from classic_histories import anomalies, history_of, op

from faultline.checkers.classic.adya import AdyaG2Checker
from faultline.checkers.classic.causal import CausalChecker
from faultline.checkers.classic.causal_reverse import CausalReverseChecker
from faultline.checkers.classic.long_fork import LongForkChecker
from faultline.checkers.classic.monotonic import MonotonicChecker
from faultline.checkers.classic.sessions import SessionsChecker
from faultline.harness.errors import UsageError
from faultline.harness.verdict import Verdict


def verdict(checker, *operations):
    return checker.check(history_of(*operations)).verdict


def found(checker, *operations):
    return anomalies(checker.check(history_of(*operations)))


# -- long fork ------------------------------------------------------------------------------------------------------


def reading(*values):
    """A read of keys 0, 1, … that saw `values`."""
    micro = [["r", key, value] for key, value in enumerate(values)]
    return op("read", [["r", key, None] for key in range(len(values))], micro)


def test_reads_in_one_order_pass():
    writes = [op("write", [["w", key, 1]]) for key in range(3)]
    assert (
        verdict(LongForkChecker(), *writes, reading(1, None, None), reading(1, 1, 1), reading(1, 1, None))
        is Verdict.PASS
    )


def test_two_reads_that_see_two_writes_in_opposite_orders_are_a_long_fork():
    result = LongForkChecker().check(history_of(reading(1, 1, 1), reading(1, 1, None), reading(1, None, 1)))
    assert anomalies(result) == ["long-fork"]
    assert result.findings[0].operations == (1, 2)


def test_groups_of_keys_are_judged_apart_and_may_not_be_mixed():
    other = op("read", None, [["r", 7, None], ["r", 8, 1]])
    assert verdict(LongForkChecker(), reading(1, None), other, other) is Verdict.PASS
    with pytest.raises(UsageError, match="part of a group"):
        LongForkChecker().check(history_of(reading(1, None), op("read", None, [["r", 1, 1]])))


def test_a_key_written_twice_is_refused_and_a_value_that_no_client_wrote_is_found():
    with pytest.raises(UsageError, match="a second time"):
        LongForkChecker().check(history_of(op("write", [["w", 0, 1]]), op("write", [["w", 0, 2]])))
    assert found(LongForkChecker(), op("write", [["w", 0, 1]]), reading(2)) == ["garbage-read"]
    with pytest.raises(UsageError, match="another value"):
        LongForkChecker().check(history_of(reading(1), reading(2)))


# -- causal register ------------------------------------------------------------------------------------------------


def test_a_register_whose_reads_see_what_precedes_them_is_causal():
    operations = [op("read-init", None, 0), op("write", 1), op("read", None, 1), op("write", 2), op("read", None, 2)]
    assert verdict(CausalChecker(), *operations) is Verdict.PASS


@pytest.mark.parametrize("read", [None, 0, 1])
def test_a_read_that_misses_a_write_before_it_is_stale(read):
    assert found(CausalChecker(), op("write", 1), op("write", 2), op("read", None, read)) == ["stale-read"]


def test_overlapping_and_indeterminate_writes_may_be_seen_or_not():
    lost = op("write", 2, outcome="info", process=9)
    assert verdict(CausalChecker(), op("write", 1), lost, op("read", None, 1), op("read", None, 2)) is Verdict.PASS
    slow = [
        op("write", 1, span=(0, 9), process=1),
        op("read", None, None, span=(1, 2)),
        op("read", None, 1, span=(3, 4)),
    ]
    assert verdict(CausalChecker(), *slow) is Verdict.PASS


def test_values_from_nowhere_and_from_the_future_are_found():
    assert found(CausalChecker(), op("read", None, 5)) == ["garbage-read"]
    assert found(CausalChecker(), op("write", 5, outcome="fail"), op("read", None, 5)) == ["aborted-read"]
    assert found(CausalChecker(), op("read", None, 5), op("write", 5)) == ["future-read"]


def test_another_sessions_write_binds_only_when_keys_are_used_by_one_session_after_the_other():
    operations = [op("write", 1, process=1), op("read", None, None, process=2)]
    assert found(CausalChecker(), *operations) == ["stale-read"]
    assert verdict(CausalChecker(sessions_only=True), *operations) is Verdict.PASS
    own = [op("write", 1, process=1), op("read", None, None, process=1)]
    assert found(CausalChecker(sessions_only=True), *own) == ["stale-read"]


def test_values_of_a_causal_register_must_be_unique():
    with pytest.raises(UsageError, match="written to this key before"):
        CausalChecker().check(history_of(op("write", 1), op("write", 1)))


# -- causal reverse -------------------------------------------------------------------------------------------------


def test_a_later_write_seen_without_an_earlier_one_is_causal_reverse():
    result = CausalReverseChecker().check(history_of(op("write", 1), op("write", 2), op("read", None, [2])))
    assert anomalies(result) == ["causal-reverse"]
    assert result.findings[0].operations == (0, 1, 2)


def test_concurrent_writes_may_become_visible_in_any_order():
    writes = [op("write", 1, span=(0, 5)), op("write", 2, span=(1, 2), process=1)]
    assert verdict(CausalReverseChecker(), *writes, op("read", None, [2])) is Verdict.PASS
    assert verdict(CausalReverseChecker(), *writes, op("read", None, [1])) is Verdict.PASS


def test_an_indeterminate_write_precedes_nothing_but_follows_what_ended_before_it():
    lost = op("write", 1, outcome="info", span=(0, 1), process=1)
    assert verdict(CausalReverseChecker(), lost, op("write", 2), op("read", None, [2])) is Verdict.PASS
    later = op("write", 2, outcome="info", process=1)
    assert found(CausalReverseChecker(), op("write", 1), later, op("read", None, [2])) == ["causal-reverse"]


def test_values_that_no_write_put_there_are_found():
    assert found(CausalReverseChecker(), op("read", None, [4])) == ["garbage-read"]


# -- G2 -------------------------------------------------------------------------------------------------------------


def test_two_acknowledged_inserts_that_exclude_one_another_are_g2():
    first, second = op("insert", [7, [1, None]]), op("insert", [7, [None, 2]], process=1)
    assert found(AdyaG2Checker(), first, second) == ["G2"]
    assert verdict(AdyaG2Checker(), first, op("insert", [7, [None, 2]], outcome="fail")) is Verdict.PASS
    assert verdict(AdyaG2Checker(), first, op("insert", [7, [None, 2]], outcome="info")) is Verdict.UNKNOWN
    assert verdict(AdyaG2Checker(), first, op("insert", [8, [None, 2]])) is Verdict.VACUOUS


def test_inserts_may_have_their_key_apart_and_must_be_pairs():
    keyed = [op("insert", [1, None], key="7"), op("insert", [None, 2], key="7")]
    assert found(AdyaG2Checker(), *keyed) == ["G2"]
    for odd in (5, [7, [1, 2]], [7, [None, None]]):
        with pytest.raises(UsageError, match="`adya-g2` cannot judge"):
            AdyaG2Checker().check(history_of(op("insert", odd)))


# -- monotonic ------------------------------------------------------------------------------------------------------

BACK = [op("read", None, 2, process=1, worker=1), op("read", None, 1, process=6, worker=1)]


@pytest.mark.parametrize(
    ("scope", "expected"), [("process", []), ("worker", ["monotonic-reads-violated"]), ("global", ["not-monotonic"])]
)
def test_who_may_not_see_values_go_back_is_a_matter_of_scope(scope, expected):
    assert found(MonotonicChecker(scope=scope), *BACK) == expected


def test_overlapping_reads_may_see_values_in_any_order():
    reads = [op("read", None, 2, span=(0, 5), process=1), op("read", None, 1, span=(1, 6), process=2)]
    assert verdict(MonotonicChecker(scope="global"), *reads, op("read", None, 2, span=(7, 8))) is Verdict.PASS


def test_lists_are_compared_from_the_left_and_null_stands_before_everything():
    assert found(MonotonicChecker(), op("read", None, [2, 1]), op("read", None, [1, 9])) == ["monotonic-reads-violated"]
    assert found(MonotonicChecker(), op("read", None, 0), op("read", None, None)) == ["monotonic-reads-violated"]
    assert verdict(MonotonicChecker(), op("read"), op("increment", None, 1), op("read", None, 1)) is Verdict.PASS


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(UsageError, match='answered "x"'):
        MonotonicChecker().check(history_of(op("read", None, "x")))
    with pytest.raises(UsageError, match="no scope"):
        MonotonicChecker(scope="galaxy")


# -- session guarantees ---------------------------------------------------------------------------------------------


def write(version, process=0, value="v", **more):
    return op("write", value, version, process=process, key="k", **more)


def read(version, process=0, value="v", **more):
    return op("read", None, [version, value], process=process, key="k", **more)


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([write(2), read(1)], ["read-your-writes-violated"]),
        ([read(2), read(1)], ["monotonic-reads-violated"]),
        ([write(2), write(1)], ["monotonic-writes-violated"]),
        ([read(2), write(1)], ["writes-follow-reads-violated"]),
        ([read(2, value="a"), read(2, 1, value="b")], ["divergent-version"]),
        ([write(1, value="a"), read(1, 1, value="b")], ["divergent-version"]),
    ],
)
def test_each_session_guarantee_has_an_anomaly(operations, expected):
    assert found(SessionsChecker(), *operations) == expected


@pytest.mark.parametrize("first", [write(2), read(2)])
def test_other_sessions_and_other_keys_may_lag(first):
    assert verdict(SessionsChecker(), first, read(1, 1), read(1, 1)) is Verdict.PASS
    assert verdict(SessionsChecker(), first, *[op("read", None, [1, "v"], key="other")] * 2) is Verdict.PASS


def test_a_session_that_moves_forward_passes():
    assert verdict(SessionsChecker(), read(1), write(2), read(2), read(3, value="w"), write(4)) is Verdict.PASS


def test_a_read_of_nothing_is_version_0():
    assert found(SessionsChecker(), write(1), op("read", key="k")) == ["read-your-writes-violated"]


def test_a_workers_session_outlives_its_process():
    operations = [write(2, 0, worker=0), read(1, 5, worker=0), read(1, 5, worker=0)]
    assert verdict(SessionsChecker(), *operations) is Verdict.PASS
    assert found(SessionsChecker(sessions="worker"), *operations) == ["read-your-writes-violated"]


def test_versions_are_required():
    for operation in (
        op("write", 1),
        op("write", 1, "x"),
        op("read", None, 3),
        op("read", None, {"value": 1, "version": "a"}),
    ):
        with pytest.raises(UsageError, match="without a version"):
            SessionsChecker().check(history_of(operation))
