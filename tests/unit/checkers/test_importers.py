"""Importers: keys out of tuples, suggested models, Parquet files, parts of large files, and input that is refused."""

from __future__ import annotations

import json

import pytest

from faultline.campaign.histories import history_table, write_parquet
from faultline.checkers.files import check_file, check_histories, files_in
from faultline.checkers.importers import FORMATS, format_of
from faultline.checkers.importers.parquet import read_parquet
from faultline.checkers.judges import judge, models
from faultline.harness.errors import UsageError
from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import ok
from faultline.harness.verdict import Verdict


def edn(*operations):
    """Sequential operations `(f, value, result)` as a history in EDN; a result of "fail" or "info" is an outcome."""
    lines = []
    for f, value, result in operations:
        kind = result if result in ("fail", "info") else "ok"
        lines.append(f"{{:type :invoke, :process 0, :f :{f}, :value {value}}}")
        lines.append(f"{{:type :{kind}, :process 0, :f :{f}, :value {value if kind != 'ok' else result}}}")
    return "[" + "\n ".join(lines) + "]\n"


def imported(tmp_path, text):
    path = tmp_path / "history.edn"
    path.write_text(text)
    return FORMATS["jepsen-edn"].read(path)


# -- keys -----------------------------------------------------------------------------------------------------------


def test_tuples_of_an_independent_key_become_keys(tmp_path):
    found = imported(
        tmp_path, edn(("write", "[3 1]", "[3 1]"), ("cas", "[:x [1 2]]", "fail"), ("read", "[3 nil]", "[3 1]"))
    )
    assert found.keys_from == "tuples"
    assert found.history.key == ["3", "x", "3"]
    assert found.history.value == [1, [1, 2], None]
    assert found.history.result == [1, None, 1]


@pytest.mark.parametrize(
    "operations",
    [
        [("cas", "[1 2]", "[1 2]"), ("read", "nil", "2")],
        [("write", "[1 2]", "[1 2]"), ("write", "[3 4]", "[3 4]")],
        [("add", "[0 1]", "[0 1]"), ("read", "[0 nil]", "[1]")],
        [("txn", "[[:r 1 nil] [:r 2 nil]]", "[[:r 1 3] [:r 2 3]]")],
    ],
)
def test_values_that_may_be_something_else_are_no_tuples(tmp_path, operations):
    found = imported(tmp_path, edn(*operations))
    assert found.keys_from == "format"
    assert set(found.history.key) == {None}


def test_keys_of_different_types_stay_different(tmp_path):
    found = imported(tmp_path, edn(("read", "[1 nil]", "[1 5]"), ("read", '["1" nil]', '["1" 6]')))
    assert found.history.key == ["1", '"1"']


# -- models ---------------------------------------------------------------------------------------------------------

SUGGESTED = {
    "cas-register": [("write", "1", "1"), ("cas", "[1 2]", "fail"), ("read", "nil", "1")],
    "mutex": [("acquire", "nil", "nil"), ("release", "nil", "nil")],
    "kv": [("put", '"a"', '"a"'), ("get", "nil", '"a"')],
    "total-queue": [("enqueue", "1", "1"), ("dequeue", "nil", "1")],
    "unique-ids": [("generate", "nil", "7")],
    "bank": [("transfer", "{:from 0 :to 1 :amount 3}", "fail"), ("read", "nil", "{0 5, 1 5}")],
    "set": [("add", "1", "1"), ("read", "nil", "#{1}")],
    "set-full": [("add", "1", "1"), ("read", "nil", "#{1}"), ("read", "nil", "#{1}")],
    "counter": [("add", "1", "1"), ("add", "1", "1"), ("read", "nil", "2")],
    "strict-serializable": [("txn", "[[:append 1 1]]", "[[:append 1 1]]"), ("txn", "[[:r 1 nil]]", "[[:r 1 [1]]]")],
    "long-fork": [("write", "[[:w 0 1]]", "[[:w 0 1]]"), ("read", "[[:r 0 nil] [:r 1 nil]]", "[[:r 0 1] [:r 1 nil]]")],
}


