"""Monitors: deciding linearizability from the shape of a history, where that is possible, instead of searching.

sets, queues, stacks, locks, counters   one monitor each, with the paper it follows
lifetimes    values that go in once and come out once; queues and stacks are made of these, and native_containers
             arranges them in the native kernel
decision     the monitor, then another engine where it hands over, each answer verified
as_registers values of a set, mutexes and locks as registers, for the engine that judges those
"""

from faultline.checkers.linearizability.monitors.decision import decide

__all__ = ["decide"]
