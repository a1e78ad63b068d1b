"""Finds where the links of a page stand in its text.

A reader gives the links of a page in their order, each with its label. A label such as "here" or
"1" also stands where it is no link. The address of a link is given only at places that are proved:
where a label stands as often as there are links with it, in the whole page or between two links
whose places are known.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from knowledge.documents.page import Block, BlockKind

Link = tuple[str, str]
"""The label of a link, and its address."""
_Place = tuple[int, int]
"""The number of a block, and a position in its text."""
_BEFORE_ALL: _Place = (-1, 0)
_INSIDE_NAMES = frozenset("./@-")


def find_label(text: str, label: str) -> Iterator[int]:
    """Yield where a label stands in a text as words of its own.

    It does not stand in longer words, addresses and names: "beta" is no label in "imap.beta.org".
    """
    start = text.find(label) if label else -1
    while start >= 0:
        end = start + len(label)
        if not _continues(text[max(0, start - 2) : start][::-1], label[0]) and not _continues(
            text[end : end + 2], label[-1]
        ):
            yield start
        start = text.find(label, end)


def find_linked(blocks: Sequence[Block], links: Sequence[Link]) -> Mapping[int, Sequence[Link]]:
    """Return the links of each block by its number, whose label is a link wherever the block has
    it, and leads to one address. Code has no links.
    """
    labels = {label for label, _ in links}
    places = {label: list(_list_places(blocks, label)) for label in labels}
    proved = _prove(links, places)
    addresses: dict[tuple[int, str], set[str]] = defaultdict(set)
    counts: dict[tuple[int, str], int] = defaultdict(int)
    for at, place in proved.items():
        label, address = links[at]
        addresses[place[0], label].add(address)
        counts[place[0], label] += 1
    found: dict[int, list[Link]] = defaultdict(list)
    for (block, label), own in addresses.items():
        stands = sum(1 for place in places[label] if place[0] == block)
        if len(own) == 1 and counts[block, label] == stands:
            found[block].append((label, min(own)))
    return found


def _continues(outside: str, edge: str) -> bool:
    """Return whether a word goes on outside of a label, past its edge; nearest character first."""
    if not _is_word(edge) or not outside:
        return False
    if _is_word(outside[0]):
        return True
    return outside[0] in _INSIDE_NAMES and len(outside) > 1 and _is_word(outside[1])


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _list_places(blocks: Sequence[Block], label: str) -> Iterator[_Place]:
    for number, block in enumerate(blocks):
        if block.kind is not BlockKind.CODE:
            yield from ((number, start) for start in find_label(block.text, label))


def _prove(links: Sequence[Link], places: Mapping[str, Sequence[_Place]]) -> Mapping[int, _Place]:
    """Return the places of links that are certain, by the numbers of the links."""
    numbers: dict[str, list[int]] = defaultdict(list)
    for at, (label, _) in enumerate(links):
        numbers[label].append(at)
    proved: dict[int, _Place] = {}
    for label, own in numbers.items():
        if len(own) == len(places[label]):
            proved.update(zip(own, places[label], strict=True))
    end = max((one[-1] for one in places.values() if one), default=_BEFORE_ALL)[0] + 1, 0
    known = [_BEFORE_ALL, *(proved[at] for at in sorted(proved)), end]
    passed = 0
    between: list[tuple[int, int]] = []
    for at in range(len(links)):
        passed += at in proved
        if at not in proved:
            between.append((passed, at))
    for gap, group in groupby(between, key=lambda one: one[0]):
        proved |= _prove_between([at for _, at in group], links, places, known[gap : gap + 2])
    return proved


def _prove_between(
    own: Sequence[int],
    links: Sequence[Link],
    places: Mapping[str, Sequence[_Place]],
    limits: Sequence[_Place],
) -> Mapping[int, _Place]:
    """Return the places of links between two places that are known."""
    proved: dict[int, _Place] = {}
    numbers: dict[str, list[int]] = defaultdict(list)
    for at in own:
        numbers[links[at][0]].append(at)
    for label, same in numbers.items():
        first, last = (bisect_left(places[label], limit) for limit in limits)
        if last - first == len(same):
            proved.update(zip(same, places[label][first:last], strict=True))
    return proved
