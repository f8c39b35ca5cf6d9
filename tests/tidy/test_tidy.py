"""The house rules, applied to the whole repository; test_tidy_rules.py and test_voice_rules.py test the rules."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import PurePosixPath
from urllib.parse import unquote

from tidy_bans import (
    BANNED_EVERYWHERE,
    BANNED_IN_PLANS,
    BANNED_IN_WORLDS,
    complaints_about_names,
    complaints_about_sets,
)
from tidy_closure import complaints_about_closures, complaints_about_foreign_packages
from tidy_imports import complaints_about_cycles, complaints_about_direction, read_import_table, room_of
from tidy_names import complaints_about_coined_names, complaints_about_persons_in_names, named_files
from tidy_shape import (
    complaints_about_docstring,
    complaints_about_exports,
    complaints_about_headings,
    complaints_about_leftovers,
    complaints_about_length,
    complaints_about_private_imports,
    complaints_about_untested_errors,
)
from tidy_sources import CODE_FOLDERS, ROOT, Source, python_sources, text_files
from tidy_voice import (
    complaints_about_first_words,
    complaints_about_short_docstrings,
    complaints_about_uncommented_complexity,
    complaints_about_unexplained_exceptions,
    complaints_about_words,
)

IN_WORLDS = (
    "faultline/systems_under_test/patterns/",
    "faultline/systems_under_test/reference/",
    "faultline/harness/world/simulated/",
    "faultline/harness/world/weather.py",
)
IN_PLANS = (
    "faultline/harness/generator/",
    "faultline/harness/interpreter.py",
    "faultline/harness/planning.py",
    "faultline/nemesis/",
    "faultline/workloads/",
)
PROGRAMS = (
    "faultline/cli/",
    "faultline/harness/world/local/node_process.py",  # a node's log is the standard error of its process
)
VOICE_ROOMS = ("benchmarks/", "examples/", "faultline/", "tools/")
PATTERN_ROW = re.compile(r"^\| \[[^]]+\]\((faultline/[^)]+\.py)\)", re.MULTILINE)
NAMED_FILE = re.compile(r"`((?:benchmarks|faultline|tools)/[\w./-]+)`")
MARKDOWN_LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


@cache
def _library() -> list[Source]:
    return python_sources("faultline")


@cache
def _all_code() -> list[Source]:
    return python_sources(*CODE_FOLDERS)


def _below(*prefixes: str) -> list[Source]:
    sources = [source for source in _library() if source.path.startswith(prefixes)]
    assert sources, f"no code below {prefixes}: the rule would prove nothing"
    return sources


def _with_voice() -> list[Source]:
    return [source for source in _all_code() if source.path.startswith(VOICE_ROOMS)]


def _assert_none(complaints: list[str]) -> None:
    assert not complaints, "\n" + "\n".join(complaints)


def test_imports_run_in_the_direction_of_the_table_in_architecture_md() -> None:
    table = read_import_table((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    _assert_none(complaints_about_direction(_library(), table))


def test_the_import_table_names_every_room_and_no_other() -> None:
    table = read_import_table((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    rooms = {room for source in _library() if (room := room_of(source.module, table))}
    assert set(table) == rooms
    assert {name for names in table.values() for name in names} <= rooms


def test_imports_never_form_a_circle() -> None:
    _assert_none(complaints_about_cycles(_library()))


def test_the_node_of_a_system_imports_no_more_files_than_its_ceiling() -> None:
    _assert_none(complaints_about_closures(_library()))


def test_no_system_takes_anything_from_the_folder_of_another() -> None:
    _assert_none(complaints_about_foreign_packages(_library()))


def test_what_runs_inside_a_world_asks_only_its_ports() -> None:
    _assert_none([c for source in _below(*IN_WORLDS) for c in complaints_about_names(source, BANNED_IN_WORLDS)])


def test_what_plans_a_run_depends_only_on_its_seed() -> None:
    _assert_none([c for source in _below(*IN_PLANS) for c in complaints_about_names(source, BANNED_IN_PLANS)])


def test_the_order_of_a_set_decides_nothing() -> None:
    _assert_none([c for source in _below(*IN_WORLDS, *IN_PLANS) for c in complaints_about_sets(source)])


def test_only_programs_print() -> None:
    library = [source for source in _library() if not source.path.startswith(PROGRAMS)]
    _assert_none([c for source in library for c in complaints_about_names(source, BANNED_EVERYWHERE)])


def test_files_and_functions_are_short_enough() -> None:
    tolerated = tomllib.loads((ROOT / "tests/tidy/ratchet.toml").read_text(encoding="utf-8"))["lines"]
    sources = _all_code()
    complaints = [c for source in sources for c in complaints_about_length(source, tolerated)]
    paths = {source.path for source in sources}
    complaints += [f"{what}: no such file; remove the entry" for what in tolerated if what.split("::")[0] not in paths]
    _assert_none(complaints)


def test_every_module_exports_exactly_what_is_public() -> None:
    _assert_none([c for source in _library() for c in complaints_about_exports(source)])


def test_modules_take_from_each_other_only_what_is_exported() -> None:
    _assert_none(complaints_about_private_imports(_library()))


def test_every_module_says_what_it_is_for() -> None:
    _assert_none([c for source in _all_code() for c in complaints_about_docstring(source)])


def test_the_pattern_table_of_the_readme_names_modules_that_exist_and_tell_the_pattern() -> None:
    named = PATTERN_ROW.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(named) == 30, "the README's pattern table does not name thirty modules"
    by_path = {source.path: source for source in _library()}
    assert [path for path in named if path not in by_path] == []
    _assert_none([c for path in named for c in complaints_about_headings(by_path[path])])


def test_nothing_unfinished_is_marked_in_code_or_documents() -> None:
    _assert_none(
        [
            complaint
            for path in text_files()
            for complaint in complaints_about_leftovers(
                path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
            )
        ]
    )


def test_exceptions_from_the_rules_have_a_reason_beside_them() -> None:
    _assert_none(
        [complaint for source in _with_voice() for complaint in complaints_about_unexplained_exceptions(source)]
    )


def test_every_error_class_is_raised_in_some_test() -> None:
    _assert_none(complaints_about_untested_errors(_library(), python_sources("tests")))


def test_links_between_documents_lead_somewhere() -> None:
    broken = [
        f"{path.relative_to(ROOT)}: {target}"
        for path in text_files()
        if path.suffix == ".md"
        for target in MARKDOWN_LINK.findall(path.read_text(encoding="utf-8"))
        if "://" not in target and not (path.parent / unquote(target)).exists()
    ]
    _assert_none(broken)


def test_every_file_that_a_document_names_exists() -> None:
    # A name in capitals stands for another one.
    broken = [
        f"{path.relative_to(ROOT)} names {name}, which does not exist"
        for path in (*sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("*.md")))
        for name in NAMED_FILE.findall(path.read_text(encoding="utf-8"))
        if not re.search(r"\b[A-Z]+\b", PurePosixPath(name).stem) and not (ROOT / name).exists()
    ]
    _assert_none(broken)


def test_every_voice_room_exists() -> None:
    assert [room for room in VOICE_ROOMS if not any(source.path.startswith(room) for source in _all_code())] == []


def test_sentences_name_their_actors() -> None:
    # Generated pages repeat sentences of the code, which are judged there.
    texts = {path.relative_to(ROOT).as_posix(): path for path in text_files() if "generated" not in path.parts}
    _assert_none(
        [c for path, file in texts.items() for c in complaints_about_words(path, file.read_text(encoding="utf-8"))]
    )


def test_names_of_files_and_identifiers_name_their_actors() -> None:
    texts = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in text_files()}
    names = (*named_files(), *texts)
    _assert_none([c for path in names for c in complaints_about_persons_in_names(path, texts.get(path, ""))])


def test_docstrings_are_imperatives_or_noun_phrases() -> None:
    _assert_none([c for source in _all_code() for c in complaints_about_first_words(source)])


def test_docstrings_have_at_least_three_words() -> None:
    _assert_none([c for source in _with_voice() for c in complaints_about_short_docstrings(source)])


def test_names_are_terms_of_the_field() -> None:
    _assert_none([c for source in _with_voice() for c in complaints_about_coined_names(source)])


def test_complex_functions_say_why_they_are_right() -> None:
    _assert_none(complaints_about_uncommented_complexity(_with_voice()))
