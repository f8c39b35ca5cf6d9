"""JUnit XML: stable names, what fails and what is skipped, and values that try to break out."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as xml

import msgspec

from faultline.campaign.junit import junit_xml
from faultline.campaign.matrix import CampaignPlan
from faultline.campaign.summary import CampaignSummary, CellSummary, SignatureSummary
from faultline.harness.verdict import Verdict

HOSTILE = "]]></failure>\x00\x1b[31m<script>&'\"\ud800\ufffe"


def cell(name: str, verdict: Verdict, **changes: Any) -> CellSummary:
    summary = CellSummary(
        cell=name,
        system="s",
        workload="w",
        fault_set=(),
        mutants=(),
        options={},
        expected=(),
        verdict=verdict,
        standing="as expected",
        sentence=f"{name} ended.",
        runs=3,
        counts={"pass": 2, "violation": 1},
        violation_rate=0.3,
        wilson_low=0.1,
        wilson_high=0.5,
        operations={},
    )
    return msgspec.structs.replace(summary, **changes)


def violated(name: str, **changes: Any) -> CellSummary:
    return cell(name, Verdict.VIOLATION, standing="unexpected violation", **changes)


def signature(name: str, **changes: Any) -> SignatureSummary:
    summary = SignatureSummary(
        cell=name,
        signature="l/stale-read",
        checker="l",
        anomaly="stale-read",
        count=1,
        judged=3,
        rate=0.3,
        wilson_low=0.1,
        wilson_high=0.5,
        first_seed=17,
        seed=17,
        operations=2,
        fault_kinds=("kill",),
        run_id="r",
        folders_kept=1,
        example="It was stale.",
        sentence="It was stale at seed 17.",
        replay="faultline replay r",
        report="",
    )
    return msgspec.structs.replace(summary, **changes)


def document(cells: list[CellSummary], signatures: list[SignatureSummary], strict: bool = False) -> xml.Element:
    summary = CampaignSummary(
        id="c-1",
        name="c",
        plan=CampaignPlan(name="c", seeds="0..2", strict=strict),
        plan_sha256="",
        verdict=Verdict.PASS,
        exit_code=0,
        interrupted=False,
        scheduled=3,
        finished=3,
        sentence="",
        sentences=(),
        warnings=(),
        cells=tuple(cells),
        signatures=tuple(signatures),
        latency=(),
        marks={},
        marks_missing=(),
        overlap={},
        environment={},
        versions={},
    )
    return xml.fromstring(junit_xml(summary))


def test_a_cell_is_one_test_case_whose_name_holds_no_seed() -> None:
    cases = document([cell("s/w/calm", Verdict.PASS), violated("s/w/kill")], [signature("s/w/kill")])
    names = [case.get("name") for case in cases.iter("testcase")]
    assert names == ["s/w/calm", "s/w/kill"]


def test_verdicts_become_failures_errors_and_skips() -> None:
    cells = [
        cell("pass", Verdict.PASS),
        cell("violation", Verdict.VIOLATION, standing="unexpected violation"),
        cell("beyond", Verdict.VIOLATION, standing="unexpected violation", expected=("stale-read",)),
        cell("expected", Verdict.VIOLATION, expected=("stale-read",)),
        cell("not seen", Verdict.PASS, standing="expected violation not seen", expected=("stale-read",)),
        cell("unknown", Verdict.UNKNOWN, standing="inconclusive"),
        cell("broken", Verdict.HARNESS_ERROR, standing="harness error"),
        cell("empty", Verdict.VACUOUS, standing="inconclusive"),
    ]
    root = document(cells, [])
    kinds = ("failure", "error", "skipped")
    tags = {case.get("name"): [child.tag for child in case if child.tag in kinds] for case in root.iter("testcase")}
    assert tags == {
        "pass": [],
        "violation": ["failure"],
        "beyond": ["failure"],
        "expected": ["skipped"],
        "not seen": ["skipped"],
        "unknown": ["error"],
        "broken": ["error"],
        "empty": ["error"],
    }
    assert [root.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["8", "2", "3", "2"]


def test_a_failure_carries_its_anomaly_the_seeds_and_the_replay_line() -> None:
    root = document([violated("c")], [signature("c")])
    failure = root.find(".//failure")
    properties = {item.get("name"): item.get("value") for item in root.iter("property")}
    assert failure is not None
    assert failure.get("type") == "stale-read"
    assert failure.text == "It was stale at seed 17.\nfaultline replay r"
    assert properties["seeds"] == "0..2"
    assert properties["failing-seeds"] == "17"
    assert properties["replay"] == "faultline replay r"


def test_what_the_plan_does_not_allow_is_told_before_what_it_does() -> None:
    beyond = signature("c", anomaly="lost-update", sentence="It was lost at seed 3.", seed=3)
    root = document([violated("c", expected=("stale-read",))], [signature("c", expected=True, count=40), beyond])
    failure = root.find(".//failure")
    assert failure is not None
    assert failure.get("type") == "lost-update"
    assert (failure.text or "").startswith("It was lost at seed 3.\n")


def test_in_a_strict_plan_an_expected_violation_that_was_not_seen_is_an_error() -> None:
    unseen = cell("c", Verdict.PASS, standing="expected violation not seen", expected=("stale-read",))
    root = document([unseen], [], strict=True)
    assert [root.get(name) for name in ("errors", "skipped")] == ["1", "0"]


def test_hostile_values_stay_text() -> None:
    root = document([violated(HOSTILE, sentence=HOSTILE)], [signature(HOSTILE, sentence=HOSTILE, replay=HOSTILE)])
    assert root.find(".//script") is None
    assert len(list(root.iter("testcase"))) == 1
    failure = root.find(".//failure")
    assert failure is not None
    assert (failure.text or "").startswith(
        "]]></failure>\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}[31m<script>"
    )
