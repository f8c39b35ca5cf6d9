"""`faultline check`: one line per history, the explanation of a violation, merged exit codes, JSON."""

from __future__ import annotations

import json
import shlex
from functools import partial
from pathlib import Path

import pytest

from faultline.harness.history import History
from faultline.harness.operation import Operation
from faultline.harness.outcome import ok

DATA = Path(__file__).parents[1] / "data" / "histories"

GOOD = "[{:type :invoke, :process 0, :f :write, :value 1} {:type :ok, :process 0, :f :write, :value 1}]\n"
BAD = GOOD[:-2] + " {:type :invoke, :process 1, :f :read} {:type :ok, :process 1, :f :read, :value 2}]\n"


@pytest.fixture
def check(faultline):
    """Run `faultline check` in a folder with a good, a bad, a broken and an empty history."""
    Path("good.edn").write_text(GOOD)
    Path("bad.edn").write_text(BAD)
    Path("broken.edn").write_text(GOOD[:-3])
    Path("empty.edn").write_text("")
    return partial(faultline, "check")


_TXNS = [(key, after) for key, after in zip("abcdefghij", "bcdefghija")]
SKEW = "".join(
    f"{{:type :invoke, :process {n}, :f :txn, :value [[:append :{key} 1] [:r :{after} nil]]}} "
    for n, (key, after) in enumerate(_TXNS)
) + "".join(
    f"{{:type :ok, :process {n}, :f :txn, :value [[:append :{key} 1] [:r :{after} []]]}} "
    for n, (key, after) in enumerate(_TXNS)
)
"""Ten transactions at once, each of which misses what the next one appended."""

STALE = "".join(
    f"{{:type :{kind}, :process {process}, :f :{f}, :value {value}}}\n"
    for process, f, value in ((0, "write", 4), (0, "write", 5), (1, "read", 4))
    for kind in ("invoke", "ok")
)

EXIT_CODES = [
    (("good.edn",), 0),
    (("bad.edn",), 1),
    (("broken.edn",), 2),
    (("empty.edn",), 3),
    (("good.edn", "empty.edn"), 3),
    (("good.edn", "empty.edn", "broken.edn"), 2),
    (("broken.edn", "bad.edn", "good.edn"), 1),
    (("nowhere.edn",), 2),
    (("good.edn", "--format", "edn"), 2),
    (("good.edn", "--model", "bank-account"), 2),
    (("good.edn", "--option", "failed_cas"), 2),
]


@pytest.mark.parametrize(("arguments", "code"), EXIT_CODES)
def test_exit_codes_merge_with_a_violation_first(check, arguments, code):
    assert check(*arguments)[0] == code


def test_there_is_one_line_per_file_and_the_rest_is_checked_when_one_is_broken(check):
    code, out, err = check("good.edn", "broken.edn", "bad.edn")
    assert [line.split(":")[:2] for line in out.splitlines()] == [["good.edn", " pass"], ["bad.edn", " violation"]]
    assert "faultline: broken.edn, line 1: the text ends within a map." in err
    assert code == 1


def test_a_violation_of_one_file_is_explained_with_numbered_operations(check):
    _, out, _ = check("bad.edn")
    first, *block = out.splitlines()
    assert first.startswith("bad.edn: violation: At event 4 client 1 read 2")
    assert block[0] == "  garbage-read, shown by 1 of 2 operations:"
    assert block[1] == "     1. event 3–4: client 1 read 2"
    assert "cannot be next" in block[2]


def test_explanations_can_be_asked_for_and_left_out(check):
    assert len(check("bad.edn", "--no-explain")[1].splitlines()) == 1
    assert len(check("bad.edn", "good.edn")[1].splitlines()) == 2
    assert len(check("bad.edn", "good.edn", "--explain")[1].splitlines()) > 3


def test_a_cycle_is_told_edge_by_edge(check):
    _, out, _ = check(str(DATA / "elle" / "paper-example.edn"))
    lines = [line.strip() for line in out.splitlines()]
    assert "T1. event 3–4: client 0 appended 8 to 255 and read [1, 3, 4] from 253, in one transaction" in lines
    assert "T3 before T1 (rw): T3 read [2, 3, 4, 5] from 255, before T1 appended 8" in lines


