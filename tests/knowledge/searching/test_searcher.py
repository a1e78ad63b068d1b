from collections.abc import Collection, Mapping, Sequence

import pytest

from knowledge.answerability import Assessment
from knowledge.errors import IndexUnavailable
from knowledge.index.port import Index, IndexedPassage
from knowledge.index.queries import PointId
from knowledge.port import Findings, SearchRequest
from knowledge.search.searcher import LevelSearcher
from tests.knowledge.searching.conftest import WordEmbedder, document, put

LIBRARY = (
    document(
        "routing",
        (("Limits",), "A route carries ten messages a second; more are queued."),
        (("Priorities",), "Messages of alarms overtake all others."),
        title="Routing rules",
        crumbs=("Platform", "Routing rules"),
    ),
    document(
        "accounts",
        (("Create an account",), "Press the button and choose a password."),
        (("Delete an account",), "Ask your administrator; invoices stay for ten years."),
        title="User accounts",
        crumbs=("Platform", "User accounts"),
    ),
    document(
        "webhooks",
        (("Delivery reports",), "We call your address when a message has arrived."),
        title="Webhooks",
        crumbs=("Platform", "Interfaces", "Webhooks"),
    ),
    document(
        "terms",
        "In these terms, 'carrier' means a company that runs a network.",
        "A carrier may charge for a route. Every carrier is a company.",
        title="Terms",
        crumbs=("Platform", "Terms"),
    ),
)


def pages(findings: Findings) -> list[str]:
    return list(dict.fromkeys(hit.page for hit in findings.hits))


async def ask(searcher: LevelSearcher, question: str, **more: object) -> Findings:
    return await searcher.search(SearchRequest(question=question, **more))  # type: ignore[arg-type]


@pytest.fixture
async def searcher(fake_documents: Index, embedder: WordEmbedder) -> LevelSearcher:
    await put(fake_documents, *LIBRARY)
    return LevelSearcher(fake_documents, embedder)


async def test_the_page_that_answers_comes_first_with_its_place(searcher: LevelSearcher) -> None:
    findings = await ask(searcher, "How many messages does a route carry per second?")

    best = findings.hits[0]
    assert (best.chunk_id, best.document_id) == ("routing#0", "routing")
    assert best.place.heading_path == ("Limits",)
    assert best.place.crumbs == ("Platform", "Routing rules")
    assert best.place.url == "https://example.org/routing"
    assert best.place.path == "routing.md"
    assert best.text.startswith("A route carries")
    assert "keywords" in best.levels
    assert "semantic" in best.levels
    assert "semantic" not in findings.fallbacks


async def test_scores_fall(searcher: LevelSearcher) -> None:
    findings = await ask(searcher, "messages of a route")

    scores = [hit.score for hit in findings.hits]
    assert scores == sorted(scores, reverse=True)
    assert len({hit.chunk_id for hit in findings.hits}) == len(findings.hits)


async def test_a_heading_that_is_the_question_wins(searcher: LevelSearcher) -> None:
    findings = await ask(searcher, "Delete an account")

    assert findings.hits[0].chunk_id == "accounts#1"
    assert "hierarchical" in findings.hits[0].levels


async def test_a_term_is_found_where_it_is_defined(searcher: LevelSearcher) -> None:
    findings = await ask(searcher, "carrier")

    assert findings.hits[0].chunk_id == "terms#0"


@pytest.mark.parametrize(
    ("text", "language", "typed", "spelled"),
    [
        ("Yıllık izin başvurusu portaldan yapılır.", "tr", "yillik basvurusu", "yıllık basvurusu"),
        ("Η άδεια εγκρίνεται σε τρεις ημέρες.", "el", "αδεια εγκρινεται", "άδεια εγκρίνεται"),
        ("Die Übergabegröße steht im Protokoll.", "de", "Uebergabegroesse", "übergabegröße"),
        ("Załączniki należy oddać w terminie.", "pl", "zalaczniki", "załączniki"),
        ("Отчет сдают в понедельник.", "ru", "отчёт", "отчет"),
    ],
)
async def test_a_word_is_found_that_was_typed_with_other_accents(
    searcher: LevelSearcher,
    fake_documents: Index,
    text: str,
    language: str,
    typed: str,
    spelled: str,
) -> None:
    await put(fake_documents, document("own", text, language=language))

    findings = await ask(searcher, typed, language=language)

    assert findings.corrected == spelled
    assert pages(findings)[0] == "own"


async def test_a_word_that_stands_in_the_documents_keeps_its_accents(
    searcher: LevelSearcher, fake_documents: Index
) -> None:
    texts = ("Die Maße stehen im Plan.", "Die Masse steht im Plan.")
    await put(fake_documents, *(document(text[4:8], text, language="de") for text in texts))

    assert (await ask(searcher, "Masse", language="de")).corrected is None


async def test_words_that_are_known_are_left_alone(searcher: LevelSearcher) -> None:
    assert (await ask(searcher, "messages")).corrected is None
    assert (await ask(searcher, "Kubernetes 4711 äöü 😀")).corrected is None


async def test_an_earlier_turn_shows_what_a_short_one_means(searcher: LevelSearcher) -> None:
    alone = await ask(searcher, "And how do I delete it?")
    leaning = await ask(
        searcher, "And the reports?", related=("How do webhooks tell me of delivery?",)
    )

    assert pages(alone)[0] == "accounts"
    assert pages(leaning)[0] == "webhooks"


