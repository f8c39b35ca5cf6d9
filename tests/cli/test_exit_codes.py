"""The command line is a contract: every exit code of the design, and one clear sentence for every bad input."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from faultline.cli.main import perform
from faultline.harness.errors import Interrupted

CALM = ("--system", "consistent-core", "--faults", "none", "--operations", "40")


def folder_of(begin: str) -> Path:
    """The folder of the only run whose name begins so; its digest follows."""
    (folder,) = Path("faultline-results/runs").glob(f"{begin}.*")
    return folder


def test_a_clean_run_ends_with_0_and_says_what_held(faultline):
    ended = faultline("run", *CALM, "--seed", "1")
    assert ended.code == 0
    assert "No violation" in ended.out
    assert (folder_of("consistent-core.register.calm.1") / "verdict.json").is_file()


def test_a_clean_run_with_a_planted_bug_names_the_campaign_that_catches_it(faultline):
    ended = faultline("run", *CALM, "--seed", "1", "--planted-bug", "commit-old-generation")
    assert ended.code == 0
    (step,) = (line for line in ended.out.splitlines() if "One clean seed" in line)
    assert step.endswith(
        "faultline campaign --plan leadership --system consistent-core --planted-bug commit-old-generation"
    )
    assert "One clean seed" not in faultline("run", *CALM, "--seed", "1").out


def test_a_violation_ends_with_1_and_prints_how_to_see_it_again(faultline, violating_seed):
    ended = faultline(
        "run", "--system", "consistent-core", "--planted-bug", "stale-read", "--seed", str(violating_seed)
    )
    assert ended.code == 1
    replay = next(line for line in ended.out.splitlines() if "faultline replay " in line)
    folder = replay.split("faultline replay ")[1].strip()
    again = faultline("replay", folder)
    assert again.code == 1
    assert "the same history byte for byte" in again.out


def test_a_violation_is_shrunk_to_a_minimal_run_that_replays(faultline, violating_seed):
    ended = faultline("run", "--planted-bug", "stale-read", "--seed", str(violating_seed))
    folder = folder_of(f"consistent-core+stale-read.register.leadership.{violating_seed}")
    detail = json.loads((folder / "verdict.json").read_text())["detail"]["minimal"]
    assert detail["complete"]
    assert 2 <= detail["operations"] <= 6 < detail["operations_before"]
    assert "Minimal:" in ended.out and detail["replay"] in ended.out
    again = faultline("replay", str(folder / "minimal"))
    assert again.code == 1
    assert "the same history byte for byte" in again.out
    assert (folder / "minimal" / "report.html").is_file()


def test_shrinking_can_be_left_out_and_done_later(faultline, violating_seed):
    faultline("run", "--planted-bug", "stale-read", "--seed", str(violating_seed), "--no-shrink")
    folder = folder_of(f"consistent-core+stale-read.register.leadership.{violating_seed}")
    assert not (folder / "minimal").exists()
    ended = faultline("shrink", str(folder))
    assert ended.code == 1
    assert "still show it" in ended.out
    assert (folder / "minimal" / "run.json").is_file()


def test_the_causes_of_a_violation_are_told_of_its_minimal_run_within_the_runs_that_were_asked_for(
    faultline, violating_seed
):
    faultline("run", "--planted-bug", "stale-read", "--seed", str(violating_seed), "--no-shrink")
    folder = folder_of(f"consistent-core+stale-read.register.leadership.{violating_seed}")
    unshrunk = faultline("causes", str(folder))
    assert unshrunk.code == 2
    assert f"faultline shrink {folder}" in unshrunk.err
    faultline("shrink", str(folder))
    ended = faultline("causes", str(folder), "--runs", "12")
    assert ended.code == 1
    assert "1 of 1 fault" in ended.out and "Not tried" in ended.out
    of_minimal = faultline("causes", str(folder / "minimal"), "--runs", "12", "--json")
    assert json.loads(of_minimal.out)["runs"] == 12


def test_a_run_without_a_violation_has_no_causes(faultline):
    faultline("run", *CALM, "--seed", "4")
    ended = faultline("causes", str(folder_of("consistent-core.register.calm.4")))
    assert ended.code == 2
    assert "not a violation of the simulated world" in ended.err


def test_a_run_without_a_violation_cannot_be_shrunk(faultline):
    faultline("run", *CALM, "--seed", "4")
    ended = faultline("shrink", str(folder_of("consistent-core.register.calm.4")))
    assert ended.code == 2
    assert "nothing to shrink" in ended.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("run", "--system", "consistent-cor"), "Did you mean consistent-core?"),
        (("run", "--workload", "registr"), "Did you mean register?"),
        (("run", "--faults", "leadershp"), "Did you mean leadership?"),
        (("run", "--planted-bug", "stale-raed"), "Did you mean stale-read?"),
        (("run", "--option", "read_mode=psychic"), "Choose one of"),
        (("run", "--option", "read_mode"), "--option NAME=VALUE"),
        (("run", "--option", "reed_mode=log"), "Did you mean read_mode?"),
        (("run", "--planted-bug", "wall-clock-lease", "--option", "read_mode=log"), "Leave read_mode out"),
        (("run", "--nodes", "0"), "Use --nodes 3 or 5"),
        (("run", "--duration", "-3"), "Give --duration in seconds"),
        (("run", "--seed", "-1"), "whole numbers from 0"),
        (("campaign", "--seeds", "9..3"), "3..9"),
        (("campaign", "--plan", "no-such-plan"), "no campaign plan"),
        (("check", "no-such-file.log", "--format", "jepsen-log"), "no-such-file.log"),
        (("replay", "nowhere"), "no run.json"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_ends_with_2_one_sentence_and_a_next_step(faultline, arguments, sentence):
    ended = faultline(*arguments)
    assert ended.code == 2
    assert sentence in ended.err
    assert "Traceback" not in ended.err
    assert ended.out == ""


@pytest.mark.parametrize(
    "arguments", [("run", "--no-such-flag"), ("run", "--seed", "seven"), ("list", "gremlins"), ("fly",)]
)
def test_unusable_flags_end_with_2(faultline, arguments):
    assert faultline(*arguments).code == 2


def test_a_run_whose_faults_met_no_operation_is_vacuous_and_ends_with_3(faultline):
    ended = faultline("run", "--faults", "kill", "--duration", "3", "--operations", "1", "--workers", "2")
    assert ended.code == 3, ended.out


def test_a_store_that_cannot_be_written_ends_with_4(faultline):
    Path("in-the-way").write_text("a file")
    ended = faultline("run", *CALM, "--output", "in-the-way/below")
    assert ended.code == 4
    assert "--output" in ended.err
    assert "Traceback" not in ended.err


def test_the_former_name_of_the_results_folder_still_works_and_says_so(faultline):
    ended = faultline("run", *CALM, "--store", "kept")
    assert ended.code == 0
    assert "--store is now called --output" in ended.err
    assert len(list(Path("kept/runs").iterdir())) == 1 and not Path("faultline-results").exists()
    assert faultline("run", *CALM, "--store", "kept", "--output", "other").code == 2
    assert "--store" not in faultline("run", "--help").out


def test_an_interrupted_run_is_checked_reported_and_ends_with_130(faultline, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("faultline.harness.fault_schedule.FaultSchedule.heal", interrupt)
    ended = faultline("run", *CALM)
    assert ended.code == 130
    folder = folder_of("consistent-core.register.calm.0")
    assert (folder / "verdict.json").is_file() and (folder / "report.html").is_file()
    assert (folder / "history.jsonl").read_bytes().count(b"\n") > 10
    assert re.match(r". Interrupted after \d+ operations\. ", ended.out)


def test_an_interrupt_anywhere_else_ends_with_130_and_one_sentence(faultline, monkeypatch):
    def interrupt(*_positional, **_named):
        raise KeyboardInterrupt

    monkeypatch.setattr("faultline.cli.single_run.run_simulated", interrupt)
    ended = faultline("run", *CALM)
    assert ended.code == 130
    assert "kept" in ended.err
    with pytest.raises(Interrupted):
        perform(["run", *CALM])


def test_a_replay_that_does_not_come_out_the_same_ends_with_4_and_says_so(faultline):
    faultline("run", *CALM, "--seed", "2")
    history = folder_of("consistent-core.register.calm.2") / "history.jsonl"
    history.write_bytes(history.read_bytes().replace(b'"ok"', b'"info"', 1))
    ended = faultline("replay", str(history.parent))
    assert ended.code == 4
    assert "NOT reproduced" in ended.out


def test_json_is_one_document_on_standard_output(faultline):
    ended = faultline("run", *CALM, "--seed", "3", "--json")
    document = json.loads(ended.out)
    assert document["verdict"] == "pass"
    assert document["seed"] == 3


@pytest.mark.parametrize("what", ["systems", "workloads", "faults", "checkers", "planted-bugs", "patterns"])
def test_every_listing_is_readable_and_machine_readable(faultline, what):
    plain = faultline("list", what)
    entries = json.loads(faultline("list", what, "--json").out)
    assert plain.code == 0
    assert len(entries) == len(re.findall(r"^\S", plain.out, re.MULTILINE)) > 0
    assert all(entry["name"] and entry["summary"] for entry in entries)


def test_real_stores_are_listed_with_where_they_run(faultline):
    assert "[on hosts only]" in next(line for line in faultline("list", "systems").out.splitlines() if "etcd " in line)
    runs = {entry["name"]: entry["runs"] for entry in json.loads(faultline("list", "systems", "--json").out)}
    assert (runs["etcd"], runs["consistent-core"]) == ("on hosts only", "in all worlds")


def test_all_thirty_patterns_are_listed(faultline):
    assert len(json.loads(faultline("list", "patterns", "--json").out)) == 30


def test_help_imports_nothing_heavy():
    script = (
        "import sys\n"
        "from faultline.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'pyspark', 'paramiko', 'pyarrow', 'numpy', 'jinja2', 'hypothesis', 'pytest', 'pandas'}\n"
        "found = sorted(heavy & set(sys.modules))\n"
        "sys.exit(f'imported {found}' if found else 0)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=240, check=False)
    assert ended.returncode == 0, ended.stderr


def test_the_module_is_the_same_command():
    ended = subprocess.run(
        [sys.executable, "-m", "faultline", "--version"], capture_output=True, text=True, timeout=240, check=True
    )
    assert ended.stdout.startswith("faultline, version ")


@pytest.mark.real
def test_a_real_run_never_takes_the_place_of_an_earlier_one(faultline):
    for _ in range(2):
        ended = faultline("run", "--world", "local", "--faults", "none", "--duration", "1", "--operations", "60")
        assert ended.code == 0, ended.err
    first, second = sorted(path.name for path in Path("faultline-results/runs").iterdir())
    assert re.fullmatch(r"consistent-core\.register\.calm\.0\.[0-9a-f]{8}\.local", first)
    assert second == f"{first}-2"


@pytest.mark.parametrize(
    ("arguments", "complaint", "next_step"),
    [
        (
            ("run", "--planted-bug", "naive-reset"),
            "consistent-core has no planted bug called 'naive-reset'",
            "list planted-bugs",
        ),
        (("run", "--option", "read_moed=log"), "consistent-core has no option called", "Did you mean read_mode"),
        (("run", "--workload", "watches"), "it has no function put, delete, ", "faultline list workloads"),
        (
            ("run", "--workload", "locks", "--option", "services=on", "--option", "lease_ttl_ms=700"),
            "consistent-core has no option services any more: the system coordination-service took it over",
            "Run `faultline run --system coordination-service --workload locks --faults leadership"
            " --option lease_ttl_ms=700 --nodes 3 --seed",
        ),
        (
            ("run", "--planted-bug", "stamp-ignored"),
            "consistent-core has no planted bug stamp-ignored any more: it is one of follower-reads",
            "Run `faultline run --system follower-reads --workload register",
        ),
        (("run", "--hosts", "ssh:nowhere.toml"), "nowhere.toml cannot be read", "[hosts.n1]"),
        (("campaign", "--plan", "nigthly"), "no campaign plan 'nigthly'", "faultline list plans"),
        (("campaign", "--plan", "leadershp"), "no campaign plan 'leadershp'", "Did you mean leadership"),
        (("evidence", "etcd-lying"), "no evidence called 'etcd-lying'", "Did you mean etcd-lying-fsync"),
    ],
)
def test_a_wrong_name_is_told_of_in_one_sentence_and_a_next_step(faultline, arguments, complaint, next_step):
    ended = faultline(*arguments)
    assert ended.code == 2
    assert complaint in ended.err
    assert next_step in ended.err
    assert len(ended.err) < 500


def test_a_planted_bug_is_listed_with_its_system_since_names_repeat(faultline):
    lines = faultline("list", "planted-bugs").out.splitlines()
    carriers = {line.split()[1] for line in lines if line.split()[0] == "ack-before-fsync"}
    assert {"consistent-core", "quorum-register"} <= carriers


def test_the_plans_that_are_shipped_are_listed_with_what_they_are_for(faultline):
    lines = faultline("list", "plans").out.splitlines()
    assert any(line.startswith("demo ") and "Four planted bugs" in line for line in lines)


def test_planted_bugs_are_listed_and_switched_on_by_their_former_name_too(faultline, violating_seed):
    assert faultline("list", "mutants").out == faultline("list", "planted-bugs").out
    ended = faultline("run", "--mutant", "stale-read", "--seed", str(violating_seed), "--no-shrink")  # a former name
    assert ended.code == 1
