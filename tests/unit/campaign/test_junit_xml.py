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
        planted_bugs=(),
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


def summary_of(cells: list[CellSummary], signatures: list[SignatureSummary], **changes: Any) -> CampaignSummary:
    summary = CampaignSummary(
        id="c-1",
        name="c",
        plan=CampaignPlan(name="c", seeds="0..2"),
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
    return msgspec.structs.replace(summary, **changes)


def document(cells: list[CellSummary], signatures: list[SignatureSummary], **changes: Any) -> xml.Element:
    return xml.fromstring(junit_xml(summary_of(cells, signatures, **changes)))


def cases(root: xml.Element) -> dict[str, xml.Element]:
    """The test cases of the cells, by name."""
    return {str(case.get("name")): case for case in root[0].iter("testcase")}


def output(case: xml.Element) -> list[str]:
    return (case.findtext("system-out") or "").splitlines()


def test_a_cell_is_one_test_case_whose_name_holds_no_seed() -> None:
    root = document([cell("s/w/calm", Verdict.PASS), violated("s/w/kill")], [signature("s/w/kill")])
    assert list(cases(root)) == ["s/w/calm", "s/w/kill"]


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
    tags = {name: [child.tag for child in case if child.tag in kinds] for name, case in cases(root).items()}
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
    assert [root[0].get(name) for name in ("tests", "failures", "errors", "skipped")] == ["8", "2", "3", "2"]
    assert [root.get(name) for name in ("tests", "failures", "errors")] == ["9", "2", "3"]


def test_what_is_wrong_with_the_whole_campaign_is_an_error_of_its_own() -> None:
    troubles = ("The campaign was interrupted: 7 runs did not end.", "No run reached m.")
    root = document([cell("c", Verdict.PASS)], [], verdict=Verdict.UNKNOWN, troubles=troubles)
    campaign = root[1]
    error = campaign.find("testcase/error")
    assert (campaign.get("name"), campaign.get("errors"), root.get("errors")) == ("campaign", "1", "1")
    assert error is not None
    assert (error.get("type"), error.get("message"), error.text) == ("unknown", troubles[0], "\n".join(troubles))
    assert cases(root)["c"].find("error") is None


def test_a_campaign_without_troubles_passes_as_a_whole() -> None:
    assert [child.tag for child in document([violated("c")], [])[1][0]] == ["system-out"]


def test_a_failure_carries_its_anomaly_the_seeds_and_the_replay_line() -> None:
    root = document([violated("c", failing_seeds=(17, 23))], [signature("c", run_again="faultline run")])
    failure = root.find(".//failure")
    assert failure is not None
    assert failure.get("type") == "stale-read"
    assert failure.text == "It was stale at seed 17.\nfaultline replay r"
    facts = {"seeds: 0..2", "failing-seeds: 17 23", "replay: faultline replay r", "run-again: faultline run"}
    assert facts <= set(output(cases(root)["c"]))


def test_times_are_those_of_the_cells() -> None:
    root = document([cell("a", Verdict.PASS, seconds=1.25), cell("b", Verdict.PASS, seconds=2.0)], [])
    assert [case.get("time") for case in cases(root).values()] == ["1.250", "2.000"]
    assert (root[0].get("time"), root.get("time")) == ("3.250", "3.250")


ALLOWED = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "time", "skipped"},
        {"properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set(), {"property"}),
    "property": ({"name", "value"}, set()),
    "testcase": ({"name", "time", "classname"}, {"skipped", "error", "failure", "system-out", "system-err"}),
    "failure": ({"type", "message"}, set()),
    "error": ({"type", "message"}, set()),
    "skipped": ({"type", "message"}, set()),
    "system-out": (set(), set()),
}
"""The schema junit-10.xsd of Jenkins' xUnit plug-in: for each element its attributes and its children."""


def test_the_document_keeps_to_the_schema_of_jenkins() -> None:
    cells = [
        violated("violation"),
        cell("expected", Verdict.VIOLATION, expected=("stale-read",)),
        cell("broken", Verdict.HARNESS_ERROR, standing="harness error"),
    ]
    root = document(cells, [signature("violation")], troubles=("It was interrupted.",))
    for element in root.iter():
        attributes, children = ALLOWED[element.tag]
        assert set(element.keys()) <= attributes, element.tag
        assert {child.tag for child in element} <= children, element.tag


def test_what_the_plan_does_not_allow_is_told_before_what_it_does() -> None:
    beyond = signature("c", anomaly="lost-update", sentence="It was lost at seed 3.", seed=3)
    root = document([violated("c", expected=("stale-read",))], [signature("c", expected=True, count=40), beyond])
    failure = root.find(".//failure")
    assert failure is not None
    assert failure.get("type") == "lost-update"
    assert (failure.text or "").startswith("It was lost at seed 3.\n")


def test_in_a_strict_plan_an_expected_violation_that_was_not_seen_is_an_error() -> None:
    unseen = cell("c", Verdict.PASS, standing="expected violation not seen", expected=("stale-read",))
    root = document([unseen], [], plan=CampaignPlan(name="c", seeds="0..2", strict=True))
    assert [root[0].get(name) for name in ("errors", "skipped")] == ["1", "0"]


def test_hostile_values_stay_text() -> None:
    root = document([violated(HOSTILE, sentence=HOSTILE)], [signature(HOSTILE, sentence=HOSTILE, replay=HOSTILE)])
    assert root.find(".//script") is None
    assert len(cases(root)) == 1
    failure = root.find(".//failure")
    assert failure is not None
    assert (failure.text or "").startswith(
        "]]></failure>\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}[31m<script>"
    )
