"""Histories that other tools recorded get the verdicts that those tools gave them."""

from __future__ import annotations

from pathlib import Path

import pytest

from faultline.checkers.files import FORMATS, check_file, models
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import ok
from faultline.harness.verdict import Verdict

ROOT = Path(__file__).parents[3]
OWN = ROOT / "tests" / "data" / "histories"
SHARED = ROOT.parent / "shared" / "histories" / "porcupine"


def etcd_logs():
    """The logs with verdicts: the handful in this repository, and the whole set where it lies beside the clone."""
    for folder in (OWN, SHARED / "jepsen"):
        if folder.is_dir():
            for line in (folder / "verdicts.txt").read_text().splitlines():
                name, verdict = line.split()
                yield pytest.param(folder / name, verdict, id=f"{folder.name}-{name}")


def kv_histories():
    for folder in (OWN, SHARED / "kv"):
        yield from (pytest.param(path, id=f"{folder.name}-{path.stem}") for path in sorted(folder.glob("c*.txt")))


@pytest.mark.parametrize(("path", "verdict"), [*etcd_logs()])
def test_etcd_logs_get_porcupines_verdicts(path, verdict):
    result = check_file(path, "jepsen-log")
    assert result.verdict is (Verdict.PASS if verdict == "ok" else Verdict.VIOLATION)
    assert "event" in result.sentence if result.findings else "linearizable" in result.sentence


@pytest.mark.parametrize("path", [*kv_histories()])
def test_key_value_histories_are_what_their_names_say(path):
    result = check_file(path, "porcupine-kv")
    assert result.verdict is (Verdict.PASS if path.stem.endswith("-ok") else Verdict.VIOLATION)


def test_the_histories_in_the_repository_are_there():
    assert len(list(OWN.glob("etcd_*.log"))) == 5
    assert len(list(OWN.glob("c01-*.txt"))) == 2


def test_every_format_has_a_reader_and_says_what_it_is_for(tmp_path):
    (tmp_path / "empty").write_text("")
    for description in FORMATS.values():
        assert description.summary and description.models
        assert len(description.read(tmp_path / "empty").history) == 0


def test_models_are_listed_with_a_line_about_each():
    assert {"register", "cas-register", "kv"} <= models().keys()
    assert all(models().values())


def test_a_history_of_our_own_is_read_from_its_file_or_its_folder(tmp_path):
    history = History()
    row = history.invoke(Operation(0, "read", "k0"), 1000, 0, "athens")
    history.complete(row, ok(4), 2000)
    (tmp_path / "history.jsonl").write_bytes(history.to_jsonl())
    for path in (tmp_path, tmp_path / "history.jsonl"):
        result = check_file(path)
        assert result.findings[0].anomaly == "garbage-read"
        assert result.sentence.startswith("At 0.002 s client 0 read 4 from k0")


def test_a_file_without_operations_proves_nothing(tmp_path):
    (tmp_path / "empty.log").write_text("\n")
    assert check_file(tmp_path / "empty.log", "jepsen-log").verdict is Verdict.VACUOUS


MALFORMED = {
    "jepsen-log": [
        ("INFO  jepsen.util - 0\t:invoke\t:read\tnil\nnoise\n", "line 2: this is not an operation"),
        (
            "INFO  jepsen.util - 0\t:ok\t:read\t3\n",
            "line 1: process 0 completes 'read', but it has invoked no operation",
        ),
        ("INFO  jepsen.util - 0\t:invoke\t:cas\t3\n", "line 1: '3' is not a value of a cas"),
        (2 * "INFO  jepsen.util - 0\t:invoke\t:read\tnil\n", "line 2: process 0 invokes while"),
    ],
    "porcupine-kv": [
        ('{:process 0, :type :invoke, :f :take, :key "0", :value nil}\n', "line 1: this is not an event"),
        ('{:process 0, :type :invoke, :f :put, :key "0", :value nil}\n', "line 1: put without a value"),
    ],
    "faultline": [('{"index":0}\n{"index":1}\n', "line 1: not an event")],
}


@pytest.mark.parametrize(
    ("format_name", "text", "cause"),
    [(name, text, cause) for name, cases in MALFORMED.items() for text, cause in cases],
)
def test_malformed_input_is_refused_with_file_line_and_cause(tmp_path, format_name, text, cause):
    path = tmp_path / "broken"
    path.write_text(text)
    with pytest.raises(UsageError) as refused:
        check_file(path, format_name)
    assert f"{path}, {cause}" in refused.value.message
    assert refused.value.next_step


def test_a_missing_file_an_unknown_format_and_binary_data_are_refused(tmp_path):
    with pytest.raises(UsageError, match="cannot be read"):
        check_file(tmp_path / "nowhere", "jepsen-log")
    with pytest.raises(UsageError, match="no history format called `edn`"):
        check_file(tmp_path, "edn")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="UTF-8"):
        check_file(tmp_path / "binary", "porcupine-kv")
