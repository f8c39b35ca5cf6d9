"""The report on one run, read back without JavaScript."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from page_reader import Page, run_page, svg_of_class, svg_texts
from report_samples import NODES, REPLAY, SENTENCE, judgement, long_run, passing_run, plan, violating_run

from faultline.harness.history import History
from faultline.harness.run_record import FaultInterval, RunRecord
from faultline.harness.verdict import Cause, CheckResult, Finding, Reason, Verdict
from faultline.reports.run_page import write_run_report
from faultline.reports.selection import shown_of, shown_rows
from faultline.reports.space_time import space_time_svg


@pytest.fixture
def page(tmp_path: Path) -> Page:
    return run_page(tmp_path, *violating_run())


def test_the_report_is_one_file_and_says_where_it_is(tmp_path: Path) -> None:
    path = write_run_report(tmp_path / "run", *violating_run())
    assert path == tmp_path / "run" / "report.html"
    assert [entry.name for entry in path.parent.iterdir()] == ["report.html"]


def test_what_a_search_knew_when_it_gave_up_stands_beside_its_check(tmp_path: Path) -> None:
    told = "The search of k3 was given up after 9 steps: none of 4 completed operations could be placed."
    check = CheckResult(
        checker="linearizability",
        verdict=Verdict.UNKNOWN,
        sentence="Undecided.",
        detail={"undecided": [{"sentence": told}]},
    )
    judged = judgement([], verdict=Verdict.UNKNOWN, sentence="Undecided.", checks=[check])
    assert told in run_page(tmp_path, passing_run()[0], judged).texts


def test_what_to_do_about_an_undecided_run_stands_at_the_top(tmp_path: Path) -> None:
    reason = Reason(cause=Cause.INDEFINITE)
    check = CheckResult(checker="total-queue", verdict=Verdict.UNKNOWN, sentence="Undecided.", reason=reason)
    judged = judgement([], verdict=Verdict.UNKNOWN, sentence="Undecided.", checks=[check])
    text = " ".join("".join(run_page(tmp_path, passing_run()[0], judged).texts).split())
    step = "Next: The recorded history cannot decide it: run it again with fewer faults"
    assert text.index(step) < text.index("What was checked")
    assert "Next: " not in "".join(run_page(tmp_path, *violating_run()).texts)


def test_what_a_check_says_already_of_an_undecided_key_is_not_said_again(tmp_path: Path) -> None:
    told = [f"The search of {key} was given up after 9 steps." for key in ("k3", "k4")]
    check = CheckResult(
        checker="linearizability",
        verdict=Verdict.UNKNOWN,
        sentence=f"Not decided. {told[0]}",
        detail={"undecided": [{"sentence": each} for each in told]},
    )
    judged = judgement([], verdict=Verdict.UNKNOWN, sentence="Undecided.", checks=[check])
    checked = " ".join(run_page(tmp_path, passing_run()[0], judged).section("checks").split())
    assert [checked.count(each) for each in told] == [1, 1]


def test_the_first_line_is_the_verdict_sentence(page: Page) -> None:
    assert page.headings[0] == f"✖ {SENTENCE}"
    body_text = " ".join("".join(page.texts[page.texts.index(f"✖ {SENTENCE}") :]).split())
    assert body_text.startswith(f"✖ {SENTENCE}")


def test_the_replay_line_stands_in_the_text_exactly_as_it_has_to_be_typed(page: Page) -> None:
    assert page.by_id["replay-line"] == REPLAY


def test_the_sections_come_in_the_order_of_a_reader_whose_store_failed(page: Page) -> None:
    wanted = [
        "See it again",
        "Counterexample",
        "Other findings",
        "What was checked",
        "Faults, planned and applied",
        "Latency",
    ]
    wanted += ["Did it test anything?", "Configuration and seed", "For a ticket", "How to read this page"]
    assert [heading for heading in page.headings if heading in wanted] == wanted


def test_the_counterexample_is_numbered_alike_in_the_figure_and_in_words(page: Page) -> None:
    figure = page.figures()[0]
    bars = svg_of_class(figure, "operation")
    labels = [label for label in svg_texts(figure) if re.match(r"\d+ ", label)]
    assert labels == ["1 write 7", "2 cas 7→8 ?", "3 write 9", "4 read → 7 ✖"]
    sentences = [bar.get("aria-label") for bar in bars]
    assert sentences[3] == "4. Client 4 read 7 from k3 through athens, from 2.417 s to 2.420 s."
    for position, sentence in enumerate(sentences, start=1):
        assert str(sentence).removeprefix(f"{position}. ") in page.section("counterexample")


def test_only_the_operation_that_gave_the_anomaly_away_is_marked(page: Page) -> None:
    telling = svg_of_class(page.figures()[0], "telling")
    assert [group.get("class") for group in telling] == ["operation ok telling"]
    assert page.section("counterexample").count("this revealed it") == 1


def test_an_operation_of_unknown_outcome_fades_to_the_right_edge(page: Page) -> None:
    figure = page.figures()[0]
    (open_operation,) = svg_of_class(figure, "info")
    bar = svg_of_class(open_operation, "bar")[0]
    lane = svg_of_class(figure, "lane")[0]
    assert str(bar.get("fill")).startswith("url(#")
    assert float(bar.get("x", 0)) + float(bar.get("width", 0)) == pytest.approx(float(lane.get("x2", 0)), abs=0.2)
    assert "was never answered: it may have happened, or may still happen" in page.section("counterexample")


def test_faults_are_named_with_their_times_beside_the_counterexample(page: Page) -> None:
    names = " | ".join(svg_texts(page.figures()[0]))
    assert "⊘ partition of athens | byzantium cyrene, 1.900 to 2.480 s" in names
    assert "‖ pause: cyrene, 2.060 to 2.092 s" in names
    assert "kill: byzantium" not in names, "the kill came after the anomaly"
    assert "partition of athens | byzantium cyrene, 1.900 s to 2.480 s (580 ms)" in page.section("counterexample")


def test_a_fault_that_did_not_take_effect_is_told(page: Page) -> None:
    assert "✖ no: the offset was 0 µs after the step" in page.section("faults")
    assert page.section("faults").count("✔ yes") == 3


def test_recovery_is_a_number_behind_each_fault(page: Page) -> None:
    row = re.search(r"kill: byzantium one 2\.700 s 3\.100 s 400 ms – ✔ yes ([\d.]+ m?s)", page.section("faults"))
    assert row is not None


def test_a_traced_run_shows_nodes_messages_and_the_cut_between_them(tmp_path: Path) -> None:
    page = run_page(tmp_path, *violating_run(traced=True))
    figure = page.figures()[0]
    lanes = ["".join(lane.itertext()) for lane in svg_of_class(figure, "lane-name")]
    assert lanes == ["client 0", "client 2", "client 7", "client 4", *NODES]
    assert len(svg_of_class(figure, "message")) == 7
    (lost,) = svg_of_class(figure, "lost")
    assert lost.get("aria-label") == "byzantium → athens: AppendEntries generation 5, entry 41, sent 2.098 s, lost"
    assert "✕" in svg_texts(lost)
    cut, pause = svg_of_class(figure, "band")
    assert str(cut.get("fill")).endswith("-partition)")
    assert float(cut.get("height", 0)) == 16
    assert str(pause.get("fill")).endswith("-pause)")
    assert "AppendReply match 41" in page.section("counterexample")


def test_a_run_without_messages_and_faults_has_lanes_for_the_nodes_that_operations_went_through() -> None:
    record, judged = violating_run()
    record.faults.clear()
    figure = ElementTree.fromstring(space_time_svg(shown_rows(record, judged.findings[0].operations)))
    lanes = ["".join(lane.itertext()) for lane in svg_of_class(figure, "lane-name")]
    assert lanes == ["client 0", "client 2", "client 7", "client 4", *NODES]
    ways = svg_of_class(figure, "path")
    assert len(ways) == 7, "down and up for each of three, down for the one that was not answered"


def test_a_quiet_stretch_is_cut_and_says_how_long_it_was(page: Page) -> None:
    assert "// 313 ms cut" in svg_texts(page.figures()[0])


def test_bars_keep_the_order_of_time(page: Page) -> None:
    """The bar of an operation that ended before another began ends left of the other's."""
    bars = [svg_of_class(group, "bar")[0] for group in svg_of_class(page.figures()[0], "operation")]
    left = [float(bar.get("x", 0)) for bar in bars]
    right = [float(bar.get("x", 0)) + float(bar.get("width", 0)) for bar in bars]
    assert left == sorted(left)
    assert right[0] < left[1] < left[2] < right[2] < left[3]


