"""Evidence that is one moment: what can be there when an operation returns, and the few operations then open.

The frontier of an illegal key ends at the first return that cannot be explained. The members of its last rank are all
that is possible there.
"""

from __future__ import annotations

from collections.abc import Sequence

from faultline.checkers.linearizability.data_type import AnyCall, Cut, Evidence
from faultline.checkers.linearizability.decision import Decision
from faultline.checkers.linearizability.engine.problem import DEAD
from faultline.checkers.linearizability.operations import INFINITY

__all__ = ["CORE_MAX", "cut_of", "evidence_of_cut"]

CORE_MAX = 12
"""The largest core that is told operation by operation where there is a cut to tell instead."""


def cut_of(found: Decision) -> Cut | None:
    """Return the cut at which the frontier ended; None when no certificate speaks of all operations."""
    certificate = found.certificate
    if certificate is None or certificate.relaxed is not None or certificate.configurations is None:
        return None
    configurations = certificate.configurations
    last = configurations.rank[-1]
    states = {state for rank, state in zip(configurations.rank, configurations.state) if rank == last}
    return Cut(found.furthest, tuple(certificate.subject.values[state] for state in sorted(states) if state != DEAD))


def evidence_of_cut(calls: Sequence[AnyCall], refused: AnyCall, cut: Cut) -> Evidence[AnyCall]:
    """Return as evidence the return of `refused`, at which `cut` says what is possible, with the operations then open.

    Those that never returned are left out: there may be many, and what they can put is among the states already.
    """
    open_now = [call for call in calls if call.call < refused.return_ <= call.return_ != INFINITY]
    return Evidence(tuple(open_now), refused, cut.ended, is_minimal=False, accused=refused.row, cut=cut)
