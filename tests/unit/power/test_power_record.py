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


def test_the_page_tells_how_many_mutants_only_further_runs_accused(records):
    import power_page

    text = (ROOT / "docs/reference/power.md").read_text("utf-8")
    further = power_page.read_further()
    tried = sum(len(power.mutants) for power in further)
    later = power_page.accused_later(records, further)
    mutants = [one for power in records for one in power.mutants]
    known = share_of(mutants, by_client=False).found + len(later)
    assert tried == sum(one.ending in ("inconclusive", "survived") for one in mutants)
    assert f"Of the {tried} that were left, {len(later)} were accused" in text
    for by_client in (True, False):
        assert f"{share_of(mutants, by_client=by_client).found} of {known}" in text
    assert not any(power.alarms for power in further)


def test_further_runs_are_of_the_mutants_that_were_left_and_have_seeds_of_their_own(records):
    import power_further
    import power_page

    first = {power.system: power for power in records}
    for further in power_page.read_further():
        power = first[further.system]
        assert further.seed == power_further.first_unused_seed(power)
        assert [one.mutant.id for one in further.mutants] == [
            one.mutant.id for one in power_further.never_accused(power)
        ]
