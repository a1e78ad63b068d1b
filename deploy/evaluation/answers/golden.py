"""Defines a golden question: what is asked, and what an answer to it must and must not say."""

from dataclasses import dataclass
from typing import Literal

Expectation = Literal["answer", "refuse", "clarify"]
Statement = tuple[str, ...]
"""Wordings of one statement; any of them will do."""


@dataclass(frozen=True, slots=True)
class GoldenCase:
    """One question with what its owner expects of the desk.

    `turns` are the user's earlier messages of the same conversation, which are really sent before
    the question. `pages` are ends of a path or of a URL; citing any of them is right. `reason` is a
    `ClarificationReason`, and only for questions that are to be refused or asked back.
    """

    id: str
    question: str
    expect: Expectation = "answer"
    reason: str = ""
    must_say: tuple[Statement, ...] = ()
    must_not_say: tuple[Statement, ...] = ()
    pages: tuple[str, ...] = ()
    language: str = ""
    turns: tuple[str, ...] = ()
    kind: str = ""