def test_further_findings_follow(page: Page) -> None:
    section = page.section("findings")
    assert "LDR-I2" in section
    assert "after byzantium had begun generation 5" in section


def test_the_report_says_what_was_tested_and_what_was_not(page: Page) -> None:
    section = page.section("coverage")
    assert "! No read of key k1 was in flight after the heal." in section
    assert "partition 31" in section
    assert "leader-changed 3" in section
    assert re.search(r"read \d+ \d+ 0 write \d+ \d+ 1", section)


def test_operation_counts_add_up_to_the_history(tmp_path: Path) -> None:
    record, judged = violating_run()
    page = run_page(tmp_path, record, judged)
    rows = re.findall(r"(cas|read|write) (\d+) (\d+) (\d+)", page.section("coverage"))
    assert sum(int(number) for row in rows for number in row[1:]) == len(record.history)


def test_latency_counts_add_up_to_the_history(tmp_path: Path) -> None:
    record, judged = violating_run()
    section = run_page(tmp_path, record, judged).section("latency")
    counts = re.findall(r"(?:ok|fail|info) (?:inside|outside) ([\d,]+)", section)
    assert sum(int(number.replace(",", "")) for number in counts) == len(record.history)
    assert "2 operations never got a definite answer." in section


def test_configuration_seed_and_versions_are_there(page: Page) -> None:
    section = page.section("settings")
    for wanted in ("seed 17", "read-mode read-index", "stale-read", "faultline version 0.1.0", "ab" * 32):
        assert wanted in section


