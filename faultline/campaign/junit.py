"""JUnit XML for continuous integration: one test case per cell, named without the seed so that its history lines up.

A violation is a failure, a run the harness broke or could not decide an error, an anomaly that the plan allows skipped
(servers show skipped tests apart, which is where a known weakness belongs). Everything printed can come from a plug-in,
so characters that XML cannot hold are replaced.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as xml

from faultline.campaign.outcome import NOT_SEEN
from faultline.campaign.summary import CampaignSummary, CellSummary, SignatureSummary
from faultline.harness.verdict import Verdict

__all__ = ["junit_xml"]

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MOST_SIGNATURES = 50


def junit_xml(summary: CampaignSummary) -> bytes:
    """The whole document, in UTF-8."""
    cases = [
        _case(cell, [each for each in summary.signatures if each.cell == cell.cell], summary) for cell in summary.cells
    ]
    kinds = [child.tag for case in cases for child in case]
    totals = {
        "name": _text(f"faultline {summary.plan.name}"),
        "tests": str(len(cases)),
        "failures": str(kinds.count("failure")),
        "errors": str(kinds.count("error")),
        "skipped": str(kinds.count("skipped")),
    }
    suite = xml.Element("testsuite", totals)
    suite.extend(cases)
    root = xml.Element("testsuites", totals)
    root.append(suite)
    xml.indent(root)
    document: bytes = xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _case(cell: CellSummary, signatures: Sequence[SignatureSummary], summary: CampaignSummary) -> xml.Element:
    case = xml.Element("testcase", {"classname": _text(f"faultline.{summary.plan.name}"), "name": _text(cell.cell)})
    _properties(case, cell, signatures, summary)
    signatures = sorted(signatures, key=lambda each: each.expected)
    text = "\n".join(line for each in signatures[:_MOST_SIGNATURES] for line in (each.sentence, each.replay) if line)
    tag = _tag(cell, summary.plan.strict)
    if tag is not None:
        attributes = {"message": _text(cell.sentence)}
        if tag != "skipped":
            attributes["type"] = _text(signatures[0].anomaly if tag == "failure" and signatures else cell.verdict.value)
        xml.SubElement(case, tag, attributes).text = _text(text or cell.first_error or cell.sentence)
    xml.SubElement(case, "system-out").text = _text(f"{cell.sentence}\n{text}")
    return case


def _tag(cell: CellSummary, strict: bool) -> str | None:
    if cell.standing == NOT_SEEN:
        return "error" if strict else "skipped"
    if cell.standing == "as expected":
        return "skipped" if cell.verdict is Verdict.VIOLATION else None
    return "failure" if cell.standing == "unexpected violation" else "error"


def _properties(
    case: xml.Element, cell: CellSummary, signatures: Sequence[SignatureSummary], summary: CampaignSummary
) -> None:
    values = {
        "seeds": summary.plan.seeds,
        "runs": str(cell.runs),
        "violations": str(cell.counts.get("violation", 0)),
        "standing": cell.standing,
        "failing-seeds": " ".join(str(each.seed) for each in signatures[:_MOST_SIGNATURES]),
        "replay": signatures[0].replay if signatures else "",
    }
    properties = xml.SubElement(case, "properties")
    for name, value in values.items():
        if value:
            xml.SubElement(properties, "property", {"name": name, "value": _text(value)})


def _text(value: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", value)
