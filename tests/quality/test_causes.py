"""The causes of a planted bug's violation are the steps by which it comes about, and few of all that happened."""

import pytest

from faultline.harness.causes import Causes, find_causes
from faultline.harness.errors import UsageError
from faultline.harness.judge import judge
from faultline.harness.parts import Parts
from faultline.harness.plan import Plan
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.run_record import RunRecord
from faultline.harness.shrink import same_violation, shrink
from faultline.registry import resolve
from faultline.reports.causes import causes_lines

STALE_READ = "linearizability/stale-read"


@pytest.fixture(scope="module")
def minimal() -> tuple[Plan, Parts]:
    """The minimal plan of `faultline run --planted-bug stale-read --seed 7`."""
    request = RunRequest(system="consistent-core", planted_bugs=("stale-read",), seed=7)
    parts = resolve(request)
    return shrink(make_plan(request, parts), same_violation(parts, STALE_READ)).plan, parts


@pytest.fixture(scope="module")
def found(minimal: tuple[Plan, Parts]) -> tuple[Causes, RunRecord]:
    causes, record, _ = find_causes(*minimal, STALE_READ)
    return causes, record


def messages_of(causes: Causes) -> list[tuple[str, str, str]]:
    events = [part.event for part in causes.parts if part.event is not None and part.kind == "message"]
    return [(event.source, event.place, event.name) for event in events]


@pytest.mark.slow
def test_the_messages_of_a_stale_read_are_the_new_election_the_write_and_the_read_at_the_deposed_leader(found):
    causes, _ = found
    messages = messages_of(causes)
    assert 8 <= len(messages) <= 16
    sent = next(tried for tried in causes.counts if tried.kind == "message")
    assert (sent.necessary, sent.tried) == (len(messages), sent.parts)
    assert sent.parts > 200
    votes = [(source, target) for source, target, name in messages if name == "VoteRequest"]
    assert len(votes) == 1
    new_leader, voter = votes[0]
    assert (voter, new_leader, "VoteResponse") in messages
    assert (new_leader, voter, "ReplicationRequest") in messages
    assert (voter, new_leader, "ReplicationResponse") in messages
    reader, deposed, name = messages[-2]
    assert name == "ClientRequest" and deposed not in (new_leader, voter)
    assert messages[-1] == (deposed, reader, "ClientResponse")


@pytest.mark.slow
def test_all_parts_of_a_minimal_plan_are_necessary_and_the_parts_stand_in_the_order_of_time(minimal, found):
    (plan, _), (causes, _) = minimal, found
    kept = {tried.kind: tried.necessary for tried in causes.counts}
    assert (kept["fault"], kept["operation"]) == (len(plan.faults), len(plan.operations))
    assert causes.complete
    times = [part.time_us for part in causes.parts]
    assert times == sorted(times) and times[-1] <= causes.visible_us


@pytest.mark.slow
def test_the_write_must_come_in_time_and_the_vote_need_not(found):
    causes, _ = found
    in_time = {part.event.name: part.in_time for part in causes.parts if part.event is not None}
    assert in_time["ReplicationResponse"] is True
    assert in_time["VoteRequest"] is False


@pytest.mark.slow
def test_the_explanation_has_a_line_for_each_part_and_folds_the_rings_of_one_timer(found):
    causes, record = found
    lines = causes_lines(causes, record)
    assert lines[0].startswith("✖ At ") and lines[0].endswith("suffice to show it.")
    told = [line for line in lines if "  message  " in line]
    assert len(told) == len(messages_of(causes))
    assert any("partition" in line for line in lines)
    rings = [line for line in lines if " times until " in line]
    assert len(rings) == 1 and "_election_timed_out rings" in rings[0]
    assert f"{len(told)} of 278 messages" in lines[-1]


@pytest.mark.slow
def test_a_spent_budget_is_told_and_gives_the_first_part_of_the_whole_answer(minimal, found):
    whole, _ = found
    told: list[tuple[int, int]] = []
    few, record, _ = find_causes(
        *minimal, STALE_READ, runs_max=40, tell=lambda tried, every: told.append((tried, every))
    )
    assert (few.runs, few.complete) == (40, False)
    decided = [part for part in few.parts if part.in_time is not None]
    assert len(decided) > 4
    assert [part for part in whole.parts if part in decided] == decided
    assert "Not tried" in causes_lines(few, record)[-1]
    assert [tried for tried, _ in told] == list(range(len(told)))


def test_a_run_that_does_not_violate_has_no_causes():
    request = RunRequest(system="consistent-core", seed=7, operations=20)
    parts = resolve(request)
    plan = make_plan(request, parts)
    assert judge(run_simulated(plan, parts), parts, run_id="clean").findings == []
    with pytest.raises(UsageError, match="does not show linearizability/stale-read any more"):
        find_causes(plan, parts, STALE_READ)
