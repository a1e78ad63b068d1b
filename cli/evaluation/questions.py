"""Reads questions with known pages from a folder of JSON lines.

The corpus is `pages*.jsonl`, `passages*.jsonl` or `units*.jsonl`; the questions are `queries.jsonl`
(`query`, and `gold_pages` or `gold_units`; `gold_anchor` and `gold_text` identify the location on
the page), `questions.jsonl` (`query`, `gold_passages`) or `tasks.jsonl` (`query`, `history`,
`answerability`, `gold_passages`).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from knowledge.port import SearchRequest

CORPUS = ("pages*.jsonl", "passages*.jsonl", "units*.jsonl")
QUESTIONS = ("queries.jsonl", "questions.jsonl", "tasks.jsonl")

_GOLD = ("gold_pages", "gold_passages", "gold_units")
_WITH_ANSWER = ("ANSWERABLE", "PARTIAL")
_RELATED = 2


class UnknownFormatError(Exception):
    """A folder does not contain the data of a suite; the message states the expected format."""


@dataclass(frozen=True, slots=True)
class GoldQuestion:
    """A question with the names of the pages that answer it.

    `anchor` is the name of the answering section, and `text` its content, if they are known.
    """

    request: SearchRequest
    gold: frozenset[str]
    language: str
    kind: str
    anchor: str = ""
    text: str = ""


def corpus_of(folder: Path) -> list[Path]:
    """Return the files to ingest, sorted by name."""
    paths = sorted(path for pattern in CORPUS for path in folder.glob(pattern))
    if not paths:
        raise UnknownFormatError(
            f"expected pages.jsonl, passages.jsonl or units.jsonl in {folder}, "
            f"found {_contents(folder)}"
        )
    return paths


def questions_of(folder: Path, *, limit: int) -> list[GoldQuestion]:
    """Return the questions that some page answers, each requesting `limit` hits."""
    path = next((folder / name for name in QUESTIONS if (folder / name).is_file()), None)
    if path is None:
        raise UnknownFormatError(
            f"expected queries.jsonl, questions.jsonl or tasks.jsonl in {folder}, "
            f"found {_contents(folder)}"
        )
    asked = [
        question for row in rows(path) if (question := _parse_question(row, limit)) is not None
    ]
    if not asked:
        raise UnknownFormatError(
            f"expected lines with `query` and one of {', '.join(_GOLD)} in {path}, found none"
        )
    return asked


def rows(path: Path) -> Iterator[Mapping[str, Any]]:
    """Return the objects in a JSON Lines file."""
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                raise UnknownFormatError(f"{path}:{number}: not valid JSON: {error}") from error
            if not isinstance(row, dict):
                raise UnknownFormatError(
                    f"{path}:{number}: expected an object, found {type(row).__name__}"
                )
            yield row


def _parse_question(row: Mapping[str, Any], limit: int) -> GoldQuestion | None:
    gold = [str(name) for key in _GOLD for name in row.get(key) or ()]
    query = row.get("query")
    label = row.get("answerability")
    if not gold or not isinstance(query, str) or (label and label not in _WITH_ANSWER):
        return None
    language = str(row.get("lang") or "en").partition("-")[0]
    related, answer = _conversation(row.get("history") or ())
    request = SearchRequest(
        question=query,
        text=query,
        language=language,
        related=related,
        previous_answer=answer,
        limit=limit,
    )
    return GoldQuestion(
        request,
        frozenset(gold),
        str(row.get("lang") or "en"),
        str(row.get("kind") or ""),
        anchor=str(row.get("gold_anchor") or ""),
        text=str(row.get("gold_text") or ""),
    )


def _conversation(history: Sequence[Mapping[str, str]]) -> tuple[tuple[str, ...], str]:
    """Return the last turns of the user, newest first, and the last answer."""
    users = [turn["text"] for turn in history if turn["speaker"] == "user"]
    answers = [turn["text"] for turn in history if turn["speaker"] != "user"]
    return tuple(reversed(users[-_RELATED:])), answers[-1] if answers else ""


def _contents(folder: Path) -> str:
    if not folder.is_dir():
        return "no such folder"
    names = sorted(path.name for path in folder.iterdir())
    return ", ".join(names[:10]) or "nothing"
