"""Values from a store are hostile: they are shown, literally and shortened, and do nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from page_reader import Page, svg_texts
from report_samples import campaign_summary, judgement, plan, record_operation

from faultline.harness.history import History
from faultline.harness.judgement import Judgement
from faultline.harness.outcome import fail, ok
from faultline.harness.run_record import FaultInterval, MessageRecord, RunRecord
from faultline.harness.verdict import Finding
from faultline.reports.campaign_page import write_campaign_report
from faultline.reports.run_page import write_run_report
from faultline.reports.terminal import campaign_lines, run_lines
from faultline.reports.text import value_text, visible

SCRIPT = "</script><script>alert(1)</script>"
TURNED = "abc\u202egpj.exe"
NUL = "a\x00b"
HUGE = "x" * 10_000_000
HOSTILE = [SCRIPT, TURNED, NUL, HUGE, "]]>", "<svg onload=alert(1)>", "{{ 7 * 7 }}", "\ud800", "'\"&", "\x1b[31m"]


def run_with(value: Any) -> tuple[RunRecord, Judgement]:
    text = value if isinstance(value, str) else str(value)
    history = History()
    rows = (
        record_operation(history, 0, "write", value, 1_000, 2_000, ok(), key=text, node=text),
        record_operation(history, 1, text or "read", None, 3_000, 4_000, ok(value), key=text),
        record_operation(history, 2, "read", [value], 5_000, 6_000, fail(text), key=text),
    )
    finding = Finding(
        checker=text, anomaly=text, sentence=text, key=text, operations=rows, time_us=6_000, detail={text: value}
    )
    fault = FaultInterval(kind=text, target=text, start_us=0, stop_us=9_000, description=text, roles=(text,))
    record = RunRecord(
        plan=plan(nodes=(text, "athens"), universe={text: text, "option.x": text}), world="simulated",
        history=history, faults=[fault], errors=[text],
        messages=[MessageRecord(text, "athens", text, 3_000, 3_500, text)],
    )  # fmt: skip
    return record, judgement([finding, finding], sentence=text, marks={text: 1}, warnings=[text], replay="replay it")


@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_value_anywhere_in_a_run_is_shown_and_does_nothing(tmp_path: Path, value: str) -> None:
    page = Page(write_run_report(tmp_path, *run_with(value)).read_text("utf-8"))
    assert len(page.scripts) == 1
    assert "alert" not in page.scripts[0]
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert len(page.html) < 3_000_000
    assert not set(page.html) & {"\x00", "\u202e", "\x1b", "\ud800"}
    assert visible(value[:40]) in page.section("counterexample")
    assert all(figure is not None and svg_texts(figure) is not None for figure in page.figures())


@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_value_anywhere_in_a_campaign_is_shown_and_does_nothing(tmp_path: Path, value: str) -> None:
    shown = value.encode("utf-8", "backslashreplace").decode()
    summary = json.loads(json.dumps(campaign_summary()).replace("stale-read", json.dumps(shown)[1:-1]))
    counted = {"system": shown, "never": [shown], "struck": {shown: 1}}
    summary |= {"features": [counted], "coverage": [counted]}
    (tmp_path / "campaign.json").write_text(json.dumps(summary))
    page = Page(write_campaign_report(tmp_path).read_text("utf-8"))
    assert len(page.scripts) == 1
    assert "alert" not in page.scripts[0]
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert not set(page.html) & {"\x00", "\u202e", "\x1b"}
    assert len(page.html) < 3_000_000


@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_value_cannot_write_to_the_terminal(value: str) -> None:
    lines = [
        *run_lines(*run_with(value)),
        *campaign_lines(campaign_summary() | {"sentence": value, "warnings": [value]}),
    ]
    assert all(line.isprintable() for line in lines)
    assert max(map(len, lines)) < 1_000


def test_values_are_shown_literally_but_what_cannot_be_seen_is_written_out() -> None:
    assert value_text(TURNED) == "abc\\u202egpj.exe"
    assert value_text(NUL) == "a\\x00b"
    assert value_text(None) == "nothing"
    assert value_text("") == '""'
    assert value_text("Grüße, 世界") == "Grüße, 世界"
    assert value_text([1, None, "ß"]) == '[1, null, "ß"]'
    assert value_text(HUGE).endswith("… (10,000,000 characters)")
    assert len(value_text(HUGE)) < 100
