"""Other forms of a word, and compounds with it, are found where the vectors know no such word."""

from pathlib import Path

import pytest

from knowledge.embedding import SHIPPED_MODEL
from knowledge.index.embedded import open_embedded
from knowledge.index.terms import terms
from knowledge.index.word_parts import list_content_words, list_parts
from knowledge.port import Findings, SearchRequest
from knowledge.search.searcher import LevelSearcher
from tests.knowledge.searching.conftest import WordEmbedder, document, identity, put

LEAVE = document("leave", "Der Urlaubsantrag wird online gestellt.", language="de")
PARKING = document("parking", "Das Parkhaus schließt um acht.", language="de")


async def search(folder: Path, question: str, embedding: str) -> Findings:
    index = await open_embedded(folder, identity(embedding=embedding))
    try:
        await put(index, LEAVE, PARKING)
        searcher = LevelSearcher(index, WordEmbedder())
        asked = SearchRequest(question, text=question, language="de", by_words=True)
        return await searcher.search(asked)
    finally:
        await index.close()


async def test_a_part_of_a_compound_finds_its_page(tmp_path: Path) -> None:
    results = await search(tmp_path, "Wo stelle ich Anträge auf Urlaub?", SHIPPED_MODEL)

    assert results.hits[0].document_id == "leave"
    assert not results.match_nothing


async def test_words_with_the_same_beginning_alone_match_nothing(tmp_path: Path) -> None:
    assert (await search(tmp_path, "Wer gewann gestern?", SHIPPED_MODEL)).match_nothing


async def test_an_index_without_parts_is_searched_by_whole_words(tmp_path: Path) -> None:
    results = await search(tmp_path, "Wann schließt das Parkhaus?", "words")

    assert [hit.document_id for hit in results.hits] == ["parking"]
    assert not results.match_nothing


@pytest.mark.parametrize(
    ("language", "word", "text"),
    [
        ("fi", "pesukoneessa", "Pesukoneet ovat käytettävissä."),
        ("hu", "akkumulátorcsere", "Az akkumulátor cseréje."),
        ("cs", "odhlásit", "Oběd se odhlašuje."),
        ("tr", "köpeğimle", "Küçük köpekler kabul edilir."),
        ("ko", "열쇠를", "열쇠가 없습니다."),
        ("ja", "返品したい", "返品できます。"),
        ("th", "ขูดหินปูนราคา", "การขูดหินปูน"),
    ],
)
def test_a_text_with_another_form_of_a_word_contains_it(
    language: str, word: str, text: str
) -> None:
    has = {*terms(text, language), *list_parts(text, language)}

    assert any(
        content_word.is_in(has.__contains__) for content_word in list_content_words(word, language)
    )


def test_words_that_only_ask_are_no_content() -> None:
    assert list_content_words("Wie viel kostet das?", "de") == []
