"""Plug-ins of all five groups are found by entry points, used by name, and told of when they are broken."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest
from click.testing import CliRunner

from faultline import registry
from faultline.checkers.judges import judge as checker_of
from faultline.checkers.judges import models
from faultline.cli.main import cli
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.judge import judge
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.plugins import SYSTEMS_GROUP, load, plugged_in, provider_of
from faultline.harness.run import run_simulated
from faultline.harness.verdict import Verdict
from faultline.registry import (
    fault_marks,
    fault_sets,
    load_nemeses,
    load_packages,
    load_system,
    load_workload,
    nemesis_kinds,
    resolve,
    systems,
)

CODE = '''
from faultline.harness.verdict import CheckResult, Verdict
from faultline.nemesis import Package, Recipe, StandardNemesis, struck
from faultline.systems_under_test.reference.consistent_core.system import ConsistentCore
from faultline.workloads.register import Register

class Core(ConsistentCore):
    name = "my-core"

class Reads(Register):
    name = "my-register"

def doze():
    return StandardNemesis(
        kind="doze",
        capability="pause",
        summary="lets a process doze",
        mark="dozed",
        setting=struck,
        description="let {nodes} doze{remark}",
        complaint="awake: {missed}",
    )

DOZING = Package("dozing", "lets processes doze", (Recipe("doze", ("leader",)),))

def no_package():
    return "no package"

class Odd:
    """No odd values."""
    name = "odd"
    def check(self, history, run=None):
        odd = any(value % 2 for value in history.value if value)
        return CheckResult(checker="odd", verdict=Verdict.VIOLATION if odd else Verdict.PASS, sentence="Counted.")

def explodes():
    raise RuntimeError("boom")
'''

POINTS = """
[faultline.systems]
my-core = my_plug_in:Core
consistent-core = my_plug_in:explodes
explodes = my_plug_in:explodes
missing = my_plug_in:Missing

[faultline.workloads]
my-register = my_plug_in:Reads

[faultline.checkers]
odd = my_plug_in:Odd

[faultline.nemeses]
doze = my_plug_in:doze
broken-nemesis = no_such_module:Nemesis

[faultline.faults]
dozing = my_plug_in:DOZING
no-package = my_plug_in:no_package
"""


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution `my-plug-in 2.0` with an entry point in each group."""
    folder = tmp_path / "site"
    info = folder / "my_plug_in-2.0.dist-info"
    info.mkdir(parents=True)
    (folder / "my_plug_in.py").write_text(CODE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-plug-in\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "my_plug_in", raising=False)


def test_a_plugged_in_run_uses_system_workload_nemesis_and_fault_set_of_another_package() -> None:
    request = RunRequest(system="my-core", workload="my-register", faults=("dozing",), seed=3)
    parts = resolve(request)
    record = run_simulated(make_plan(request, parts), parts)
    assert (parts.system.name, parts.system_path) == ("my-core", "my_plug_in:Core")
    assert record.marks["dozed"] > 0
    assert judge(record, parts, run_id="x").verdict is Verdict.PASS


def test_a_plugged_in_checker_judges_a_history_by_its_name() -> None:
    assert checker_of("odd", History()).check(History()).verdict is Verdict.PASS
    assert "my_plug_in:Odd" in models()["odd"]


def test_what_ships_with_faultline_cannot_be_replaced() -> None:
    assert systems()["consistent-core"].startswith("faultline.")
    assert type(load_system("consistent-core")).__module__.startswith("faultline.")


def test_everything_is_listed_with_its_name_and_a_broken_one_hides_no_other() -> None:
    assert {"dozing", "leadership"} <= set(fault_sets())
    assert {"doze", "kill", "broken-nemesis"} <= set(nemesis_kinds())
    assert "dozed" in fault_marks()
    for what, shown in (
        ("systems", "my-core"),
        ("workloads", "my-register"),
        ("faults", "dozing"),
        ("checkers", "odd"),
    ):
        result = CliRunner().invoke(cli, ["list", what])
        assert result.exit_code == 0
        assert shown in result.stdout
    result = CliRunner().invoke(cli, ["list", "systems"])
    assert "[my_plug_in:Core]" in result.stdout
    assert "explodes" not in result.stdout
    assert "The system explodes" in result.stderr and "RuntimeError: boom" in result.stderr


def test_the_provider_is_told_with_its_version() -> None:
    assert provider_of(SYSTEMS_GROUP, "my-core") == "my-plug-in 2.0"
    assert provider_of(SYSTEMS_GROUP, "unknown") == ""
    assert plugged_in("faultline.nothing") == {}


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (lambda: load_system("explodes"), "RuntimeError: boom"),
        (lambda: load_system("missing"), "has no attribute 'Missing'"),
        (lambda: load_system("my-cor"), "Did you mean my-core"),
        (lambda: load_workload("my-registr"), "Did you mean my-register"),
        (lambda: load_packages(["dozin"]), "Did you mean dozing"),
        (lambda: load_packages(["no-package"]), "is a str, not a Package"),
        (lambda: load_nemeses(["broken-nemesis"]), "No module named 'no_such_module'"),
        (lambda: load_nemeses(["doz"]), "Did you mean doze"),
        (lambda: load("checker", "odd", "my_plug_in:Even"), "Reinstall or mend"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_cause(ask: Callable[[], object], told: str) -> None:
    with pytest.raises(UsageError) as raised:
        ask()
    assert told in str(raised.value)


def test_a_system_that_declares_its_planted_bugs_under_the_former_name_is_told_the_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Former:
        mutants: ClassVar[dict[str, object]] = {}

    monkeypatch.setattr(registry, "_called", lambda *_: Former())
    with pytest.raises(UsageError, match="declares `mutants`, which is called `planted_bugs` now"):
        load_system("consistent-core")
