"""The suite `multistep` on small folders of its kinds."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.quality.multistep import evaluate_multistep, load_multistep
from cli.evaluation.questions import UnknownFormatError
from tests.knowledge.searching.conftest import WordEmbedder


def write(folder: Path, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
    (folder / name).write_text("\n".join(json.dumps(row) for row in rows))


@pytest.mark.slow
async def test_a_chain_of_passages_is_found_by_the_loop_within_the_same_number(
    tmp_path: Path,
) -> None:
    texts = {
        "a": ("Allegory", "The Allegory was painted by Lorenzo Costa for the duke."),
        "b": ("Lorenzo Costa", "He lived long and taught many; his last home was Mantua."),
        **{f"x{n}": (f"Place {n}", f"Where the one of number {n} did die.") for n in range(6)},
    }
    write(
        tmp_path,
        "passages.jsonl",
        [{"pid": pid, "title": title, "text": text} for pid, (title, text) in texts.items()],
    )
    asked = "Where did the one who painted the Allegory die?"
    question = {"qid": "q", "set": "s", "question": asked, "gold_passages": ["a", "b"]}
    write(tmp_path, "questions.jsonl", [question])

    one = await evaluate_multistep(tmp_path, "search", k=3, embedder=WordEmbedder())
    several = await evaluate_multistep(tmp_path, "tools", k=3, embedder=WordEmbedder())

    assert one["all"] == {"tasks": 1, "recall@3": 0.5, "all@3": 0.0}
    assert several["all"] == {"tasks": 1, "recall@3": 1.0, "all@3": 1.0}


def test_a_folder_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownFormatError, match=r"expected questions\.jsonl"):
        load_multistep(tmp_path)


def test_a_line_without_its_text_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "passages.jsonl", [{"pid": "a", "title": "A", "text": "t"}])
    write(tmp_path, "questions.jsonl", [{"qid": "q"}])

    with pytest.raises(UnknownFormatError, match="expected a string under 'question'"):
        load_multistep(tmp_path)
