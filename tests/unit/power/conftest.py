"""The toy store, installed as a plug-in; worker processes find it on the path."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

POINTS = "[faultline.systems]\ntoy = toy_store:Toy\nforgetful = toy_store:Forgetful\n"


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a distribution with the toy store."""
    folder = tmp_path / "site"
    info = folder / "toy_store-1.0.dist-info"
    info.mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("toy_store.py"), folder)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-store\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "toy_store", raising=False)
    return folder
