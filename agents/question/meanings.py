"""Possible meanings of an unclear question, which are options that a model words and that link to
locations.
"""

from collections.abc import Iterator, Sequence

from citations.links import plain_line
from citations.sources import choose_alternatives
from citations.wording import find_asking_fault
from envelope.conversation import ClarificationOption
from knowledge.port import Hit
from llm.tasks.question import Meaning

MOST_MEANINGS = 4
LONGEST_LABEL = 80
"""Maximum number of characters of an option that was worded by a model."""


def list_places(hits: Sequence[Hit], most: int) -> tuple[ClarificationOption, ...]:
    """Return the pages of the hits, best first, each followed by its sections that contain a hit.

    There are at most `most` pages, and at most `most` sections.
    """
    paths = [_list_paths(hit) for hit in hits]
    sections = list(dict.fromkeys(section for page, section in paths if section != page))[:most]
    pages = list(dict.fromkeys(page for page, _ in paths))[:most]
    return tuple(
        make_place(path)
        for page in pages
        for path in (page, *(section for section in sections if (page, section) in paths))
    )


def find_section(hit: Hit) -> ClarificationOption:
    """Return the section that contains a hit."""
    return make_place(_list_paths(hit)[1])


def make_place(path: tuple[str, ...]) -> ClarificationOption:
    """Return a location, given the breadcrumbs that lead to it."""
    return ClarificationOption(label=path[-1], crumbs=path)


def number_places(places: Sequence[ClarificationOption]) -> tuple[str, ...]:
    """Return the locations, formatted as in a prompt."""
    return tuple(f"{n}. {' > '.join(place.crumbs)}" for n, place in enumerate(places, 1))


def word_meanings(
    meanings: Sequence[Meaning],
    places: Sequence[ClarificationOption],
    known_texts: Sequence[str],
) -> tuple[ClarificationOption, ...]:
    """Return the options that a model worded, each with its location if `places` contains it.

    `known_texts` contains the question and the subject of the desk. An option that must not be
    shown, such as one with an address that occurs in neither the texts nor the locations, is
    replaced with the name of its location; if it has none, it is omitted.
    """
    return choose_alternatives(list(_word(meanings, places, known_texts)), MOST_MEANINGS)


def _word(
    meanings: Sequence[Meaning],
    places: Sequence[ClarificationOption],
    known_texts: Sequence[str],
) -> Iterator[ClarificationOption]:
    known = "\n".join((*known_texts, *(crumb for place in places for crumb in place.crumbs)))
    for meaning in meanings:
        place = places[meaning.place - 1] if 0 < meaning.place <= len(places) else None
        label = plain_line(meaning.label)
        fault = find_asking_fault(meaning.label, known)
        if fault or not label or len(label) > LONGEST_LABEL:
            label = "" if place is None else place.label
        crumbs = () if place is None else place.crumbs
        yield ClarificationOption(label=label, crumbs=crumbs, is_worded=True)


def _list_paths(hit: Hit) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the breadcrumbs that lead to the page of a hit, and those that lead to its section."""
    page = tuple(dict.fromkeys(hit.place.crumbs)) or (hit.place.title,)
    return page, tuple(dict.fromkeys((*page, *hit.place.heading_path)))
