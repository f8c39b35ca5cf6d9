"""Histories of other tools get the verdicts of their sources; where not, tests/data/histories/README.md proves why."""

from __future__ import annotations

from pathlib import Path

import pytest

from faultline.checkers.files import check_file, check_histories, files_in
from faultline.checkers.importers import FORMATS, format_of
from faultline.harness.verdict import Verdict

ROOT = Path(__file__).parents[3]
OWN = ROOT / "tests" / "data" / "histories"
SHARED = ROOT.parent / "shared" / "histories"

PASS, VIOLATION, UNKNOWN = Verdict.PASS, Verdict.VIOLATION, Verdict.UNKNOWN

# file, format, suggested model, verdict, anomaly of the first finding
HANDFUL = [
    ("knossos/bad-analysis.edn", "jepsen-edn", "cas-register", VIOLATION, "stale-read"),
    ("knossos/cas-register-bug.edn", "jepsen-edn", "cas-register", PASS, None),
    ("knossos/memstress3-33.edn", "jepsen-edn", "cas-register", PASS, None),
    ("elle/paper-example.edn", "jepsen-edn", "strict-serializable", VIOLATION, "G-single-item"),
    ("elle/si-without-g-single.edn", "elle", "strict-serializable", VIOLATION, "G2-item"),
    ("elle-cli/paper-example.json", "jepsen-json", "strict-serializable", VIOLATION, "G-single-item"),
    ("elle-cli/rw-register.edn", "elle", "strict-serializable", VIOLATION, "garbage-read"),
    ("elle-cli/rethink-fail-minimal.edn", "jepsen-edn", "cas-register", VIOLATION, "garbage-read"),
    ("elle-cli/bank-negative-balances.json", "jepsen-json", "bank", VIOLATION, "negative-balance"),
    ("elle-cli/long-fork.edn", "jepsen-edn", "long-fork", VIOLATION, "long-fork"),
    ("elle-cli/set.edn", "jepsen-edn", "set", PASS, None),
    ("etcd_000.log", "jepsen-log", "cas-register", VIOLATION, "stale-read"),
    ("c01-ok.txt", "porcupine-kv", "kv", PASS, None),
]


@pytest.mark.parametrize(
    ("name", "format_name", "model", "verdict", "anomaly"), HANDFUL, ids=[row[0] for row in HANDFUL]
)
def test_format_model_and_verdict_are_found_without_being_told(name, format_name, model, verdict, anomaly):
    (checked,) = check_histories(OWN / name)
    assert (checked.format_name, checked.model, checked.result.verdict) == (format_name, model, verdict)
    assert ([finding.anomaly for finding in checked.result.findings] or [None])[0] == anomaly


def test_a_model_that_is_named_decides():
    path = OWN / "elle" / "si-without-g-single.edn"
    assert check_file(path, model="snapshot-isolation").verdict is PASS
    assert check_file(path, model="serializable").verdict is VIOLATION


@pytest.mark.parametrize("name", ["porcupine", "jepsen-log"])
def test_porcupines_own_formats_have_one_name_more(name):
    assert check_file(OWN / "etcd_002.log", name).verdict is PASS
    assert check_file(OWN / "c01-bad.txt", "porcupine").verdict is VIOLATION


def test_the_same_history_in_edn_and_json_is_the_same_history():
    edn = FORMATS["elle"].read(SHARED_OR_OWN_EDN).history
    json = FORMATS["jepsen-json"].read(OWN / "elle-cli" / "paper-example.json").history
    assert (edn.value, edn.result, edn.invoke_index) == (json.value, json.result, json.invoke_index)


SHARED_OR_OWN_EDN = OWN / "elle" / "paper-example.edn"


# -- the whole set, when it lies beside the clone -------------------------------------------------------------------


def knossos_files():
    """Every register of Knossos's own data and of elle-cli's copy, with the verdict of its folder."""
    for path in sorted(SHARED.glob("**/cas-register/*/*.edn")):
        verdict = {"good": PASS, "bad": VIOLATION}[path.parent.name]
        yield pytest.param(path, verdict, id=str(path.relative_to(SHARED)))


REST = {
    "elle/paper-example.edn": VIOLATION,
    "elle/si-without-g-single.edn": VIOLATION,
    "elle-cli/elle/paper-example.edn": VIOLATION,
    "elle-cli/elle/paper-example.json": VIOLATION,
    "elle-cli/elle/rw-register.edn": VIOLATION,
    "elle-cli/jepsen/bank-negative-balances.json": VIOLATION,
    "elle-cli/jepsen/bank.json": PASS,
    "elle-cli/jepsen/counter.json": UNKNOWN,
    "elle-cli/jepsen/long-fork.edn": VIOLATION,
    "elle-cli/jepsen/set.edn": PASS,
    "elle-cli/jepsen/set_full.json": VIOLATION,
}


@pytest.mark.parametrize(("path", "verdict"), [*knossos_files()])
def test_registers_of_knossos_are_what_their_folders_say(path, verdict):
    assert check_file(path).verdict is verdict


@pytest.mark.parametrize("name", [name for name in REST if (SHARED / name).is_file()])
def test_every_other_history_is_what_its_source_says_or_the_readme_proves(name):
    assert check_file(SHARED / name).verdict is REST[name]


def test_every_history_of_the_whole_set_has_a_verdict_to_agree_with():
    found = {str(path.relative_to(SHARED)) for path, is_history in _files() if is_history}
    known = {name for name in found if name in REST or "/cas-register/" in name or name.startswith("porcupine/")}
    assert found - known == set()


def _files():
    return files_in(SHARED) if SHARED.is_dir() else iter(())


def test_formats_are_told_by_content_alone(tmp_path):
    for name, format_name, *_ in HANDFUL:
        (tmp_path / "anything").write_bytes((OWN / name).read_bytes())
        assert format_of(tmp_path / "anything").name == format_name
