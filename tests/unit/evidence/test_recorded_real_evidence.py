"""The records of real stores: every claim has its runs, they bear it out, and the page says so."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))

import real_evidence

from faultline.cli.reproduce import Outcome
from faultline.harness.world.hosts.evidence.cases import case_names, load_case, parse_case

CASE = parse_case(
    "loses",
    'claim = "It loses."\nexpected = "violation"\nsystem = "etcd"\nseeds = [3, 4]\noptions = {read_mode = "x"}\n',
)
OUTCOME = Outcome(
    name="loses",
    expected="violation",
    borne_out=True,
    tried=(3, 4),
    shown=(4,),
    passed=(3,),
    operations=1_234,
    finding="linearizability/stale-read",
    sentence="It showed.",
)
RECORD = real_evidence.Record(
    name="loses",
    digest=real_evidence.digest_of(CASE),
    outcome=OUTCOME,
    store="etcd 3.4",
    kernel="Linux 6.1",
    load=0.5,
    day="2026-01-01",
)


@pytest.mark.parametrize("name", case_names())
def test_every_claim_is_recorded_as_it_now_stands_and_borne_out(name: str) -> None:
    case, records = load_case(name), real_evidence.read_records()
    assert real_evidence.unrecorded([case], records) == [], f"run: python tools/real_evidence.py {name}"
    outcome = records[name].outcome
    assert outcome.borne_out and outcome.expected == case.expected and outcome.tried == case.seeds


def test_the_readme_counts_the_claims() -> None:
    assert f"| {len(case_names())} [claims](" in (real_evidence.ROOT / "README.md").read_text("utf-8")


def test_no_record_outlives_its_claim() -> None:
    assert set(real_evidence.read_records()) <= set(case_names())


def test_a_claim_whose_runs_were_changed_counts_as_unrecorded() -> None:
    records = {"loses": RECORD}
    assert real_evidence.unrecorded([CASE], records) == []
    assert real_evidence.unrecorded([msgspec.structs.replace(CASE, claim="Other words.")], records) == []
    assert real_evidence.unrecorded([msgspec.structs.replace(CASE, duration_s=1.0)], records) == ["loses"]


def test_the_page_says_what_was_found_and_what_was_not_recorded() -> None:
    shown = real_evidence.page([CASE], {"loses": RECORD})
    assert "| [loses](#loses) | violation | 1 of 2 | 1 of 2 | 1,234 | etcd 3.4 | `faultline evidence loses` |" in shown
    assert "shown by 4; clean: 3" in shown and "`linearizability/stale-read`: It showed." in shown
    assert "`read_mode=x`" in shown
    assert "not recorded yet" in real_evidence.page([CASE], {})
