"""Strategies for small histories of transactions on registers, random ones and those of toy databases."""

from __future__ import annotations

from hypothesis import strategies as st

KEYS = "xyz"

SHAPES = st.tuples(
    st.integers(0, 2),
    st.lists(st.tuples(st.sampled_from("rw"), st.sampled_from(KEYS)), min_size=1, max_size=4),
    st.sampled_from(("ok", "ok", "ok", "ok", "ok", "info", "fail")),
)


@st.composite
def random_transactions(draw, transactions_max=5):
    """A few transactions on three keys, whose reads see any write of their key, or nothing."""
    shapes = draw(st.lists(SHAPES, min_size=1, max_size=transactions_max))
    values = {key: [None] for key in KEYS}
    numbered, count = [], 0
    for session, micro, outcome in shapes:
        steps = []
        for f, key in micro:
            count += f == "w"
            steps.append((f, key, count if f == "w" else None))
            values[key] += [count] if f == "w" else []
        numbered.append((session, steps, outcome))
    return [
        (session, [(f, k, draw(st.sampled_from(values[k])) if f == "r" else v) for f, k, v in steps], outcome)
        for session, steps, outcome in numbered
    ]


@st.composite
def sane_transactions(draw, transactions_max=5):
    """The same without what no level allows: reads see final writes of other transactions, or their own."""
    random = draw(random_transactions(transactions_max))
    finals = {}
    for number, (_, steps, outcome) in enumerate(random):
        for f, key, value in steps:
            if f == "w" and outcome != "fail":
                finals[number, key] = value
    sane = []
    for number, (session, steps, outcome) in enumerate(random):
        own, mended = {}, []
        for f, key, value in steps:
            if f == "w":
                own[key] = value
            elif key in own:
                value = own[key]
            else:
                others = [v for (writer, k), v in finals.items() if k == key and writer != number]
                value = draw(st.sampled_from([None, *others]))
            mended.append((f, key, value))
        sane.append((session, mended, outcome))
    return sane
