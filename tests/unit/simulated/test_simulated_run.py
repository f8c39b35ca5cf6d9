"""Whole runs in the simulated world: what goes wrong in a client or a node is told apart, and loses nothing."""

from dataclasses import replace

import pytest

from faultline.harness.errors import UsageError
from faultline.harness.judge import judge
from faultline.harness.planning import RunRequest, make_plan
from faultline.harness.run import run_simulated
from faultline.harness.verdict import Verdict
from faultline.registry import resolve

REQUEST = RunRequest(system="consistent-core", faults=(), operations=40)


class Broken:
    """The reference system with something broken in its clients or its nodes."""

    def __init__(self, system, client_raises_at=None, node_raises_at=None):
        self._system = system
        self._client_raises_at = client_raises_at
        self._node_raises_at = node_raises_at

    def __getattr__(self, name):
        return getattr(self._system, name)

    def client(self, ports, *arguments):
        client = self._system.client(ports, *arguments)
        if self._client_raises_at is not None:
            self._break(client, "invoke", self._client_raises_at, ports)
        return client

    def node(self, ports, *arguments):
        node = self._system.node(ports, *arguments)
        if self._node_raises_at is not None and ports.node_id == "cyrene":
            self._break(node, "receive", self._node_raises_at, ports)
        return node

    def _break(self, target, method, at_us, ports):
        original = getattr(target, method)

        def breaks(*arguments):
            if ports.clock.monotonic_us() >= at_us:
                raise RuntimeError("a bug of the adapter")
            original(*arguments)

        setattr(target, method, breaks)


def judged(system):
    parts = replace(resolve(REQUEST), system=system)
    record = run_simulated(make_plan(REQUEST, parts), parts)
    return record, judge(record, parts, run_id="r")


def test_a_client_that_raises_makes_a_harness_error_and_keeps_the_history():
    record, judgement = judged(Broken(resolve(REQUEST).system, client_raises_at=1_000_000))
    assert judgement.verdict is Verdict.HARNESS_ERROR
    assert "a bug of the adapter" in judgement.sentence
    assert record.history.outcome.count("ok") > 5
    assert record.history.outcome.count("info") > 0


def test_a_node_that_raises_has_crashed_of_its_own_and_is_accused_by_name():
    record, judgement = judged(Broken(resolve(REQUEST).system, node_raises_at=900_000))
    assert judgement.verdict is Verdict.VIOLATION
    assert judgement.signature == "invariants/node-crash"
    assert "cyrene crashed of its own" in judgement.sentence
    assert not record.errors


def test_a_plan_that_asks_for_a_fault_this_world_lacks_is_refused_by_name():
    parts = resolve(RunRequest(system="consistent-core", faults=("kill",)))
    plan = make_plan(RunRequest(system="consistent-core", faults=("kill",)), parts)

    class Greedy:
        def __init__(self, nemesis):
            self.nemesis = nemesis
            self.needs = frozenset({"freeze"})

        def __getattr__(self, name):
            return getattr(self.nemesis, name)

    greedy = replace(parts, nemeses={kind: Greedy(nemesis) for kind, nemesis in parts.nemeses.items()})
    with pytest.raises(UsageError, match=r"cannot inject kill: it lacks freeze"):
        run_simulated(plan, greedy)
