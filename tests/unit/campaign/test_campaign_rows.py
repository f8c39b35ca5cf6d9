"""A run as a row, and histories as Parquet."""

from __future__ import annotations

from pathlib import Path

from campaign_fakes import fake_plan, judged, make_plan, resolve, simulate
from hypothesis import given
from hypothesis import strategies as st

from faultline.campaign.histories import history_table, read_history, write_parquet
from faultline.campaign.row import RUN_SCHEMA, binned, latencies, run_row, table_of_rows
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import fail, info, ok
from faultline.harness.run_record import FaultInterval
from faultline.harness.verdict import Finding


def small_history() -> History:
    history = History()
    rows = [
        history.invoke(Operation(p, "cas", key, [p, {"a": None}]), 1_000 * p, p, "athens")
        for p, key in enumerate("aba")
    ]
    history.complete(rows[0], ok(True), 1_500)
    history.complete(rows[1], fail("cas-mismatch"), 4_000)
    history.invoke(Operation(3, "read", None), 5_000, 3, "delphi")
    history.complete(rows[2], info("timeout"), 9_000)
    return history


def fault(start_us: int, stop_us: int) -> FaultInterval:
    return FaultInterval(kind="cut", target="one", start_us=start_us, stop_us=stop_us)


def test_latencies_are_told_apart_by_function_outcome_and_fault_window() -> None:
    groups = latencies(small_history(), [fault(3_500, 6_000), fault(5_000, 6_500)])
    found = [(group["f"], group["outcome"], group["during_fault"], group["latency_us"]) for group in groups]
    assert found == [("cas", "fail", True, [3_000]), ("cas", "info", True, [7_000]), ("cas", "ok", False, [1_500])]


def test_an_operation_counts_as_inside_when_a_fault_touches_it_at_all() -> None:
    assert latencies(small_history(), [fault(1_500, 1_500)])[2]["during_fault"] is True
    assert latencies(small_history(), [fault(1_501, 1_502)])[2]["during_fault"] is False


@given(st.integers(0, 10**12))
def test_bins_keep_three_significant_digits(latency_us: int) -> None:
    assert abs(binned(latency_us) - latency_us) <= latency_us * 0.005
    assert binned(binned(latency_us)) == binned(latency_us)


def test_a_row_has_exactly_the_columns_of_the_schema_and_survives_parquet() -> None:
    plan = fake_plan()
    request = plan.request(plan.cells()[1], 5)
    parts = resolve(request)
    record = simulate(make_plan(request, parts), parts, False)
    row = run_row(judged(record, parts, "r5"), record, expected=(), folder_kept=True, run_again="faultline run")
    table = table_of_rows([row])
    assert table.schema.equals(RUN_SCHEMA)
    assert set(row) == set(RUN_SCHEMA.names)
    assert table["counterexample_operations"].to_pylist() == [2]
    assert table["faults"].to_pylist()[0][0]["injections"] == 1


def test_the_fault_before_a_counterexample_is_named_when_none_was_on_during_it() -> None:
    plan = fake_plan()
    request = plan.request(plan.cells()[1], 0)
    parts = resolve(request)
    record = simulate(make_plan(request, parts), parts, False)
    record.faults = [fault(0, 1), fault(-9, -8)]
    record.history.invoke_us[0] = 5
    row = run_row(judged(record, parts, "r"), record, expected=(), folder_kept=True, run_again="")
    assert row["counterexample_faults"] == ["cut"]


def test_the_finding_that_is_not_expected_stands_for_the_run() -> None:
    plan = fake_plan()
    request = plan.request(plan.cells()[1], 5)
    judgement = judged(simulate(make_plan(request, resolve(request)), resolve(request), False), resolve(request), "r")
    beyond = Finding(checker="invariants", anomaly="LDR-I3", sentence="The leader lacks what was committed.")
    judgement.findings.append(beyond)
    stale, lost = (
        run_row(judgement, None, expected=expected, folder_kept=False, run_again="")
        for expected in (("stale-read", "LDR-I3"), ("linearizability/stale-read",))
    )
    assert (stale["signature"], stale["counterexample_operations"]) == ("linearizability/stale-read", 2)
    assert (lost["signature"], lost["sentence"]) == ("invariants/LDR-I3", beyond.sentence)
    assert (lost["checker"], lost["anomaly"]) == ("invariants", "LDR-I3")
    assert [finding["anomaly"] for finding in lost["findings"]] == ["stale-read", "LDR-I3"]


def test_a_history_read_back_from_parquet_is_the_same_history(tmp_path: Path) -> None:
    import pyarrow as pa

    history, path = small_history(), tmp_path / "part.parquet"
    other = History()
    write_parquet(path, pa.concat_tables([history_table("one", history), history_table("two", other)]))
    back = read_history(path, "one")
    assert back.to_jsonl() == history.to_jsonl()
    assert back.next_index == history.next_index
    assert len(read_history(path, "two")) == 0
