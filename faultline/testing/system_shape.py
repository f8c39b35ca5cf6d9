"""Checks of a system's declarations: names, options, planted bugs, messages, invariants. They need no run."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from faultline.campaign.planfile import load_plan
from faultline.harness.errors import HarnessError, UsageError
from faultline.harness.options import all_options, effective_options
from faultline.harness.plan import Plan
from faultline.harness.system import NodeSystem, OptionDescription, PlantedBug, ServesByOption
from faultline.harness.world.message_codec import MessageCodec
from faultline.harness.world.simulated.world import SimulatedWorld
from faultline.testing.problem import Check
from faultline.testing.system_subject import SystemSubject, import_path_of

__all__ = ["SYSTEM_SHAPE"]

Found = Iterator[tuple[str, str, str]]

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_BOOT_US = 600_000
_NUMBERS = ("0", "1", "7", "1000000")
_WORLDS = ("simulated", "local")
_FIELDS: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("name", lambda value: isinstance(value, str) and bool(_NAME.fullmatch(value)), "a word like my-store"),
    ("promise", lambda value: isinstance(value, str) and bool(value), "one sentence on its promise to clients"),
    ("summary", lambda value: isinstance(value, str) and bool(value), "one line that describes it"),
    ("patterns", lambda value: isinstance(value, tuple), "a tuple of names of patterns; () when it follows none"),
    ("functions", lambda value: isinstance(value, tuple) and bool(value), 'a tuple such as ("read", "write")'),
    ("options", lambda value: hasattr(value, "items"), "a dictionary of OptionDescription; {} when it has none"),
    ("planted_bugs", lambda value: hasattr(value, "items"), "a dictionary of PlantedBug; {} when it has none"),
    ("messages", lambda value: isinstance(value, tuple) and bool(value), "a tuple of msgspec.Struct types"),
)


def _describes_itself(subject: SystemSubject) -> Found:
    system = subject.make()
    for name, is_usable, wanted in _FIELDS:
        value = getattr(system, name, None)
        if not is_usable(value):
            yield f"`{name}` is {value!r}", subject.place(), f"Make it {wanted}."
    for name in ("node", "client", "invariants"):
        if not callable(getattr(system, name, None)):
            yield (
                f"there is no method `{name}`",
                subject.place(),
                "Read the protocol faultline.harness.system.NodeSystem.",
            )


def _functions_need_options_that_exist(subject: SystemSubject) -> Found:
    system = subject.make()
    if not isinstance(system, ServesByOption):
        return
    for function, needed in system.function_options.items():
        where = f"function_options of {subject.place()}"
        if function not in system.functions:
            yield (
                f"it names {function!r}, which is not in `functions`",
                where,
                "Add it to `functions`, or drop it.",
            )
        try:
            effective_options(system, needed, ())
        except UsageError as error:
            yield (
                f"the needs of {function!r} are refused: {error.message}",
                where,
                "Name options and values of `options`.",
            )


def _can_be_imported(subject: SystemSubject) -> Found:
    path = import_path_of(subject.make())
    module_name, _, attribute = path.partition(":")
    advice = "Put the class at the top level of an importable module; processes of real runs import it by that path."
    if "<locals>" in attribute or module_name == "__main__":
        yield f"{path} cannot be imported by another process", subject.place(), advice
        return
    found = getattr(importlib.import_module(module_name), attribute, None)
    if found is not type(subject.make()):
        yield f"{path} leads to {found!r}", subject.place(), advice
    else:
        found()


def _options_are_described(subject: SystemSubject) -> Found:
    system = subject.make()
    for name, option in system.options.items():
        where = f"option {name} of {subject.place()}"
        if not isinstance(option, OptionDescription):
            yield f"it is described by {option!r}", where, "Describe it by an OptionDescription."
            continue
        if not option.summary:
            yield "it has no summary", where, "Describe its effect in one line."
        try:
            effective_options(system, {name: option.default}, ())
        except UsageError as error:
            yield f"its default is refused: {error.message}", where, "Make the default one of the choices, or a number."


def _options_work_or_are_refused(subject: SystemSubject) -> Found:
    system = subject.make()
    for name, option in {**system.options, **all_options(system)}.items():
        for value in option.choices or _NUMBERS:
            trouble = _trouble_with(subject, system, name, value)
            if trouble:
                yield (
                    f"{name}={value} is neither usable nor refused: {trouble}",
                    subject.place("node"),
                    f"Raise faultline.harness.errors.UsageError that names {name} and its possible values.",
                )


def _trouble_with(subject: SystemSubject, system: NodeSystem, name: str, value: str) -> str:
    """Return the trouble of a cluster that boots with this option; '' when it works, or is refused with UsageError."""
    plan = msgspec.structs.replace(subject.plan(0), options={**_defaults(system), **subject.options, name: value})
    errors: list[str] = []
    try:
        world = SimulatedWorld(plan, system, errors)
        world.boot()
        world.open_client(0, plan.nodes[0])
        world.scheduler.run(_BOOT_US)
    except UsageError as error:
        return "" if name in str(error) else f"its refusal does not name the option ({error})"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    crashes = [breach.sentence for breach in world.trace.breaches() if breach.invariant == "node-crash"]
    return " ".join([*crashes, *errors])


def _defaults(system: NodeSystem) -> dict[str, str]:
    return {name: option.default for name, option in system.options.items()}


def _bugs_are_named(subject: SystemSubject) -> Found:
    system = subject.make()
    for name, planted_bug in system.planted_bugs.items():
        where = f"planted bug {name} of {subject.place()}"
        for what, advice in _flaws_of(name, planted_bug, system):
            yield what, where, advice


def _flaws_of(name: str, planted_bug: PlantedBug, system: NodeSystem) -> Iterator[tuple[str, str]]:
    if planted_bug.name != name:
        yield f"its key is {name} and its name {planted_bug.name}", "Use one name for both."
    for text in ("pattern", "id", "summary", "shows_as"):
        if not getattr(planted_bug, text):
            yield f"its `{text}` is empty", "Read faultline.harness.system.PlantedBug for its meaning."
    if not planted_bug.caught_by:
        yield "no checker or invariant is named in `caught_by`", "Name the checkers or invariants that find it."
    if not planted_bug.worlds or any(world not in _WORLDS for world in planted_bug.worlds):
        yield f"its worlds are {planted_bug.worlds}", f"Choose from {_WORLDS}."
    elif len(planted_bug.worlds) < len(_WORLDS) and not planted_bug.why_not:
        yield "it cannot show in every world and does not say why", "Give `why_not`."
    try:
        effective_options(system, {}, [name])
        for option, value in planted_bug.options.items():
            effective_options(system, {option: value}, ())
    except UsageError as error:
        yield f"the options it forces cannot be used: {error.message}", "Force options that the system has."
    try:
        load_plan(planted_bug.campaign)
    except UsageError as error:
        yield f"its campaign cannot be run: {error.message}", "Name a shipped campaign, or the path of a plan file."


def _messages_can_be_told_apart(subject: SystemSubject) -> Found:
    messages: tuple[Any, ...] = subject.make().messages
    for message in messages:
        if not (isinstance(message, type) and issubclass(message, msgspec.Struct)):
            yield f"{message!r} is not a msgspec.Struct", subject.place(), "Make every message a tagged, frozen Struct."
            return
        if not message.__struct_config__.frozen:
            advice = "Declare it with frozen=True: nodes of one simulated world would share their changes."
            yield f"messages of type {message.__name__} can be changed", subject.place(), advice
    try:
        MessageCodec(messages)
    except HarnessError as error:
        yield error.message, subject.place(), error.next_step


def _invariants_are_fresh(subject: SystemSubject) -> Found:
    system = subject.make()
    first, second = system.invariants(), system.invariants()
    where = subject.place("invariants")
    if any(one is other for one in first for other in second):
        yield "two runs get the same invariant", where, "Make new ones at every call: they remember one run."
    for invariant in first:
        if not (invariant.id and invariant.statement and type(invariant.events) is tuple):
            advice = "Give it an id, a statement in one sentence, and a tuple of event types."
            yield f"{type(invariant).__name__} lacks an id, a statement or event types", where, advice


def _is_ready_in_time(subject: SystemSubject) -> Found:
    plan: Plan = subject.plan(0)
    world = SimulatedWorld(plan, subject.make(), [])
    world.boot()
    world.scheduler.run(_BOOT_US)
    statuses = [host.node.status() for host in world.hosts.values() if host.node is not None]
    roles = [status.role for status in statuses]
    if "leader" not in roles and any(role != "ready" for role in roles):
        yield (
            f"{_BOOT_US // 1000} ms after the start the roles are {', '.join(roles) or 'none: every node is dead'}",
            subject.place("node"),
            "Let `status` of one node say `leader`, or of all READY: faults are aimed by it, and runs begin with it.",
        )


SYSTEM_SHAPE: tuple[Check[SystemSubject], ...] = (
    Check("a system declares its name, its promise and its functions", _describes_itself),
    Check("functions that need options name existing options and values", _functions_need_options_that_exist),
    Check("a system can be imported by another process", _can_be_imported),
    Check("every option has a default that can be used and a summary", _options_are_described),
    Check("every value of an option works or is refused", _options_work_or_are_refused),
    Check("every planted bug has a name, a campaign and a checker or invariant that catches it", _bugs_are_named),
    Check("messages are frozen and can be told apart", _messages_can_be_told_apart),
    Check("invariants are fresh for each run and have an id, a statement and event types", _invariants_are_fresh),
    Check("a node leads, or all are ready, soon after the start", _is_ready_in_time),
)