async def test_chunks_that_were_tried_are_left_out(searcher: LevelSearcher) -> None:
    findings = await ask(
        searcher, "Delete an account", exclude=("accounts#1", "nobody#1", "accounts#x", "#")
    )

    assert "accounts#1" not in [hit.chunk_id for hit in findings.hits]
    assert "accounts#0" in [hit.chunk_id for hit in findings.hits]


async def test_when_embedding_fails_keywords_answer_alone_and_it_is_said(
    searcher: LevelSearcher, embedder: WordEmbedder
) -> None:
    embedder.fails = True

    findings = await ask(searcher, "delivery reports")

    assert pages(findings)[0] == "webhooks"
    assert findings.fallbacks == ("semantic",)
    assert all("semantic" not in hit.levels for hit in findings.hits)


async def test_an_index_without_documents_finds_nothing(
    fake_documents: Index, embedder: WordEmbedder
) -> None:
    findings = await ask(LevelSearcher(fake_documents, embedder), "anything")

    assert findings.hits == ()
    assert findings.quality == "poor"
    assert findings.answerability == 0


@pytest.mark.parametrize(
    "question",
    ["", " ", "😀", "\x00\x07", "the of and", "\ud83d", "שלום", "a" * 100_000, "././../"],
)
async def test_any_text_can_be_asked(searcher: LevelSearcher, question: str) -> None:
    findings = await ask(
        searcher, question, text=question, related=(question,), previous_answer=question
    )

    assert all(hit.score >= 0 for hit in findings.hits)
    assert all(value == value for value in findings.features.values())


async def test_versions_of_a_page_are_one_and_shown_in_the_language_of_the_question(
    fake_documents: Index, embedder: WordEmbedder
) -> None:
    english = document("limits", (("Limits",), "Ten messages at most."), title="Limits")
    german = document(
        "limits@de",
        (("Grenzen",), "Höchstens zehn Nachrichten."),
        title="Grenzen",
        language="de",
        page="limits",
    )
    await put(fake_documents, english, german)
    searcher = LevelSearcher(fake_documents, embedder)

    asked_in_german = await ask(searcher, "Grenzen", text="Grenzen", language="de")
    translated = await ask(searcher, "Limits", text="Was sind Grenzen?", language="de")
    asked_in_english = await ask(searcher, "Limits", language="en")
    asked_in_french = await ask(searcher, "Limits", language="fr")

    assert pages(asked_in_german) == ["limits"]
    assert {hit.place.language for hit in asked_in_german.hits} == {"de"}
    assert {hit.place.language for hit in translated.hits} == {"de"}
    assert {hit.place.language for hit in asked_in_english.hits} == {"en"}
    assert {hit.place.language for hit in asked_in_french.hits} == {"en"}


@pytest.mark.parametrize(
    ("text", "question", "language"),
    [
        ("メッセージの送信制限を設定します。", "送信制限", "ja"),
        ("设置短信的发送限制。", "发送限制", "zh"),
        ("ตั้งค่าขีดจำกัดการส่งข้อความ", "ขีดจำกัด", "th"),
        ("메시지 전송 한도를 설정합니다.", "전송 한도", "ko"),
        ("संदेश भेजने की सीमा", "सीमा", "hi"),
    ],
)
async def test_writing_without_spaces_is_searched_by_keywords(
    fake_documents: Index, embedder: WordEmbedder, text: str, question: str, language: str
) -> None:
    embedder.fails = True
    await put(
        fake_documents, document("one", text, language=language), document("two", "other words")
    )

    findings = await ask(LevelSearcher(fake_documents, embedder), question, language=language)

    assert findings.hits[0].page == "one"
    assert "keywords" in findings.hits[0].levels


@pytest.mark.parametrize(
    ("answerability", "quality"),
    [(0.39, "poor"), (0.4, "good"), (0.69, "good"), (0.7, "excellent")],
)
async def test_quality_is_the_assessment_against_the_threshold(
    fake_documents: Index, embedder: WordEmbedder, answerability: float, quality: str
) -> None:
    seen: list[Mapping[str, float]] = []

    def assess(features: Mapping[str, float]) -> Assessment:
        seen.append(features)
        return Assessment(answerability, 0.5)

    await put(fake_documents, *LIBRARY)
    searcher = LevelSearcher(fake_documents, embedder, threshold=0.4, assess=assess)
    findings = await ask(searcher, "route")

    assert findings.quality == quality
    assert findings.coverage == 0.5
    assert seen == [findings.features]


async def test_places_name_the_pages_that_compete(searcher: LevelSearcher) -> None:
    findings = await ask(searcher, "account")

    assert findings.places[0].label == "User accounts"
    assert findings.places[0].crumbs == ("Platform", "User accounts")
    assert findings.places[0].url == "https://example.org/accounts"


class _Away:
    """An index that goes away in the middle."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self.is_away = False

    def __getattr__(self, name: str) -> object:
        return getattr(self._index, name)

    def visible_to(self, _groups: Collection[str], **_options: bool) -> "_Away":
        return self

    async def revision(self) -> str:
        return await self._index.revision()

    async def passages(self, points: Sequence[PointId]) -> Mapping[PointId, IndexedPassage]:
        if self.is_away:
            raise IndexUnavailable("the index went away")
        return await self._index.passages(points)


async def test_an_index_that_goes_away_is_one_error_and_its_return_is_noticed(
    fake_documents: Index, embedder: WordEmbedder
) -> None:
    await put(fake_documents, *LIBRARY)
    away = _Away(fake_documents)
    searcher = LevelSearcher(away, embedder)  # type: ignore[arg-type]
    away.is_away = True
    with pytest.raises(IndexUnavailable, match="went away"):
        await ask(searcher, "route")
    away.is_away = False

    assert (await ask(searcher, "route")).hits