@pytest.mark.parametrize(("model", "operations"), SUGGESTED.items())
def test_the_functions_suggest_the_model_and_its_checker_accepts_them(tmp_path, model, operations):
    path = tmp_path / "history.edn"
    path.write_text(edn(*operations))
    (checked,) = check_histories(path)
    assert checked.model == model
    assert not checked.result.findings


WRONG = {
    "mutex": [("acquire", "nil", "nil"), ("acquire", "nil", "nil")],
    "cas-register": [("write", "[:k 1]", "[:k 1]"), ("read", "[:k nil]", "[:k 2]")],
    "total-queue": [("enqueue", "1", "1"), ("dequeue", "nil", "1"), ("dequeue", "nil", "1")],
    "unique-ids": [("generate", "nil", "7"), ("generate", "nil", "7")],
    "bank": [("read", "nil", "{0 5, 1 5}"), ("read", "nil", "{0 5, 1 6}")],
    "set": [("add", "1", "1"), ("add", "2", "2"), ("read", "nil", "#{1}")],
    "counter": [("add", "1", "1"), ("add", "1", "1"), ("read", "nil", "3")],
    "strict-serializable": [("txn", "[[:append 1 1]]", "[[:append 1 1]]"), ("txn", "[[:r 1 nil]]", "[[:r 1 []]]")],
}


@pytest.mark.parametrize(("model", "operations"), WRONG.items())
def test_what_each_suggested_model_forbids_is_found(tmp_path, model, operations):
    path = tmp_path / "history.edn"
    path.write_text(edn(*operations))
    (checked,) = check_histories(path)
    assert (checked.model, checked.result.verdict) == (model, Verdict.VIOLATION)


@pytest.mark.parametrize("name", ["linearizable-queue", "linearizable-set", "linearizable-counter", "stack"])
def test_objects_that_share_their_name_with_a_classic_checker_are_named_linearizable(tmp_path, name):
    function = {"linearizable-queue": "enqueue", "stack": "push"}.get(name, "add")
    path = tmp_path / "history.edn"
    path.write_text(edn((function, "1", "nil")))
    (checked,) = check_histories(path, model=name)
    assert (checked.result.checker, checked.result.verdict) == ("linearizability", Verdict.PASS)


def test_a_history_of_functions_that_no_model_knows_asks_for_one(tmp_path):
    path = tmp_path / "history.edn"
    path.write_text(edn(("frobnicate", "1", "1")))
    with pytest.raises(UsageError, match="no model is known for a history of frobnicate"):
        check_file(path)
    with pytest.raises(UsageError, match="frobnicate"):
        check_file(path, model="cas-register")


def test_a_stored_run_that_no_model_fits_leads_to_the_verdict_it_has(tmp_path):
    line = {"index": 0, "time_us": 1, "type": "invoke", "process": 0, "worker": 0, "f": "frobnicate", "value": 1}
    (tmp_path / "history.jsonl").write_text(json.dumps(line) + "\n")
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(UsageError, match="no model is known") as without:
        check_file(tmp_path)
    assert without.value.next_step.startswith("Name a model with --model: one of")
    (tmp_path / "verdict.json").write_text("{}")
    with pytest.raises(UsageError, match="no model is known") as judged:
        check_file(tmp_path)
    assert judged.value.next_step.startswith(f"It was judged when it was run: see {tmp_path / 'verdict.json'}")


def test_every_model_can_be_set_up():
    for model in models():
        assert judge(model, History()).name


def test_unknown_models_and_options_are_refused_with_the_nearest_name():
    with pytest.raises(UsageError) as refused:
        judge("serialisable", History())
    assert "Did you mean serializable?" in refused.value.next_step
    with pytest.raises(UsageError, match="cannot be set up with sum"):
        judge("bank", History(), options={"sum": 100})


