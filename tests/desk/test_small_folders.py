"""Without a model, small folders in languages that the shipped embedding model does not know."""

import asyncio
import tomllib
from pathlib import Path
from typing import Any

import pytest

from deploy.assembly.ingestion_run import run_ingestion
from knowledge.embedding import Embedder
from knowledge.ingestion_report import PlainReport
from tests.support.app_harness import Fields, open_knowledge_with, run_app, settings_of
from tests.support.empty_redis import play_redis

pytestmark = pytest.mark.slow

FOLDERS = Path(__file__).with_name("small_folders")
QUICK = {"fi", "hi", "ko"}
"""Languages that `make test` covers, too: long words, another script, words without spaces."""
LEAST_RIGHT = 8
"""Of ten questions in a language; 85 of the hundred in all of them."""


@pytest.mark.parametrize(
    "language",
    [
        pytest.param(file.stem, marks=() if file.stem in QUICK else pytest.mark.long)
        for file in sorted(FOLDERS.glob("*.toml"))
    ],
)
async def test_the_passage_with_a_form_of_the_asked_word_is_among_the_three_shown(
    language: str, tmp_path: Path, embedder: Embedder
) -> None:
    folder = tomllib.loads((FOLDERS / f"{language}.toml").read_text("utf-8"))
    asked = folder["questions"]

    replies = await ask_over(folder["pages"], [item["text"] for item in asked], tmp_path, embedder)

    shown = [[Path(source["path"]).stem for source in reply["sources"]][:3] for reply in replies]
    pairs = list(zip(asked, shown, strict=True))
    right = [one["text"] for one, pages in pairs if one.get("page") in pages]
    assert len(right) >= LEAST_RIGHT, right
    assert {one["text"]: pages for one, pages in pairs if "page" not in one and pages} == {}


async def ask_over(
    pages: dict[str, str], questions: list[str], folder: Path, embedder: Embedder
) -> list[Fields]:
    """Return the replies to questions, each in a conversation of its own, over these pages."""
    documents = folder / "documents"
    documents.mkdir()
    for name, text in pages.items():
        (documents / f"{name}.md").write_text(text, "utf-8")
    settings: Any = settings_of(folder / "data", domain_name="", domain_scope="")
    await run_ingestion(settings, [documents], PlainReport(lambda _line: None))
    async with (
        open_knowledge_with(settings, embedder) as knowledge,
        run_app(settings, play_redis(), knowledge) as app,
    ):
        return list(await asyncio.gather(*(app.driver().say(question) for question in questions)))
