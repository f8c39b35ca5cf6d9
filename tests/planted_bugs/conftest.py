"""The planted bugs of the storage patterns use the storage double and the timers of their unit tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "patterns"))
