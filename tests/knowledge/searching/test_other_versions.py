"""The context names what an earlier version says otherwise, and nothing else of it."""

from envelope.place import Place
from knowledge.document import Document
from knowledge.index.port import Index
from knowledge.port import ContextSection, Hit, SearchRequest
from knowledge.search.other_versions import group_versions
from knowledge.search.searcher import LevelSearcher
from tests.knowledge.searching.conftest import WordEmbedder, document, put

TOKENS = 800


def write_rules(version: str, days: str, number: int, groups: tuple[str, ...] = ()) -> Document:
    title = f"Remote work {version}"
    return document(
        f"rules/remote-{version}",
        ((title, f"{number}. Days"), f"Employees may work remotely {days} a week."),
        ((title, f"{number + 1}. Insurance"), "Accidents at home are covered by the insurance."),
        title=title,
        stated_version=version,
        groups=groups,
    )


def make_section(version: str, article: int) -> ContextSection:
    heading, document_id = f"Article {article}", f"law-{version}"
    place = Place(title="Law", heading_path=(heading,), language="en", version=version)
    chunk = f"{document_id}#{article}"
    hit = Hit(chunk, document_id, document_id, place, heading, 1.0, ())
    return ContextSection(hit, f"{version} {heading}", (chunk,))


async def find_context(
    index: Index, question: str, groups: tuple[str, ...] = ()
) -> list[tuple[str, str]]:
    searcher = LevelSearcher(index, WordEmbedder())
    request = SearchRequest(question=question, context_tokens=TOKENS, groups=groups)
    context: tuple[ContextSection, ...] = (await searcher.search(request)).context
    places = [section.best.place for section in context]
    return [(place.version or "", place.heading_path[-1]) for place in places]


async def test_a_section_of_an_earlier_version_is_added_where_it_differs(
    fake_documents: Index,
) -> None:
    await put(
        fake_documents,
        write_rules("2021", "two days", 3),
        write_rules("2023", "one day", 2),
        write_rules("2025", "three days", 2),
    )

    context = await find_context(fake_documents, "How many days may employees work remotely?")
    named = await find_context(fake_documents, "Days of remote work in 2023")

    assert [item for item in context if item[0] != "2025"] == [
        ("2023", "2. Days"),
        ("2021", "3. Days"),
    ]
    assert ("2023", "3. Insurance") not in context
    assert {version for version, _ in named} == {"2023"}


async def test_a_section_stands_next_to_the_same_section_of_other_versions(
    fake_documents: Index,
) -> None:
    others = [
        document(f"other{n}", ((f"Team {n}",), "Employees work. Days differ.")) for n in range(3)
    ]
    await put(
        fake_documents, write_rules("2023", "one day", 2), write_rules("2025", "3 days", 4), *others
    )
    asked = "How many days may employees work remotely, and is home insured?"

    added = await find_context(fake_documents, asked)
    named = await find_context(fake_documents, f"{asked} In 2023 and in 2025?")

    assert added[added.index(("2025", "4. Days")) + 1] == ("2023", "2. Days")
    assert [heading.split()[1] for _, heading in named[:4]] in (
        ["Days", "Days", "Insurance", "Insurance"],
        ["Insurance", "Insurance", "Days", "Days"],
    )


def test_articles_that_differ_by_their_numbers_alone_are_matched_by_them() -> None:
    given = [make_section(*item) for item in (("2023", 7), ("2023", 8), ("2025", 8), ("2025", 7))]

    grouped = [section.text for section in group_versions(given)]

    assert [text.split(" ", 2)[2] for text in grouped] == ["7", "7", "8", "8"]


async def test_an_earlier_version_that_a_person_may_not_read_is_not_added(
    fake_documents: Index,
) -> None:
    await put(
        fake_documents,
        write_rules("2023", "one day", 2, ("board",)),
        write_rules("2025", "three days", 2),
    )

    question = "How many days may employees work remotely?"

    assert ("2023", "2. Days") in await find_context(fake_documents, question, ("board",))
    assert ("2023", "2. Days") not in await find_context(fake_documents, question)


async def test_a_section_that_got_another_heading_is_found_by_its_words(
    fake_documents: Index,
) -> None:
    old = document(
        "rules/remote-2023",
        (("Remote work 2023", "Home office"), "Employees may work remotely one day a week."),
        (("Remote work 2023", "Parking"), "Cars park behind the building."),
        stated_version="2023",
    )
    await put(fake_documents, old, write_rules("2025", "three days", 2))

    context = await find_context(fake_documents, "How many days may employees work remotely?")

    assert context[1] == ("2023", "Home office")


async def test_a_version_that_is_neither_newer_nor_older_is_added_once(
    fake_documents: Index,
) -> None:
    await put(
        fake_documents, write_rules("cloud", "two days", 2), write_rules("server", "one day", 2)
    )

    context = await find_context(fake_documents, "How many days may employees work remotely?")
    named = await find_context(fake_documents, "Days of remote work on the server")

    assert sorted(item for item in context if item[1] == "2. Days") == [
        ("cloud", "2. Days"),
        ("server", "2. Days"),
    ]
    assert named[0][0] == "server"