def test_options_reach_the_checker(tmp_path):
    path = tmp_path / "history.edn"
    path.write_text(edn(("read", "nil", "{0 5, 1 5}")))
    assert check_file(path, model="bank", options={"total": 10}).verdict is Verdict.PASS
    assert check_file(path, model="bank", options={"total": 11}).verdict is Verdict.VIOLATION


# -- Faultline's own ------------------------------------------------------------------------------------------------


def own_history(answer=1):
    history = History()
    history.complete(history.invoke(Operation(0, "write", "k", 1), 10, 0, "athens"), ok(), 20)
    history.complete(history.invoke(Operation(1, "read", "k"), 30, 1, "byzantium"), ok(answer), 40)
    return history


def test_all_runs_of_a_campaign_are_checked(tmp_path):
    import pyarrow as pa

    (tmp_path / "histories").mkdir()
    tables = [history_table("good", own_history()), history_table("bad", own_history(2))]
    write_parquet(tmp_path / "histories" / "part-00000.parquet", pa.concat_tables(tables))
    found = list(check_histories(tmp_path))
    assert [(checked.label[-9:], checked.result.verdict) for checked in found] == [
        (f"{tmp_path}#good"[-9:], Verdict.PASS),
        (f"{tmp_path}#bad"[-9:], Verdict.VIOLATION),
    ]


def test_a_history_comes_back_from_parquet_as_it_was(tmp_path):
    history = own_history()
    write_parquet(tmp_path / "part-00000.parquet", history_table("run", history))
    (found,) = read_parquet(tmp_path / "part-00000.parquet")
    assert found.history.to_jsonl() == history.to_jsonl()


@pytest.mark.parametrize("content", [b"PAR1 and then nothing", b"PAR1"])
def test_a_damaged_parquet_file_is_refused(tmp_path, content):
    (tmp_path / "part-00000.parquet").write_bytes(content)
    with pytest.raises(UsageError, match="cannot be read"):
        list(check_histories(tmp_path / "part-00000.parquet"))


def test_another_parquet_file_is_refused(tmp_path):
    import pyarrow as pa

    write_parquet(tmp_path / "part-00000.parquet", pa.table({"x": [1]}))
    with pytest.raises(UsageError, match="does not hold histories"):
        list(check_histories(tmp_path))


def test_a_torn_last_line_is_dropped_and_any_other_is_refused(tmp_path):
    lines = own_history().to_jsonl().splitlines(keepends=True)
    path = tmp_path / "history.jsonl"
    path.write_bytes(b"".join(lines[:3]) + lines[3][:20])
    assert FORMATS["faultline"].read(path).history.outcome == ["ok", "info"]
    path.write_bytes(b"".join(lines[:2]) + lines[2][:20] + b"\n" + lines[3])
    with pytest.raises(UsageError, match="line 3: not an event"):
        FORMATS["faultline"].read(path)
    path.write_bytes(b"".join(lines[:3]) + lines[3].replace(b'"', b"'", 1))
    with pytest.raises(UsageError, match="line 4: not an event"):
        FORMATS["faultline"].read(path)


# -- folders --------------------------------------------------------------------------------------------------------


def test_a_folder_is_searched_for_histories_and_runs_stand_for_themselves(tmp_path):
    (tmp_path / "b" / "run").mkdir(parents=True)
    (tmp_path / "b" / "run" / "history.jsonl").write_bytes(own_history().to_jsonl())
    (tmp_path / "b" / "run" / "verdict.json").write_text("{}")
    (tmp_path / "a.edn").write_text(edn(("write", "1", "1")))
    (tmp_path / "README.md").write_text("# About\n")
    (tmp_path / ".hidden").write_text("{:type :invoke}")
    found = [(str(path.relative_to(tmp_path)), is_history) for path, is_history in files_in(tmp_path)]
    assert found == [("README.md", False), ("a.edn", True), ("b/run", True)]


