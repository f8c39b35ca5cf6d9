"""The records of `make campaign`: every planted bug found, every correct system clean, and figures that are right."""

from __future__ import annotations

import sys
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import bug_evidence as evidence
import record_evidence
import untailored_evidence

from faultline.harness.system import PlantedBug

RECORD = "run: make campaign (it goes on where it stopped; ARGS='--system NAME' for one system)"


def test_every_planted_bug_of_every_system_is_recorded_as_found_in_its_campaign() -> None:
    assert list(evidence.unrecorded(evidence.read_records())) == [], RECORD


def test_every_planted_bug_names_a_campaign_that_has_a_cell_of_its_system() -> None:
    assert evidence.campaigns_without_cells() == []


def test_no_correct_system_was_ever_accused_and_each_ran_five_thousand_seeds() -> None:
    clean = [record for record in evidence.read_records().values() if record.expected == "pass"]
    assert [record.cell for record in clean if record.found] == []
    # Of many seeds some test too little by chance, and say so; the page counts them.
    assert [record.cell for record in clean if record.undecided * 50 > record.runs] == []
    assert evidence.marks_missing(clean) == []
    for system in evidence.reference_systems():
        assert sum(record.runs for record in clean if record.system == system.name) >= 5_000, RECORD


def test_the_readme_tells_the_numbers_of_planted_bugs_correct_systems_and_their_runs() -> None:
    readme = Path(evidence.ROOT / "README.md").read_text("utf-8")
    systems = evidence.reference_systems()
    clean = [record for record in evidence.read_records().values() if record.expected == "pass"]
    assert f"| {sum(len(evidence.bugs(system)) for system in systems)} bugs are planted in" in readme
    runs = sum(record.runs for record in clean)
    assert f"runs of each of {len(systems)} correct systems, {runs:,} in all" in readme


# -- the figures ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "certainty", "runs"), [(0.5, 0.5, 1), (0.5, 0.95, 5), (0.01, 0.95, 299), (1.0, 0.95, 1), (0.0, 0.95, None)]
)
def test_the_number_of_runs_until_found_is_that_of_independent_runs(
    rate: float, certainty: float, runs: int | None
) -> None:
    assert evidence.runs_until_found(rate, certainty) == runs