def test_json_has_one_object_per_file_with_the_verdict_and_its_rows(check):
    code, out, _ = check("good.edn", "broken.edn", "bad.edn", "--json")
    good, broken, bad = map(json.loads, out.splitlines())
    assert code == 1
    assert (good["file"], good["format"], good["model"], good["verdict"]) == (
        "good.edn",
        "jepsen-edn",
        "cas-register",
        "pass",
    )
    assert (good["operations"], good["nemesis_events"]) == (1, 0)
    assert broken["error"].startswith("broken.edn, line 1:") and broken["next_step"]
    assert bad["findings"][0]["operations"] == [1]


def test_a_folder_is_searched_and_what_is_no_history_is_named(check):
    Path("deep").mkdir()
    Path("deep", "a.edn").write_text(BAD)
    Path("deep", "notes.txt").write_text("Dear diary,")
    code, out, err = check("deep")
    assert (code, out.splitlines()[0].split(":")[0]) == (1, "deep/a.edn")
    assert "deep/notes.txt is not a history and is left out" in err


def test_a_folder_without_histories_proves_nothing(check):
    Path("bare").mkdir()
    assert check("bare")[0] == 3


def test_the_folder_of_a_run_stands_for_its_history(check):
    history = History()
    history.complete(history.invoke(Operation(0, "read", "k"), 10, 0, "athens"), ok(3), 2_000)
    Path("run").mkdir()
    Path("run", "history.jsonl").write_bytes(history.to_jsonl())
    code, out, _ = check("run")
    assert code == 1
    assert "     1. 0.000010–0.002000 s: client 0 read 3 from k" in out.splitlines()


def test_options_reach_the_checker_as_json_values(check):
    Path("bank.edn").write_text(
        "{:type :invoke, :process 0, :f :read} {:type :ok, :process 0, :f :read, :value {0 5, 1 -1}}"
    )
    assert check("bank.edn", "--model", "bank")[0] == 1
    allowed = ("bank.edn", "--model", "bank", "--option", "negative-balances=true")
    assert check(*allowed, "--option", "total=4")[0] == 0
    assert check(*allowed, "--option", "total=5")[0] == 1
    # The only read gives the total itself, and says nothing then.
    assert check(*allowed)[0] == 3


def test_what_was_not_established_is_unknown(check):
    Path("counter.edn").write_text(
        "{:type :invoke, :process 0, :f :add, :value 1} {:type :ok, :process 0, :f :add, :value 1}"
    )
    code, out, _ = check("counter.edn", "--model", "counter", "--timeout", "1")
    assert (code, out.split(": ")[1]) == (3, "unknown")


def test_what_a_search_knew_when_it_gave_up_is_told(check):
    begin = "".join(f"{{:type :invoke, :process {n}, :f :write, :value {n % 2}}} " for n in range(16))
    end = "".join(f"{{:type :ok, :process {n}, :f :write, :value {n % 2}}} " for n in range(16))
    Path("hard.edn").write_text(begin + end)
    code, out, _ = check("hard.edn", "--option", "steps_max=3")
    first, *block = out.splitlines()
    assert (code, first.split(": ")[1]) == (3, "unknown")
    assert "3 of 16 completed operations, all that had ended by event 19, can be put in order" in first
    assert "Next: Judge it again with a larger budget: faultline check hard.edn --option steps-max=75;" in block[0]
    assert block[1] == "  The longest order has 3 operations and leads to 0. Not in it:"
    assert block[2] == "     1. event 4–20: client 3 wrote 1"


