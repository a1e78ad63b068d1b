"""Who may read what: documents of groups take no part in what other people find."""

from dataclasses import asdict

import pytest

from knowledge.index.port import Index
from knowledge.port import Findings, SearchRequest
from knowledge.search.searcher import LevelSearcher
from knowledge.sections import read_document
from tests.knowledge.searching.conftest import Opening, WordEmbedder, document, identity, put

pytestmark = [
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning"),
    pytest.mark.filterwarnings("ignore:Local mode performs exact:UserWarning"),
]

WORD = "xylophone"
"""What only the hidden document says."""
PUBLIC = (
    document("routing", "A route carries ten messages a second; more are queued.", title="Routes"),
    document("accounts", "An account has a password and belongs to a person.", title="Accounts"),
    document("leave", "Everybody has thirty days of leave in a year.", title="Leave"),
)
HIDDEN = (
    document(
        "salaries",
        f"The {WORD} bonus of a manager is 9000 a year; routes and leave do not change it.",
        f"A route of ten messages: the {WORD} password of the account is in the safe.",
        title="Salaries of managers",
        groups=("board", "hr"),
    ),
    document("gehalt", f"Das {WORD} Gehalt ist geheim.", language="de", groups=("board",)),
)
QUESTIONS = (
    f"What is the {WORD} bonus?",
    "xylophon bonus",  # corrected to a word of the hidden document by who may read it
    "How many messages does a route carry?",
    "salaries of managers",
    "How many days of leave do I have?",
    "What is the password?",
    "Gehalt",
)


@pytest.fixture
async def full(opening: Opening) -> Index:
    """An index with public and hidden documents."""
    index = await opening()
    await put(index, *PUBLIC[:2], *HIDDEN, *PUBLIC[2:])
    return index


async def ask(index: Index, question: str, *groups: str, **more: object) -> Findings:
    searcher = LevelSearcher(index, WordEmbedder())
    request = SearchRequest(question=question, groups=groups, context_tokens=500, **more)  # type: ignore[arg-type]
    return await searcher.search(request)


@pytest.mark.parametrize("groups", [(), ("sales",), ("HR", "hr ", "Board")])
async def test_nothing_that_a_person_finds_shows_that_a_hidden_document_exists(
    full: Index, opening: Opening, groups: tuple[str, ...]
) -> None:
    alone = await opening(identity(assistant="without"))
    await put(alone, *PUBLIC)

    for question in QUESTIONS:
        with_hidden = repr(asdict(await ask(full, question, *groups)))
        without = repr(asdict(await ask(alone, question, *groups)))

        assert with_hidden == without, question
        assert WORD not in with_hidden.casefold().replace(question.casefold(), "")


@pytest.mark.parametrize("group", ["hr", "board"])
async def test_a_user_in_one_of_its_groups_finds_a_document(full: Index, group: str) -> None:
    findings = await ask(full, f"What is the {WORD} bonus?", "sales", group)

    assert findings.hits[0].document_id == "salaries"
    assert any(WORD in section.text for section in findings.context)


async def test_the_languages_and_the_number_of_documents_are_those_of_the_person(
    full: Index,
) -> None:
    for groups, documents, languages in (
        ((), 3, ("en",)),
        (("hr",), 4, ("en",)),
        (("board",), 5, ("de", "en")),
    ):
        reply = await ask(full, "leave", *groups)
        counted = await full.visible_to(groups).languages()

        assert (reply.documents, reply.languages) == (documents, languages)
        assert tuple(sorted(counted)) == languages


async def test_one_search_serves_people_of_different_groups(full: Index) -> None:
    searcher = LevelSearcher(full, WordEmbedder())
    question = f"What is the {WORD} bonus?"

    results = [
        {hit.document_id for hit in (await searcher.search(asked)).hits}
        for groups in ((), ("hr",), (), ("board",), ("nobody",), ("hr",))
        for asked in [SearchRequest(question=question, groups=groups)]
    ]

    assert ["salaries" in ids for ids in results] == [False, True, False, True, False, True]


async def test_a_document_that_gets_groups_is_gone_for_others_at_once(index: Index) -> None:
    searcher = LevelSearcher(index, WordEmbedder())
    request = SearchRequest(question="How many days of leave do I have?", context_tokens=500)
    await put(index, *PUBLIC)
    assert (await searcher.search(request)).hits[0].document_id == "leave"

    await put(index, PUBLIC[2].model_copy(update={"groups": ("hr",)}))

    assert "leave" not in {hit.document_id for hit in (await searcher.search(request)).hits}
    await put(index, PUBLIC[2])
    assert (await searcher.search(request)).hits[0].document_id == "leave"


async def test_groups_that_the_owner_chose_hold_at_once_and_outlive_the_next_reading(
    index: Index,
) -> None:
    await put(index, *PUBLIC, *HIDDEN)
    searcher = LevelSearcher(index, WordEmbedder())

    async def find(document_id: str, question: str, *groups: str) -> bool:
        request = SearchRequest(question=question, groups=groups, context_tokens=500)
        return document_id in {hit.document_id for hit in (await searcher.search(request)).hits}

    leave, bonus = "How many days of leave do I have?", f"What is the {WORD} bonus?"
    await index.choose_groups(["leave"], ["hr"])
    await index.choose_groups(["salaries", "nobody"], [])
    for _ in range(2):
        assert [await find("leave", leave), await find("leave", leave, "hr")] == [False, True]
        assert await find("salaries", bonus)
        await put(index, *PUBLIC, *HIDDEN)

    chosen = {document.id for document in await index.list_documents() if document.groups_chosen}
    assert chosen == {"leave", "salaries"}
    await index.choose_groups(["leave"], None)
    assert not await find("leave", leave)
    assert [document.content_hash for document in await index.list_documents(["leave"])] == [""]
    await put(index, PUBLIC[2])
    assert await find("leave", leave)


async def test_a_passage_is_not_read_by_an_id_that_somebody_guesses(full: Index) -> None:
    hidden = (await full.load(["salaries"]))[0]
    points = [chunk.point for chunk in hidden.chunks]

    assert set(await full.passages(points)) == set(points)
    assert set(await full.visible_to(["hr"]).passages(points)) == set(points)
    assert await full.visible_to(["sales"]).passages(points) == {}
    assert await full.visible_to(["sales"]).load(["salaries"]) == []


async def test_the_reader_shows_a_document_to_its_groups_alone(full: Index) -> None:
    assert await read_document(full.visible_to(["hr"]), "salaries") is not None
    assert await read_document(full.visible_to([]), "salaries") is None
    assert await read_document(full.visible_to([]), "routing") is not None


async def test_lists_name_only_what_a_person_may_read(full: Index) -> None:
    def names(listed: object) -> set[str]:
        return {item.id for item in listed}  # type: ignore[attr-defined]

    public = {made.id for made in PUBLIC}
    assert names(await full.list_documents()) == public | {"salaries", "gehalt"}
    assert names(await full.visible_to(["hr"]).list_documents()) == public | {"salaries"}
    assert names(await full.visible_to([]).list_documents()) == public
    assert set(await full.visible_to([]).versions()) == public
    assert await full.groups() == {"board", "hr"}
    assert await full.visible_to([]).groups() == frozenset()
