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
def test_engines_and_port_agree_on_random_strings(monkeypatch, first):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from fuzz_linearizability import disagreements

    counts: Counter[str] = Counter()
    assert disagreements(range(first, first + 1500), counts, "kv") == []
    assert min(counts["python, zones: Illegal"], counts["python, slots: Illegal"]) > 10
