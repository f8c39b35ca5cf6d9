"""One finding for each cause: anomalies of the same transactions are names of one thing.

Three transactions on a G-single are often a G2, a G-update and a fractured read as well. Told four times, they look
like four bugs. The worst name is that of the finding; the others stand in its detail, as `also_called`.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from faultline.harness.verdict import Finding

__all__ = ["by_cause"]


def by_cause(findings: Iterable[Finding]) -> list[Finding]:
    """Return `findings`, worst first, with those of the same operations as one."""
    groups: dict[tuple[int, ...], list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.operations, []).append(finding)
    return [_merged(group) for group in groups.values()]


def _merged(group: list[Finding]) -> Finding:
    worst = group[0]
    others = list(dict.fromkeys(finding.anomaly for finding in group if finding.anomaly != worst.anomaly))
    if not others:
        return worst
    # A cycle has the edges that a report draws; a name that was found without one borrows them.
    drawn = next((finding.detail for finding in group if "edges" in finding.detail), {})
    detail = worst.detail | {name: drawn[name] for name in ("transactions", "edges", "shortest") if name in drawn}
    return msgspec.structs.replace(worst, detail=detail | {"also_called": others})
