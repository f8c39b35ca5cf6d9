"""Run folders: written as the run happens, read back as they were."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from faultline.harness.errors import HarnessError, UsageError
from faultline.harness.judgement import Judgement
from faultline.harness.plan import Plan, PlannedFault, PlannedOperation
from faultline.harness.planning import RunRequest
from faultline.harness.results import write_whole
from faultline.harness.store import (
    claim_folder,
    numbered,
    open_history,
    prepare_run,
    read_run,
    run_id_of,
    store_folder,
    write_judgement,
)
from faultline.harness.verdict import Verdict

PLAN = Plan(
    system="consistent-core",
    workload="register",
    seed=7,
    nodes=("athens", "byzantium", "cyrene"),
    workers=2,
    operations=(PlannedOperation(0, 10, "write", "k0", 1), PlannedOperation(1, 20, "cas", "k0", [1, 2])),
    faults=(PlannedFault("partition", 5, 10, "leader", {"shape": "one-way"}),),
    fault_set=("leadership",),
    heal_us=100,
    end_us=200,
)


def judgement(**changes) -> Judgement:
    values = {
        "run_id": "r",
        "cell": PLAN.cell,
        "system": "consistent-core",
        "workload": "register",
        "fault_set": ("leadership",),
        "planted_bugs": (),
        "options": {},
        "seed": 7,
        "world": "simulated",
        "verdict": Verdict.PASS,
        "sentence": "No violation.",
    }
    return Judgement(**values | changes)


def test_a_run_is_read_back_as_it_was_written(tmp_path):
    prepare_run(tmp_path / "r", "r", PLAN, "simulated")
    with open_history(tmp_path / "r") as sink:
        sink(b'{"index":0}\n')
    write_judgement(tmp_path / "r", judgement())
    stored = read_run(tmp_path / "r")
    assert stored.file.plan == PLAN
    assert stored.history_bytes == b'{"index":0}\n'
    assert stored.judgement is not None and stored.judgement.verdict is Verdict.PASS


@pytest.mark.parametrize("count", [0, 1, 999, 1_000, 1_001, 2_000, 2_345])
def test_a_long_plan_is_written_in_pieces_that_make_the_text_of_the_whole(tmp_path, count):
    values = [None, [1, {"a": []}], 'a "quoted" word,\n"operations": []', {}, "]"]
    operations = tuple(PlannedOperation(n % 2, n, "write", "\n]", values[n % 5]) for n in range(count))
    options = {"odd": '"operations": [],', "operations": "[]"}
    plan = msgspec.structs.replace(PLAN, workload='"operations": [', operations=operations, options=options)
    prepare_run(tmp_path, "r", plan, "simulated")
    stored = read_run(tmp_path).file
    assert stored.plan.operations == msgspec.json.decode(msgspec.json.encode(plan), type=Plan).operations
    assert (tmp_path / "run.json").read_bytes() == msgspec.json.format(msgspec.json.encode(stored), indent=2) + b"\n"


def test_what_was_recorded_is_on_disk_before_the_run_ends(tmp_path):
    prepare_run(tmp_path / "r", "r", PLAN, "simulated")
    with open_history(tmp_path / "r") as sink:
        sink(b"first\n")
        assert (tmp_path / "r" / "history.jsonl").read_bytes() == b"first\n"


def test_a_folder_that_is_no_run_is_refused_by_name(tmp_path):
    with pytest.raises(UsageError, match="no run.json"):
        read_run(tmp_path)


def test_a_damaged_run_file_is_refused_by_name(tmp_path):
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(UsageError, match="run.json cannot be read"):
        read_run(tmp_path)


def test_an_unwritable_store_is_a_harness_error_with_a_next_step(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(HarnessError, match="--output"):
        prepare_run(tmp_path / "file" / "r", "r", PLAN, "simulated")


def test_an_atomic_write_leaves_nothing_half_written(tmp_path):
    path = tmp_path / "verdict.json"
    write_whole(path, b"old")
    with pytest.raises(TypeError):
        write_whole(path, "not bytes")
    assert path.read_bytes() == b"old"


def test_a_plan_has_an_address_that_changes_with_anything_in_it():
    assert PLAN.digest() == msgspec.convert(msgspec.to_builtins(PLAN), Plan).digest()
    assert PLAN.digest() != msgspec.structs.replace(PLAN, seed=8).digest()
    assert PLAN.cell == "consistent-core/register/leadership"


# -- names of runs -----------------------------------------------------------------------------------------------------

ASKED = RunRequest(system="consistent-core", planted_bugs=("stale-read",), seed=7)


def test_a_run_is_called_after_its_cell_and_seed_and_a_digest_of_all_the_rest():
    assert re.fullmatch(r"consistent-core\+stale-read\.register\.leadership\.7\.[0-9a-f]{8}", run_id_of(ASKED))
    assert run_id_of(ASKED) == run_id_of(RunRequest(system="consistent-core", planted_bugs=("stale-read",), seed=7))


@pytest.mark.parametrize(
    "other",
    [
        {"nodes": 5},
        {"workers": 6},
        {"operations": 10},
        {"duration_s": 3.0},
        {"options": {"read_mode": "log"}},
        {"host_options": {"fsync": "lies"}},
        {"world": "local"},
    ],
    ids=str,
)
def test_runs_that_differ_in_anything_have_different_names(other):
    assert run_id_of(msgspec.structs.replace(ASKED, **other)) != run_id_of(ASKED)
    assert run_id_of(ASKED, "namespaces:3") != run_id_of(ASKED, "namespaces:5")


def test_a_run_never_takes_the_folder_of_an_earlier_one(tmp_path):
    with ThreadPoolExecutor(8) as threads:
        folders = list(threads.map(lambda _: claim_folder(tmp_path / "runs", numbered("r")), range(24)))
    assert len(set(folders)) == 24
    assert {folder.name for folder in folders} == {"r", *(f"r-{number}" for number in range(2, 25))}


@pytest.mark.parametrize("address", ["s3a://bucket/nightly", "gs://b", "file:///tmp/x", "hdfs:/x", "S3://b"])
def test_an_address_is_no_store(address):
    with pytest.raises(UsageError, match="it is a folder"):
        store_folder(address)


@pytest.mark.parametrize("folder", ["store", "/shared/store", "a:b", "C:/store", "x/s3:/y"])
def test_any_folder_is_a_store(folder):
    assert store_folder(folder) == Path(folder)


def test_a_store_whose_name_cannot_be_written_down_is_refused():
    with pytest.raises(UsageError, match="not UTF-8"):
        store_folder("st\udcffore")
