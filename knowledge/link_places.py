"""Finds the positions of a page's links in its text.

A reader provides the links of a page in order, each with its label. A label such as "here" or "1"
also occurs outside of links. The URL of a link is inserted only at proven positions, where the
label occurs as often as there are links with it, either in the whole page or between two links with
known positions.
"""

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby

from knowledge.documents.page import Block, BlockKind

Link = tuple[str, str]
"""The label of a link, and its URL."""
_Place = tuple[int, int]
"""The index of a block, and a position in its text."""
_BEFORE_ALL: _Place = (-1, 0)
_BEGINNING = re.compile(r"\w+|\S")
_COMPARED = 64
"""The number of characters of a label that are compared when searching for its positions."""
_INSIDE_NAMES = frozenset("./@-")


def find_label(text: str, label: str) -> Iterator[int]:
    """Yield the positions of a label in a text as separate words.

    Longer words, URLs, and names do not count: "beta" is not a label in "imap.beta.org".
    """
    start = text.find(label) if label else -1
    while start >= 0:
        if _stands(text, label, start):
            yield start
        start = text.find(label, start + len(label))


def find_linked(blocks: Sequence[Block], links: Sequence[Link]) -> Mapping[int, Sequence[Link]]:
    """Return the links in each block, by block index, whose label is always a link in the block and
    always has the same target. Code has no links.
    """
    places = _list_places(blocks, {label for label, _ in links})
    stands = Counter((number, label) for label, own in places.items() for number, _ in own)
    proved = _prove(links, places)
    addresses: dict[tuple[int, str], set[str]] = defaultdict(set)
    counts: dict[tuple[int, str], int] = defaultdict(int)
    for at, place in proved.items():
        label, address = links[at]
        addresses[place[0], label].add(address)
        counts[place[0], label] += 1
    placed: dict[int, list[Link]] = defaultdict(list)
    for (block, label), own in addresses.items():
        if len(own) == 1 and counts[block, label] == stands[block, label]:
            placed[block].append((label, min(own)))
    return placed


def _stands(text: str, label: str, start: int) -> bool:
    """Return whether a label occurs at this position as separate words."""
    end = start + len(label)
    return (
        text.startswith(label, start)
        and not _continues(text[max(0, start - 2) : start][::-1], label[0])
        and not _continues(text[end : end + 2], label[-1])
    )


def _continues(outside: str, edge: str) -> bool:
    """Return whether a word continues outside of a label, beyond its edge; `outside` starts with
    the nearest character.
    """
    if not _is_word(edge) or not outside:
        return False
    if _is_word(outside[0]):
        return True
    return outside[0] in _INSIDE_NAMES and len(outside) > 1 and _is_word(outside[1])


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _list_places(
    blocks: Sequence[Block], labels: Collection[str]
) -> Mapping[str, Sequence[_Place]]:
    """Return the positions of each label, in time that does not grow with labels times text.

    Only labels that begin like a word or a symbol of the text are compared with it.
    """
    sizes: dict[str, set[int]] = defaultdict(set)
    lengths: dict[str, set[int]] = defaultdict(set)
    for label in filter(None, labels):
        beginning = label[:_COMPARED]
        sizes[label[0]].add(len(beginning))
        lengths[beginning].add(len(label))
    places: dict[str, list[_Place]] = {label: [] for label in labels}
    for number, block in enumerate(blocks):
        text = "" if block.kind is BlockKind.CODE else block.text
        for start in (match.start() for match in _BEGINNING.finditer(text)):
            for size in sizes.get(text[start], ()):
                for length in lengths.get(text[start : start + size], ()):
                    _add_place(places, text[start : start + length], text, (number, start))
    return places


def _add_place(places: Mapping[str, list[_Place]], label: str, text: str, place: _Place) -> None:
    """Add a position in a text if the label occurs there and does not overlap with the previous
    one.
    """
    own, (number, start) = places.get(label), place
    if own is None or not _stands(text, label, start):
        return
    if not own or own[-1][0] != number or own[-1][1] + len(label) <= start:
        own.append(place)


def _prove(links: Sequence[Link], places: Mapping[str, Sequence[_Place]]) -> Mapping[int, _Place]:
    """Return the positions of links that are certain, by link index."""
    numbers: dict[str, list[int]] = defaultdict(list)
    for at, (label, _) in enumerate(links):
        numbers[label].append(at)
    proved: dict[int, _Place] = {}
    for label, own in numbers.items():
        if len(own) == len(places[label]):
            proved.update(zip(own, places[label], strict=True))
    end = max((place[-1] for place in places.values() if place), default=_BEFORE_ALL)[0] + 1, 0
    known = [_BEFORE_ALL, *(proved[at] for at in sorted(proved)), end]
    passed = 0
    between: list[tuple[int, int]] = []
    for at in range(len(links)):
        passed += at in proved
        if at not in proved:
            between.append((passed, at))
    for gap, group in groupby(between, key=lambda item: item[0]):
        proved |= _prove_between([at for _, at in group], links, places, known[gap : gap + 2])
    return proved


def _prove_between(
    own: Sequence[int],
    links: Sequence[Link],
    places: Mapping[str, Sequence[_Place]],
    limits: Sequence[_Place],
) -> Mapping[int, _Place]:
    """Return the positions of links between two known positions."""
    proved: dict[int, _Place] = {}
    numbers: dict[str, list[int]] = defaultdict(list)
    for at in own:
        numbers[links[at][0]].append(at)
    for label, same in numbers.items():
        first, last = (bisect_left(places[label], limit) for limit in limits)
        if last - first == len(same):
            proved.update(zip(same, places[label][first:last], strict=True))
    return proved