def test_the_next_step_of_an_undecided_check_decides_it(check):
    begin = "".join(f"{{:type :invoke, :process {n}, :f :write, :value {n % 2}}} " for n in range(16))
    end = "".join(f"{{:type :ok, :process {n}, :f :write, :value {n % 2}}} " for n in range(16))
    Path("a file.edn").write_text(begin + end)
    limits = ("--option", "steps-max=3", "--option", "failed-cas=ignore", "--format", "jepsen-edn")
    told = json.loads(check("a file.edn", "--model", "register", *limits, "--json")[1])
    assert told["reason"] == {"cause": "budget", "option": "steps_max", "value": 3}
    command = told["next_step"].partition(": ")[2].partition(";")[0]
    program, verb, *offered = shlex.split(command)
    assert (program, verb, offered[0]) == ("faultline", "check", "a file.edn")
    assert {"--model", "register", "failed-cas=ignore", "--format"} <= set(offered)
    code, out, _ = check(*offered, "--json")
    assert (code, json.loads(out)["next_step"]) == (0, "")


def test_what_spent_its_time_is_to_be_given_more_of_it(check):
    Path("skew.edn").write_text(SKEW)
    code, out, _ = check("skew.edn", "--model", "consistent-view", "--timeout", "0", "--option", "steps=4")
    assert (code, out.splitlines()[0].split(": ")[1]) == (3, "unknown")
    assert "Next: Give the check more time" in out.splitlines()[1]
    code, out, _ = check("skew.edn", "--model", "consistent-view", "--timeout", "1e-9", "--option", "steps=4")
    again = "faultline check skew.edn --model consistent-view --option steps=4 --timeout 1e-08"
    assert f"Next: Give it more time: {again};" in out.splitlines()[1]


def test_what_came_of_an_operation_is_told_in_words(check):
    Path("ends.edn").write_text(
        "{:type :invoke, :process 0, :f :write, :value 1} {:type :info, :process 0, :f :write, :error :timeout}"
        "{:type :invoke, :process 1, :f :cas, :value [1 2]} {:type :ok, :process 1, :f :cas, :value [1 2]}"
        "{:type :invoke, :process 2, :f :read} {:type :ok, :process 2, :f :read, :value 1}"
    )
    _, out, _ = check("ends.edn")
    assert "client 1 changed the register from 1 to 2" in out
    assert "client 0 tried to write 1: it may or may not have happened (timeout)" in out


def test_hostile_values_are_shown_without_effect(check):
    Path("hostile.edn").write_text(
        '{:type :invoke, :process 0, :f :read} {:type :ok, :process 0, :f :read, :value "\u202e\\u001b[2J"}'
    )
    _, out, _ = check("hostile.edn")
    block = "".join(out.splitlines(keepends=True)[1:])
    assert "\u202e" not in block
    assert "\x1b" not in block


@pytest.fixture
def verify(check, faultline):
    """Run `faultline verify` in the same folder."""
    return partial(faultline, "verify")


def test_a_proof_of_a_pass_is_verified(check, verify):
    assert check("good.edn", "--proof", "proof.json")[0] == 0
    assert verify("proof.json") == (0, "proof.json: pass: 1 certificate of good.edn holds.\n", "")


def test_a_proof_of_a_violation_is_verified_and_is_a_violation(check, verify):
    Path("stale.edn").write_text(STALE)
    assert check("stale.edn", "--proof", "proof.json")[0] == 1
    code, out, _ = verify("proof.json", "--json")
    assert code == 1
    assert json.loads(out) == {
        "file": "proof.json",
        "history": "stale.edn",
        "model": "cas-register",
        "verdict": "violation",
        "keys": 1,
        "illegal_keys": 1,
        "undecided": [],
    }


def test_a_proof_of_strings_is_verified_key_by_key(check, verify):
    assert check(str(DATA / "c01-bad.txt"), "--proof", "proof.json")[0] == 1
    code, out, _ = verify("proof.json")
    assert code == 1 and out.endswith("; 1 key not linearizable.\n")


