"""Random histories: every engine, with and without the monitor, judges them as the port of Porcupine does."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("first", range(0, 6000, 1500))
def test_engines_and_port_agree_on_random_histories_and_every_witness_holds(monkeypatch, first):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from fuzz_linearizability import disagreements

    counts: Counter[str] = Counter()
    assert disagreements(range(first, first + 1500), counts) == []
    assert min(counts["python, zones: Illegal"], counts["python, slots: Illegal"]) > 10
    assert min(counts["python, zones: Ok"], counts["python, slots: Ok"]) > 200


@pytest.mark.parametrize("first", [0, 1500])
def test_engines_and_port_and_all_orders_agree_where_some_values_repeat_and_every_core_is_illegal(monkeypatch, first):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from fuzz_linearizability import disagreements

    counts: Counter[str] = Counter()
    assert disagreements(range(first, first + 1500), counts, "repeats") == []
    assert counts["python, zones: Illegal"] > 60
    assert counts["python, zones: Ok"] > 1000
    for engine in ("zones", "slots"):
        for verdict in ("Ok", "Illegal"):
            assert counts[f"native, {engine}: {verdict}"] in (0, counts[f"python, {engine}: {verdict}"])


def test_a_core_without_what_overwrote_the_value_would_be_noticed(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from fuzz_linearizability import disagreements

    from faultline.checkers.linearizability.engine.read_mapping import Naming

    monkeypatch.setattr(Naming, "add_read", lambda self, i: self.named.setdefault(i))
    complaints = disagreements(range(500), Counter(), "repeats")
    assert len(complaints) > 3
    assert all("python names what is legal by itself" in complaint for complaint in complaints)


@pytest.mark.parametrize("first", [0, 1500])
def test_engines_and_port_agree_on_random_strings(monkeypatch, first):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from fuzz_linearizability import disagreements

    counts: Counter[str] = Counter()
    assert disagreements(range(first, first + 1500), counts, "kv") == []
    assert min(counts["python, zones: Illegal"], counts["python, slots: Illegal"]) > 10
