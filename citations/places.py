"""Words places of the documents for people who have to choose one of them."""

from collections.abc import Sequence

from citations.links import plain_line
from envelope.conversation import ClarificationOption


def choose_alternatives(
    places: Sequence[ClarificationOption], most: int
) -> tuple[ClarificationOption, ...]:
    """Return at most `most` places that are real alternatives, worded by their difference.

    A place is no alternative to a place below it. Places of the same name get the part of their
    crumbs in brackets in which they differ. Names and crumbs are plain lines. Fewer than two places
    are no choice: the result is then empty.
    """
    cleaned = [_clean(place) for place in places]
    distinct = [place for place in dict.fromkeys(cleaned) if place.label]
    lowest = [place for place in distinct if not any(_is_above(place, one) for one in distinct)]
    chosen = lowest if len(lowest) > 1 else distinct
    worded = {option.label: option for option in (_word(one, chosen) for one in chosen)}
    return tuple(worded.values())[:most] if len(worded) > 1 else ()


def _clean(place: ClarificationOption) -> ClarificationOption:
    crumbs = tuple(filter(None, map(plain_line, place.crumbs)))
    return ClarificationOption(label=plain_line(place.label), crumbs=crumbs)


def _path(place: ClarificationOption) -> tuple[str, ...]:
    """Return the crumbs down to the place itself."""
    ends_there = place.crumbs[-1:] == (place.label,)
    return place.crumbs if ends_there else (*place.crumbs, place.label)


def _is_above(place: ClarificationOption, other: ClarificationOption) -> bool:
    above, below = _path(place), _path(other)
    return len(above) < len(below) and below[: len(above)] == above


def _word(place: ClarificationOption, among: Sequence[ClarificationOption]) -> ClarificationOption:
    same = [other for other in among if other.label == place.label]
    if len(same) < 2:
        return place
    shared = set(_path(place)).intersection(*(_path(other) for other in same))
    distinctive = [crumb for crumb in _path(place) if crumb not in shared]
    if not distinctive:
        return place
    return place.model_copy(update={"label": f"{place.label} ({distinctive[-1]})"})