def test_a_passing_run_says_so_and_draws_no_counterexample(tmp_path: Path) -> None:
    page = run_page(tmp_path, *passing_run())
    assert page.headings[0].startswith("✔ Everything that was checked held")
    assert "Counterexample" not in page.headings
    assert len(page.html) < 300_000


def test_a_harness_error_is_told_apart_from_a_violation(tmp_path: Path) -> None:
    record = RunRecord(plan=plan(), world="local", history=History(), errors=["port 7001 was in use"])
    judged = judgement([], verdict=Verdict.HARNESS_ERROR, sentence="The run failed in the harness.", errors=[])
    page = run_page(tmp_path, record, judged)
    assert page.headings[0] == "! The run failed in the harness."
    assert "port 7001 was in use" in page.section("errors")
    assert "No operation was invoked." in page.section("latency")


def test_the_caption_says_so_where_the_first_messages_of_a_long_run_are_not_kept(tmp_path: Path) -> None:
    record, judged = violating_run()
    assert "not all are kept" not in run_page(tmp_path, record, judged).section("counterexample")
    start_us = shown_of(record, judged.findings[0]).start_us
    for dropped_us, told in ((start_us, False), (start_us + 1, True)):
        late = msgspec.structs.replace(record, messages_dropped_us=dropped_us)
        assert ("not all are kept" in run_page(tmp_path, late, judged).section("counterexample")) == told


def test_only_hosts_are_said_to_keep_no_messages(tmp_path: Path) -> None:
    record, judged = violating_run()
    for world, told in (("local", False), ("hosts", True)):
        untraced = msgspec.structs.replace(record, world=world, messages=())
        page = run_page(tmp_path, untraced, msgspec.structs.replace(judged, world=world))
        assert ("messages between processes are not recorded in this world" in page.html) == told


def test_a_breach_inside_a_node_shows_the_operations_around_it(tmp_path: Path) -> None:
    record, _ = violating_run()
    breach = Finding(checker="invariants", anomaly="LDR-I1", sentence="Two leaders.", time_us=1_500_000, node="athens")
    page = run_page(tmp_path, record, judgement([breach], sentence=breach.sentence))
    starts = [float(time) for time in re.findall(r"from (\d\.\d+) s to", page.section("counterexample"))]
    assert starts
    assert max(abs(start - 1.5) for start in starts) < 0.2
    assert "nearest to the moment it happened" in page.section("counterexample")


def test_an_interrupted_run_with_a_fault_still_on_is_reported(tmp_path: Path) -> None:
    record, judged = violating_run()
    record.faults = [FaultInterval(kind="kill", target="one", start_us=2_000_000, stop_us=-1, nodes=("cyrene",))]
    record.interrupted = True
    page = run_page(tmp_path, record, judged)
    assert "The run was interrupted" in page.text
    assert "kill: cyrene, 2.000 s to 4.4" in page.section("counterexample")


