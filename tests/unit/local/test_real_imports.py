"""A node process starts fast because it imports nothing heavy, and the same system builds in any process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from faultline.harness.world.local.node_process import load_system

HEAVY = ("pyspark", "pyarrow", "numpy", "pandas", "hypothesis", "pytest", "paramiko", "jinja2")


@pytest.mark.real
def test_a_node_process_imports_nothing_heavy() -> None:
    program = (
        "import sys; from faultline.harness.world.local.node_process import load_system; "
        "load_system('faultline.systems_under_test.reference.consistent_core.system:ConsistentCore'); "
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert finished.stdout.strip() == "[]"


def test_a_system_is_found_by_its_path() -> None:
    system = load_system("faultline.systems_under_test.reference.consistent_core.system:ConsistentCore")
    assert system.name == "consistent-core"
