import json
from pathlib import Path

import pytest

from benchmarks.quality.language import evaluate
from cli.evaluation.questions import UnknownFormatError
from knowledge.language.port import Detection


class AlwaysGerman:
    """Takes everything for German, whatever is known beforehand."""

    def detect(
        self,
        text: str,
        *,
        prior: object = None,
        prior_share: float = 0.0,
        candidates: object = None,
    ) -> Detection:
        return Detection("de", 0.9)


def write(folder: Path, name: str, rows: list[dict[str, object]]) -> None:
    lines = (json.dumps(row, ensure_ascii=False) for row in rows)
    (folder / name).write_text("\n".join(lines), encoding="utf-8")


async def test_accuracy_is_reported_by_kind_length_and_language(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"text": "Wo?", "lang": "de", "kind": "question"},
        {"text": "Where is it?", "lang": "en", "kind": "question"},
        {"text": "Einstellungen der Benutzer", "lang": "de", "kind": "heading"},
        {"text": "Hvor er det blevet av nu?", "lang": "nb", "kind": "question"},
    ]
    write(tmp_path, "texts.jsonl", rows)

    figures = await evaluate(tmp_path, detector=AlwaysGerman())

    assert figures["texts"] == 4
    accuracy = figures["without_context"]
    assert isinstance(accuracy, dict)
    assert accuracy["all"] == {"texts": 4, "accuracy": 0.5}
    assert accuracy["by_kind"]["question (texts)"] == {"texts": 3, "accuracy": 0.3333}
    assert accuracy["by_words"]["1"] == {"texts": 1, "accuracy": 1.0}
    assert set(accuracy["by_language"]) == {"de", "en", "no"}


async def test_short_turns_are_read_in_their_conversation(tmp_path: Path) -> None:
    history = [{"speaker": "user", "text": "Come posso creare un nuovo utente?"}]
    write(
        tmp_path,
        "tasks.jsonl",
        [
            {"query": "API status", "lang": "it", "history": history},
            {"query": "API status", "lang": "it", "history": history * 4},
            {"query": "e se invece volessi cambiare un utente", "lang": "it", "history": history},
        ],
    )

    figures = await evaluate(tmp_path)

    turns = figures["short_turns_in_a_conversation"]
    assert isinstance(turns, dict)
    assert turns["all"] == {"texts": 2, "accuracy": 1.0}


async def test_an_unknown_folder_is_said_to_be_one(tmp_path: Path) -> None:
    write(tmp_path, "pages.jsonl", [{"title": "x"}])

    with pytest.raises(UnknownFormatError, match=r"texts\.jsonl or .* found \['pages\.jsonl'\]"):
        await evaluate(tmp_path)
    with pytest.raises(UnknownFormatError, match="no folder"):
        await evaluate(tmp_path / "nowhere")
