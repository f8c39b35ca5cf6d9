"""The entry point for verifying certificates: one pass over each, no search, no code of the engines.

An order is replayed. Configurations are looked at one by one, by the rules of `verify`, to which `value_rules` adds
what registers and strings are, and `model_rules` any model. A contradiction is looked up in the history
(`contradictions`).
"""

from __future__ import annotations

from typing import Any

from faultline.checkers.linearizability.certificates import Certificate, relaxed_columns
from faultline.checkers.linearizability.engine.columns import Columns
from faultline.checkers.linearizability.engine.problem import problem_of
from faultline.checkers.linearizability.engine.replay import is_linearization
from faultline.checkers.linearizability.object_certificates import fault_of_object
from faultline.checkers.linearizability.value_rules import ValueRules, fault_of_relaxation
from faultline.checkers.linearizability.verify import fault_of_set

__all__ = ["fault_of"]


def fault_of(certificate: Certificate[Any]) -> str:
    """Return what is wrong with `certificate`, in words; nothing when it holds."""
    grounds = (certificate.order, certificate.configurations, certificate.contradiction)
    if sum(each is not None for each in grounds) != 1:
        return "it must have one of an order, a set of configurations and a contradiction"
    if certificate.configurations is None and (certificate.relaxed or certificate.steps or certificate.still):
        return "it tells more about configurations, and has none"
    if isinstance(certificate.subject, Columns):
        return _fault_of_columns(certificate)
    return fault_of_object(certificate)


def _fault_of_columns(certificate: Certificate[Columns]) -> str:
    columns, order = certificate.subject, certificate.order
    if order is not None:
        problem = problem_of(columns, range(len(columns)))
        if not all(0 <= i < len(columns) for i in order) or not is_linearization(problem, order):
            return "its order is no linearization"
        return ""
    if certificate.configurations is None or certificate.steps or certificate.still:
        return "it has grounds that are for other objects"
    if certificate.relaxed is not None:
        fault = fault_of_relaxation(columns, certificate.relaxed)
        if fault:
            return fault
        columns = relaxed_columns(columns, certificate.relaxed)
    return fault_of_set(ValueRules(columns), certificate.configurations)