# -- large files ----------------------------------------------------------------------------------------------------


def keyed_jsonl(keys, operations, wrong_key=None):
    """Two clients that take turns on registers, one operation of each always open, the last for ever."""
    lines, index, values = [], 0, {}
    for number in range(operations):
        key, process = f"k{number * 7 % keys}", number
        write = {"process": process, "f": "write", "key": key, "value": number}
        lines.append({"index": index, "time_us": index, "type": "invoke", **write})
        if number % 50:
            values[key] = number
            answer = number if key != wrong_key else -1
            lines.append({"index": index + 1, "time_us": index + 1, "type": "ok", **write, "value": None})
            read = {"process": process, "f": "read", "key": key}
            lines.append({"index": index + 2, "time_us": index + 2, "type": "invoke", **read, "value": None})
            lines.append({"index": index + 3, "time_us": index + 3, "type": "ok", **read, "value": answer})
        index += 4
    return "".join(json.dumps(line) + "\n" for line in lines)


@pytest.mark.parametrize("wrong_key", [None, "k3"])
def test_a_large_file_gets_the_same_verdict_in_parts(tmp_path, monkeypatch, wrong_key):
    monkeypatch.setattr("faultline.checkers.importers.partition._SEGMENT_EVENTS", 97)
    path = tmp_path / "history.jsonl"
    path.write_text(keyed_jsonl(11, 400, wrong_key))
    whole = check_file(path)
    (checked,) = check_histories(path, large_bytes=20_000)
    parts = checked.result
    assert parts.verdict is whole.verdict
    assert parts.detail["parts"] > 1
    assert parts.detail["keys"] == whole.detail["keys"] == 11
    assert checked.operations == len(FORMATS["faultline"].read(path).history)
    assert [finding.operations for finding in parts.findings] == [finding.operations for finding in whole.findings]
    assert [finding.sentence.split(";")[0] for finding in parts.findings] == [
        finding.sentence.split(";")[0] for finding in whole.findings
    ]


def test_tuples_are_keys_in_parts_too_and_a_value_that_is_none_is_refused(tmp_path):
    path = tmp_path / "history.edn"
    operations = [("write", f"[{number % 5} {number}]", f"[{number % 5} {number}]") for number in range(200)]
    path.write_text(edn(("read", "[0 nil]", "[0 nil]"), *operations))
    (checked,) = check_histories(path, large_bytes=2_000)
    assert (checked.result.verdict, checked.result.detail["keys"]) == (Verdict.PASS, 5)


def test_a_large_history_without_keys_is_checked_whole(tmp_path):
    path = tmp_path / "history.edn"
    path.write_text(edn(*[("write", str(number), str(number)) for number in range(100)]))
    (checked,) = check_histories(path, large_bytes=100)
    assert checked.numbers is None
    assert checked.result.verdict is Verdict.PASS


# -- bad input ------------------------------------------------------------------------------------------------------

READ = "{:type :invoke, :process 0, :f :read}"
BROKEN = {
    "[": "line 1: the text ends within a vector",
    f"[{READ}": "line 1: the text ends within a vector",
    f"[{READ}\n {{:type :ok, :process 1, :f :read}}]": "line 2: process 1 completes 'read', but it has invoked no",
    f"{READ}\n\n{READ}": "line 3: process 0 invokes while its operation before is still open (event 2)",
    f"{READ} {READ}": "line 1: process 0 invokes while its operation before is still open (event 2)",
    "[1 2]": "line 1: an event must be a map",
    f"[{READ}\n ]]": "line 2: `]` closes nothing",
    f"{READ}\n{{:type :ok :process 0 :f :read :value ##NaN}}": "line 2: `##NaN` cannot be compared",
}


@pytest.mark.parametrize(("text", "cause"), BROKEN.items())
def test_a_broken_history_is_refused_with_file_line_and_cause(tmp_path, text, cause):
    path = tmp_path / "history.edn"
    path.write_text(text)
    with pytest.raises(UsageError) as refused:
        check_file(path, "jepsen-edn")
    assert refused.value.message.startswith(f"{path}, {cause}")


