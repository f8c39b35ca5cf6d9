"""Random small histories: an incremental checker is certain of a violation exactly at the first prefix that has one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[3] / "tools"

EXACT = [
    *("cas-register", "read-write", "set", "queue", "monotonic", "global-order", "bank", "unique-ids"),
    *("leased-lock", "sessions", "causal-pairs", "causal-reverse", "long-fork"),
]


LESS = [
    *("counter", "eventual-set", "lock", "booking", "transfers"),
    *("follower-reads", "read-your-writes", "watches"),
]


LISTS = {"lists": 1_000, "session-lists": 1_000, "serializable-lists": 1_000}
"""The kinds of transactions, each judged on fewer histories: the check of a prefix takes ten times as long."""


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 1000])
@pytest.mark.parametrize("model", EXACT)
def test_an_incremental_checker_knows_at_each_prefix_what_the_check_of_that_prefix_finds(monkeypatch, model, first):
    monkeypatch.syspath_prepend(str(TOOLS))
    from fuzz_incremental import MODELS, differences

    counts: Counter[str] = Counter()
    assert MODELS[model].is_exact
    assert differences(model, range(first, first + 1000), counts) == []
    assert counts["illegal"] > 40
    assert counts["legal"] > 500
    assert counts["left"] == counts["found later"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("model", [*LESS, *LISTS])
def test_an_incremental_checker_that_knows_less_is_never_certain_of_what_the_check_does_not_find(monkeypatch, model):
    monkeypatch.syspath_prepend(str(TOOLS))
    from fuzz_incremental import differences

    counts: Counter[str] = Counter()
    assert differences(model, range(LISTS.get(model, 1500)), counts) == []
    assert counts["illegal"] > (50 if model in LISTS else 150)
    assert counts["illegal"] > 2 * counts["found later"]


def test_a_twin_that_is_certain_too_early_or_not_at_all_is_told(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    from fuzz_incremental import MODELS, differences

    class Wrong:
        def __init__(self, rows):
            self.rows = rows

        def invoke(self, row, operation):
            pass

        def complete(self, row, outcome):
            return self.rows

    for rows, told in (((0,), "certain by rows (0,)"), ((), "not certain")):
        monkeypatch.setitem(MODELS, "set", MODELS["set"]._replace(incremental=lambda rows=rows: Wrong(rows)))
        assert any(told in complaint for complaint in differences("set", range(60), Counter()))
