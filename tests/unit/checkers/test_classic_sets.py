"""Sets judged by their last read and by the life of each element."""

from __future__ import annotations

import pytest
from classic_histories import anomalies, history_of, op

from faultline.checkers.classic.set_full import SetFullChecker, quantiles
from faultline.checkers.classic.sets import SetChecker
from faultline.harness.errors import UsageError
from faultline.harness.verdict import Verdict

BOTH = pytest.mark.parametrize("checker", [SetChecker(), SetFullChecker()], ids=lambda checker: checker.name)


@BOTH
def test_a_set_that_keeps_what_it_acknowledged_passes(checker):
    history = history_of(op("add", 1), op("add", 2, outcome="info", span=(1, None)), op("read", None, [1, 2]))
    assert checker.check(history).verdict is Verdict.PASS


@BOTH
def test_an_acknowledged_element_that_the_last_read_lacks_is_lost(checker):
    result = checker.check(history_of(op("add", 1), op("add", 2, process=3), op("read", None, [1], process=4)))
    assert result.verdict is Verdict.VIOLATION
    assert anomalies(result) == ["lost-element"]
    assert result.findings[0].operations == (1, 2)
    assert "2" in result.findings[0].sentence and "client 4" in result.findings[0].sentence


@BOTH
def test_an_element_that_stands_twice_is_a_violation(checker):
    result = checker.check(history_of(op("add", 1), op("read", None, [1, 1])))
    assert anomalies(result) == ["duplicated-element"]


@BOTH
def test_an_element_that_no_client_added_is_unexpected(checker):
    assert anomalies(checker.check(history_of(op("add", 1), op("read", None, [1, 9])))) == ["unexpected-element"]


@BOTH
def test_an_element_whose_add_certainly_failed_is_unexpected(checker):
    history = history_of(op("add", 1), op("add", 2, outcome="fail"), op("read", None, [1, 2]))
    assert anomalies(checker.check(history)) == ["unexpected-element"]


@BOTH
def test_an_element_read_before_its_add_began_is_unexpected(checker):
    history = history_of(op("add", 1), op("read", None, [1, 2], span=(2, 3)), op("add", 2, span=(4, 5)))
    assert "unexpected-element" in anomalies(checker.check(history))


@BOTH
def test_an_add_that_overlaps_the_last_read_need_not_be_in_it(checker):
    history = history_of(op("add", 1), op("add", 2, span=(2, 5), process=1), op("read", None, [1], span=(3, 4)))
    assert checker.check(history).findings == ()


def test_the_fate_of_an_element_that_was_added_behind_the_last_read_is_unknown():
    added = (op("add", 1), op("read", None, [1]), op("add", 2))
    assert SetChecker().check(history_of(*added)).verdict is Verdict.UNKNOWN
    assert SetChecker().check(history_of(*added, op("read", None, [1, 2]))).verdict is Verdict.PASS


@BOTH
def test_without_a_read_nothing_is_known(checker):
    assert checker.check(history_of(op("add", 1))).verdict is Verdict.UNKNOWN


@BOTH
def test_a_history_without_operations_is_vacuous(checker):
    assert checker.check(history_of()).verdict is Verdict.VACUOUS


@BOTH
def test_each_key_is_a_set_of_its_own(checker):
    history = history_of(
        op("add", 1, key="a"), op("read", None, [1], key="a"), op("add", 1, key="b"), op("read", None, [], key="b")
    )
    result = checker.check(history)
    assert [finding.key for finding in result.findings] == ["b"]


@BOTH
def test_a_history_of_another_shape_is_refused_by_name(checker):
    with pytest.raises(UsageError, match=f"`{checker.name}`.*operation 1.*`cas`"):
        checker.check(history_of(op("add", 1), op("cas", [1, 2])))
    with pytest.raises(UsageError, match="answered 5 instead of a list"):
        checker.check(history_of(op("read", None, 5)))


@BOTH
def test_elements_may_be_any_values_and_true_is_not_one(checker):
    elements = [[1, 2], {"a": 1}, True, None, "x", 1.5]
    history = history_of(*(op("add", element) for element in elements), op("read", None, elements[::-1]))
    assert checker.check(history).verdict is Verdict.PASS
    history = history_of(op("add", 1), op("read", None, [True]))
    assert anomalies(checker.check(history)) == ["lost-element", "unexpected-element"]


def test_recovered_elements_are_counted():
    history = history_of(op("add", 1), op("add", 2, outcome="info"), op("read", None, [1, 2]))
    assert SetChecker().check(history).detail["counts"]["recovered"] == 1


def test_many_lost_elements_are_one_finding_with_a_few_examples():
    history = history_of(*(op("add", number) for number in range(100)), op("read", None, []))
    (finding,) = SetChecker().check(history).findings
    assert finding.detail["count"] == 100
    assert len(finding.detail["examples"]) == 8
    assert "100 lost elements in all: 0, 1, 2" in finding.sentence and "92 more" in finding.sentence


# -- the life of each element ---------------------------------------------------------------------------------------


def test_a_stale_read_is_allowed_unless_the_set_must_be_linearizable():
    history = history_of(op("add", 1), op("read", None, [], process=2), op("read", None, [1], process=3))
    result = SetFullChecker().check(history)
    assert result.verdict is Verdict.PASS
    assert result.detail["counts"]["stale"] == 1
    strict = SetFullChecker(linearizable=True).check(history)
    assert anomalies(strict) == ["stale-element"]
    assert strict.findings[0].operations == (0, 1, 2)


def test_a_slow_read_that_still_sees_the_element_saves_it_from_being_lost():
    slow = op("read", None, [1], span=(2, 20), process=1)
    history = history_of(op("add", 1, span=(0, 1)), slow, op("read", None, [], span=(3, 4), process=2))
    assert SetFullChecker().check(history).verdict is Verdict.PASS
    assert anomalies(SetFullChecker(linearizable=True).check(history)) == ["stale-element"]


def test_an_indeterminate_add_that_was_seen_may_not_disappear():
    add = op("add", 1, outcome="info", span=(0, None))
    history = history_of(add, op("read", None, [1], process=1), op("read", None, [], process=1))
    assert anomalies(SetFullChecker().check(history)) == ["lost-element"]


def test_an_indeterminate_add_that_was_never_seen_is_never_read():
    history = history_of(op("add", 1), op("add", 2, outcome="info"), op("read", None, [1]))
    result = SetFullChecker(linearizable=True).check(history)
    assert result.verdict is Verdict.PASS
    assert result.detail["counts"]["never-read"] == 1


def test_latencies_run_from_known_to_the_last_missing_read_and_to_the_last_sighting():
    history = history_of(
        op("add", 1, span=(0, 10)), op("add", 2, span=(11, 20)),
        op("read", None, [2], span=(30, 31)), op("read", None, [1, 2], span=(40, 41)),
        op("read", None, [1], span=(50, 51)),
    )  # fmt: skip
    result = SetFullChecker().check(history)
    assert result.detail["stable_latency_us"]["1"] == 20_000
    assert result.detail["lost_latency_us"]["1"] == 21_000
    assert result.detail["worst_stale"] == [{"element": "1", "stable_latency_us": 20_000, "misses": 1}]


def test_quantiles_are_by_rank():
    assert quantiles(range(100)) == {"0": 0, "0.5": 50, "0.95": 95, "0.99": 99, "1": 99}
    assert quantiles([]) == {}
