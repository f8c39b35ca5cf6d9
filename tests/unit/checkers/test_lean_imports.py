"""A checker imports only modules that it needs: a command that checks one small file should not wait for the rest."""

from __future__ import annotations

import subprocess
import sys

import pytest

EXPLAINING = {
    f"faultline.checkers.linearizability.{name}" for name in ("classify", "evidence", "explain", "kv", "objects")
}
OTHER_MODELS = {"faultline.checkers.linearizability.monitors", "faultline.checkers.linearizability.generic"}
PORT = {f"faultline.checkers.porcupine.{name}" for name in ("model", "search", "visualization")}
HEAVY = {"hashlib", "logging", "click", "numpy", "pyarrow", "concurrent.futures"}


def imported_by(code: str) -> set[str]:
    shown = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"], check=True, capture_output=True, text=True
    )
    return set(shown.stdout.split())


@pytest.mark.slow
def test_the_linearizability_checker_comes_without_what_only_a_refusal_or_another_model_needs() -> None:
    imported = imported_by("from faultline.checkers import LinearizabilityChecker; LinearizabilityChecker()")
    assert "faultline.checkers.linearizability.checker" in imported
    assert imported & (EXPLAINING | OTHER_MODELS | PORT | HEAVY) == set()


@pytest.mark.slow
def test_the_names_of_the_library_come_without_what_judges_and_draws() -> None:
    imported = imported_by("from faultline.checkers import Model, Operation, check")
    assert "faultline.checkers.library.checking" in imported
    assert not any(name.startswith(("faultline.reports", "faultline.checkers.linearizability")) for name in imported)
    assert imported & (HEAVY | {"msgspec", "jinja2", "importlib.metadata", "pathlib"}) == set()


@pytest.mark.slow
def test_a_first_check_of_a_register_draws_nothing_and_asks_for_no_plug_in() -> None:
    code = (
        "from faultline.checkers import Operation, check\nassert check('register', [Operation(0, 'read', 0, None, 1)])"
    )
    imported = imported_by(code)
    assert imported & (EXPLAINING | OTHER_MODELS | HEAVY | {"jinja2", "importlib.metadata"}) == set()


@pytest.mark.slow
def test_listing_checkers_and_naming_the_port_import_neither() -> None:
    imported = imported_by(
        "import faultline.checkers, faultline.checkers.porcupine, faultline.checkers.linearizability"
    )
    assert not any(name.startswith("faultline.checkers.linearizability.") for name in imported)
    assert not any(name.startswith("faultline.checkers.porcupine.") for name in imported)
    assert "msgspec" not in imported


def test_every_name_of_the_port_can_be_asked_for() -> None:
    from faultline.checkers import linearizability, porcupine

    for package in (porcupine, linearizability):
        assert all(getattr(package, name) is not None for name in package.__all__)
        assert not hasattr(package, "nothing")
