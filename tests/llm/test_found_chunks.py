"""The offline rules quote what the search found inside the sections that a model reads whole."""

from envelope.sources import FoundPart
from llm.offline import respond
from llm.offline.found_chunks import select_found
from llm.tasks.respond import Inputs, PromptSource

SECTION = PromptSource(
    number=1,
    chunk_id="a#1",
    place="Routing",
    language="en",
    text="Rules route messages. A rule has a priority.",
    found=(FoundPart(rank=2, start=22, end=44),),
)
OTHER = PromptSource(
    number=2,
    chunk_id="b#0",
    place="Prices",
    language="en",
    text="A priority rule is free. Routes cost a cent.",
    found=(FoundPart(rank=0, start=0, end=24), FoundPart(rank=1, start=25, end=44)),
)


def test_found_chunks_are_sources_under_the_number_of_their_section_best_first() -> None:
    found = select_found((SECTION, OTHER))

    assert [(one.number, one.text) for one in found] == [
        (2, "A priority rule is free."),
        (2, "Routes cost a cent."),
        (1, "A rule has a priority."),
    ]


def test_sources_without_found_chunks_are_quoted_whole() -> None:
    plain = SECTION.model_copy(update={"found": ()})

    assert select_found((plain,)) == (plain,)


def test_only_what_was_found_is_quoted() -> None:
    asked = Inputs(question="What does a rule have?", language="en", sources=(SECTION,))

    answer = respond.answer(asked)

    assert answer.answer == "A rule has a priority. [1]"