class InThisProcess:
    """An executor that does not wait."""

    def submit(self, function: Any, *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(function(*arguments))
        return future


def place_of(bug: str = "", system: str = "quorum-kv") -> evidence.Place:
    if not bug:
        return evidence.correct_places(system)[0]
    [owner] = [one.name for one in evidence.reference_systems() if bug in one.planted_bugs]
    return evidence.bug_places(owner, planted(bug))[0]


def planted(bug: str) -> PlantedBug:
    [found] = [one.planted_bugs[bug] for one in evidence.reference_systems() if bug in one.planted_bugs]
    return found


def measured(place: evidence.Place, *caught_by: str) -> evidence.Record:
    executor: Any = InThisProcess()
    return record_evidence.measured(record_evidence.Wanted(place, 3, caught_by), executor)


def test_a_record_counts_the_runs_that_the_bugs_own_checkers_refused() -> None:
    found = measured(place_of("overwrite-siblings"), "siblings")
    assert (found.runs, found.found, found.first_seed, found.undecided) == (3, 3, 0, 0)
    assert found.command.endswith("--planted-bug overwrite-siblings --faults partition --seeds 0..2")
    assert measured(place_of("overwrite-siblings"), "PAX-I1").found == 0


def test_a_record_tells_the_runs_that_clients_saw_from_those_that_any_checker_saw() -> None:
    by_clients, by_nodes = measured(place_of("overwrite-siblings")), measured(place_of("mark-moves-back"))
    assert (by_clients.by_clients, by_clients.by_any) == (3, 3)
    assert (by_nodes.found, by_nodes.by_clients, by_nodes.by_any) == (3, 0, 3)


def test_the_best_cell_of_a_rare_bug_is_measured_anew_until_it_has_the_greater_number_of_runs() -> None:
    options = record_evidence.parsed(["--rare", "--bug", "overwrite-siblings"])
    places = evidence.bug_places("quorum-kv", planted("overwrite-siblings"))
    best = msgspec.structs.replace(record(places[0], found=5), by_clients=5, by_any=5)
    others = {each.key: each for each in (record(place, found=0) for place in places[1:])}

    def wanted(one: evidence.Record) -> list[int]:
        return [each.runs for each in record_evidence.rare(options, {**others, one.key: one})]

    assert wanted(best) == []
    assert wanted(msgspec.structs.replace(best, by_clients=msgspec.UNSET)) == [5]
    assert wanted(msgspec.structs.replace(best, runs=50)) == [500]


# -- default campaigns ------------------------------------------------------------------------------------------------


def test_the_default_campaign_stops_at_a_common_bug_and_goes_on_with_a_rare_one() -> None:
    common = untailored_evidence.measured("quorum-kv", "overwrite-siblings", 5, 9, seconds=60.0)
    assert common.runs == 5
    assert 1 <= common.by_clients <= common.by_any
    assert "--planted-bug overwrite-siblings --universe drawn --seed" in common.first
    rare = untailored_evidence.measured("gossip", "gap-accepted", 2, 4, seconds=60.0)
    assert (rare.runs, rare.by_any, rare.first) == (4, 0, "")
    assert untailored_evidence.measured("gossip", "gap-accepted", 2, 4, seconds=0.0).runs == 0


def test_what_default_campaigns_find_survives_a_round_trip_and_names_bugs_that_exist(tmp_path: Path) -> None:
    one = evidence.Untailored(system="gossip", bug="gap-accepted", runs=4, by_any=2, by_clients=1, processor_s=0.5)
    evidence.write_untailored([one], tmp_path / "some.jsonl")
    assert evidence.read_untailored(tmp_path / "some.jsonl") == {one.key: one}
    assert evidence.read_untailored(tmp_path / "none.jsonl") == {}
    known = {(system.name, bug.name) for system in evidence.reference_systems() for bug in evidence.bugs(system)}
    assert set(evidence.read_untailored()) <= known


def test_a_record_is_told_anew_by_the_seed_that_it_tells_of_and_keeps_its_figures() -> None:
    place = place_of("overwrite-siblings")
    found = measured(place, "siblings")
    old = msgspec.structs.replace(found, finding="siblings/called-otherwise", sentence="It was told in other words.")
    assert record_evidence.retold(record_evidence.Wanted(place, 3, ("siblings",)), old) == found
    assert record_evidence.retold(record_evidence.Wanted(place, 3, ("PAX-I1",)), old) is None


def test_the_correct_twin_is_recorded_as_clean_with_what_it_did_not_reach() -> None:
    clean = measured(place_of())
    assert (clean.found, clean.undecided, clean.bug) == (0, 0, "")
    assert set(clean.marks_missing) < set(evidence.load_plan(clean.campaign).must_reach)


# -- the records ------------------------------------------------------------------------------------------------------


def test_an_expected_anomaly_is_no_clean_cell_and_its_record_says_so() -> None:
    places = [place for place in evidence.anomaly_places("quorum-kv") if place.campaign == "last-write-wins"]
    assert places
    assert "last-write-wins" not in {place.campaign for place in evidence.correct_places("quorum-kv")}
    anomaly = measured(places[0])
    assert (anomaly.expected, anomaly.found) == ("violation", 3)
    assert [line for line in evidence.unrecorded({anomaly.key: anomaly}) if places[0].cell.name in line] == []
    assert [line for line in evidence.unrecorded({}) if line.startswith(places[0].cell.name + ":")] != []


def record(place: evidence.Place, found: int = 1, run: str | None = None) -> evidence.Record:
    return evidence.Record(
        system=place.system,
        bug=place.bug,
        campaign=place.campaign,
        cell=place.cell.name,
        run=place.run if run is None else run,
        command="",
        runs=5,
        found=found,
        marks_missing=("a", "b"),
    )


def test_records_survive_a_round_trip_and_stand_in_one_order(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    one, other = record(place_of("overwrite-siblings")), record(place_of())
    evidence.write_records([one, other], path)
    assert evidence.read_records(path) == {one.key: one, other.key: other}
    written = path.read_bytes()
    evidence.write_records([other, one], path)
    assert path.read_bytes() == written
    assert evidence.read_records(tmp_path / "none.jsonl") == {}


@pytest.mark.parametrize(
    ("found", "run", "complaint"),
    [(1, None, None), (0, None, "not found"), (1, "faultline run --nodes 7 --seed", "not recorded")],
)
def test_a_bug_without_a_record_that_shows_it_as_its_campaign_is_now_is_named(
    found: int, run: str | None, complaint: str | None
) -> None:
    place = place_of("overwrite-siblings")
    known = record(place, found, run)
    missing = [line for line in evidence.unrecorded({known.key: known}) if "overwrite-siblings" in line]
    expected = [] if complaint is None else [f"quorum-kv+overwrite-siblings: {complaint} in siblings"]
    assert missing == expected


def test_a_situation_counts_as_missing_when_no_cell_of_the_campaign_reached_it() -> None:
    one, other = evidence.correct_places("quorum-kv")[:2]
    assert one.campaign == other.campaign
    first, second = record(one), msgspec.structs.replace(record(other), marks_missing=("b", "c"))
    assert evidence.marks_missing([first, second]) == [f"quorum-kv, {one.campaign}: b"]
