"""Measures when the desk answers, asks back and declines: the suite `conversation`.

The folder holds `passages*.jsonl` (all of them are ingested, so that wrong ones are always there)
and `tasks.jsonl`: `query`, `history` (`speaker`, `text`) and `answerability`, which is
ANSWERABLE or PARTIAL (answer), UNDERSPECIFIED (ask) or UNANSWERABLE (refuse). Other labels are left
out. Every question goes through the real flow without a model.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.quality.collection import EvaluationDesk, open_collection
from config.settings import Settings, load_settings
from deploy.evaluation.questions import UnknownFormatError, corpus_of, rows
from envelope.conversation import Turn
from envelope.outcome import Outcome
from knowledge.embedding import Embedder

Figures = dict[str, object]
Pair = tuple[str, str]

DECISIONS = ("answer", "ask", "refuse")
_LABELS = {
    "ANSWERABLE": "answer",
    "PARTIAL": "answer",
    "UNDERSPECIFIED": "ask",
    "UNANSWERABLE": "refuse",
}
DECIDED = {Outcome.ANSWERED: "answer", Outcome.CLARIFICATION: "ask", Outcome.REFUSED: "refuse"}


async def evaluate(
    data: Path, *, settings: Settings | None = None, embedder: Embedder | None = None
) -> Figures:
    """Return the figures of a folder; raises `UnknownFormatError` when it holds something else."""
    corpus, tasks = corpus_of(data), _tasks(data)
    chosen = load_settings() if settings is None else settings
    async with open_collection(corpus, chosen, embedder) as knowledge:
        walk = EvaluationDesk(chosen, knowledge)
        found = [await _find_decision(walk, task) for task in tasks]
    labels = [_LABELS[task["answerability"]] for task in tasks]
    pairs = [(label, made) for label, (made, _) in zip(labels, found, strict=True)]
    return {
        "suite": "conversation",
        "data": data.name,
        "tasks": len(tasks),
        **compute_scores(pairs),
        "endings": dict(sorted(Counter(ending for _, ending in found).items())),
        "by_label": _by_label(tasks, found),
    }


def compute_scores(pairs: Sequence[Pair]) -> Figures:
    """Return macro-F1, accuracy and what became of each label; a failure is no decision."""
    f1 = {name: _f1(pairs, name) for name in DECISIONS}
    return {
        "macro_f1": round(compute_macro_f1(pairs), 4),
        "accuracy": round(sum(label == made for label, made in pairs) / len(pairs), 4),
        "f1": {name: round(value, 4) for name, value in f1.items()},
        "confusion": {
            label: {
                made: sum(pair == (label, made) for pair in pairs)
                for made in (*DECISIONS, "failed")
            }
            for label in DECISIONS
        },
    }


def compute_macro_f1(pairs: Sequence[Pair]) -> float:
    """Return the mean F1 of the three decisions for pairs of label and decision."""
    return sum(_f1(pairs, name) for name in DECISIONS) / len(DECISIONS)


def _f1(pairs: Sequence[Pair], name: str) -> float:
    right = sum(label == made == name for label, made in pairs)
    named = sum(label == name for label, _ in pairs) + sum(made == name for _, made in pairs)
    return 2 * right / named if named else 0.0


async def _find_decision(walk: EvaluationDesk, task: Mapping[str, Any]) -> tuple[str, str]:
    """Return the decision, and where and why the question ended."""
    history = [_turn(turn) for turn in task.get("history") or ()]
    finish, envelope = await walk.ask(task["query"], history)
    reason = str(finish.reply.get("clarification_reason") or "")
    stage = str(envelope.payload.get("stage") or "")
    return DECIDED.get(finish.outcome, "failed"), f"{finish.outcome}: {reason or stage}"


def _turn(turn: Mapping[str, str]) -> Turn:
    return Turn(speaker="user" if turn["speaker"] == "user" else "assistant", text=turn["text"])


def _by_label(
    tasks: Sequence[Mapping[str, Any]], found: Sequence[tuple[str, str]]
) -> dict[str, dict[str, int]]:
    labels = sorted({task["answerability"] for task in tasks})
    return {
        label: dict(
            Counter(
                made
                for task, (made, _) in zip(tasks, found, strict=True)
                if task["answerability"] == label
            )
        )
        for label in labels
    }


def _tasks(folder: Path) -> list[Mapping[str, Any]]:
    path = folder / "tasks.jsonl"
    if not path.is_file():
        raise UnknownFormatError(f"expected tasks.jsonl in {folder}, found no such file")
    tasks = [
        row
        for row in rows(path)
        if isinstance(row.get("query"), str) and row.get("answerability") in _LABELS
    ]
    if not tasks:
        raise UnknownFormatError(
            f"expected lines with `query` and `answerability` ({', '.join(_LABELS)}) in {path}, "
            "found none"
        )
    return tasks
