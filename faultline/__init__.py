"""Faultline: a correctness test harness for distributed stores.

The names below are what tests and plug-ins are written with, and they are stable. So are those that
`faultline.testing`, `faultline.testing.strategies`, `faultline.checkers`, `faultline.checkers.porcupine` and
`faultline.workloads` export. All other modules may change with any version.
"""

from __future__ import annotations

from faultline.exports import TYPE_CHECKING, lazily

if TYPE_CHECKING:
    from faultline.harness.errors import FaultlineError, HarnessError, UsageError
    from faultline.harness.feature import Feature
    from faultline.harness.history import History
    from faultline.harness.invariant import Breach, Invariant
    from faultline.harness.judge import judge
    from faultline.harness.judgement import Judgement
    from faultline.harness.nemesis import Injection, Nemesis
    from faultline.harness.operation import Operation
    from faultline.harness.outcome import CAS_MISMATCH, NOT_CONNECTED, Outcome, OutcomeRegistry, fail, info, ok
    from faultline.harness.planning import RunRequest, make_plan
    from faultline.harness.run import run_simulated
    from faultline.harness.run_record import RunRecord
    from faultline.harness.sensitivity import Anomaly, Answer, Insertion
    from faultline.harness.system import (
        HostedStore,
        NodeSystem,
        OptionDescription,
        PlantedBug,
        PortClient,
        ServesByOption,
        StoreClient,
        StorePlace,
    )
    from faultline.harness.universe import Domains
    from faultline.harness.verdict import CheckResult, Finding, Verdict
    from faultline.harness.workload import Checker, Workload
    from faultline.harness.world.ports import Node, NodeId, NodeStatus, Ports
    from faultline.nemesis import Package, Recipe, StandardNemesis
    from faultline.registry import resolve
    from faultline.systems_under_test.stores.client import ForeignAnswer, MemberClient, is_quiet
    from faultline.systems_under_test.stores.store import RealStore

__version__ = "0.1.0"

__all__ = [
    "CAS_MISMATCH",
    "NOT_CONNECTED",
    "Anomaly",
    "Answer",
    "Breach",
    "CheckResult",
    "Checker",
    "Domains",
    "FaultlineError",
    "Feature",
    "Finding",
    "ForeignAnswer",
    "HarnessError",
    "History",
    "HostedStore",
    "Injection",
    "Insertion",
    "Invariant",
    "Judgement",
    "MemberClient",
    "Nemesis",
    "Node",
    "NodeId",
    "NodeStatus",
    "NodeSystem",
    "Operation",
    "OptionDescription",
    "Outcome",
    "OutcomeRegistry",
    "Package",
    "PlantedBug",
    "PortClient",
    "Ports",
    "RealStore",
    "Recipe",
    "RunRecord",
    "RunRequest",
    "ServesByOption",
    "StandardNemesis",
    "StoreClient",
    "StorePlace",
    "UsageError",
    "Verdict",
    "Workload",
    "__version__",
    "fail",
    "info",
    "is_quiet",
    "judge",
    "make_plan",
    "ok",
    "resolve",
    "run_simulated",
]

_MODULES = {
    "Domains": "faultline.harness.universe",
    "FaultlineError": "faultline.harness.errors",
    "HarnessError": "faultline.harness.errors",
    "UsageError": "faultline.harness.errors",
    "Feature": "faultline.harness.feature",
    "History": "faultline.harness.history",
    "Breach": "faultline.harness.invariant",
    "Invariant": "faultline.harness.invariant",
    "judge": "faultline.harness.judge",
    "Judgement": "faultline.harness.judgement",
    "Injection": "faultline.harness.nemesis",
    "Nemesis": "faultline.harness.nemesis",
    "Operation": "faultline.harness.operation",
    "CAS_MISMATCH": "faultline.harness.outcome",
    "NOT_CONNECTED": "faultline.harness.outcome",
    "Outcome": "faultline.harness.outcome",
    "OutcomeRegistry": "faultline.harness.outcome",
    "fail": "faultline.harness.outcome",
    "info": "faultline.harness.outcome",
    "ok": "faultline.harness.outcome",
    "RunRequest": "faultline.harness.planning",
    "make_plan": "faultline.harness.planning",
    "run_simulated": "faultline.harness.run",
    "RunRecord": "faultline.harness.run_record",
    "Anomaly": "faultline.harness.sensitivity",
    "Answer": "faultline.harness.sensitivity",
    "Insertion": "faultline.harness.sensitivity",
    "HostedStore": "faultline.harness.system",
    "PlantedBug": "faultline.harness.system",
    "NodeSystem": "faultline.harness.system",
    "OptionDescription": "faultline.harness.system",
    "PortClient": "faultline.harness.system",
    "ServesByOption": "faultline.harness.system",
    "StoreClient": "faultline.harness.system",
    "StorePlace": "faultline.harness.system",
    "CheckResult": "faultline.harness.verdict",
    "Finding": "faultline.harness.verdict",
    "Verdict": "faultline.harness.verdict",
    "Checker": "faultline.harness.workload",
    "Workload": "faultline.harness.workload",
    "Node": "faultline.harness.world.ports",
    "NodeId": "faultline.harness.world.ports",
    "NodeStatus": "faultline.harness.world.ports",
    "Ports": "faultline.harness.world.ports",
    "Package": "faultline.nemesis",
    "Recipe": "faultline.nemesis",
    "StandardNemesis": "faultline.nemesis",
    "resolve": "faultline.registry",
    "ForeignAnswer": "faultline.systems_under_test.stores.client",
    "MemberClient": "faultline.systems_under_test.stores.client",
    "is_quiet": "faultline.systems_under_test.stores.client",
    "RealStore": "faultline.systems_under_test.stores.store",
}

__getattr__, __dir__ = lazily(__name__, _MODULES)
