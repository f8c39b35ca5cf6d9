"""Random histories of objects: all engines judge them as a walk over all orders does, and both searches walk alike."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from faultline.checkers.linearizability.certificates import Configuration
from faultline.checkers.linearizability.generic_search import Hooks, search_generic
from faultline.checkers.porcupine import Budget

ROOT = Path(__file__).parents[3]
KINDS = ("set", "queue", "stack", "lock", "mutex", "counter", "cell")


@pytest.fixture
def fuzz(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import fuzz_objects

    return fuzz_objects


@pytest.mark.parametrize("kind", KINDS)
def test_engines_and_all_orders_agree_on_random_histories_and_every_proof_holds(fuzz, kind):
    counts: Counter[str] = Counter()
    assert fuzz.disagreements(kind, range(600), counts, all_judges=True) == []
    assert min(counts["python search: Illegal"], counts["python search: Ok"]) > 60


def lenient(state, operation, available):
    """Return whether the operation may become legal; it gives up only where nothing changes the state any more."""
    return any(each.input[0] != "read" for each in available)


@pytest.mark.parametrize("kind", ["cell", "set", "counter"])
@pytest.mark.parametrize("with_look_ahead", [False, True])
def test_both_forms_of_the_search_walk_the_same_way(fuzz, kind, with_look_ahead):
    hooks = Hooks(readonly=fuzz.hooks_of(kind).readonly, can_reach=lenient if with_look_ahead else None)
    proved = 0
    for seed in range(200):
        history = fuzz.random_object_history(kind, seed, operations_max=40)
        walks = [search_generic(fuzz.model_of(kind), history, Budget(2_000), hooks, form) for form in fuzz.FORMS]
        assert walks[0].decision == walks[-1].decision, seed
        assert walks[0].is_proved == walks[-1].is_proved, seed
        if walks[0].decision.is_illegal:
            proved += 1
            assert all(not walk.refutation().fault() for walk in walks), seed
    assert proved > 10


def mutated(proof, rng):
    """Return the proof with one configuration that says something else."""
    configurations = list(proof.configurations)
    at = int(rng.random() * len(configurations))
    rank, state, ahead, used = configurations[at]
    states = sorted({each.state for each in configurations})
    kind = int(rng.random() * 3)
    if kind == 0:
        del configurations[at]
    elif kind == 1:
        configurations[at] = Configuration(rank, states[(states.index(state) + 1) % len(states)], ahead, used)
    else:
        fewer = ahead[1:] if ahead else (int(rng.random() * len(proof.operations)),)
        configurations[at] = Configuration(rank, state, fewer, used)
    return proof._replace(configurations=configurations)


@pytest.mark.parametrize("kind", ["cell", "set", "queue"])
def test_no_changed_proof_refutes_a_legal_history(fuzz, kind):
    """The proof is sound whatever it holds: of a legal history no set of configurations is one."""
    rng, tried = random.Random(7), 0
    for seed in range(400):
        history = fuzz.random_object_history(kind, seed)
        walked = search_generic(fuzz.model_of(kind), history, Budget(2_000), engine="python")
        proof = walked.refutation()
        if not walked.decision.is_legal or not proof.configurations:
            continue
        tried += 1
        assert proof.fault()
        for _ in range(5):
            assert mutated(proof, rng).fault(), seed
    assert tried > 100
