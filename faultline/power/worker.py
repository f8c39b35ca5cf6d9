"""The process of one mutant: it imports the changed module, runs the campaign seed by seed, and tells of each run.

Each mutant has a process of its own, which never imported the unchanged module. It has limits of time and memory, so
that a mutant that never returns, or takes all memory, ends alone. The runs are those of the default campaign, planned
once with the unchanged program, so that nothing of a run depends on the mutant.
"""

from __future__ import annotations

import contextlib
import resource
import signal
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from types import FrameType

import msgspec

from faultline.campaign.matrix import CampaignPlan
from faultline.harness.deadline import Overdue
from faultline.harness.errors import UsageError
from faultline.harness.judge import judge
from faultline.harness.judgement import Judgement
from faultline.harness.plan import Plan
from faultline.harness.planning import make_plan
from faultline.harness.request import RunRequest
from faultline.harness.run import LIMIT_S, run_simulated
from faultline.harness.verdict import Finding, Verdict
from faultline.power.modules import SourceModule
from faultline.power.mutants import Mutant
from faultline.power.mutated import import_changed
from faultline.registry import resolve

__all__ = ["HANG", "INVARIANTS", "NODE_CRASH", "REFUSED", "Found", "Limits", "Ran", "Task", "request_of", "work"]

HANG = "hang"
REFUSED = "refused"
INVARIANTS = "invariants"
NODE_CRASH = "node-crash"
"""The invariant that an exception in a node's code breaks."""

_MEMORY_BYTES = 4 << 30
_AGAIN_S = 1.0
_LATE_RUNS = 4
"""The time that a process gets beyond its limit, in limits of a run. After it the kernel ends a process in which no
timer fires."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one mutant: processor seconds in all, and of a single run, which then counts as a hang."""

    processor_s: float = 120.0
    run_s: float = 30.0


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """The runs `numbers` of a campaign, of `mutant` or of the unchanged program.

    `modules` is the one that `mutant` changes, or all whose places get a mark. `plans` are those that the unchanged
    program made, encoded.
    """

    campaign: CampaignPlan
    numbers: tuple[int, ...]
    limits: Limits
    modules: tuple[SourceModule, ...]
    mutant: Mutant | None = None
    plans: dict[int, bytes] = {}


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The accusation of a run: by a checker with its anomaly, or by an invariant; visible to clients or not."""

    checker: str
    anomaly: str
    sentence: str
    by_client: bool


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """One run: its number, the fault packages in it, its verdict, the digest of its history, and who accused it.

    `reached` has the ids of the mutants whose places were executed. `ended` is HANG or REFUSED for a run that did not
    end, or could not begin; its `error` says why. `plan` is the encoded plan, of a run of the unchanged program only.
    """

    number: int
    faults: tuple[str, ...] = ()
    verdict: str = ""
    digest: str = ""
    reached: frozenset[str] = frozenset()
    found: tuple[Found, ...] = ()
    error: str = ""
    ended: str = ""
    processor_s: float = 0.0
    plan: bytes = b""

    @property
    def by_client(self) -> bool:
        """True when a checker of what clients saw accused the run."""
        return any(one.by_client for one in self.found)


def request_of(campaign: CampaignPlan, number: int) -> RunRequest:
    """Return the request of run `number`: each cell once with the first seed, then each with the next one."""
    cells, seeds = campaign.cells(), campaign.seed_range()
    return campaign.request(cells[number % len(cells)], seeds[number // len(cells)])


def work(task: Task, telling: Connection) -> None:
    """Carry out `task` in a process of its own, and send each run through `telling` as soon as it has ended."""
    # Ctrl-C is for the process that asked for the work: it ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _limit(resource.RLIMIT_AS, _MEMORY_BYTES)
    if task.mutant is not None:
        _limit(resource.RLIMIT_CPU, int(task.limits.processor_s + _LATE_RUNS * task.limits.run_s) + 1)
    reached = import_changed(task.modules, task.mutant)
    spent_s = 0.0
    for number in task.numbers:
        ran = _run(task, number, reached)
        telling.send(ran)
        spent_s += ran.processor_s
        is_over = ran.by_client or ran.ended == HANG or spent_s > task.limits.processor_s
        if task.mutant is not None and is_over:
            break
    telling.close()


def _limit(kind: int, most: int) -> None:
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(kind, (most, most))


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[list[int]]:
    """Raise Overdue in the block after so many *processor* seconds: a busy machine must not make hangs.

    The part of the harness that is interrupted makes an error or an unknown of it, so the list tells: it is empty in
    time.
    """
    late: list[int] = []

    def overdue(number: int, _frame: FrameType | None) -> None:
        late.append(number)
        raise Overdue

    before = signal.signal(signal.SIGPROF, overdue)
    signal.setitimer(signal.ITIMER_PROF, seconds, _AGAIN_S)
    try:
        yield late
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _run(task: Task, number: int, reached: set[str]) -> Ran:
    """Return run `number`, within its limit. No error of a mutant leaves this function."""
    begun_s, real_s = time.process_time(), time.monotonic()
    reached.clear()
    late: list[int] = []
    try:
        with _limited(task.limits.run_s) as late:
            ran = _judged(task, number)
    except UsageError as error:
        ran = Ran(number=number, ended=REFUSED, error=str(error))
    except (Exception, SystemExit, Overdue) as error:
        said = f"{type(error).__name__}: {error}".strip(": ")
        ran = Ran(number=number, verdict=Verdict.HARNESS_ERROR.value, error=said)
    # The harness has a limit of its own, in real time, which comes first where the machine is very busy.
    is_late = bool(late) or time.monotonic() - real_s >= LIMIT_S
    return msgspec.structs.replace(
        ran,
        reached=frozenset(reached),
        processor_s=time.process_time() - begun_s,
        ended=HANG if is_late and not ran.found else ran.ended,
    )


def _judged(task: Task, number: int) -> Ran:
    request = request_of(task.campaign, number)
    parts = resolve(request)
    encoded = task.plans.get(number) or msgspec.json.encode(make_plan(request, parts))
    plan = msgspec.json.decode(encoded, type=Plan)
    judgement = judge(run_simulated(plan, parts).whole(), parts, run_id=f"power-{number}")
    drawn = (plan.universe or {}).get("faults")
    return Ran(
        number=number,
        faults=tuple(drawn.split("+")) if drawn else plan.fault_set,
        verdict=judgement.verdict.value,
        digest=judgement.history_sha256,
        found=tuple(_found(judgement)),
        error=judgement.errors[0] if judgement.errors else "",
        plan=b"" if task.plans else encoded,
    )


def _found(judgement: Judgement) -> list[Found]:
    """Return the first finding of each checker, and the first of each invariant, that accuses the run."""
    found = dict[tuple[str, str], Finding]()
    for check in judgement.checks:
        for finding in check.findings if check.verdict is Verdict.VIOLATION else ():
            found.setdefault((check.checker, finding.anomaly if check.checker == INVARIANTS else ""), finding)
    return [
        Found(
            checker=checker,
            anomaly=finding.anomaly,
            sentence=finding.sentence,
            # All other checkers judge from the history of what clients saw.
            by_client=checker != INVARIANTS,
        )
        for (checker, _anomaly), finding in found.items()
    ]
