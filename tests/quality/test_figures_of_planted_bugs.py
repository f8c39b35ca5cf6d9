"""No figure leaves out a message that decides: a sample of what `tools/deciding_messages.py` tries as a whole."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from faultline.harness.judge import judge
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.registry import resolve
from faultline.reports.run_page import write_run_report
from faultline.reports.selection import shown_of

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from deciding_messages import cases, deciding_messages, figures_of, tried

SYSTEMS = (
    "consistent-core", "coordinated-kv", "data-grid", "emergent-leader", "gossip", "partitioned-kv", "paxos-kv",
    "quorum-kv", "quorum-register", "range-kv", "range-transactions", "timestamped-kv", "transactional-kv",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS)
def test_every_message_that_decides_is_drawn_and_no_figure_draws_fewer_than_it_says(system: str) -> None:
    outcome = next(outcome for case in cases(system) if (outcome := tried(*case)))
    assert outcome.deciding
    assert outcome.missing == ()
    assert outcome.figures > 0
    assert outcome.cut == 0


@pytest.mark.slow
def test_the_two_lost_copies_of_a_write_that_was_acknowledged_too_early_are_drawn(tmp_path) -> None:
    request = RunRequest(system="consistent-core", planted_bugs=("ack-before-quorum",), seed=1)
    parts = resolve(request)
    run = run_simulated(make_plan(request, parts), parts, record_messages=True)
    judgement = judge(run, parts, run_id="figure")
    finding = judgement.findings[0]
    copies = [message for rule, message in deciding_messages(run, finding) if rule == "copies"]
    assert len(copies) == 2
    assert all(message.receive_us < 0 for message in copies)
    assert set(copies) <= set(shown_of(run, finding).messages.drawn)
    (figure, *_) = figures_of(write_run_report(tmp_path, run, judgement).read_text("utf-8"))
    assert figure.is_whole
    assert sum(row[1] == "lost" for row in figure.rows) >= 2
