"""Faultline: a correctness test harness for distributed stores.

Import what you need from the rooms: `faultline.harness` (operations, histories, worlds), `faultline.nemesis`,
`faultline.workloads`, `faultline.checkers`, `faultline.systems_under_test`, `faultline.campaign`, `faultline.reports`.
"""

__version__ = "0.1.0"

__all__ = ["__version__"]
