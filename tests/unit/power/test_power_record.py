"""The recorded measurements: the README and the reference tell their figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from faultline.power.result import Power, share_of

ROOT = Path(__file__).parents[3]


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> list[Power]:
    monkeypatch.syspath_prepend(ROOT / "tools")
    import power_page

    return power_page.read_records()


@pytest.mark.parametrize("page", ["README.md", "docs/reference/power.md"])
def test_the_shares_that_a_page_tells_are_those_of_all_records_together(page, records):
    text = (ROOT / page).read_text("utf-8")
    mutants = [one for power in records for one in power.mutants]
    assert len({power.system for power in records}) == len(records) >= 9
    for by_client in (True, False):
        share = share_of(mutants, by_client=by_client)
        assert f"{share.found} of {share.of}" in text
    assert f"{len(mutants)} bugs were generated" in text or f"of {len(mutants)} mutants drawn" in text


def test_records_are_whole_and_accuse_no_unchanged_program(records):
    for power in records:
        assert not power.alarms
        assert len(power.mutants) >= 10
        assert power.interrupted or not power.missing
