"""Fencing tokens: the token of a lock must grow, and no token may be given twice.

Both kinds of locks use this module: those that are held until they are released and those that end by themselves.

Source: Kleppmann, "How to do distributed locking" (2016).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from faultline.checkers.common.conclusion import Case, Conclusion
from faultline.checkers.common.shape import ended
from faultline.checkers.common.words import client
from faultline.harness.history import History

__all__ = ["DUPLICATED_TOKEN", "TOKEN_WENT_BACK", "judge_granted_tokens", "smaller_than_before"]

TOKEN_WENT_BACK = "fencing-token-went-back"
DUPLICATED_TOKEN = "duplicated-fencing-token"


def judge_granted_tokens(conclusion: Conclusion, key: str | None, tokens: Mapping[int, int]) -> None:
    """Report acquires (rows with the token each was given) whose token went back, or was given before."""
    history = conclusion.history
    first: dict[int, int] = {}
    twice = [Case(token, (first[token], row)) for row, token in tokens.items() if first.setdefault(token, row) != row]
    conclusion.accuse(
        TOKEN_WENT_BACK,
        smaller_than_before(history, tokens),
        lambda case: (
            f"{client(history, case.rows[1])} was given the fencing token {case.what}, after "
            f"{client(history, case.rows[0])} had been given {tokens[case.rows[0]]}"
        ),
        noun="token that went back",
        key=key,
    )
    conclusion.accuse(
        DUPLICATED_TOKEN,
        twice,
        lambda case: (
            f"{client(history, case.rows[0])} and {client(history, case.rows[1])} were both given the fencing token "
            f"{case.what}"
        ),
        noun="duplicated token",
        key=key,
    )


def smaller_than_before(history: History, tokens: Mapping[int, int]) -> list[Case]:
    """Return the rows whose token is smaller than the greatest of those that had ended before they began."""
    return [
        Case(tokens[row], (before, row))
        for before, row in _greatest_before(history, tokens)
        if tokens[row] < tokens[before]
    ]


def _greatest_before(history: History, tokens: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """Yield, for each row, the row with the greatest token of those that had ended before it began, and itself."""
    events = [(history.invoke_index[row], row, False) for row in tokens]
    events += [(ended(history, row), row, True) for row in tokens]
    greatest: int | None = None
    for _, row, is_end in sorted(events):
        if is_end:
            greatest = row if greatest is None or tokens[row] > tokens[greatest] else greatest
        elif greatest is not None:
            yield greatest, row
