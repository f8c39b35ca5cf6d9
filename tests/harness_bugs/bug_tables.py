"""All planted bugs of the harness, by table, and all scenarios by name."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import bugs_of_campaigns
import bugs_of_commands
import bugs_of_imports
import bugs_of_runs
import bugs_of_storage
import bugs_of_verdicts
import scenarios_of_commands
import scenarios_of_imports
import scenarios_of_runs
import scenarios_of_storage
import scenarios_of_verdicts
from known_answers import Scenario
from planted_harness_bug import HarnessBug

# The fake world of the tests of campaigns.
sys.path.append(str(Path(__file__).resolve().parents[1] / "unit" / "campaign"))
import scenarios_of_campaigns

__all__ = ["SCENARIOS", "TABLES"]

TABLES: Mapping[str, tuple[HarnessBug, ...]] = {
    "runs": bugs_of_runs.BUGS,
    "verdicts": bugs_of_verdicts.BUGS,
    "storage": bugs_of_storage.BUGS,
    "imports": bugs_of_imports.BUGS,
    "commands": bugs_of_commands.BUGS,
    "campaigns": bugs_of_campaigns.BUGS,
}

SCENARIOS: Mapping[str, Scenario] = {
    name: getattr(module, name)
    for module in (
        scenarios_of_verdicts,
        scenarios_of_imports,
        scenarios_of_storage,
        scenarios_of_runs,
        scenarios_of_commands,
        scenarios_of_campaigns,
    )
    for name in module.__all__
}
