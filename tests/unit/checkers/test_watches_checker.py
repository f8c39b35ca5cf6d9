"""The checker of watches refuses what is missed, repeated, reordered, made up or left out silently; and only that."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.checkers.watches import WatchesChecker
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import fail, ok
from faultline.harness.plan import Plan
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import CheckResult, Verdict

LAST = 1 << 30
HEAL_US = 1_000_000


def judged(*steps: tuple[int, str, str, Any, Any]) -> CheckResult:
    """One operation after the other: who, what, on which key, the value, and the result or the code of an error.

    After the step `heal` everything is long after the heal.
    """
    history = History()
    time_us = 0
    for process, f, key, value, result in steps:
        if f == "heal":
            time_us = 3 * HEAL_US
            continue
        row = history.invoke(Operation(process, f, key, value), time_us, process, "athens")
        history.complete(row, fail(result) if isinstance(result, str) else ok(result), time_us)
    plan = Plan(
        system="any",
        workload="any",
        seed=0,
        nodes=("athens",),
        workers=2,
        operations=(),
        options={},
        heal_us=HEAL_US,
        end_us=0,
    )
    return WatchesChecker().check(history, RunRecord(plan=plan, world="simulated", history=history))


def anomalies(*steps: tuple[int, str, str, Any, Any]) -> list[str]:
    return [finding.anomaly for finding in judged(*steps).findings]


def put(value: int, index: int, key: str = "servers/1") -> tuple[int, str, str, Any, Any]:
    return 0, "put", key, value, index


def watch(process: int = 1) -> tuple[int, str, str, Any, Any]:
    return process, "watch", "servers", None, {"number": 1}


def drain(*items: list[Any], process: int = 1) -> tuple[int, str, str, Any, Any]:
    return process, "drain", "servers", None, {"number": 1, "items": list(items)}


def state(index: int, reason: str | None = None, **values: int) -> list[Any]:
    return ["state", [index, LAST], {f"servers/{name[1:]}": value for name, value in values.items()}, reason]


def event(index: int, value: int | None, ordinal: int = 0, key: str = "servers/1") -> list[Any]:
    return ["event", index, ordinal, key, value, value is None]


def upto(index: int) -> list[Any]:
    return ["upto", [index, LAST]]


def listed(index: int, **values: int) -> tuple[int, str, str, Any, Any]:
    return 0, "list", "servers", None, {"index": index, "values": {f"servers/{n[1:]}": v for n, v in values.items()}}


HEAL: tuple[int, str, str, Any, Any] = (0, "heal", "", None, None)


@pytest.mark.rows("WA-I1", "WA-I2", "WA-I3", "WA-I4", "WA-I5")
def test_a_watcher_that_was_told_everything_in_order_has_no_complaint() -> None:
    result = judged(
        watch(), put(1, 5), put(2, 6), drain(state(4), event(5, 1), event(6, 2), upto(7)), listed(6, s1=2), HEAL,
        drain(upto(9)),
    )  # fmt: skip
    assert result.verdict is Verdict.PASS
    assert result.detail["counts"]["events"] == 2


@pytest.mark.rows("WA-I2")
def test_an_acknowledged_change_that_is_left_out_is_found_and_one_that_is_still_to_come_is_not() -> None:
    assert anomalies(watch(), put(1, 5), put(2, 6), drain(state(4), event(5, 1), upto(6))) == ["missed-event"]
    assert anomalies(watch(), put(1, 5), put(2, 6), drain(state(4), event(5, 1), upto(5))) == []


@pytest.mark.rows("WA-I2")
def test_an_event_that_only_another_watcher_got_is_found_to_be_missing() -> None:
    other = (watch(2), drain(state(4), event(5, 1), event(6, None), upto(6), process=2))
    steps = (watch(), put(1, 5), *other)
    assert anomalies(*steps, drain(state(4), event(5, 1), upto(6))) == ["missed-event"]


@pytest.mark.rows("WA-R26", "WA-I2")
def test_a_gap_that_is_announced_excuses_what_is_in_it() -> None:
    steps = (watch(), put(1, 5), put(2, 6), put(3, 7))
    told = (state(4), event(5, 1), upto(5), state(6, "events-compacted", s1=2), event(7, 3), upto(7))
    assert anomalies(*steps, drain(*told)) == []


@pytest.mark.rows("WA-I1", "WA-I4")
@pytest.mark.parametrize("second", [event(5, 1), event(6, 2)], ids=["repeated", "reordered"])
def test_events_that_are_repeated_or_out_of_order_are_found(second: list[Any]) -> None:
    told = (state(4), event(5, 1), event(6, 2), second, upto(6))
    assert "event-out-of-order" in anomalies(watch(), put(1, 5), put(2, 6), drain(*told))


@pytest.mark.rows("WA-I1", "WA-I4")
def test_an_event_after_the_word_that_all_up_to_it_was_told_is_found() -> None:
    steps = (watch(), put(1, 5), put(2, 6))
    assert anomalies(*steps, drain(state(4), event(5, 1), upto(6)), drain(event(6, 2))) == ["event-out-of-order"]
    within = ["upto", [6, 0]]
    assert anomalies(*steps, drain(state(4), event(5, 1), within, event(6, None, 1, "servers/2"), upto(6))) == [
        "missed-event"
    ], "the entry may go on after its first change, which is missing"


@pytest.mark.rows("WA-I2")
def test_a_change_whose_place_in_its_entry_is_unknown_is_missed_once_the_whole_entry_was_told() -> None:
    steps = (watch(), put(1, 5, "servers/2"), drain(state(4), event(5, None), ["upto", [5, 0]]))
    assert anomalies(*steps) == [], "the change may be the second one of its entry"
    assert anomalies(*steps, drain(event(5, 1, 1, "servers/2"), upto(5))) == []
    assert anomalies(*steps, drain(upto(5))) == ["missed-event"]
    began_within = drain(["state", [5, 0], {"servers/2": 1}, None], upto(5))
    assert anomalies(watch(), put(1, 5, "servers/2"), put(2, 6), began_within, drain(event(6, 2))) == []


@pytest.mark.rows("WA-I1")
def test_a_state_that_is_older_than_what_was_told_before_it_is_found() -> None:
    told = (state(4), event(5, 1), event(6, 2), upto(6), state(5, "re-armed", s1=1), upto(6))
    assert "event-out-of-order" in anomalies(watch(), put(1, 5), put(2, 6), drain(*told))


@pytest.mark.rows("WA-R12")
def test_an_event_of_a_key_beside_the_path_is_found() -> None:
    steps = (watch(), put(1, 5, "servers2/1"), drain(state(4), event(5, 1, 0, "servers2/1"), upto(5)))
    assert anomalies(*steps) == ["foreign-event"]


@pytest.mark.rows("CC-M9")
def test_a_list_that_shows_a_key_beside_the_path_is_found() -> None:
    wrong = (0, "list", "servers", None, {"index": 5, "values": {"servers2/1": 1}})
    assert anomalies(put(1, 5, "servers2/1"), wrong) == ["foreign-event"]


@pytest.mark.rows("WA-I3")
def test_a_value_that_no_client_wrote_or_whose_write_was_refused_is_found() -> None:
    refused = (0, "attach", "servers/1", {"lease": "x", "value": 1}, "no-lease")
    assert anomalies(watch(), drain(state(4), event(5, 1), upto(5))) == ["unexpected-event"]
    assert anomalies(watch(), refused, drain(state(4), event(5, 1), upto(5))) == ["unexpected-event"]


@pytest.mark.rows("WA-I3")
def test_watchers_that_were_told_different_things_under_one_number_are_found() -> None:
    steps = (watch(), watch(2), put(1, 5), put(2, 6))
    told = (drain(state(4), event(5, 1)), drain(state(4), event(5, None), process=2))
    assert anomalies(*steps, *told) == ["events-disagree"]


def below_two(*items: list[Any], process: int = 2) -> tuple[int, str, str, Any, Any]:
    return process, "drain", "servers/2", None, {"number": 1, "items": list(items)}


@pytest.mark.rows("WA-I3")
def test_watches_of_different_paths_may_count_the_events_of_one_entry_each_for_itself() -> None:
    both = drain(state(4, s1=1, s2=2), event(9, None), event(9, None, 1, "servers/2"), upto(9))
    one = below_two(["state", [4, LAST], {"servers/2": 2}, None], event(9, None, 0, "servers/2"), upto(9))
    assert anomalies(watch(), (2, "watch", "servers/2", None, {"number": 1}), both, one) == []
    other = below_two(["state", [4, LAST], {"servers/2": 2}, None], event(9, 3, 0, "servers/2"), upto(9))
    assert anomalies(put(3, 9, "servers/2"), watch(), both, other) == ["events-disagree"]


@pytest.mark.rows("WA-I2")
def test_watchers_that_were_told_of_different_keys_under_one_number_each_miss_the_other_event() -> None:
    told = (
        drain(state(4), event(5, None), upto(5)),
        drain(state(4), event(5, None, 0, "servers/2"), upto(5), process=2),
    )
    result = judged(watch(), watch(2), *told)
    assert [finding.anomaly for finding in result.findings] == ["missed-event", "missed-event"]


@pytest.mark.rows("WA-I5")
def test_a_list_that_does_not_fit_state_and_events_is_found() -> None:
    steps = (watch(), put(1, 5), put(2, 8), drain(state(4), event(5, 1), event(8, 2), upto(9)))
    assert anomalies(*steps, listed(7)) == ["wrong-state"]
    assert anomalies(*steps, listed(7, s1=1), listed(9, s1=2)) == []


@pytest.mark.rows("WA-I5")
def test_a_watcher_that_is_told_nothing_more_after_the_heal_is_found() -> None:
    before = (watch(), put(1, 5), put(2, 6), drain(state(4), event(5, 1), upto(5)), HEAL)
    assert anomalies(*before, drain(upto(5))) == ["watch-stalled"]
    assert anomalies(*before, drain(event(6, 2), upto(6))) == []


def test_a_slow_watcher_that_still_gets_something_is_not_taken_for_stalled() -> None:
    before = (watch(), put(1, 5), put(2, 6), put(3, 7), drain(state(4), event(5, 1), upto(5)), HEAL)
    assert anomalies(*before, drain(event(6, 2), upto(6))) == []
    assert anomalies(*before, drain(event(6, 2), upto(6)), drain(upto(6))) == ["watch-stalled"]


def test_a_list_is_not_compared_with_a_span_that_ends_within_its_entry() -> None:
    keys = ({"lease": "x", "value": 1}, {"lease": "x", "value": 2})
    attached = [(0, "attach", f"servers/{n}", value, 4 + n) for n, value in enumerate(keys, 1)]
    told = (state(4), event(5, 1), event(6, 2, 0, "servers/2"), event(9, None))
    assert anomalies(watch(), *attached, drain(*told), listed(9)) == []
    assert anomalies(watch(), *attached, drain(*told, upto(9)), listed(9)) == ["wrong-state"]


def test_without_any_event_the_verdict_is_vacuous() -> None:
    assert judged(watch(), drain(state(4), upto(5))).verdict is Verdict.VACUOUS


def test_a_watcher_that_was_told_states_after_gaps_was_told_something() -> None:
    gap = state(7, "events-compacted", n1=2)
    told = (watch(), put(1, 5), put(2, 7), drain(state(4), upto(4)), drain(gap, upto(7)))
    assert judged(*told, listed(7, n1=2)).verdict is Verdict.PASS
    assert anomalies(*told, listed(7, n1=3)) == ["wrong-state"]


def test_a_change_that_was_missed_is_named_by_its_revision_and_so_are_the_others() -> None:
    steps = [watch(), drain(state(0)), *(put(value, 40 + value) for value in range(1, 4)), drain(upto(99))]
    sentence = judged(*steps).findings[0].sentence
    assert "client 1 was never told of the first change of revision 41, which is within" in sentence
    assert sentence.endswith("3 missing events in all: revision 41, revision 42, revision 43.")
    assert "[" not in sentence


def test_changes_in_the_wrong_order_are_named_by_their_revisions() -> None:
    events = [event(41, 1), event(42, 2), event(41, 1)]
    steps = [watch(), put(1, 41), put(2, 42), drain(state(0), *events)]
    sentences = " ".join(finding.sentence for finding in judged(*steps).findings)
    assert "was told of the first change of revision 41 after the first change of revision 42" in sentences
