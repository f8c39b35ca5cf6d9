"""The command ends with a true code after each end of its work: real processes, real signals, hostile plug-ins."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from real_commands import (
    PATIENCE_S,
    RUN,
    VIOLATING,
    Command,
    begun,
    closed_pipe,
    ended,
    files_of_at_most,
    is_dead,
    signal_again,
    until,
    worker_of,
)

pytestmark = pytest.mark.real


def verdict_in(folder: Path) -> dict[str, object]:
    (path,) = folder.glob("faultline-results/runs/*/verdict.json")
    found: dict[str, object] = json.loads(path.read_text())
    return found


def test_a_plug_in_that_behaves_passes(command: Command) -> None:
    code, out, _ = ended(command(*RUN))
    assert code == 0
    assert "No violation" in out


@pytest.mark.parametrize("deed", ["exit-0", "raise", "recurse"])
@pytest.mark.parametrize("place", ["client", "timer"])
def test_a_plug_in_that_fails_or_exits_in_the_run_never_passes(command: Command, place: str, deed: str) -> None:
    code, out, _ = ended(command(*RUN, hostile=f"{place}:{deed}"))
    assert code in (1, 4)  # a node that dies by itself is a violation of the system's own promise to go on
    assert place == "timer" or code == 4
    assert out


@pytest.mark.parametrize("deed", ["exit-0", "raise", "recurse"])
def test_a_checker_that_fails_or_exits_is_unknown_by_name(command: Command, deed: str) -> None:
    code, out, _ = ended(command(*RUN, hostile=f"checker:{deed}"))
    assert code == 3
    assert "The checker hostile itself failed" in out


@pytest.mark.parametrize("deed", ["exit-0", "raise", "recurse"])
def test_a_checker_that_fails_costs_no_violation_of_another(command: Command, violating_seed: int, deed: str) -> None:
    seed = ("--seed", str(violating_seed))
    assert ended(command(*RUN, *VIOLATING, *seed, hostile=f"checker:{deed}"))[0] == 1


@pytest.mark.parametrize("answer", ["none", "word", "object"])
def test_a_checker_that_answers_nonsense_is_unknown_and_costs_no_violation(
    command: Command, violating_seed: int, answer: str
) -> None:
    code, out, _ = ended(command(*RUN, hostile=f"answer:{answer}"))
    assert (code, "The checker hostile itself failed" in out) == (3, True)
    seed = ("--seed", str(violating_seed))
    assert ended(command(*RUN, *VIOLATING, *seed, hostile=f"answer:{answer}"))[0] == 1


@pytest.mark.parametrize("outcome", ["misspelt", "object", "half-character", "nothing"])
def test_an_outcome_that_is_none_is_the_clients_error_and_never_blamed_on_the_store(
    command: Command, outcome: str
) -> None:
    code, out, _ = ended(command(*RUN, hostile=f"outcome:{outcome}"))
    assert code == 4
    assert "The client of the system gave an outcome that cannot be recorded" in out


def test_a_workload_without_checkers_is_vacuous(command: Command) -> None:
    code, out, _ = ended(command(*RUN, hostile="no-checkers:"))
    assert code == 3
    assert "No check judged what the clients saw" in out


@pytest.mark.parametrize("deed", ["os-exit-0", "segfault", "kill"])
@pytest.mark.parametrize("place", ["client", "timer", "checker"])
def test_work_that_dies_without_a_word_is_a_harness_error(command: Command, place: str, deed: str) -> None:
    code, out, err = ended(command(*RUN, hostile=f"{place}:{deed}"))
    assert code == 4
    assert out == ""
    assert "says nothing about the system under test" in err


def test_a_run_that_never_ends_is_a_harness_error_that_says_where_it_stood(command: Command) -> None:
    code, _, err = ended(command(*RUN, hostile="client:loop"))
    assert code == 4
    assert "The simulated run did not end" in err


def test_a_checker_that_never_ends_is_unknown(command: Command) -> None:
    code, out, _ = ended(command(*RUN, hostile="checker:loop"))
    assert code == 3
    assert "had not answered after 1 s" in out


def test_work_that_no_signal_reaches_is_ended_by_the_supervisor(command: Command) -> None:
    code, _, err = ended(command(*RUN, hostile="client:stand-still"))
    assert code == 4
    assert "did not end within its time limit" in err


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=str
)
@pytest.mark.parametrize("to_group", [False, True])
def test_a_signal_ends_the_run_which_is_judged_as_far_as_it_came(
    command: Command, tmp_path: Path, number: int, code: int, to_group: bool
) -> None:
    process = command(*RUN, hostile="client:wait")
    begun(tmp_path)
    (os.killpg if to_group else os.kill)(process.pid, number)
    ended_with, out, _ = ended(process)
    assert ended_with == code
    assert "Interrupted after" in out
    assert verdict_in(tmp_path)["interrupted"]


def test_a_signal_to_the_worker_alone_means_the_same(command: Command, tmp_path: Path) -> None:
    process = command(*RUN, hostile="client:wait")
    begun(tmp_path)
    os.kill(worker_of(process), signal.SIGTERM)
    code, out, _ = ended(process)
    assert (code, "Interrupted after" in out) == (143, True)


def test_a_signal_to_every_process_at_once_counts_once(command: Command, tmp_path: Path) -> None:
    process = command(*RUN, hostile="client:wait")
    begun(tmp_path)
    for each in (process.pid, worker_of(process)):
        os.kill(each, signal.SIGTERM)
    code, out, _ = ended(process)
    assert (code, "Interrupted after" in out) == (143, True)


def test_a_second_signal_ends_everything_at_once(command: Command, tmp_path: Path) -> None:
    process = command(*RUN, hostile="client:stand-still")
    worker = worker_of(process)
    until(lambda: b"faultline" in Path(f"/proc/{worker}/cmdline").read_bytes(), "the worker never began")
    os.kill(process.pid, signal.SIGTERM)
    until(lambda: process.poll() is not None or signal_again(process), "it did not end")
    assert process.returncode == 143
    assert not Path(f"/proc/{worker}").exists()


def test_a_worker_does_not_outlive_its_supervisor(command: Command, tmp_path: Path) -> None:
    process = command(*RUN, hostile="client:wait")
    begun(tmp_path)
    worker = worker_of(process)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(PATIENCE_S)
    until(lambda: not Path(f"/proc/{worker}").exists() or is_dead(worker), "the worker lives on")


def test_a_signal_that_the_starter_of_the_command_ignored_stays_ignored(command: Command, tmp_path: Path) -> None:
    process = command(*RUN, hostile="client:wait", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    begun(tmp_path)
    os.kill(process.pid, signal.SIGHUP)
    os.kill(process.pid, signal.SIGTERM)
    assert ended(process)[0] == 143


# -- standard output ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [("list", "systems"), ("--help",), (*RUN, "--json"), RUN])
def test_a_reader_that_closes_the_pipe_changes_no_verdict(command: Command, arguments: tuple[str, ...]) -> None:
    assert ended(command(*arguments, stdout=closed_pipe()))[0] == 0


def test_a_violation_ends_with_1_even_where_its_output_cannot_be_written(command: Command, violating_seed: int) -> None:
    arguments = (*RUN, *VIOLATING, "--seed", str(violating_seed))
    assert ended(command(*arguments, stdout=closed_pipe()))[0] == 1
    with open("/dev/full", "w") as full:
        assert ended(command(*arguments, stdout=full))[0] == 1


def test_a_full_disk_behind_standard_output_is_a_harness_error(command: Command) -> None:
    with open("/dev/full", "w") as full:
        for arguments in (("list", "systems"), RUN):
            code, _, err = ended(command(*arguments, stdout=full))
            assert (code, "Standard output cannot be written" in err) == (4, True)


def test_a_closed_pipe_while_several_files_are_checked_is_no_pass(command: Command, tmp_path: Path) -> None:
    for seed in ("1", "2"):
        ended(command(*RUN, "--seed", seed))
    folders = [str(folder) for folder in (tmp_path / "faultline-results/runs").iterdir()]
    assert ended(command("check", *folders, stdout=closed_pipe()))[0] == 3
    assert ended(command("check", *folders))[0] == 0


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_without_the_characters_gets_them_escaped(command: Command, encoding: str) -> None:
    process = command(*RUN, hostile=f"nowhere:{encoding}", text=False)
    process.wait(PATIENCE_S)
    assert process.returncode == 0


# -- limits of the machine ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size_bytes", [0, 1_000, 8_000])
def test_a_limit_on_the_size_of_files_is_a_harness_error(command: Command, size_bytes: int) -> None:
    code, _, err = ended(command(*RUN, preexec_fn=files_of_at_most(size_bytes)))
    assert (code, "Cannot write to the store" in err) == (4, True)


def test_a_page_that_cannot_be_written_is_told_of_and_changes_no_verdict(command: Command) -> None:
    code, out, _ = ended(command(*RUN, preexec_fn=files_of_at_most(20_000)))
    assert (code, "Warning: The page of the run could not be written" in out) == (0, True)


def test_a_missing_library_for_pages_changes_no_verdict(command: Command, tmp_path: Path) -> None:
    (tmp_path / "jinja2.py").write_text("raise ImportError('no jinja2')")
    hidden = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path(__file__).parent)])}
    process = command("run", "--faults", "none", "--operations", "40", env=os.environ | hidden)
    code, out, _ = ended(process)
    assert (code, "Warning: The page of the run could not be written: ImportError" in out) == (0, True)


def test_a_history_that_cannot_be_written_costs_no_violation(
    command: Command, tmp_path: Path, violating_seed: int
) -> None:
    arguments = (*RUN, *VIOLATING, "--seed", str(violating_seed))
    assert ended(command(*arguments))[0] == 1
    (folder,) = (tmp_path / "faultline-results/runs").iterdir()
    sizes = {file.name: file.stat().st_size for file in folder.iterdir()}
    just_the_plan = sizes["run.json"] + 64  # the second run has a longer name
    assert just_the_plan < sizes["history.jsonl"]
    code, out, _ = ended(command(*arguments, preexec_fn=files_of_at_most(just_the_plan)))
    assert code == 1
    assert "Counterexample" in out


@pytest.mark.parametrize("descriptors", [10, 16, 24])
def test_a_limit_on_descriptors_never_makes_a_violation(command: Command, descriptors: int) -> None:
    import resource

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    assert ended(command(*RUN, preexec_fn=limited))[0] in (0, 4)
