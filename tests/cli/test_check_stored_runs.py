"""`faultline check` on runs of Faultline's own: judged again by the checkers of their workload, without a model."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import msgspec
import pytest

from faultline.cli.serving import serving
from faultline.cli.single_run import carry_out, replay_line
from faultline.harness.history import History
from faultline.harness.judge import judge
from faultline.harness.operation import Operation
from faultline.harness.outcome import ok
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run_record import RunRecord
from faultline.harness.store import open_history, prepare_run, read_run, read_run_file, write_judgement
from faultline.harness.stored_record import recovered
from faultline.harness.verdict import exit_code
from faultline.registry import load_system, load_workload, resolve, systems, workloads
from faultline.reports.run_page import run_values

WORKLOADS = tuple(sorted(workloads()))
_FOREIGN = ("watches", "key-watches", "locks")
_OF_STORES = ("queue",)
"""Workloads that only real stores serve."""


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """The folder of a short simulated run of each workload, made when it is first asked for."""
    store = tmp_path_factory.mktemp("stored")
    made: dict[str, Path] = {}

    def folder_of(workload: str) -> Path:
        if workload not in made:
            made[workload] = run_of_store(store, workload) if workload in _OF_STORES else simulated(store, workload)
        return made[workload]

    return folder_of


def simulated(store: Path, workload: str) -> Path:
    """The folder of a short run on the first of Faultline's own systems that serves `workload`."""
    system, *options = serving(load_workload(workload), [load_system(name) for name in systems()])[0].split(" ")
    settings = dict(option.split("=", 1) for option in options)
    request = RunRequest(system=system, workload=workload, options=settings, operations=40, seed=2)
    return carry_out(request, store, shrinks=False).folder


def run_of_store(store: Path, workload: str) -> Path:
    """The folder of a run of a real store, whose answers are made up: all that is put in comes out."""
    parts = resolve(RunRequest(system="rabbitmq", workload=workload, world="hosts"))
    plan = make_plan(RunRequest(system="rabbitmq", workload=workload, faults=(), world="hosts"), parts)
    folder = store / workload
    prepare_run(folder, workload, plan, "hosts", "namespaces:3")
    with open_history(folder) as sink:
        history = History(sink)
        for number in range(1, 6):
            put = history.invoke(Operation(0, "enqueue", "q", number), number * 1_000, 0, "athens")
            take = history.invoke(Operation(1, "dequeue", "q"), number * 1_000 + 1, 1, "athens")
            history.complete(put, ok(None), number * 1_000 + 200)
            history.complete(take, ok(number), number * 1_000 + 300)
    record = RunRecord(plan=plan, world="hosts", history=history)
    write_judgement(folder, judge(record, parts, run_id=workload, replay=replay_line(folder)))
    return folder


@pytest.fixture
def own(stored, tmp_path):
    """A copy of a stored run, to be changed."""

    def copy_of(workload: str) -> Path:
        return Path(shutil.copytree(stored(workload), tmp_path / "own"))

    return copy_of


def judgement_in(folder: Path):
    judgement = read_run(folder).judgement
    assert judgement is not None
    return judgement


@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_command_that_a_report_offers_judges_the_run_again_as_it_was_judged(workload, stored, faultline):
    judged = judgement_in(stored(workload))
    program, *offered = run_values(recovered(stored(workload)).record, judged)["recheck"].split(" ")
    answer = faultline(*offered, "--json")
    told = json.loads(answer.out)
    assert (program, answer.code) == ("faultline", exit_code(judged.verdict))
    assert (told["verdict"], told["sentence"]) == (judged.verdict.value, judged.sentence)
    assert [check["checker"] for check in told["checks"]] == [check.checker for check in judged.checks]
    assert told["checks"] == json.loads(msgspec.json.encode(judged.checks))


