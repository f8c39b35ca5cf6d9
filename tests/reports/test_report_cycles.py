"""A cycle of transactions: named alike in figure, words and picture, with a reason for each arrow."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from page_reader import Page, svg_of_class
from report_samples import judgement, plan

from faultline.checkers.transactions.checker import ListAppendChecker
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import ok
from faultline.harness.run_record import RunRecord
from faultline.harness.verdict import Finding
from faultline.reports.cycle import EDGE_MEANINGS, cycle_lines, cycle_svg, edge_meanings, transaction_names
from faultline.reports.run_page import write_run_report
from faultline.reports.terminal import run_lines


def ring(size: int) -> tuple[RunRecord, Finding]:
    """As many transactions at once, each of which reads a list and misses what the next one appends to it."""
    history = History()
    bodies = [[["r", f"k{n}", []], ["append", f"k{(n - 1) % size}", n + 1], ["r", "other", []]] for n in range(size)]
    rows = [history.invoke(Operation(n, "txn", None, body), n, n, "athens") for n, body in enumerate(bodies)]
    for row, body in zip(rows, bodies, strict=True):
        history.complete(row, ok(body), 100 + row)
    finding = ListAppendChecker("serializable").check(history).findings[0]
    return RunRecord(plan=plan(workload="txn-append"), world="simulated", history=history), finding


def page_of(folder: Path, size: int) -> Page:
    record, finding = ring(size)
    judged = judgement([finding], sentence=finding.sentence)
    return Page(write_run_report(folder, record, judged).read_text("utf-8"))


def test_the_transactions_of_a_cycle_have_the_same_names_in_figure_words_and_ring(tmp_path: Path) -> None:
    page = page_of(tmp_path, 3)
    texts = " ".join(page.texts)
    for name, client in (("T1", 0), ("T2", 1), ("T3", 2)):
        assert f"{name} · client {client}" in texts
        assert f"{name}. Client {client} read [] from k{client}" in " ".join(texts.split()).replace(" .", ".")


def test_every_arrow_of_a_cycle_stands_beside_it_with_its_reason(tmp_path: Path) -> None:
    texts = " ".join(page_of(tmp_path, 2).texts)
    assert "T1 before T2 (rw): T1 read [] from k0, before T2 appended 2" in texts
    assert "T2 before T1 (rw): T2 read [] from k1, before T1 appended 1" in texts
    assert EDGE_MEANINGS["rw"] in texts


@pytest.mark.parametrize("size", [2, 3, 5, 8])
def test_a_ring_has_a_box_for_each_transaction_and_an_arrow_for_each_edge_within_the_picture(size: int) -> None:
    _, finding = ring(size)
    figure = ElementTree.fromstring(cycle_svg(finding, "p"))
    boxes = [(float(box.get("x", 0)), float(box.get("y", 0))) for box in svg_of_class(figure, "box")]
    assert len(boxes) == len(svg_of_class(figure, "edge")) == size
    _, _, width, height = map(float, figure.get("viewBox", "").split())
    size_of = [(float(box.get("width", 0)), float(box.get("height", 0))) for box in svg_of_class(figure, "box")]
    for (x, y), (across, down) in zip(boxes, size_of, strict=True):
        assert 0 <= x <= width - across
        assert 0 <= y <= height - down
    apart = [
        abs(a[0] - b[0]) >= size_of[0][0] or abs(a[1] - b[1]) >= size_of[0][1] for a in boxes for b in boxes if a != b
    ]
    assert all(apart)


def test_a_box_shows_the_keys_at_issue_and_no_others() -> None:
    assert "other" not in cycle_svg(ring(2)[1], "p")


def test_a_ring_too_long_for_a_picture_is_told_in_words_alone(tmp_path: Path) -> None:
    _, finding = ring(9)
    assert cycle_svg(finding, "p") == ""
    assert len(cycle_lines(finding)) == 9
    assert "Why no order fits" in page_of(tmp_path, 9).headings


def test_a_finding_that_is_no_cycle_has_no_ring() -> None:
    finding = Finding(checker="linearizability", anomaly="stale-read", sentence="A read was stale.")
    assert (cycle_svg(finding, "p"), cycle_lines(finding), transaction_names(finding)) == ("", [], {})
    assert edge_meanings(finding) == []


def test_the_terminal_tells_a_cycle_edge_by_edge() -> None:
    record, finding = ring(2)
    lines = run_lines(record, judgement([finding], sentence=finding.sentence))
    assert any(line.startswith("    T2. Client 1 read [] from k1") for line in lines)
    assert "     T1 before T2 (rw): T1 read [] from k0, before T2 appended 2" in lines


def test_no_transaction_of_a_cycle_is_said_to_have_given_it_away(tmp_path: Path) -> None:
    page = page_of(tmp_path, 2)
    assert "gave it away" not in page.section("counterexample")
    assert "✖" not in page.section("counterexample")
    assert svg_of_class(page.figures()[0], "moment") == []


def test_a_long_first_line_is_set_smaller_so_that_the_evidence_stays_in_sight(tmp_path: Path) -> None:
    record, finding = ring(2)
    for sentence, class_ in (("Short.", "<h1>"), ("Why not. " * 40, '<h1 class="long">')):
        assert class_ in write_run_report(tmp_path, record, judgement([finding], sentence=sentence)).read_text()