def test_a_refused_event_is_told_by_its_line_though_the_line_is_damaged_later(tmp_path):
    path = tmp_path / "history.edn"
    far = " " * 2_000_000
    path.write_text(f"[{READ}\n {{:type :ok, :process 1, :f :read}}{far}]]")
    with pytest.raises(UsageError) as refused:
        check_file(path, "jepsen-edn")
    assert refused.value.message.startswith(f"{path}, line 2: process 1 completes 'read', but it has invoked no")


@pytest.mark.parametrize("text", ["", "[]", "; nothing here\n", "()"])
def test_a_history_without_operations_proves_nothing(tmp_path, text):
    path = tmp_path / "history.edn"
    path.write_text(text)
    assert check_file(path).verdict is Verdict.VACUOUS


def test_a_file_of_no_known_format_asks_for_one(tmp_path):
    (tmp_path / "notes.txt").write_text("Dear diary,\n")
    with pytest.raises(UsageError, match="in no known format"):
        format_of(tmp_path / "notes.txt")


def test_operations_that_are_no_transactions_are_refused_as_elles(tmp_path):
    path = tmp_path / "history.edn"
    path.write_text(edn(("read", "nil", "1")))
    with pytest.raises(UsageError, match="operation 1: `read` is not a transaction"):
        check_file(path, "elle")


def test_values_of_ten_megabytes_and_mixed_types_are_judged_all_the_same(tmp_path):
    long = '"' + "x" * 10_000_000 + '"'
    path = tmp_path / "history.edn"
    path.write_text(edn(("write", long, long), ("read", "nil", long), ("write", "[1 {:a #{2}}]", "[1 {:a #{2}}]")))
    assert check_file(path).verdict is Verdict.PASS
    path.write_text(edn(("write", long, long), ("read", "nil", "true")))
    result = check_file(path)
    assert result.verdict is Verdict.VIOLATION
    assert len(result.sentence) < 1000


@pytest.mark.parametrize(
    ("written", "read"), [("1", "true"), ("1", "1.0"), ('"1"', "1"), ("nil", '"nil"'), ("0", "false")]
)
def test_values_of_different_types_are_different(tmp_path, written, read):
    path = tmp_path / "history.edn"
    path.write_text(edn(("write", written, written), ("read", "nil", read)))
    assert check_file(path, model="cas-register").verdict is Verdict.VIOLATION


KINDS = {
    "list-append": [[["r", "x", [1]]], [["append", "x", 1]]],
    "rw-register": [[["w", "x", 1]], [["r", "x", 1]]],
    "txn-set": [[["r", "x", [1]]], [["add", "x", 1]]],
    "txn-counter": [[["r", "x", 1]], [["inc", "x", 1]]],
    "closed-predicate": [[["w", "x", 1]], [["rp", "true", {"x": 1}]]],
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_kind_of_transactions_is_told_by_their_micro_operations(kind):
    history = History()
    for number, micro_operations in enumerate(KINDS[kind]):
        row = history.invoke(Operation(number, "txn", None, micro_operations), number, 0, "")
        history.complete(row, ok(micro_operations), number)
    assert judge("serializable", history).name == kind


def test_reads_of_lists_alone_are_of_lists():
    history = History()
    history.complete(history.invoke(Operation(0, "txn", None, [["r", "x", None]]), 0, 0, ""), ok([["r", "x", [1]]]), 1)
    assert judge("serializable", history).name == "list-append"


def test_a_large_parquet_file_is_read_run_by_run_like_a_small_one(tmp_path):
    write_parquet(tmp_path / "part-00000.parquet", history_table("bad", own_history(2)))
    (checked,) = check_histories(tmp_path / "part-00000.parquet", large_bytes=1)
    assert checked.result.verdict is Verdict.VIOLATION
