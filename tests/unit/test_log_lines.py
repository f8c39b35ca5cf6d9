"""The time of a line of a log, in the ways that stores write it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from faultline.reports.log_lines import FORMATS, logged_line, logged_lines


def utc_us(*moment: int) -> int:
    """Microseconds since the epoch of a date and time, its last part being microseconds."""
    *date, microsecond = moment
    return int(datetime(*date, tzinfo=UTC).timestamp()) * 1_000_000 + microsecond  # type: ignore[arg-type, misc]  # one int for each part


LINES = {
    "etcd": (
        '{"level":"info","ts":"2026-11-22T00:39:00.818Z","caller":"raft/raft.go:706","msg":"became follower","term":2}',
        utc_us(2026, 11, 22, 0, 39, 0, 818_000),
        "info became follower caller=raft/raft.go:706 term=2",
    ),
    "etcd with an offset": (
        '{"level":"warn","ts":"2026-11-22T01:39:00.818+0100","msg":"slow"}',
        utc_us(2026, 11, 22, 0, 39, 0, 818_000),
        "warn slow",
    ),
    "etcd since the epoch": (
        '{"level":"warn","ts":1795307940.8185,"msg":"slow fdatasync"}',
        1_795_307_940_818_500,
        "warn slow fdatasync",
    ),
    "Redis": (
        "30:S 21 Nov 2026 23:21:25.020 * MASTER <-> REPLICA sync started",
        utc_us(2026, 11, 21, 23, 21, 25, 20_000),
        "* MASTER <-> REPLICA sync started",
    ),
    "NATS": (
        "[27] 2026/11/22 00:00:45.198566 [INF] Self is new JetStream cluster metadata leader",
        utc_us(2026, 11, 22, 0, 0, 45, 198_566),
        "[INF] Self is new JetStream cluster metadata leader",
    ),
    "PostgreSQL": (
        "2026-11-22 00:36:06.431 UTC [28] LOG:  redo starts at 0/3000028",
        utc_us(2026, 11, 22, 0, 36, 6, 431_000),
        "[28] LOG:  redo starts at 0/3000028",
    ),
    "Patroni": (
        "2026-11-22 00:40:00,427 INFO: no action. I am (athens), a secondary",
        utc_us(2026, 11, 22, 0, 40, 0, 427_000),
        "INFO: no action. I am (athens), a secondary",
    ),
    "ZooKeeper": (
        "2026-11-22 02:36:06.431+0200 [main] INFO org.apache.zookeeper.server.quorum.QuorumPeer - LEADING",
        utc_us(2026, 11, 22, 0, 36, 6, 431_000),
        "[main] INFO org.apache.zookeeper.server.quorum.QuorumPeer - LEADING",
    ),
    "RabbitMQ": (
        "2026-11-22 00:23:43.011776+00:00 [info] <0.223.0> Feature flags: list",
        utc_us(2026, 11, 22, 0, 23, 43, 11_776),
        "[info] <0.223.0> Feature flags: list",
    ),
    "MariaDB": (
        "2026-11-22  0:18:25 0 [Note] WSREP: EVS version 1",
        utc_us(2026, 11, 22, 0, 18, 25, 0),
        "0 [Note] WSREP: EVS version 1",
    ),
    "a reference system": (
        "2026-11-22T00:18:25.000417+00:00 athens: process 17 listens on 127.0.0.1:7077",
        utc_us(2026, 11, 22, 0, 18, 25, 417),
        "athens: process 17 listens on 127.0.0.1:7077",
    ),
}


@pytest.mark.parametrize("store", LINES)
def test_a_line_of_each_store_tells_its_time_and_its_text(store: str) -> None:
    line, time_us, text = LINES[store]
    found = logged_line(line)
    assert found is not None
    assert (found.time_us, found.text) == (time_us, text)


def test_each_known_format_is_one_that_some_line_needs() -> None:
    first = {next(name for name, form in FORMATS.items() if form.match(line)) for line, _, _ in LINES.values()}
    assert first == set(FORMATS)


def test_a_line_says_whether_it_names_its_zone_and_its_fractions() -> None:
    marks = {
        store: (found.has_zone, found.is_rough) for store, (line, *_) in LINES.items() if (found := logged_line(line))
    }
    assert {store for store, (has_zone, _) in marks.items() if not has_zone} == {"Redis", "NATS", "Patroni", "MariaDB"}
    assert {store for store, (_, is_rough) in marks.items() if is_rough} == {"MariaDB"}


@pytest.mark.parametrize(
    "line",
    [
        "",
        "OK",
        "58 [main] INFO org.apache - reading",
        "10.0.0.1 2026-11-22 00:36:06",
        "2026-02-30 00:36:06 never",
        "1:M 7 x",
    ],
)
def test_a_line_that_begins_with_no_time_has_none(line: str) -> None:
    assert logged_line(line) is None


def test_lines_without_a_time_belong_to_the_line_before_them() -> None:
    told = ["noise before all", "2026-11-22 00:36:06.431 UTC [1] PANIC:  damage", "  at one", "", "  at two"]
    assert [line.text for line in logged_lines(told)] == ["[1] PANIC:  damage / at one / at two"]


def test_an_endless_trace_is_cut() -> None:
    told = ["2026-11-22 00:36:06.431 UTC x", *["y" * 400] * 100_000]
    (line,) = logged_lines(told)
    assert len(line.text) == 1_000


def test_half_an_object_is_shown_as_it_is() -> None:
    line = '{"level":"info","ts":"2026-11-22T00:39:00.818Z","msg":"cut o'
    found = logged_line(line)
    assert found is not None
    assert found.text == line