@pytest.mark.parametrize("workload", _FOREIGN)
def test_the_history_of_a_run_is_judged_as_its_folder_is(workload, stored, faultline):
    folder = stored(workload)
    of_folder, of_file = faultline("check", str(folder)), faultline("check", str(folder / "history.jsonl"))
    assert of_folder.code == of_file.code == exit_code(judgement_in(folder).verdict)
    assert of_folder.out.removeprefix(str(folder)) == of_file.out.removeprefix(str(folder / "history.jsonl"))


def test_it_is_said_which_checkers_judged_and_what_was_taken_from_the_verdict(stored, faultline):
    first, *rest = faultline("check", str(stored("watches"))).out.splitlines()
    assert first.startswith(f"{stored('watches')}: pass: No violation: ")
    assert (
        rest[0]
        == "  Judged by the checkers of its workload watches: watches, stats, availability, vacuity, invariants."
    )
    assert "Taken from verdict.json: breaches of invariants (0), errors of the harness (0)" in rest[1]


def test_of_several_histories_each_has_one_line(stored, faultline):
    answer = faultline("check", str(stored("watches")), str(stored("locks")))
    assert len(answer.out.splitlines()) == 2


def test_a_violation_that_only_the_workload_knows_is_found_again(own, faultline):
    folder = own("watches")
    lines = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    told = next(
        line for line in lines if line["f"] == "drain" and line["type"] == "ok" and len(line["value"]["items"]) > 2
    )
    told["value"]["items"].reverse()
    (folder / "history.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    answer = faultline("check", str(folder))
    assert (answer.code, answer.out.split(": ")[1]) == (1, "violation")
    assert "it judged another history" in answer.out
    assert "Left out: availability, invariants" in answer.out


def test_a_breach_that_the_run_reported_stays_one(own, faultline):
    folder = own("locks")
    judged = json.loads((folder / "verdict.json").read_text())
    breach = {"checker": "invariants", "anomaly": "LDR-I1", "sentence": "Two leaders.", "time_us": 7, "node": "athens"}
    judged["checks"][-1] |= {"verdict": "violation", "findings": [breach]}
    judged |= {"verdict": "violation", "findings": [breach]}
    (folder / "verdict.json").write_text(json.dumps(judged))
    answer = faultline("check", str(folder), "--json")
    told = json.loads(answer.out)
    assert (answer.code, told["verdict"], told["findings"][0]["anomaly"]) == (1, "violation", "LDR-I1")
    assert "breaches of invariants (1)" in " ".join(told["notes"])


def test_a_violation_that_the_checkers_deny_now_is_a_harness_error_that_names_both(own, faultline):
    folder = own("watches")
    judged = json.loads((folder / "verdict.json").read_text())
    judged["checks"][0] |= {"verdict": "violation", "sentence": "An event was lost."}
    changed(folder / "verdict.json", verdict="violation", checks=judged["checks"])
    answer = faultline("check", str(folder))
    assert answer.code == 4
    assert "verdict.json says violation and watches now: pass" in answer.out
    assert "An event was lost." in answer.out


def test_a_violation_that_is_not_decided_now_stays_one(own, faultline):
    folder = own("register")
    judged = json.loads((folder / "verdict.json").read_text())
    judged["checks"][0] |= {"verdict": "violation", "sentence": "A read was stale."}
    write_many_at_once(folder)
    history = read_run(folder).history().digest()
    (folder / "verdict.json").write_text(json.dumps(judged | {"verdict": "violation", "history_sha256": history}))
    answer = faultline("check", str(folder), "--option", "steps-max=3", "--json")
    told = json.loads(answer.out)
    assert (answer.code, told["verdict"], told["sentence"]) == (1, "violation", "A read was stale.")


def test_a_check_that_was_due_and_did_not_run_is_unknown_by_its_name(own, faultline):
    folder = own("watches")
    changed(folder / "verdict.json", checks_due=["watches", "ledger"])
    answer = faultline("check", str(folder), "--json")
    unknown = [check for check in json.loads(answer.out)["checks"] if check["verdict"] == "unknown"]
    assert (answer.code, [check["checker"] for check in unknown]) == (3, ["ledger"])


def test_a_run_that_was_ended_before_anything_was_recorded_is_unknown(own, faultline):
    folder = own("watches")
    (folder / "history.jsonl").unlink()
    answer = faultline("check", str(folder), "--json")
    told = json.loads(answer.out)
    assert (answer.code, {check["verdict"] for check in told["checks"]}) == (3, {"unknown"})


def test_a_large_history_is_no_pass_without_the_checks_that_cannot_be_split(own, faultline, monkeypatch):
    monkeypatch.setattr("faultline.cli.own_runs.LARGE_BYTES", 1_000)
    monkeypatch.setattr("faultline.checkers.files.LARGE_BYTES", 1_000)
    folder = own("register")
    told = json.loads(faultline("check", str(folder), "--json").out)
    assert {check["checker"]: check["verdict"] for check in told["checks"]}["invariants"] == "pass"
    breach = {"checker": "invariants", "anomaly": "LDR-I1", "sentence": "Two leaders."}
    judged = json.loads((folder / "verdict.json").read_text())
    judged["checks"][-1] |= {"verdict": "violation", "findings": [breach]}
    changed(folder / "verdict.json", verdict="violation", checks=judged["checks"])
    assert faultline("check", str(folder)).code == 1
    (folder / "verdict.json").unlink()
    assert faultline("check", str(folder)).code == 3


def test_an_error_of_the_harness_stays_one(own, faultline):
    folder = own("locks")
    judged = json.loads((folder / "verdict.json").read_text())
    judged |= {"verdict": "harness-error", "errors": ["Healing failed: no."]}
    (folder / "verdict.json").write_text(json.dumps(judged))
    answer = faultline("check", str(folder))
    assert (answer.code, answer.out.split(": ")[1]) == (4, "harness-error")


def test_another_verdict_than_the_stored_one_is_told(own, faultline):
    folder = own("locks")
    judged = json.loads((folder / "verdict.json").read_text())
    (folder / "verdict.json").write_text(json.dumps(judged | {"verdict": "unknown"}))
    assert "verdict.json says unknown" in faultline("check", str(folder)).out


NO_VERDICT = {
    "absent": lambda path: path.unlink(),
    "torn": lambda path: path.write_bytes(path.read_bytes()[:100]),
    "of another history": lambda path: changed(path, history_sha256="0" * 64),
    "of another plan": lambda path: changed(path, plan_sha256="0" * 64),
}


def changed(path: Path, **changes) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize("verdict", NO_VERDICT)
def test_without_its_verdict_a_run_is_unknown_check_by_check_and_never_a_pass(verdict, own, faultline):
    folder = own("watches")
    NO_VERDICT[verdict](folder / "verdict.json")
    answer = faultline("check", str(folder), "--json")
    told = json.loads(answer.out)
    verdicts = {check["checker"]: check["verdict"] for check in told["checks"]}
    assert (answer.code, told["verdict"]) == (3, "unknown")
    assert verdicts == {
        **dict.fromkeys(("watches", "stats", "vacuity"), "pass"),
        **dict.fromkeys(("availability", "invariants"), "unknown"),
    }
    assert any(note.startswith("Left out: availability, invariants") for note in told["notes"])


@pytest.mark.parametrize("damage", [None, "{"])
def test_without_a_plan_a_run_is_judged_like_any_history(damage, own, faultline):
    register = own("register")
    (register / "run.json").unlink()
    if damage is not None:
        (register / "run.json").write_text(damage)
    answer = faultline("check", str(register), "--json")
    told = json.loads(answer.out)
    # Without a plan its verdict says what else was judged; a plan that cannot be read may have demanded more.
    assert (answer.code, told["model"], told["workload"]) == (0 if damage is None else 3, "cas-register", "")
    assert {check["checker"] for check in told["checks"]} >= {"linearizability", "invariants"}
    shutil.rmtree(register)
    watches = own("watches")
    (watches / "run.json").unlink()
    refused = faultline("check", str(watches))
    assert refused.code == 2
    assert "Name a model with --model" in refused.err


def test_a_model_that_is_named_is_asked_instead(stored, faultline):
    told = json.loads(faultline("check", str(stored("register")), "--model", "cas-register", "--json").out)
    assert (told["model"], told["workload"], told["checker"]) == ("cas-register", "", "linearizability")


def test_options_of_models_are_refused_by_name(stored, faultline):
    refused = faultline("check", str(stored("bank")), "--option", "total=100")
    assert refused.code == 2
    assert "the checkers of the workload bank have no option `total`" in refused.err
    assert "--model" in refused.err


def write_many_at_once(folder: Path) -> None:
    """Give the run in `folder` sixteen writes of one key that overlap: there are many orders, and little to go by."""
    history = History()
    rows = [history.invoke(Operation(n, "write", "k", n % 2), 10 + n, n, "athens") for n in range(16)]
    for row in rows:
        history.complete(row, ok(None), 100 + row)
    (folder / "history.jsonl").write_bytes(history.to_jsonl())
    (folder / "verdict.json").unlink()


def test_the_budget_of_a_search_is_one_that_can_be_set(own, faultline):
    folder = own("register")
    write_many_at_once(folder)
    told = json.loads(faultline("check", str(folder), "--option", "steps-max=3", "--json").out)
    assert (told["checks"][0]["checker"], told["checks"][0]["verdict"]) == ("linearizability", "unknown")
    told = json.loads(faultline("check", str(folder), "--option", "steps-max=1000", "--json").out)
    assert told["checks"][0]["verdict"] == "pass"


@pytest.mark.parametrize("value", ["many", "0", "-3"])
def test_a_budget_that_is_no_number_is_refused(value, stored, faultline):
    refused = faultline("check", str(stored("register")), "--option", f"steps-max={value}")
    assert (refused.code, "steps_max" in refused.err) == (2, True)


def test_a_time_limit_that_no_checker_of_the_workload_takes_is_told(stored, faultline):
    assert "--timeout has no effect" in faultline("check", str(stored("watches")), "--timeout", "5").out
    assert "--timeout has no effect" not in faultline("check", str(stored("register")), "--timeout", "5").out


CODE = """
from faultline.workloads.locks import Locks

class Ledger(Locks):
    name = "ledger"
"""


@pytest.fixture
def plugged_in(tmp_path, monkeypatch):
    """A distribution `slate 1.0` that provides the workload `ledger`; the folder it is in."""
    site = tmp_path / "site"
    info = site / "slate-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "slate_ledger.py").write_text(CODE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: slate\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[faultline.workloads]\nledger = slate_ledger:Ledger\n")
    monkeypatch.syspath_prepend(site)
    monkeypatch.delitem(sys.modules, "slate_ledger", raising=False)
    return site


def test_a_workload_whose_package_is_gone_is_named_with_what_to_install(plugged_in, tmp_path, faultline, monkeypatch):
    request = RunRequest(system="coordination-service", workload="ledger", operations=30)
    folder = carry_out(request, tmp_path / "store", shrinks=False).folder
    assert faultline("check", str(folder)).code == 0
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(plugged_in)])
    monkeypatch.delitem(sys.modules, "slate_ledger", raising=False)
    refused = faultline("check", str(folder))
    assert refused.code == 2
    assert "the workload ledger, which came with slate 1.0 and is not installed" in refused.err
    assert "pip install slate" in refused.err and "--model" in refused.err
    assert faultline("check", str(folder), "--model", "leased-lock").code == 0


def test_a_system_that_is_gone_is_not_needed(own, faultline):
    folder = own("locks")
    file = json.loads((folder / "run.json").read_text())
    file["plan"]["system"] = "no-longer-there"
    (folder / "run.json").write_text(json.dumps(file))
    changed(folder / "verdict.json", plan_sha256=read_run_file(folder).plan.digest())
    assert faultline("check", str(folder)).code == 0
