"""Options of the hosts of a run, apart from what runs on them: `--host-option NAME=VALUE`.

A disk that lies is no fault that comes and goes and no option of the store: it is the machine that was bought. So it
is chosen for the whole run, stands in the run's plan, and is shown in its report beside the system's own options.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from faultline.harness.errors import UsageError
from faultline.harness.parts import Parts
from faultline.harness.system import HostedStore, OptionDescription
from faultline.harness.world.hosts.clocks.clock_means import CLOCK_FAULTS, PROCESS_CLOCKS

__all__ = ["HOST_OPTIONS", "SYNC_FAULTS", "checked_host_options", "host_option", "refuse_without_effect"]

SYNC_FAULTS = frozenset({"fsync-fail"})
"""The faults that need a supervisor of fsync."""

HOST_OPTIONS: dict[str, OptionDescription] = {
    "fsync": OptionDescription(
        default="honest",
        choices=("honest", "lies", "fails"),
        summary="lies: what nodes sync is acknowledged and not written down; fails: it is answered with EIO",
    ),
    "clock": OptionDescription(
        default="auto",
        choices=("auto", *PROCESS_CLOCKS),
        summary="by what means clock faults move the clocks of real stores, and of no others; auto: what the host file "
        "says, else the first of vdso and libfaketime that works there",
    ),
}
"""Every option of hosts by its name."""


def checked_host_options(asked: Mapping[str, str]) -> dict[str, str]:
    """Return the options that were asked for. Raises UsageError, naming the option and its values, for a wrong one."""
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
    """Return the value of one option: as asked for, else its default."""
    return asked.get(name, HOST_OPTIONS[name].default)


def refuse_without_effect(asked: Mapping[str, str], cells: Sequence[Parts]) -> None:
    """Raise UsageError for an option that would change nothing in any of the runs that are put together from `cells`.

    The disk under a node is the same for every kind of system, so that `fsync` always has one; but it cannot go with
    faults that switch it themselves.
    """
    if "clock" in asked:
        _refuse_clock(cells)
    fsync = host_option(asked, "fsync")
    if fsync != "honest" and any(_needs(parts) & SYNC_FAULTS for parts in cells):
        raise UsageError(
            f"Where fsync {fsync} all the time, it cannot be made to fail for a while.",
            "Leave --host-option fsync out, or the faults that need fsync-fail.",
        )


def _refuse_clock(cells: Sequence[Parts]) -> None:
    for parts in cells:
        if not isinstance(parts.system, HostedStore):
            name = parts.system.name
            raise UsageError(
                f"The host option clock has no effect on {name}: its nodes read the time through a port of Faultline, "
                "and there clock faults strike them.",
                f"Leave --host-option clock out: --faults clock works on {name} without. It is for real stores, such "
                "as --system etcd.",
            )
    if not any(_needs(parts) & CLOCK_FAULTS for parts in cells):
        raise UsageError(
            "The host option clock has no effect: no fault of this run moves a clock.",
            "Leave --host-option clock out, or add a fault that does, such as --faults clock.",
        )


def _needs(parts: Parts) -> frozenset[str]:
    """Return the capabilities that some fault of the run may need."""
    return frozenset(need for kind in parts.package.kinds for need in parts.nemeses[kind].needs)
