"""Request pipeline: RP-S2, S3, S5 to S8, S10."""

from __future__ import annotations

import pytest

from faultline.systems_under_test.patterns.node_communication.request_pipeline import (
    Arrival,
    OutOfOrderResponse,
    PipelineFull,
    RequestPipeline,
    SequenceGuard,
)


def _full(first: int = 1) -> RequestPipeline:
    pipeline = RequestPipeline()
    for correlation_id in range(first, first + 5):
        pipeline.sent("byzantium", correlation_id)
    return pipeline


def test_five_requests_may_be_in_flight_and_an_answer_makes_room_for_exactly_one() -> None:
    pipeline = _full()
    assert not pipeline.has_room("byzantium")
    with pytest.raises(PipelineFull, match="byzantium"):
        pipeline.sent("byzantium", 6)
    assert pipeline.received("byzantium", 1)
    assert pipeline.has_room("byzantium")
    pipeline.sent("byzantium", 6)
    assert not pipeline.has_room("byzantium")
    assert pipeline.in_flight("byzantium") == 5


def test_each_peer_has_places_of_its_own() -> None:
    pipeline = _full()
    assert pipeline.has_room("cyrene")
    pipeline.sent("cyrene", 1)
    assert (pipeline.in_flight("byzantium"), pipeline.in_flight("cyrene"), pipeline.in_flight("delphi")) == (5, 1, 0)


def test_an_answer_before_that_of_an_older_request_is_a_breach_and_frees_no_place() -> None:
    pipeline = _full()
    with pytest.raises(OutOfOrderResponse, match="request 2 before request 1"):
        pipeline.received("byzantium", 2)
    assert pipeline.in_flight("byzantium") == 5
    assert pipeline.received("byzantium", 1)


def test_an_answer_for_nothing_in_flight_changes_nothing() -> None:
    pipeline = _full()
    assert not pipeline.received("byzantium", 99)
    assert not pipeline.received("delphi", 1)
    assert pipeline.received("byzantium", 1)
    assert not pipeline.received("byzantium", 1)
    assert pipeline.in_flight("byzantium") == 4


def test_a_lost_connection_frees_all_places_and_tells_what_was_in_flight() -> None:
    pipeline = _full()
    assert pipeline.reset("byzantium") == [1, 2, 3, 4, 5]
    assert pipeline.in_flight("byzantium") == 0
    assert pipeline.reset("byzantium") == []
    for correlation_id in range(6, 11):
        assert pipeline.has_room("byzantium")
        pipeline.sent("byzantium", correlation_id)


def test_late_answers_of_the_old_connection_free_no_places_of_the_new_one() -> None:
    pipeline = _full()
    pipeline.reset("byzantium")
    for correlation_id in range(6, 11):
        pipeline.sent("byzantium", correlation_id)
    assert [pipeline.received("byzantium", late) for late in range(1, 6)] == [False] * 5
    assert pipeline.in_flight("byzantium") == 5


def test_a_mute_peer_is_noticed_after_the_timeout_counted_from_the_last_movement() -> None:
    pipeline = RequestPipeline()
    assert not pipeline.is_stuck("byzantium", 10**9, timeout_us=100)
    pipeline.sent("byzantium", 1, now_us=1_000)
    pipeline.sent("byzantium", 2, now_us=1_090)
    assert not pipeline.is_stuck("byzantium", 1_100, timeout_us=100)
    assert pipeline.is_stuck("byzantium", 1_101, timeout_us=100)
    pipeline.received("byzantium", 1, now_us=1_150)
    assert not pipeline.is_stuck("byzantium", 1_250, timeout_us=100)
    pipeline.received("byzantium", 2, now_us=1_260)
    assert not pipeline.is_stuck("byzantium", 10**9, timeout_us=100)
    pipeline.sent("byzantium", 3, now_us=5_000)
    assert not pipeline.is_stuck("byzantium", 5_100, timeout_us=100)


def test_large_ids_are_matched_by_value() -> None:
    pipeline = RequestPipeline()
    for correlation_id in (128, 257, 2**31 - 1, 2**31, 2**63):
        pipeline.sent("byzantium", int(str(correlation_id)))
        assert pipeline.received("byzantium", int(str(correlation_id)))


def test_an_id_cannot_be_in_flight_twice() -> None:
    pipeline = RequestPipeline()
    pipeline.sent("byzantium", 1)
    with pytest.raises(ValueError, match="already"):
        pipeline.sent("byzantium", 1)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_pipeline_without_places_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match="at least one"):
        RequestPipeline(limit)


def test_going_back_takes_out_the_refused_request_and_all_later_ones_in_order() -> None:
    pipeline = _full()
    assert pipeline.go_back("byzantium", 3) == [3, 4, 5]
    assert pipeline.in_flight("byzantium") == 2
    assert pipeline.go_back("byzantium", 3) == []
    assert pipeline.go_back("delphi", 1) == []
    assert pipeline.go_back("byzantium", 1) == [1, 2]


def test_a_request_lost_before_its_successor_does_not_change_the_order_of_effects() -> None:
    pipeline, guard, effects = RequestPipeline(), SequenceGuard(), []
    for sequence in (1, 2):
        pipeline.sent("byzantium", sequence)
    assert guard.arrived("athens", 2) is Arrival.GAP
    for sequence in pipeline.reset("byzantium"):
        pipeline.sent("byzantium", sequence)
        if guard.arrived("athens", sequence) is Arrival.NEXT:
            effects.append(sequence)
    assert effects == [1, 2]


def test_numbered_requests_are_executed_once_in_order_whatever_arrives_again() -> None:
    guard = SequenceGuard()
    arrivals = [1, 3, 1, 2, 3, 3, 4]
    judged = [guard.arrived("athens", sequence) for sequence in arrivals]
    assert [s for s, arrival in zip(arrivals, judged, strict=True) if arrival is Arrival.NEXT] == [1, 2, 3, 4]
    assert judged[1] is Arrival.GAP
    assert judged[2] is judged[5] is Arrival.DUPLICATE
    assert guard.arrived("cyrene", 1) is Arrival.NEXT