@pytest.mark.parametrize(
    ("written", "instead", "cause"),
    [
        ('["write",5', '["write",4', "out of the set"),
        ('["write",5', '["get",5', "no operation of the model"),
        ('["write",5', '["cas",5', "no two values"),
        ('["write",5', '["cas",[5,5]', "changes nothing"),
        ('["read",4,4,5,2]', '["read",4,4,null,2]', "never returned"),
        ('["read",4,4,5,2]', '["read",4,4,3,2]', "times"),
        ('["read",4,4,5,2]', '["read",4,4,5,1]', "twice"),
        ('"undecided":[]', '"undecided":[null]', "names a key twice"),
        ('"configurations"', '"configuration"', "one of an order, a set"),
        ('"model":"cas-register"', '"model":"queue"', "queue"),
        ("[0,false", "[7,false", "does not name operations"),
    ],
)
def test_a_proof_that_was_changed_is_refused(check, verify, written, instead, cause):
    Path("stale.edn").write_text(STALE)
    check("stale.edn", "--proof", "proof.json")
    proof = Path("proof.json").read_text()
    assert written in proof
    Path("proof.json").write_text(proof.replace(written, instead))
    code, out, error = verify("proof.json")
    assert (code, out) == (2, "") and cause in error


QUEUE = """
{:process 0, :type :invoke, :f :enqueue, :value 1}
{:process 0, :type :ok, :f :enqueue, :value 1}
{:process 1, :type :invoke, :f :enqueue, :value 2}
{:process 1, :type :ok, :f :enqueue, :value 2}
{:process 0, :type :invoke, :f :dequeue, :value nil}
{:process 0, :type :ok, :f :dequeue, :value 2}
{:process 1, :type :invoke, :f :dequeue, :value nil}
{:process 1, :type :ok, :f :dequeue, :value 1}
"""


def test_a_proof_of_a_queue_names_the_values_of_which_one_overtook_the_other(check, verify):
    Path("queue.edn").write_text(QUEUE)
    assert check("queue.edn", "--model", "linearizable-queue", "--proof", "proof.json")[0] == 1
    assert '"contradiction":["overtaken",[0,1]]' in Path("proof.json").read_text()
    code, out, _ = verify("proof.json")
    assert code == 1 and out.endswith("1 certificate of queue.edn holds; 1 key not linearizable.\n")


@pytest.mark.parametrize(
    ("written", "instead", "cause"),
    [
        ('["overtaken",[0,1]]', '["overtaken",[1,0]]', "do not break the rule `overtaken`"),
        ('["overtaken",[0,1]]', '["overtaken",[0,9]]', "do not break the rule `overtaken`"),
        ('["overtaken",[0,1]]', '["no bottom",[0,1]]', "do not break the rule `no bottom`"),
        ('["dequeue",[null,2]', '["dequeue",[null,1]', "do not break the rule"),
        ('["dequeue",[null,2]', '["dequeue",[7,2]', "none of `dequeue`"),
        ('["dequeue",[null,2]', '["dequeue",[null]', "none of `dequeue`"),
        ('["dequeue",[null,2]', '["pop",[null,2]', "no operation of the model"),
        ('"model":"queue"', '"model":"quay"', "no model `quay`"),
    ],
)
def test_a_proof_of_a_queue_that_was_changed_is_refused(check, verify, written, instead, cause):
    Path("queue.edn").write_text(QUEUE)
    check("queue.edn", "--model", "linearizable-queue", "--proof", "proof.json")
    proof = Path("proof.json").read_text()
    assert written in proof
    Path("proof.json").write_text(proof.replace(written, instead))
    code, out, error = verify("proof.json")
    assert (code, out) == (2, "") and cause in error


def test_an_undecided_key_has_no_certificate_and_the_proof_is_unknown(check, verify):
    Path("stale.edn").write_text(STALE)
    check("stale.edn", "--proof", "proof.json")
    proof = json.loads(Path("proof.json").read_text()) | {"keys": [], "undecided": ["x"]}
    Path("proof.json").write_text(json.dumps(proof))
    assert verify("proof.json")[0] == 3
    Path("proof.json").write_text(json.dumps(proof | {"undecided": []}))
    assert verify("proof.json")[0] == 3


def test_a_proof_is_of_one_history_that_was_checked_for_linearizability_or_as_transactions(check):
    assert "2 are to be checked" in check("good.edn", "bad.edn", "--proof", "proof.json")[2]
    code, _, error = check("good.edn", "--model", "sequential", "--proof", "proof.json")
    assert (code, "nothing to prove" in error) == (2, True)
    assert not Path("proof.json").exists()
