"""A plug-in that misbehaves as the environment variable HOSTILE says: its client, its node, a timer of it, its checker.

`PLACE:DEED`, as in `client:exit-0`. Where the deed is `wait`, it makes the file HOSTILE_BEGUN and waits for a signal.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from pathlib import Path

import faultline.harness.judge
import faultline.harness.run
from faultline.checkers.linearizability.checker import LinearizabilityChecker
from faultline.harness.outcome import Outcome
from faultline.harness.verdict import CheckResult, Verdict
from faultline.systems_under_test.reference.consistent_core.system import ConsistentCore
from faultline.workloads.register import Register

PLACE, _, DEED = os.environ.get("HOSTILE", "nowhere:nothing").partition(":")
if DEED == "loop":
    faultline.harness.run.LIMIT_S = faultline.harness.judge.CHECK_LIMIT_S = 1.0


def misbehave(place: str) -> None:
    """Do what HOSTILE says, if it says so of `place`."""
    if place == PLACE:
        _DEEDS[DEED]()


def _loop() -> None:
    while True:
        pass


def _stand_still() -> None:
    """Act like an endless loop in C: no signal gets through. The supervisor alone can end it."""
    from faultline.cli import sealed_outcome

    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM, signal.SIGINT])
    Path(os.environ["HOSTILE_BEGUN"]).touch()
    sealed_outcome.limit(1.0, "the run")
    while True:
        time.sleep(3600)


def _wait() -> None:
    Path(os.environ["HOSTILE_BEGUN"]).touch()
    while True:
        # Not `signal.pause`, which would miss a signal that comes just before it.
        time.sleep(0.05)


def _raise(error: BaseException) -> None:
    raise error


def _recurse() -> None:
    _recurse()


_DEEDS = {
    "exit-0": lambda: sys.exit(0),
    "os-exit-0": lambda: os._exit(0),
    "segfault": lambda: ctypes.string_at(0),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "raise": lambda: _raise(RuntimeError("boom")),
    "recurse": _recurse,
    "loop": _loop,
    "stand-still": _stand_still,
    "wait": _wait,
}


class HostileClient:
    """The client of the core, until its fifth operation."""

    def __init__(self, client: object) -> None:
        self._client = client
        self._invoked = 0
        self.start, self.receive = client.start, client.receive  # type: ignore[attr-defined]

    def invoke(self, operation, done):
        self._invoked += 1
        if self._invoked == 5:
            misbehave("client")
        if PLACE == "outcome":
            return self._client.invoke(operation, lambda outcome: done(_OUTCOMES.get(DEED, outcome)))
        return self._client.invoke(operation, done)


_OUTCOMES = {
    "misspelt": Outcome("OK"),
    "object": Outcome("ok", object()),
    "half-character": Outcome("ok", "\ud800"),
    "nothing": None,
}


class HostileSystem(ConsistentCore):
    """The core with a client and timers that misbehave."""

    name = "hostile"

    def client(self, *arguments):
        return HostileClient(super().client(*arguments))

    def node(self, ports, *arguments):
        node = super().node(ports, *arguments)
        if PLACE == "timer":
            ports.timers.after(900_000, lambda: misbehave("timer"))
        return node


class HostileChecker:
    """Passes what it does not misbehave on."""

    name = "hostile"

    def check(self, history, run):
        misbehave("checker")
        answers = {"none": None, "word": "fail", "object": {"what": object()}}
        if PLACE == "answer" and DEED != "object":
            return answers[DEED]
        detail = answers["object"] if PLACE == "answer" else {}
        return CheckResult(checker=self.name, verdict=Verdict.PASS, sentence="Fine.", detail=detail)


class HostileWorkload(Register):
    """Registers, judged by two checkers."""

    name = "hostile"

    def generator(self, **settings):
        misbehave("generator")
        return super().generator(**settings)

    def checkers(self):
        if PLACE == "no-checkers":
            return ()
        return (HostileChecker(), LinearizabilityChecker("cas-register"))
