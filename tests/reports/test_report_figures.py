"""The axis that bends, the latency scatter, and what each may leave out."""

from __future__ import annotations

import itertools
from xml.etree import ElementTree

import pytest
from page_reader import svg_of_class
from report_samples import calm_operations, faults, long_run, plan, record_operation, violating_run

from faultline.harness.history import History
from faultline.harness.outcome import info, ok
from faultline.harness.run_record import FaultInterval, RunRecord
from faultline.reports.latency import latency_finding, latency_svg, latency_table, quantile
from faultline.reports.selection import shown_rows
from faultline.reports.space_time import space_time_svg
from faultline.reports.time_axis import Room, bent_axis


def test_the_axis_never_turns_back_and_tells_every_two_moments_apart() -> None:
    axis = bent_axis([0, 1, 2, 1_000, 5_000_000], [], 100, 900)
    places = [axis.place(time) for time in (0, 1, 2, 1_000, 5_000_000)]
    assert all(later - earlier >= 10 for earlier, later in itertools.pairwise(places))
    assert axis.place(-5) == axis.left == 100
    assert axis.place(9_000_000) == axis.right


def test_the_axis_is_linear_between_two_moments() -> None:
    axis = bent_axis([0, 1_000], [], 0, 1_000)
    assert axis.place(250) == pytest.approx(250)


def test_a_quiet_stretch_is_cut_and_marked() -> None:
    axis = bent_axis([0, 10, 20, 30, 1_000_000, 1_000_010], [], 0, 1_000)
    (stretch,) = axis.breaks
    assert stretch.length_us == 999_970
    assert stretch.right - stretch.left < 50
    assert axis.in_break(500_000)
    assert not axis.in_break(20)


def test_an_axis_widens_until_every_label_has_room() -> None:
    rooms = [Room(0, 1, 300.0), Room(1, 2, 400.0), Room(2, 3, 900.0)]
    axis = bent_axis([0, 1, 2, 3], rooms, 0, 1_000)
    assert all(axis.place(room.stop_us) - axis.place(room.start_us) >= room.pixels - 0.01 for room in rooms)


def test_the_telling_moment_is_among_the_ticks_and_no_two_ticks_collide() -> None:
    axis = bent_axis(range(0, 100, 3), [], 0, 1_000)
    ticks = axis.ticks(96, [51])
    assert 51 in ticks
    assert len(ticks) > 5
    assert all(axis.place(later) - axis.place(earlier) >= 96 for earlier, later in itertools.pairwise(ticks))


def test_labels_in_one_lane_do_not_run_into_each_other() -> None:
    history = History()
    rows = [record_operation(history, 0, "write", "a long value", n * 10, n * 10 + 2, ok()) for n in range(8)]
    figure = ElementTree.fromstring(
        space_time_svg(shown_rows(RunRecord(plan=plan(), world="simulated", history=history), rows))
    )
    labels = [(float(text.get("x", 0)), "".join(text.itertext())) for text in svg_of_class(figure, "label")]
    assert len(labels) == 8
    assert all(x + len(text) * 7.2 <= following for (x, text), (following, _) in itertools.pairwise(labels))


def test_no_operations_make_no_figure() -> None:
    assert space_time_svg(shown_rows(RunRecord(plan=plan(), world="simulated", history=History()), [])) == ""
    assert latency_svg(RunRecord(plan=plan(), world="simulated", history=History())) == ""


def test_a_single_unanswered_operation_can_be_drawn() -> None:
    history = History()
    record_operation(history, 0, "read", None, 0, None, info("timeout"))
    record = RunRecord(plan=plan(), world="simulated", history=history)
    figure = ElementTree.fromstring(space_time_svg(shown_rows(record, [0])))
    assert len(svg_of_class(figure, "info")) == 1
    assert len(svg_of_class(ElementTree.fromstring(latency_svg(record)), "info")) == 1


def test_the_slowest_and_fastest_operations_survive_sampling() -> None:
    history = History()
    calm_operations(history, 9_000, 0, 1_000)
    slow = record_operation(history, 0, "read", None, 9_100_000, 29_100_000, ok(1))
    record = RunRecord(plan=plan(), world="simulated", history=history)
    figure = ElementTree.fromstring(latency_svg(record))
    points = [
        point
        for cloud in svg_of_class(figure, "cloud")
        for path in cloud.iter()
        for point in (path.get("d") or "").split("M")[1:]
    ]
    assert 1_000 < len(points) <= 2_002, "the drawn points and the two shapes of the key"
    assert "took 20.0 s" in latency_finding(record)
    heights = sorted(float(point.split(",")[1].split("a")[0].split("l")[0].split("h")[0]) for point in points)
    assert heights[1] - heights[0] > 100, f"row {slow} stands alone far above the others"


def test_an_operation_that_overlaps_a_fault_counts_as_inside() -> None:
    history = History()
    record_operation(history, 0, "read", None, 50, 100, ok(1))
    record_operation(history, 1, "read", None, 50, 99, ok(1))
    record_operation(history, 2, "read", None, 201, 300, ok(1))
    fault = FaultInterval(kind="kill", target="one", start_us=100, stop_us=200, nodes=("athens",))
    table = latency_table(RunRecord(plan=plan(), world="simulated", history=history, faults=[fault]))
    assert [(row.window, row.count, row.max_us) for row in table] == [("inside", 1, 50), ("outside", 2, 99)]


def test_quantiles_are_values_that_occurred() -> None:
    values = list(range(1, 101))
    assert [quantile(values, share) for share in (0.5, 0.95, 0.99, 1.0)] == [50, 95, 99, 100]
    assert quantile([7], 0.5) == 7


def test_fault_names_over_the_scatter_do_not_overlap() -> None:
    record, _ = violating_run()
    record.faults = faults() * 3
    figure = ElementTree.fromstring(latency_svg(record))
    names = svg_of_class(figure, "fault-name")
    boxes = sorted((float(t.get("y", 0)), float(t.get("x", 0)), len("".join(t.itertext())) * 7.2) for t in names)
    assert len(boxes) == 12
    for (y, x, width), (other_y, other_x, _) in itertools.pairwise(boxes):
        assert y != other_y or x + width <= other_x


def test_a_long_run_draws_few_elements() -> None:
    record, _ = long_run()
    assert len(latency_svg(record)) < 150_000


def test_no_two_times_under_the_latencies_of_a_short_run_are_written_alike() -> None:
    history = History()
    calm_operations(history, 30, 0, 1_000)
    figure = ElementTree.fromstring(latency_svg(RunRecord(plan=plan(), world="simulated", history=history)))
    times = [text.text for text in figure.iter() if (text.text or "").endswith(" s") and text.get("class") == "tick"]
    assert len(times) == len(set(times)) == 6
