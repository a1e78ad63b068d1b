"""Finds what a quotation needs around it: what it leads to, and what leads to it."""

from collections.abc import Sequence

from citations.claims import UnitKind
from llm.offline.quoting.extracts import Extract
from llm.offline.quoting.relevance import Relevance
from llm.offline.quoting.steps import MOST_STEPS

_CONTINUES = (
    "it ",
    "they ",
    "this ",
    "that ",
    "these ",
    "he ",
    "she ",
    "his ",
    "her ",
    "its ",
    "their ",
)


def find_around(best: Extract, found: Sequence[Extract], relevance: Relevance) -> list[Extract]:
    """Return the best extract with what it needs: what it leads to, or what leads to it."""
    same = [extract for extract in found if extract.rank == best.rank]
    at = same.index(best)
    before = same[at - 1] if at else None
    if best.leads:
        following = same[at + 1 : at + 1 + MOST_STEPS]
        run = [e for e in following if following and e.kind is following[0].kind]
        return [best, *run]
    if best.kind is UnitKind.SENTENCE:
        return _find_neighbours(best, same, at)
    if best.kind is UnitKind.CODE and before is not None and before.kind is UnitKind.SENTENCE:
        return [before, best]
    if best.kind is UnitKind.ITEM:
        return _find_list(best, same, at, relevance)
    return [best]


def _find_neighbours(best: Extract, same: Sequence[Extract], at: int) -> list[Extract]:
    """Return a sentence with the one that it refers to and the one that goes on from it."""
    around = [best]
    if at and same[at - 1].kind is UnitKind.SENTENCE and _continues(best):
        around = [same[at - 1], best]
    following = same[at + 1] if at + 1 < len(same) else None
    if following is not None and following.kind is UnitKind.SENTENCE and not following.leads:
        around.append(following)
    return [best, *(extract for extract in around if extract is not best)]


def _continues(extract: Extract) -> bool:
    return extract.text.casefold().startswith(_CONTINUES)


def _find_list(
    best: Extract, same: Sequence[Extract], at: int, relevance: Relevance
) -> list[Extract]:
    """Return an item, or the whole list where its lead is more about the question than the item."""
    first = at
    while first and same[first - 1].kind is UnitKind.ITEM:
        first -= 1
    lead = same[first - 1] if first and same[first - 1].kind is UnitKind.SENTENCE else None
    if lead is None or not lead.leads:
        return [best]
    if relevance.share(lead) < relevance.share(best):
        return [lead, best]
    items = []
    for extract in same[first : first + MOST_STEPS]:
        if extract.kind is not UnitKind.ITEM:
            break
        items.append(extract)
    return [lead, *items]
