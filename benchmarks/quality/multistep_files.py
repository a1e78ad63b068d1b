"""Reads questions of several steps from four kinds of folders.

- `questions.jsonl` with `gold_passages`, and `passages.jsonl`: questions of several passages;
- `tasks.jsonl` with `gold_docs` and `gold_tools`, `docs.jsonl` and `tools.jsonl`: tasks of a desk;
- `questions.jsonl` with `old_version`, and `units.jsonl`: two versions of a standard;
- `questions.jsonl` with `gold_cards`, and `cards.jsonl`: questions about every member of a group.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from deploy.evaluation.questions import UnknownFormatError, rows

Kind = Literal["multihop", "desk", "versions", "fanout"]
_FILES: Mapping[Kind, tuple[str, ...]] = {
    "desk": ("tasks.jsonl", "docs.jsonl"),
    "versions": ("questions.jsonl", "units.jsonl"),
    "multihop": ("questions.jsonl", "passages.jsonl"),
    "fanout": ("questions.jsonl", "cards.jsonl"),
}
_LISTS_CHANGES = frozenset({"added", "removed"})
"""Questions for all that changed between versions: a comparison answers them, no search."""
_NO_TEXT = "Withdrawn."
"""The text of a unit that has none: units without a text cannot be read."""


@dataclass(frozen=True, slots=True)
class MultistepTask:
    """One question with its correct pages; `part` is the set or the kind that it belongs to.

    `answerable` is None where nobody knows.
    """

    name: str
    text: str
    part: str
    gold: frozenset[str]
    answerable: bool | None = None


@dataclass(frozen=True, slots=True)
class MultistepData:
    """The tasks of a folder with the lines of its corpus, in a form that ingestion reads."""

    kind: Kind
    tasks: tuple[MultistepTask, ...]
    corpus: tuple[Mapping[str, Any], ...]
    versions: tuple[str, ...] = ()

    def write_corpus(self, folder: Path) -> Path:
        """Write the corpus as a file that ingestion reads, and return its path."""
        path = folder / "pages.jsonl"
        path.write_text("\n".join(json.dumps(row) for row in self.corpus), "utf-8")
        return path


def load_multistep(folder: Path) -> MultistepData:
    """Return the data of a folder; raises `UnknownFormatError`."""
    for kind, names in _FILES.items():
        if all((folder / name).is_file() for name in names):
            found = _READERS[kind](folder)
            if not found.tasks or not found.corpus:
                raise UnknownFormatError(f"expected tasks and a corpus in {folder}, found none")
            return found
    expected = "; or ".join(", ".join(names) for names in _FILES.values())
    raise UnknownFormatError(f"expected {expected} in {folder}")


def _read_multihop(folder: Path) -> MultistepData:
    tasks = tuple(
        MultistepTask(
            name=_need(row, "qid"),
            text=_need(row, "question"),
            part=str(row.get("set", "")),
            gold=frozenset(map(str, row.get("gold_passages") or ())),
            answerable=bool(row.get("answerable", True)),
        )
        for row in rows(folder / "questions.jsonl")
    )
    corpus = tuple(
        {"passage_id": _need(row, "pid"), "title": row.get("title", ""), "text": _need(row, "text")}
        for row in rows(folder / "passages.jsonl")
    )
    return MultistepData("multihop", tasks, corpus)


def _read_desk(folder: Path) -> MultistepData:
    tasks = tuple(
        MultistepTask(
            name=_need(row, "task_id"),
            text=_need(row, "scenario"),
            part="tasks",
            gold=frozenset(map(str, row.get("gold_docs") or ())),
        )
        for row in rows(folder / "tasks.jsonl")
    )
    corpus = tuple(
        {"page_id": _need(row, "doc_id"), "title": row.get("title", ""), "markdown": row["text"]}
        for row in rows(folder / "docs.jsonl")
    )
    return MultistepData("desk", tasks, corpus)


def _read_versions(folder: Path) -> MultistepData:
    tasks = tuple(_read_version_tasks(folder))
    corpus = tuple(
        {
            "unit_id": _need(row, "unit_id"),
            "label": _need(row, "unit_id"),
            "title": row.get("title", ""),
            "version": _need(row, "version"),
            "text": row.get("text") or _NO_TEXT,
        }
        for row in rows(folder / "units.jsonl")
    )
    versions = tuple(sorted({str(row["version"]) for row in corpus}))
    return MultistepData("versions", tasks, corpus, versions)


def _read_version_tasks(folder: Path) -> Iterator[MultistepTask]:
    for row in rows(folder / "questions.jsonl"):
        kind = _need(row, "kind")
        if kind in _LISTS_CHANGES:
            continue
        yield MultistepTask(
            name=_need(row, "qid"),
            text=_need(row, "question"),
            part=str(row.get("change") or kind),
            gold=frozenset(map(str, row.get("gold_new") or ())),
        )


def _read_fanout(folder: Path) -> MultistepData:
    tasks = tuple(
        MultistepTask(
            name=_need(row, "qid"),
            text=_need(row, "question"),
            part="groups",
            gold=frozenset(map(str, row.get("gold_cards") or ())),
        )
        for row in rows(folder / "questions.jsonl")
    )
    corpus = tuple(
        {"passage_id": _need(row, "card_id"), "title": row.get("page", ""), "text": row["text"]}
        for row in rows(folder / "cards.jsonl")
    )
    return MultistepData("fanout", tasks, corpus)


_READERS = {
    "multihop": _read_multihop,
    "desk": _read_desk,
    "versions": _read_versions,
    "fanout": _read_fanout,
}


def _need(row: Mapping[str, Any], key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value:
        raise UnknownFormatError(f"expected a text under {key!r}, found {value!r:.60}")
    return value
