"""Random small histories: an incremental checker is certain of a violation exactly at the first prefix that has one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 1000])
@pytest.mark.parametrize("model", ["cas-register", "read-write"])
def test_an_incremental_checker_knows_at_each_prefix_what_the_check_of_that_prefix_finds(monkeypatch, model, first):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from fuzz_incremental import differences

    counts: Counter[str] = Counter()
    assert differences(model, range(first, first + 1000), counts) == []
    assert counts["illegal"] > 50
    assert counts["legal"] > 500
    assert counts["left"] == 0
