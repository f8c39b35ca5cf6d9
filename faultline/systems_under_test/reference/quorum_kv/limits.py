"""The limits of the promise of `quorum-kv`: it shows conflicts, and is no register."""

from __future__ import annotations

from faultline.harness.promises import Asked

__all__ = ["not_promised"]

_CONFLICTS = {"siblings": ("show", "reads answer with concurrent values"), "cart": ("union", "no addition is lost")}
"""The option `conflicts` that a workload needs, and why; no other workload is promised."""


def not_promised(asked: Asked) -> str | None:
    """Return in a clause why the claim of the workload need not hold; None when it must."""
    if asked.workload not in _CONFLICTS:
        return "concurrent writes leave siblings, and reads may go back, so that a key is no register"
    needed, why = _CONFLICTS[asked.workload]
    if not asked.chose("conflicts", needed):
        return f"only with conflicts={needed} {why}"
    if asked.chose("versions", "last-write-wins"):
        return "with versions=last-write-wins the earlier of two concurrent writes is lost"
    if asked.workload == "siblings" and asked.chose("read_repair", "off"):
        return "with read_repair=off nothing carries a write to the replicas that missed it"
    write, read, replicas = (asked.number(name) for name in ("write_quorum", "read_quorum", "replicas"))
    if write + read <= replicas:
        return f"{write} replicas for a write and {read} for a read, of {replicas}, need not have one in common"
    return None
