"""Planted bugs of what reads the histories of other tools, and large ones in parts."""

from __future__ import annotations

from planted_harness_bug import HarnessBug

__all__ = ["BUGS"]

_EDN = "an_edn_history_is_read_row_by_row"
_KEYS = "keys_in_values_stay_apart"
_REFUSED = "what_is_no_execution_is_refused"
_PARQUET = "histories_of_a_campaign_are_read_run_by_run"
_PARTS = "a_large_history_is_judged_in_all_its_parts"
_RECORDER = "faultline.checkers.importers.events:EventRecorder"

BUGS = (
    HarnessBug(
        name="timeouts-are-failures",
        breaks="An operation that timed out counts as one that certainly did not happen.",
        place=f"{_RECORDER}._complete",
        before='"fail" if kind == "fail" else "info"',
        after='"fail"',
        caught_by=_EDN,
    ),
    HarnessBug(
        name="failures-are-timeouts",
        breaks="An operation that failed counts as one that may have happened.",
        place=f"{_RECORDER}._complete",
        before='"fail" if kind == "fail" else "info"',
        after='"info"',
        caught_by=_EDN,
    ),
    HarnessBug(
        name="answers-are-dropped",
        breaks="What a read answered is lost.",
        place=f"{_RECORDER}._complete",
        before='outcome = Outcome("ok", value,',
        after='outcome = Outcome("ok", history.value[row],',
        caught_by=_EDN,
    ),
    HarnessBug(
        name="nanoseconds-are-microseconds",
        breaks="Times of Jepsen are a thousand times too long.",
        place=f"{_RECORDER}._time_us",
        before="int(time // divisor)",
        after="int(time)",
        caught_by=_EDN,
    ),
    HarnessBug(
        name="nemesis-events-are-not-counted",
        breaks="A history with faults looks like one without.",
        place=f"{_RECORDER}.record",
        before="self.nemesis_events += 1",
        after="self.nemesis_events += 0",
        caught_by=_EDN,
    ),
    HarnessBug(
        name="errors-are-dropped",
        breaks="Why an operation failed is lost.",
        place="faultline.checkers.importers.events:_error_code",
        before="if error is None:",
        after="if error:",
        caught_by=_EDN,
    ),
    HarnessBug(
        name="importer-drops-the-key",
        breaks="The operations of all keys are taken for those of one.",
        place=f"{_RECORDER}._invoke",
        before="None if key is None else str(key)",
        after="None if key else key",
        caught_by=_KEYS,
    ),
    HarnessBug(
        name="equal-names-are-one-key",
        breaks='The key 1 and the key "1" are the same.',
        place="faultline.checkers.importers.independent:KeyNames.__missing__",
        before="while name in self._taken:",
        after="while not name:",
        caught_by=_KEYS,
    ),
    HarnessBug(
        name="results-keep-their-key",
        breaks="The result of a lifted operation is still a tuple of key and value.",
        place="faultline.checkers.importers.independent:split_tuples",
        before="None if result is None else result[1]",
        after="None if result is None else result",
        caught_by=_KEYS,
    ),
    HarnessBug(
        name="process-invokes-twice",
        breaks="A process may invoke while its operation before is still open, which is then never seen to end.",
        place=f"{_RECORDER}._invoke",
        before="if process in self._open:",
        after="if process in ():",
        caught_by=_REFUSED,
    ),
    HarnessBug(
        name="completion-of-another-function-is-taken",
        breaks="A read may complete as a write.",
        place=f"{_RECORDER}._complete",
        before="if f is not None and f != history.f[row]:",
        after="if f is not None and not history.f[row]:",
        caught_by=_REFUSED,
    ),
    HarnessBug(
        name="index-may-go-back",
        breaks="Events need not be in order.",
        place=f"{_RECORDER}._set_index",
        before="if index < self.history.next_index:",
        after="if index < 0:",
        caught_by=_REFUSED,
    ),
    HarnessBug(
        name="write-may-write-another-value",
        breaks="A write of 1 may complete as one of 2.",
        place=f"{_RECORDER}._check_written",
        before="if asked is not None:",
        after="if asked is True:",
        caught_by=_REFUSED,
    ),
    HarnessBug(
        name="torn-array-is-whole",
        breaks="A JSON file that was cut off within its array is taken for a whole one.",
        place="faultline.checkers.importers.json_stream:JsonReader.finish",
        before="if self._in_array and not self._is_over:",
        after="if self._in_array and objects is None:",
        caught_by=_REFUSED,
    ),
    HarnessBug(
        name="second-value-of-a-key-wins",
        breaks="An event may name its value twice; the second is taken.",
        place="faultline.checkers.importers.json_stream:_object",
        before="if len(mapping) != len(pairs):",
        after="if len(mapping) > len(pairs):",
        caught_by=_REFUSED,
    ),
    HarnessBug(
        name="damaged-lines-are-left-out",
        breaks="A damaged line in the middle of a history is left out, and with it an event.",
        place="faultline.checkers.importers.text:Lines.__iter__",
        before="torn, has_end = error, text",
        after="torn, has_end = None, text",
        caught_by=_REFUSED,
    ),
    HarnessBug(
        name="last-run-of-a-file-is-lost",
        breaks="The last run of a campaign's file is not judged.",
        place="faultline.checkers.importers.parquet:_runs",
        before="    if parts:\n        yield",
        after="    if not parts:\n        yield",
        caught_by=_PARQUET,
    ),
    HarnessBug(
        name="runs-end-with-their-row-group",
        breaks="Of a run in two row groups, each half counts as the whole run.",
        place="faultline.checkers.importers.parquet:_runs",
        before="if parts and run_id != current:",
        after="if parts:",
        caught_by=_PARQUET,
    ),
    HarnessBug(
        name="merged-parts-take-the-first-verdict",
        breaks="A history that was judged in parts has the verdict of its first part.",
        place="faultline.checkers.merging:merged",
        before="verdict = merge(result.verdict for result in telling)",
        after="verdict = telling[0].verdict",
        caught_by=_PARTS,
    ),
    HarnessBug(
        name="parts-keep-their-own-numbers",
        breaks="A finding in a part names the operations by their numbers in the part.",
        place="faultline.checkers.merging:_renumbered_finding",
        before="tuple(numbers[row] for row in finding.operations)",
        after="tuple(finding.operations)",
        caught_by=_PARTS,
    ),
    HarnessBug(
        name="last-part-is-dropped",
        breaks="The last part of a large history is not judged.",
        place="faultline.checkers.merging:merged",
        before="telling = [",
        after="results = results[: max(1, len(results) - 1)]\n    telling = [",
        caught_by=_PARTS,
    ),
)