def test_an_anomaly_in_the_last_hundredth_of_a_long_run_is_in_the_figure(tmp_path: Path) -> None:
    page = run_page(tmp_path, *long_run())
    figure = page.figures()[0]
    assert [label for label in svg_texts(figure) if re.match(r"\d ", label)] == [
        "1 write 7",
        "2 write 9",
        "3 read → 7 ✖",
    ]
    assert "from 100.005 s to 100.006 s" in page.section("counterexample")
    assert "3 operations of 20,000 suffice to show it." in page.section("counterexample")


def test_a_long_counterexample_is_cut_around_the_anomaly_not_at_its_start(tmp_path: Path) -> None:
    record, _ = long_run(2_000)
    every = tuple(range(len(record.history)))
    last_us = record.history.end_us()
    finding = Finding(checker="linearizability", anomaly="cycle", sentence="All.", operations=every, time_us=last_us)
    page = run_page(tmp_path, record, judgement([finding], sentence="All."))
    assert "The 40 operations nearest to the anomaly, of 2,000 that show it" in page.section("counterexample")
    assert "read 7 from late" in page.section("counterexample")


@pytest.mark.slow
def test_a_violating_run_of_a_hundred_thousand_operations_stays_below_three_megabytes(tmp_path: Path) -> None:
    page = run_page(tmp_path, *long_run(100_000))
    assert len(page.html.encode()) < 3_000_000
    assert "2,000 of 100,000 operations are drawn" in page.section("latency")


def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    one = write_run_report(tmp_path / "one", *violating_run(traced=True)).read_bytes()
    other = write_run_report(tmp_path / "other", *violating_run(traced=True)).read_bytes()
    assert one == other


def test_nothing_is_loaded_and_the_policy_allows_only_this_style_and_script(page: Page) -> None:
    assert not re.search(r"""(?:src|href|action)\s*=\s*["'](?!#)""", page.html)
    assert not re.search(r"@import|@font-face|url\((?!#)", page.html)
    policy = next(attributes["content"] for tag, attributes in page.tags if attributes.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    for kind, (source,) in (("style-src", page.styles), ("script-src", page.scripts)):
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy
    assert not any("style" in attributes or "onclick" in attributes for _, attributes in page.tags)


def test_no_id_is_used_twice(page: Page) -> None:
    assert len(page.ids) == len(set(page.ids))


def test_every_figure_has_a_name_a_description_and_a_caption(page: Page) -> None:
    figures = [figure for figure in page.figures() if "figure" in (figure.get("class") or "").split()]
    assert len(figures) == 2 == sum(tag == "figcaption" for tag, _ in page.tags)
    for figure in figures:
        names = str(figure.get("aria-labelledby")).split()
        assert {element.get("id") for element in figure[:2]} == set(names)
        assert all(len("".join(element.itertext())) > 20 for element in figure[:2])


def test_controls_that_need_a_script_are_hidden_until_it_runs(page: Page) -> None:
    buttons = [attributes for tag, attributes in page.tags if tag == "button"]
    assert buttons
    assert all("hidden" in attributes for attributes in buttons)
    assert all(str(button["data-copies"]) in page.ids for button in buttons)


def test_a_real_run_says_that_it_cannot_be_repeated_exactly_and_how_its_hosts_were(tmp_path: Path) -> None:
    record, _ = violating_run()
    changes = {
        "world": "hosts",
        "host_options": {"fsync": "lies"},
        "replay": "faultline replay faultline-results/runs/r",
    }
    page = run_page(tmp_path, record, judgement([], **changes))
    text = " ".join("".join(page.texts).split())
    assert "Hosts with fsync=lies" in text
    assert "which cannot be repeated exactly" in text
    assert "faultline check faultline-results/runs/r" in text
    assert "byte for byte" not in text


def test_a_simulated_run_says_that_it_is_repeated_exactly(page: Page) -> None:
    assert "The same execution, byte for byte" in " ".join("".join(page.texts).split())


def test_whom_a_fault_hit_is_drawn_also_when_no_message_was_recorded() -> None:
    record, judged = violating_run(traced=False)
    figure = ElementTree.fromstring(space_time_svg(shown_rows(record, judged.findings[0].operations)))
    names = {"".join(text.itertext()) for text in svg_of_class(figure, "lane-name")}
    assert set(NODES) <= names
    assert not [band for band in svg_of_class(figure, "band") if "everywhere" in band.get("class", "")]
