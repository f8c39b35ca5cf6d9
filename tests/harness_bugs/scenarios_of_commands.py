"""Commands whose exit code is known, and what the supervisor makes of what its worker tells."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
from known_answers import dense_history, faultline, sound_history, the_run, verdict_in

from faultline.cli import main as main_module
from faultline.cli import sealed_outcome, supervisor
from faultline.cli.sealed_outcome import Sealed, announce, exit_code_of, opened_messages, sealed_message
from faultline.cli.supervision import Supervisor
from faultline.cli.worker import fork_worker
from faultline.harness.errors import HarnessError, Interrupted, UsageError
from faultline.harness.judgement import Judgement
from faultline.harness.verdict import Finding, Verdict

__all__ = [
    "a_check_of_many_files_ends_with_the_worst",
    "a_run_folder_that_lacks_something_is_no_pass",
    "a_verdict_that_cannot_be_written_is_no_pass",
    "an_ending_has_the_code_of_what_it_was",
    "only_a_sealed_outcome_makes_an_exit_code",
    "the_supervisor_believes_nothing_but_what_was_sealed",
    "what_does_not_repeat_is_told",
]


def only_a_sealed_outcome_makes_an_exit_code(_folder: Path) -> None:
    """The records of a command and the code that they make; and lines that are torn or were changed."""
    ran = {"checks_due": ("a", "b"), "checks_ran": ("a", "b")}
    cases = [
        (0, [Sealed(verdict="pass", ended=True, **ran)]),
        (1, [Sealed(verdict="violation", **ran), Sealed(verdict="pass", ended=True, **ran)]),
        (1, [Sealed(verdict="violation", **ran), Sealed(ended=True, code=4)]),
        (1, [Sealed(verdict="violation", ended=True, **ran)]),
        (3, [Sealed(verdict="unknown", ended=True, **ran)]),
        (3, [Sealed(verdict="vacuous", ended=True, **ran)]),
        (4, [Sealed(verdict="harness-error", ended=True, **ran)]),
        (4, [Sealed(verdict="pass", **ran)]),
        (4, []),
        (3, [Sealed(verdict="pass", ended=True, checks_due=("a", "b"), checks_ran=("a",))]),
        (3, [Sealed(verdict="pass", ended=True)]),
        (4, [Sealed(verdict="splendid", ended=True, **ran)]),
        (4, [Sealed(ended=True, code=77)]),
        (2, [Sealed(ended=True, code=2)]),
        (130, [Sealed(ended=True, code=130)]),
    ]
    for code, records in cases:
        assert exit_code_of(records) == code, records
    assert exit_code_of([Sealed(verdict="pass", **ran)], signal.SIGTERM) == 143
    assert exit_code_of([Sealed(verdict="violation", **ran)], signal.SIGTERM) == 1
    whole, next_one = sealed_message({"n": 1}), sealed_message({"n": 2})
    assert opened_messages(whole + next_one) == ([{"n": 1}, {"n": 2}], b"")
    assert opened_messages(whole + next_one[:-3]) == ([{"n": 1}], next_one[:-3])
    changed = whole.replace(b"\x01\x00\x00\x00", b"\x07\x00\x00\x00")
    assert changed != whole
    assert opened_messages(changed + next_one) == ([{"n": 2}], b"")


def an_ending_has_the_code_of_what_it_was(_folder: Path) -> None:
    """Each exception or value of a verb leads to its exit code of the table."""
    cases: list[tuple[Any, int]] = [
        (UsageError("u", "n"), 2),
        (HarnessError("h", "n"), 4),
        (Interrupted("i"), 130),
        (KeyboardInterrupt(), 130),
        (SystemExit(0), 4),
        (SystemExit(1), 4),
        (ZeroDivisionError("z"), 4),
        (RecursionError("r"), 4),
        (Sealed(verdict="pass", checks_due=("a",), checks_ran=("a",)), 0),
        (Sealed(verdict="violation"), 1),
        (3, 3),
        (None, 0),
    ]
    for returned, code in cases:
        effect = {"side_effect": returned} if isinstance(returned, BaseException) else {"return_value": returned}
        with mock.patch.object(main_module, "_performed", **effect):
            told = faultline("list")
            assert told[0] == code, (returned, told)
    assert faultline("run", "--system", "no-such-system")[0] == 2
    assert faultline("no-such-verb")[0] == 2


def a_check_of_many_files_ends_with_the_worst(folder: Path) -> None:
    """Files that pass, violate, hold nothing and cannot be read, in both orders; and a budget that does not suffice."""
    sound, stale = sound_history(), sound_history()
    stale.result[4] = 9
    files = {"pass": sound.to_jsonl(), "violates": stale.to_jsonl(), "empty": b"", "unreadable": b"{nonsense}\n{}\n"}
    files["undecided"] = dense_history().to_jsonl()
    for name, data in files.items():
        (folder / f"{name}.jsonl").write_bytes(data)
    cases = [
        (("pass", "violates"), 1),
        (("pass", "empty"), 3),
        (("pass", "unreadable"), 2),
        (("violates", "unreadable"), 1),
        (("empty", "unreadable"), 2),
        (("empty", "violates"), 1),
        (("pass", "undecided"), 3),
        (("undecided", "violates"), 1),
        (("pass", "pass"), 0),
    ]
    few = ("--format", "faultline", "--model", "cas-register", "--option", "steps_max=5")
    for names, code in cases:
        for order in (names, names[::-1]):
            told = faultline("check", *few, *(folder / f"{name}.jsonl" for name in order))
            assert told[0] == code, (order, told)
    (folder / "none").mkdir()
    assert faultline("check", folder / "none")[0] == 3


def what_does_not_repeat_is_told(folder: Path) -> None:
    """A stored run whose history, or whose verdict, is not what comes of its plan; and one whose verdict is damaged."""
    store = folder / "store"
    assert faultline("run", "--seed", 7, "--operations", 40, "--output", store)[0] == 0
    run = the_run(store)
    history, verdict = (run / "history.jsonl").read_bytes(), (run / "verdict.json").read_text()
    (run / "history.jsonl").write_bytes(b"".join(history.splitlines(keepends=True)[:-1]))
    assert faultline("replay", run)[0] == 4
    assert "another history" in faultline("check", run)[1]
    (run / "history.jsonl").write_bytes(history)
    assert faultline("replay", run)[0] == 0
    (run / "verdict.json").write_text(verdict.replace('"signature": ""', '"signature": "linearizability/odd"'))
    assert faultline("replay", run)[0] == 4
    (run / "verdict.json").write_text(verdict.replace('"verdict": "pass"', '"verdict": "violation"', 1))
    assert faultline("replay", run)[0] == 4
    (run / "verdict.json").write_text(verdict[:200])
    assert faultline("replay", run)[0] == 2
    (run / "run.json").unlink()
    assert faultline("replay", run)[0] == 2


def a_run_folder_that_lacks_something_is_no_pass(folder: Path) -> None:
    """Checked without its verdict, its history or its plan; with the verdict alone; and with one that is denied."""
    store = folder / "store"
    assert faultline("run", "--seed", 7, "--operations", 40, "--output", store)[0] == 0
    run = the_run(store)
    files = {name: (run / name).read_bytes() for name in ("run.json", "history.jsonl", "verdict.json")}
    denied = _violating(files["verdict.json"])
    cases: list[tuple[int, dict[str, bytes]]] = [
        (0, {}),
        (3, {"verdict.json": b""}),
        (3, {"verdict.json": files["verdict.json"][:300]}),
        (3, {"history.jsonl": b""}),
        (3, {"history.jsonl": b"", "verdict.json": b""}),
        (1, {"run.json": b"", "history.jsonl": b"", "verdict.json": denied}),
        (0, {"run.json": b"", "history.jsonl": b""}),
        (4, {"verdict.json": denied}),
    ]
    for code, changes in cases:
        for name, data in (files | changes).items():
            (run / name).unlink(missing_ok=True)
            if data:
                (run / name).write_bytes(data)
        told = faultline("check", run)
        assert told[0] == code, (code, list(changes), told)


def _violating(verdict: bytes) -> bytes:
    """The judgement with one check that found a violation, which is then the verdict."""
    told = msgspec.json.decode(verdict, type=Judgement)
    finding = Finding(checker="linearizability", anomaly="odd", sentence="It is odd.")
    told.checks[0] = msgspec.structs.replace(told.checks[0], verdict=Verdict.VIOLATION, findings=(finding,))
    return msgspec.json.encode(msgspec.structs.replace(told, verdict=Verdict.VIOLATION, findings=[finding]))


def a_verdict_that_cannot_be_written_is_no_pass(folder: Path) -> None:
    """A pass that is not kept is a harness error; a violation stays one; a run that is interrupted is no pass."""
    from faultline.cli import single_run

    full = mock.patch.object(single_run, "write_judgement", side_effect=OSError(28, "No space left on device"))
    short = ("--seed", 7, "--operations", 40, "--output")
    with full:
        code, told = faultline("run", *short, folder / "a")
        assert code == 4 and "The verdict is not kept" in told
        assert (
            faultline("run", "--planted-bug", "stale-read", "--seed", 7, "--no-shrink", "--output", folder / "b")[0]
            == 1
        )
    with mock.patch.object(single_run, "run_simulated", side_effect=_interrupted(single_run.run_simulated)):
        assert faultline("run", *short, folder / "c")[0] == 130
    assert verdict_in(the_run(folder / "c"))["interrupted"] is True


def _interrupted(run: Callable[..., Any]) -> Callable[..., Any]:
    def interrupted(*arguments: Any, **settings: Any) -> Any:
        record = run(*arguments, **settings)
        record.interrupted = True
        return record

    return interrupted


def the_supervisor_believes_nothing_but_what_was_sealed(_folder: Path) -> None:
    """Workers that die in different ways, before and after they have told something."""
    passed = Sealed(verdict="pass", checks_due=("a",), checks_ran=("a",))
    cases: list[tuple[int, Callable[[], None]]] = [
        (0, lambda: announce(passed.replaced(ended=True))),
        (0, lambda: _tell_in_two_pieces(passed.replaced(ended=True))),
        (4, lambda: announce(passed)),
        (4, lambda: os._exit(0)),
        (4, lambda: os.kill(os.getpid(), signal.SIGSEGV)),
        (1, lambda: (announce(Sealed(verdict="violation")), os._exit(0))[0]),
        (1, lambda: (announce(Sealed(verdict="violation")), os.kill(os.getpid(), signal.SIGKILL))[0]),
        (143, lambda: _be_told(signal.SIGTERM)),
        (130, lambda: _be_told(signal.SIGINT)),
    ]
    for code, work in cases:
        assert _supervised(work) == code, code


def _tell_in_two_pieces(record: Sealed) -> None:
    """Write half of a message, and the rest once the supervisor has read that and waits for more."""
    data = sealed_message({"sealed": vars(record)})
    assert sealed_outcome._pipes is not None
    telling = sealed_outcome._pipes[0]
    os.write(telling, data[:20])
    while _waiting_in(telling) or not _sleeps(os.getppid()):
        os.sched_yield()
    os.write(telling, data[20:])


def _waiting_in(pipe: int) -> int:
    """Return the number of bytes in `pipe` that have not been read."""
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0]


def _sleeps(process: int) -> bool:
    return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].startswith("S")


def _be_told(number: signal.Signals) -> None:
    """Let the supervisor get a signal, and wait for the one that it passes on."""
    # Blocked until it is waited for: `signal.pause` would miss one that comes just before it.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    os.kill(os.getppid(), number)
    signal.sigwait([signal.SIGINT])
    announce(Sealed(ended=True, code=130))


def _supervised(work: Callable[[], None]) -> int:
    """The exit code that the supervisor makes of `work`, in a process of its own."""
    process = os.fork()
    if process == 0:
        status = 99
        try:
            signal.alarm(20)
            sealed_outcome.begin()
            noted: list[int] = []
            wake = supervisor._note_signals(noted)
            status = Supervisor(fork_worker(work), noted, wake).supervise()
        except SystemExit:
            # The worker, which ends as a program does.
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
