"""Defines a golden question: its text, and what an answer must and must not say."""

from dataclasses import dataclass
from typing import Literal

Expectation = Literal["answer", "refuse", "clarify"]
Statement = tuple[str, ...]
"""Alternative wordings of one statement."""


@dataclass(frozen=True, slots=True)
class GoldenCase:
    """One question with the behaviour that its owner expects of the desk.

    `turns` are the user's earlier messages in the same conversation, which are sent before the
    question. `pages` are ends of a path or URL; citing any of them is correct. `reason` is a
    `ClarificationReason`, only for questions that the desk must refuse or ask back about.
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
