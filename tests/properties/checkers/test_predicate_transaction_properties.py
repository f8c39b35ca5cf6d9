"""A serial store of objects is never accused, nor is a history of predicate reads that some order explains."""

from __future__ import annotations

import random
from typing import Any

import pytest
from every_order import some_order
from hypothesis import given, settings
from hypothesis import strategies as st
from interleaved_databases import LEVELS
from translated_databases import translated_history

from faultline.checkers.transactions.checker import ClosedPredicateChecker
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import Outcome
from faultline.harness.verdict import Verdict

SEEDS = st.integers(0, 2**32)
CONDITIONS: tuple[Any, ...] = ("true", ["=", 1], ["=", 2], ["mod", 2, 0], ["mod", 2, 1])
INITIAL = {"x": 101}


def fulfils(condition: Any, value: int) -> bool:
    if condition == "true":
        return True
    return value == condition[1] if condition[0] == "=" else value % condition[1] == condition[2]


def run(state: dict[str, int], body: list[list[Any]]) -> list[list[Any]]:
    """Apply a transaction to `state`; its micro-operations with their answers."""
    done = []
    for micro in body:
        if micro[0] == "rp":
            found = {key: value for key, value in state.items() if fulfils(micro[1], value)}
            done.append(["rp", micro[1], found])
            continue
        if micro[0] == "delete":
            state.pop(micro[1], None)
        else:
            state[micro[1]] = micro[2]
        done.append(micro)
    return done


def random_body(rng: random.Random, written: dict[str, int]) -> list[list[Any]]:
    body: list[list[Any]] = []
    for _ in range(rng.randint(1, 3)):
        key, chance = rng.choice("xyz"), rng.random()
        if chance < 0.5:
            body.append(["rp", rng.choice(CONDITIONS), None])
        elif chance < 0.7:
            body.append(["delete", key])
        else:
            written[key] = written.get(key, 0) + 1
            body.append([rng.choice(("insert", "w")), key, written[key]])
    return body


def spoilt(rng: random.Random, done: list[list[Any]], changed: float) -> list[list[Any]]:
    """The answers of a transaction, some of them without one of their objects."""
    return [
        ["rp", micro[1], dict(list(micro[2].items())[1:])] if micro[0] == "rp" and rng.random() < changed else micro
        for micro in done
    ]


def serial_history(seed: int, transactions: int, changed: float = 0.0) -> History:
    """A store that does one transaction after another, at some moment between its invocation and its completion."""
    rng = random.Random(seed)
    history, state, written = History(), dict(INITIAL), dict[str, int]()
    running: list[tuple[int, list[list[Any]], Outcome | None]] = []
    while len(history) < transactions or running:
        if len(history) < transactions and ((len(running) < 3 and rng.random() < 0.6) or not running):
            body = random_body(rng, written)
            process = len(history)
            row = history.invoke(Operation(process, "txn", None, body), history.next_index, process, "")
            running.append((row, body, None))
            continue
        place = rng.randrange(len(running))
        row, body, outcome = running.pop(place)
        if outcome is None:
            running.append((row, body, finished(rng, state, body, changed)))
        else:
            history.complete(row, outcome, history.next_index)
    return history


def finished(rng: random.Random, state: dict[str, int], body: list[list[Any]], changed: float) -> Outcome:
    kind = rng.choices(("ok", "info", "fail"), (8, 1, 1))[0]
    if kind == "ok":
        return Outcome("ok", spoilt(rng, run(state, body), changed))
    if kind == "info" and rng.random() < 0.5:
        run(state, body)
    return Outcome("info" if kind == "info" else "fail", None, "lost")


def explains(history: History, order: tuple[int, ...]) -> bool:
    state = dict(INITIAL)
    return all(run(state, history.value[row]) == history.result[row] or history.outcome[row] != "ok" for row in order)


@given(seed=SEEDS)
@settings(max_examples=200)
def test_a_serial_store_of_objects_is_never_accused(seed: int) -> None:
    result = ClosedPredicateChecker("strict-serializable", initial=INITIAL).check(serial_history(seed, 25))
    assert result.verdict in (Verdict.PASS, Verdict.VACUOUS), result.sentence


@pytest.mark.parametrize("level", LEVELS[1:])
@given(seed=SEEDS)
@settings(max_examples=60)
def test_a_store_of_one_object_is_never_accused_under_its_own_model(level: str, seed: int) -> None:
    rng = random.Random(seed)

    def translate(name: str, key: str, value: Any) -> list[Any]:
        if name == "w":
            return ["w", key, value]
        condition = rng.choice(CONDITIONS)
        return ["rp", condition, {key: value} if value is not None and fulfils(condition, value) else {}]

    history = translated_history(level, seed, translate, "w", keys=1)
    result = ClosedPredicateChecker(level).check(history)
    assert result.verdict in (Verdict.PASS, Verdict.VACUOUS), result.sentence


@given(seed=SEEDS)
@settings(max_examples=500)
def test_predicate_reads_are_only_accused_when_no_order_explains_them(seed: int) -> None:
    history = serial_history(seed, 4, changed=0.3)
    result = ClosedPredicateChecker("serializable", initial=INITIAL).check(history)
    if result.verdict == Verdict.VIOLATION:
        assert not some_order(history, explains), result.sentence


def test_a_store_that_misses_objects_is_found_out() -> None:
    checker = ClosedPredicateChecker("strict-serializable", initial=INITIAL)
    verdicts = [checker.check(serial_history(seed, 25, changed=0.3)).verdict for seed in range(25)]
    assert verdicts.count(Verdict.VIOLATION) > 5
