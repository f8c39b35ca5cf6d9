"""The workloads that each system can serve: by functions, by the form of answers, and by the system's promise."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from faultline.harness.promises import Asked, answers_missing, option_that_promises, reason_not_promised
from faultline.harness.system import HasUsualTest, NodeSystem, options_missing
from faultline.harness.workload import Workload

__all__ = ["served", "serving", "serving_lines"]

_WIDTH = 120
_NODES = 3
_INDENT = "    "


def serving(workload: Workload, systems: Iterable[NodeSystem]) -> list[str]:
    """Return the systems that can serve `workload`, each with the options it needs: `etcd`, `quorum-kv
    conflicts=union`."""
    return [" ".join([system.name, *needed]) for system in systems if (needed := _needed(system, workload)) is not None]


def served(system: NodeSystem, workloads: Iterable[Workload]) -> list[str]:
    """Return the workloads that `system` can serve, each with the options it needs, as in
    `cart conflicts=union`."""
    return [" ".join([each.name, *needed]) for each in workloads if (needed := _needed(system, each)) is not None]


def _needed(system: NodeSystem, workload: Workload) -> list[str] | None:
    """Return the settings, beside its defaults, with which `system` serves `workload`; None when it cannot."""
    if not set(workload.functions) <= set(system.functions) or answers_missing(system, workload) is not None:
        return None
    defaults = {name: option.default for name, option in system.options.items()}
    settings: dict[str, str] = {}
    for function in workload.functions:
        settings |= options_missing(system, function, defaults)
    asked = Asked(
        workload=workload.name,
        functions=workload.functions,
        options=defaults | settings,
        nodes=system.usual_nodes if isinstance(system, HasUsualTest) else _NODES,
    )
    if reason_not_promised(system, asked) is not None:
        other = option_that_promises(system, asked)
        if other is None:
            return None
        settings |= [other]
    return [f"{name}={value}" for name, value in settings.items()]


def serving_lines(label: str, names: Sequence[str]) -> list[str]:
    """Return the names below an entry of a listing, wrapped into lines; `none` when there are none."""
    text = f"{label}: {', '.join(_in_words(name) for name in names) or 'none'}"
    return textwrap.wrap(text, _WIDTH, initial_indent=_INDENT, subsequent_indent=2 * _INDENT, break_on_hyphens=False)


def _in_words(name: str) -> str:
    """Return `quorum-kv conflicts=union` as `quorum-kv with conflicts=union`."""
    first, _, settings = name.partition(" ")
    return f"{first} with {settings}" if settings else first
