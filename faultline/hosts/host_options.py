"""How the hosts of a run are to be, apart from what runs on them: `--host-option NAME=VALUE`.

A disk that lies is no fault that comes and goes and no option of the store: it is the machine somebody bought. So it
is chosen for the whole run, stands in the run's plan, and is shown in its report beside the system's own options.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from faultline.harness.errors import UsageError
from faultline.harness.system import OptionDescription
from faultline.hosts.clock_means import PROCESS_CLOCKS

__all__ = ["HOST_OPTIONS", "checked_host_options", "host_option"]

HOST_OPTIONS: dict[str, OptionDescription] = {
    "fsync": OptionDescription(
        default="honest",
        choices=("honest", "lies", "fails"),
        summary="lies: what nodes sync is acknowledged and not written down; fails: it is answered with EIO",
    ),
    "clock": OptionDescription(
        default="auto",
        choices=("auto", *PROCESS_CLOCKS),
        summary="by what means clock faults move the clocks of stores; auto: what the host file says, else the first "
        "of vdso and libfaketime that works there",
    ),
}
"""Every option of hosts by its name."""


def checked_host_options(asked: Mapping[str, str]) -> dict[str, str]:
    """What was asked for, if it can be had. Raises UsageError that names the option and its values."""
    for name, value in asked.items():
        if name not in HOST_OPTIONS:
            near = difflib.get_close_matches(name, HOST_OPTIONS, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"There is {', '.join(HOST_OPTIONS) or 'none'}."
            raise UsageError(f"Hosts have no option called {name!r}.", hint)
        choices = HOST_OPTIONS[name].choices
        if choices and value not in choices:
            raise UsageError(f"The host option {name} cannot be {value!r}.", f"Choose one of {', '.join(choices)}.")
        if not choices and not value.isdigit():
            raise UsageError(f"The host option {name} must be a whole number, not {value!r}.", "")
    return dict(asked)


def host_option(asked: Mapping[str, str], name: str) -> str:
    """The value of one option: as asked for, else its default."""
    return asked.get(name, HOST_OPTIONS[name].default)
