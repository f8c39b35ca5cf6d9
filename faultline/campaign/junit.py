"""JUnit XML for continuous integration: one test case per cell, named without the seed so that its history lines up.

A violation is a failure; a run that the harness broke or could not decide is an error. An anomaly that the plan allows
is a skipped test: servers show those apart, as a known weakness should be. Errors of the campaign as a whole (it was
interrupted, a worker died, or no run reached a mark that the plan demands) are errors of a test case of their own, in
the suite `campaign`, so that a campaign that is not green never gives a green file.

The document keeps to the schema of Jenkins' xUnit plug-in (junit-10.xsd), the strictest that is in use: a test case has
no properties there, so they are lines of its output. All text can come from a plug-in, so characters that XML cannot
hold are replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from xml.etree import ElementTree as xml

from faultline.campaign.outcome import NOT_SEEN
from faultline.campaign.summary import CampaignSummary, CellSummary, SignatureSummary, total_exposure
from faultline.harness.verdict import Verdict

__all__ = ["junit_xml"]

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MOST_SIGNATURES = 50


def junit_xml(summary: CampaignSummary) -> bytes:
    """Return the whole document, in UTF-8."""
    cases = [
        _case(cell, [each for each in summary.signatures if each.cell == cell.cell], summary) for cell in summary.cells
    ]
    seconds = sum(cell.seconds for cell in summary.cells)
    suites = [
        _suite(f"faultline {summary.name}", cases, seconds, _campaign_properties(summary)),
        _suite("campaign", [_campaign_case(summary)], 0.0, {}),
    ]
    root = xml.Element("testsuites", _totals(f"faultline {summary.name}", suites, seconds))
    root.extend(suites)
    xml.indent(root)
    document: bytes = xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _suite(name: str, cases: Sequence[xml.Element], seconds: float, properties: dict[str, str]) -> xml.Element:
    skipped = sum(len(case.findall("skipped")) for case in cases)
    suite = xml.Element("testsuite", {**_totals(name, cases, seconds), "skipped": str(skipped)})
    if properties:
        listed = xml.SubElement(suite, "properties")
        for key, value in properties.items():
            xml.SubElement(listed, "property", {"name": key, "value": _text(value)})
    suite.extend(cases)
    return suite


def _totals(name: str, parts: Sequence[xml.Element], seconds: float) -> dict[str, str]:
    """Return the attributes that count the results in `parts`, which are test cases or suites."""
    counted = {tag: sum(len(list(part.iter(tag))) for part in parts) for tag in ("testcase", "failure", "error")}
    return {
        "name": _text(name),
        "tests": str(counted["testcase"]),
        "failures": str(counted["failure"]),
        "errors": str(counted["error"]),
        "time": f"{seconds:.3f}",
    }


def _campaign_properties(summary: CampaignSummary) -> dict[str, str]:
    return {
        "campaign": summary.id,
        "plan": summary.plan.name,
        "plan-sha256": summary.plan_sha256,
        "seeds": summary.plan.seeds,
        "runs": f"{summary.finished} of {summary.scheduled}",
        **{f"exposure-{name}": str(value) for name, value in _exposure(summary.cells).items()},
    }


def _campaign_case(summary: CampaignSummary) -> xml.Element:
    """Return the test case of the campaign as a whole: an error for troubles that belong to no cell."""
    case = xml.Element(
        "testcase", {"classname": _text(f"faultline.{summary.name}"), "name": "campaign", "time": "0.000"}
    )
    if summary.troubles:
        attributes = {"message": _text(summary.troubles[0]), "type": summary.verdict.value}
        xml.SubElement(case, "error", attributes).text = _text("\n".join(summary.troubles))
    xml.SubElement(case, "system-out").text = _text("\n".join((*summary.sentences, *summary.warnings)))
    return case


def _case(cell: CellSummary, signatures: Sequence[SignatureSummary], summary: CampaignSummary) -> xml.Element:
    names = {"classname": _text(f"faultline.{summary.name}"), "name": _text(cell.cell)}
    case = xml.Element("testcase", {**names, "time": f"{cell.seconds:.3f}"})
    signatures = sorted(signatures, key=lambda each: each.expected)
    text = "\n".join(line for each in signatures[:_MOST_SIGNATURES] for line in (each.sentence, each.replay) if line)
    tag = _tag(cell, strict=summary.plan.strict)
    if tag is not None:
        attributes = {"message": _text(cell.sentence)}
        if tag != "skipped":
            attributes["type"] = _text(signatures[0].anomaly if tag == "failure" and signatures else cell.verdict.value)
        xml.SubElement(case, tag, attributes).text = _text(text or cell.first_error or cell.sentence)
    output = (cell.sentence, text, *_facts(cell, signatures, summary))
    xml.SubElement(case, "system-out").text = _text("\n".join(filter(None, output)))
    return case


def _tag(cell: CellSummary, *, strict: bool) -> str | None:
    if cell.standing == NOT_SEEN:
        return "error" if strict else "skipped"
    if cell.standing == "as expected":
        return "skipped" if cell.verdict is Verdict.VIOLATION else None
    return "failure" if cell.standing == "unexpected violation" else "error"


def _facts(cell: CellSummary, signatures: Sequence[SignatureSummary], summary: CampaignSummary) -> list[str]:
    """Return lines `name: value` about a cell, for scripts; they replace properties."""
    values = {
        "seeds": summary.plan.seeds,
        "runs": str(cell.runs),
        "violations": str(cell.counts.get("violation", 0)),
        "standing": cell.standing,
        **{f"exposure-{name}": str(value) for name, value in _exposure([cell]).items()},
        "failing-seeds": " ".join(map(str, cell.failing_seeds)),
        "replay": signatures[0].replay if signatures else "",
        "run-again": signatures[0].run_again if signatures else "",
    }
    return [f"{name}: {value}" for name, value in values.items() if value]


def _exposure(cells: Iterable[CellSummary]) -> dict[str, int]:
    """Return the ledgers of `cells`, added up, under the names of JUnit properties."""
    return {name.replace("_", "-"): value for name, value in total_exposure(cells).items()}


def _text(value: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", value)
