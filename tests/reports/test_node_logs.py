"""Excerpts of the nodes' logs around an anomaly, out of made logs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from page_reader import Page
from report_samples import violating_run

from faultline.harness.run_record import RunRecord
from faultline.reports.node_logs import BYTES_READ_MAX, MOST_LINES, Excerpt, LeftOut, LogLine, node_logs_excerpt
from faultline.reports.run_page import write_run_report

STARTED = datetime(2026, 11, 22, 0, 36, 6, 250_000, tzinfo=UTC)
STARTED_AT_US = int(STARTED.timestamp()) * 1_000_000 + 250_000


def patroni(at_s: float, text: str, zone_h: int = 0) -> str:
    """A line logged `at_s` into the run, without its zone."""
    moment = STARTED + timedelta(seconds=at_s, hours=zone_h)
    return f"{moment:%Y-%m-%d %H:%M:%S},{moment.microsecond // 1000:03} {text}"


def run_with(folder: Path, **logs: Sequence[str]) -> RunRecord:
    """The stale read (from 2.050 s to 2.420 s), as if it were one of real processes that wrote `logs`."""
    record = msgspec.structs.replace(violating_run()[0], world="hosts", started_at_us=STARTED_AT_US)
    record.faults = [fault for fault in record.faults if not fault.kind.startswith("clock")]
    for node, lines in logs.items():
        (folder / node).mkdir(parents=True)
        (folder / node / "node.log").write_text("\n".join(lines) + "\n", "utf-8")
    return msgspec.structs.replace(record, detail={"node_logs": [str(folder / node / "node.log") for node in logs]})


def excerpt_of(record: RunRecord, start_us: int = 2_050_000, stop_us: int = 2_420_000) -> Excerpt:
    excerpt = node_logs_excerpt(record, start_us, stop_us)
    assert excerpt is not None
    return excerpt


def told(excerpt: Excerpt) -> list[tuple[float, str, str]]:
    return [(line.time_us / 1e6, line.node, line.text) for line in excerpt.lines if isinstance(line, LogLine)]


def test_the_lines_of_all_nodes_stand_in_one_order_of_time(tmp_path: Path) -> None:
    record = run_with(
        tmp_path,
        athens=[patroni(1.04, "too early"), patroni(1.06, "a"), patroni(2.5, "c"), patroni(3.43, "too late")],
        byzantium=[f'{{"level":"info","ts":{STARTED_AT_US / 1e6 + 2.25:.6f},"msg":"b"}}'],
    )
    assert told(excerpt_of(record)) == [(1.06, "athens", "a"), (2.25, "byzantium", "info b"), (2.5, "athens", "c")]
    assert excerpt_of(record).notes == []


@pytest.mark.parametrize("zone_h", [-8, 0, 2])
def test_a_log_in_the_zone_of_its_machine_is_understood_by_where_it_begins(tmp_path: Path, zone_h: int) -> None:
    record = run_with(tmp_path, athens=[patroni(-9, "boot", zone_h), patroni(2, "here", zone_h)])
    assert told(excerpt_of(record)) == [(2.0, "athens", "here")]


def test_a_log_that_is_missing_and_one_without_times_are_named(tmp_path: Path) -> None:
    record = run_with(tmp_path, athens=["no time"], byzantium=[patroni(2, "here")], cyrene=[])
    (tmp_path / "cyrene" / "node.log").unlink()
    excerpt = excerpt_of(record)
    assert excerpt.notes == [
        "The log of athens is left out: its times have no known form.",
        "The log of cyrene cannot be read: No such file or directory.",
        "No node logged a line from 2.050 s to 2.420 s, while this happened; these are the lines around it.",
    ]
    assert told(excerpt) == [(2.0, "byzantium", "here")]


def test_a_log_of_whole_seconds_is_said_to_be_rough(tmp_path: Path) -> None:
    record = run_with(tmp_path, athens=["2026-11-22  0:36:08 0 [Note] WSREP: x"])
    assert "athens has whole seconds" in excerpt_of(record).notes[0]


def test_moved_clocks_are_mentioned(tmp_path: Path) -> None:
    record = run_with(tmp_path, athens=[patroni(2, "here")])
    record.faults = violating_run()[0].faults
    assert excerpt_of(record).notes[0].startswith("Clocks were moved in this run.")


def test_of_many_lines_both_ends_stay_and_the_telling_ones_between(tmp_path: Path) -> None:
    lines = [patroni(1.1 + number / 1000, f"tick {number}") for number in range(2_000)]
    lines[900] = patroni(2.0, "promoted self to leader")
    lines[950] = patroni(2.05, "promoted self to leader")
    lines[1_000] = patroni(2.1, "another tick 1000")
    excerpt = excerpt_of(run_with(tmp_path, athens=lines))
    shown = [text for _, _, text in told(excerpt)]
    assert len(shown) <= MOST_LINES
    assert shown[0] == "tick 0"
    assert shown[-1] == "tick 1999"
    assert shown.count("promoted self to leader") == 1
    assert "another tick 1000" in shown
    left_out = sum(line.lines for line in excerpt.lines if isinstance(line, LeftOut))
    assert left_out + len(shown) == 2_000


def test_what_the_guilty_fault_led_to_seconds_before_stands_above_the_lines_from_the_time_of_the_anomaly(
    tmp_path: Path,
) -> None:
    calm = [patroni(0.2 + number / 100, f"tick {number}") for number in range(70)]
    meanwhile = [patroni(8.9 + number / 100, f"tock {number}") for number in range(30)]
    record = run_with(tmp_path, athens=[*calm, patroni(2.0, "promoted self to leader"), *meanwhile])
    excerpt = node_logs_excerpt(record, 8_800_000, 9_400_000, since_us=190_000)
    assert excerpt is not None
    texts = [text for _, _, text in told(excerpt)]
    assert texts[:2] == ["tick 0", "promoted self to leader"]
    assert texts[2:] == [f"tock {number}" for number in range(30)]


def test_of_a_large_log_only_a_part_is_read_and_it_is_the_right_one(tmp_path: Path) -> None:
    padding = "x" * 1_000
    lines = [patroni(number / 100, f"line {number} {padding}") for number in range(20_000)]
    record = run_with(tmp_path, athens=lines)
    assert (tmp_path / "athens" / "node.log").stat().st_size > 4 * BYTES_READ_MAX
    excerpt = excerpt_of(record, 150_000_000, 150_100_000)
    numbers = [int(text.split()[1]) for _, _, text in told(excerpt)]
    assert (numbers[0], numbers[-1]) == (14_900, 15_110)
    assert excerpt.notes == []


def test_a_part_too_small_for_the_window_is_owned_up_to(tmp_path: Path) -> None:
    lines = [patroni(number / 100, "x" * 1_000) for number in range(10_000)]
    assert (
        "Only 4 MiB of the log of athens were read"
        in excerpt_of(run_with(tmp_path, athens=lines), 20_000_000, 90_000_000).notes[0]
    )


def test_words_of_trouble_and_of_new_leaders_are_set_apart() -> None:
    line = LogLine(0, "athens", "ERROR: peer timed out; misleading")
    assert [text for text, tells in line.pieces if tells] == ["ERROR", "timed out"]
    assert "".join(text for text, _ in line.pieces) == line.text


@pytest.mark.parametrize("change", [{"detail": {}}, {"started_at_us": 0}])
def test_a_run_without_logs_or_without_its_start_has_no_such_section(tmp_path: Path, change: dict[str, object]) -> None:
    record = msgspec.structs.replace(run_with(tmp_path / "nodes", athens=[patroni(2, "here")]), **change)
    page = Page(write_run_report(tmp_path, record, violating_run()[1]).read_text("utf-8"))
    assert "What the nodes logged meanwhile" not in page.headings


def test_the_page_shows_the_lines_cut_and_escaped(tmp_path: Path) -> None:
    hostile = patroni(2.2, "panic: <script>alert(1)</script>\x1b[31m \u202e" + "z" * 5_000)
    record = run_with(tmp_path / "nodes", athens=[patroni(2.1, "calm"), hostile], byzantium=["no time"])
    text = write_run_report(tmp_path, record, violating_run()[1]).read_text("utf-8")
    section = Page(text).section("logs")
    assert "2.200 s" in section
    assert "The log of byzantium is left out" in section
    assert "<script>alert(1)" not in text
    assert "z" * 200 not in text
    assert "\\x1b[31m \\u202e" in section
    assert "<b>panic</b>" in text


def test_a_time_without_lines_of_logs_is_said_to_be_one(tmp_path: Path) -> None:
    record = run_with(tmp_path / "nodes", athens=[patroni(-9, "boot")])
    page = Page(write_run_report(tmp_path, record, violating_run()[1]).read_text("utf-8"))
    assert "No line of that time was found." in page.section("logs")
