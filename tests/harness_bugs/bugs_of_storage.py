"""Planted bugs of what keeps runs and reads them back: results files, folders of runs, stored records."""

from __future__ import annotations

from planted_harness_bug import HarnessBug

__all__ = ["BUGS"]

_WHOLE = "a_file_appears_whole_or_not_at_all"
_FOLDERS = "no_two_runs_share_a_folder"
_BACK = "a_run_is_read_back_as_it_was"
_OTHER = "a_verdict_of_another_history_is_not_taken"
_DAMAGED = "a_damaged_file_is_never_taken_for_a_whole_one"

BUGS = (
    HarnessBug(
        name="files-are-not-synced",
        breaks="A file has its name before its bytes are on the disk.",
        place="faultline.harness.results:write_pieces",
        before="            if durable:\n                _sync(descriptor)",
        after="            if not durable:\n                _sync(descriptor)",
        caught_by=_WHOLE,
    ),
    HarnessBug(
        name="names-are-not-synced",
        breaks="A file's name may be lost with the power, though its bytes are on the disk.",
        place="faultline.harness.results:write_pieces",
        before="_sync_folder(path.parent)",
        after="pass",
        caught_by=_WHOLE,
    ),
    HarnessBug(
        name="files-are-written-in-place",
        breaks="A file is written under its own name, so that half of one can be read.",
        place="faultline.harness.results:write_pieces",
        before=(
            "unique_partial(path)\n    try:\n        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL"
        ),
        after="path\n    try:\n        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC",
        caught_by=_WHOLE,
    ),
    HarnessBug(
        name="partial-files-are-left",
        breaks="A write that failed leaves its half behind.",
        place="faultline.harness.results:write_pieces",
        before="partial.unlink()",
        after="partial.exists()",
        caught_by=_WHOLE,
    ),
    HarnessBug(
        name="writers-share-a-partial-name",
        breaks="Two writers of the same file write into the same half.",
        place="faultline.harness.results:unique_partial",
        before="{socket.gethostname()}-{os.getpid()}-{os.urandom(4).hex()}",
        after="{socket.gethostname()}",
        caught_by=_WHOLE,
    ),
    HarnessBug(
        name="files-of-others-are-replaced",
        breaks="A file that was to stay is replaced.",
        place="faultline.harness.results:write_pieces",
        before="if replace:",
        after="if path:",
        caught_by=_WHOLE,
    ),
    HarnessBug(
        name="files-of-others-are-replaced-without-links",
        breaks="Where there are no hard links, a file that was to stay is replaced.",
        place="faultline.harness.results:_link",
        before="if not target.exists():",
        after="if source.exists():",
        caught_by="tests/unit/campaign/test_campaign_units.py::test_where_there_are_no_hard_links_a_part_is_kept_as_well",
    ),
    HarnessBug(
        name="short-writes-count-as-whole",
        breaks="Of a write that a full disk took a part of, the rest is lost.",
        place="faultline.harness.results:_write",
        before="    while rest:\n        rest = rest[os.write(descriptor, rest) :]",
        after="    os.write(descriptor, rest)",
        caught_by=_WHOLE,
    ),
    HarnessBug(
        name="full-store-is-swallowed",
        breaks="A store that cannot be written is no error.",
        place="faultline.harness.results:writable",
        before="    except OSError as error:\n",
        after="    except OSError:\n        return\n    except ArithmeticError as error:\n",
        caught_by=_WHOLE,
    ),
    HarnessBug(
        name="run-id-leaves-options-out",
        breaks="Runs that differ in an option only have the same id.",
        place="faultline.harness.store:run_id_of",
        before="encode((asked, hosts,",
        after="encode((asked.cell, asked.seed, hosts,",
        caught_by=_FOLDERS,
    ),
    HarnessBug(
        name="run-id-leaves-hosts-out",
        breaks="The same run on other hosts has the same id.",
        place="faultline.harness.store:run_id_of",
        before="encode((asked, hosts,",
        after="encode((asked,",
        caught_by=_FOLDERS,
    ),
    HarnessBug(
        name="folder-of-an-earlier-run-is-reused",
        breaks="A run writes into the folder of an earlier one.",
        place="faultline.harness.store:claim_folder",
        before="(parent / name).mkdir()",
        after="(parent / name).mkdir(exist_ok=True)",
        caught_by=_FOLDERS,
    ),
    HarnessBug(
        name="last-operation-of-a-block-is-lost",
        breaks="A plan whose length is one more than a multiple of a thousand loses its last operation.",
        place="faultline.harness.store:_run_file_pieces",
        before="range(0, len(operations), _OPERATIONS_AT_ONCE)",
        after="range(0, len(operations) - 1, _OPERATIONS_AT_ONCE)",
        caught_by="a_long_plan_is_stored_to_its_last_operation",
    ),
    HarnessBug(
        name="stale-verdict-is-taken",
        breaks="A verdict on another history counts as that of this run: digests are not compared.",
        place="faultline.harness.stored_record:judgement_in",
        before='if history_sha256 and judgement.history_sha256 not in ("", history_sha256):',
        after='if history_sha256 and judgement.history_sha256 == "":',
        caught_by=_OTHER,
    ),
    HarnessBug(
        name="verdict-of-another-plan-is-taken",
        breaks="A verdict on another plan counts as that of this run.",
        place="faultline.harness.stored_record:judgement_in",
        before='if judgement.plan_sha256 not in ("", plan.digest()):',
        after='if judgement.plan_sha256 == "":',
        caught_by=_OTHER,
    ),
    HarnessBug(
        name="stored-errors-are-dropped",
        breaks="A run that is judged again forgets what went wrong in the harness.",
        place="faultline.harness.stored_record:take_observations",
        before="list(judgement.errors), _breaches(judgement)",
        after="[], _breaches(judgement)",
        caught_by=_BACK,
    ),
    HarnessBug(
        name="stored-breaches-are-dropped",
        breaks="A run that is judged again forgets which invariants broke.",
        place="faultline.harness.stored_record:_breaches",
        before="if check.checker == _INVARIANTS",
        after="if check.checker != _INVARIANTS",
        caught_by=_BACK,
    ),
    HarnessBug(
        name="stored-interruption-is-dropped",
        breaks="A run that is judged again forgets that it was interrupted.",
        place="faultline.harness.stored_record:take_observations",
        before="record.interrupted = judgement.interrupted",
        after="record.interrupted = False",
        caught_by=_BACK,
    ),
    HarnessBug(
        name="stored-faults-have-no-end",
        breaks="The faults of a run that is judged again last as long as its history.",
        place="faultline.harness.stored_record:_intervals",
        before='elif verb == "stop" and',
        after='elif verb == "end" and',
        caught_by=_BACK,
    ),
    HarnessBug(
        name="stored-faults-all-bit",
        breaks="A fault that did not bite counts as applied once its run is read back.",
        place="faultline.harness.stored_record:_intervals",
        before='number = told.pop("fault")',
        after='number, told["applied"] = told.pop("fault"), None',
        caught_by=_BACK,
    ),
)
