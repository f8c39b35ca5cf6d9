"""Monitors: deciding linearizability from the shape of a history, where that is possible, instead of searching.

result       what a monitor answers, and the replay that proves a "linearizable"
lifetimes    values that go in once and come out once; queues and stacks are made of these
sets, queues, stacks, locks, counters   one monitor each, with the paper it follows
decision     the monitor, then the search where it hands over, each answer verified
judgement    the same for one key of a run
"""

from faultline.checkers.linearizability.monitors.decision import Decision, decide

__all__ = ["Decision", "decide"]
