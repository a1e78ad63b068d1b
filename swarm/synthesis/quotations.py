"""Chooses what a worker quotes of a passage: a sentence, a row of a table, or a list with its lead.

A row is quoted with the heads of its columns. A list of names without a lead, such as the contents
of a page, counts less than a sentence: it says nothing about its items.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from pydantic import BaseModel

from citations.claims import UnitKind, marker
from llm.attacks.orders import is_order_to_assistant
from llm.offline.quoting.extracts import Extract, extracts, split_cells
from llm.offline.support import terms, weight_of
from llm.tasks.respond import PromptSource
from tools.passage_search.passages import FoundPassage

_LONGEST = 500
_LONGEST_NAME = 5
"""The words of an item that may be a mere name."""
_BARE_LIST = 0.4
"""The weight of a list of names without a lead."""
_SIDE = 0.4
"""How much a statement gains by a word of the side that its worker takes."""


class ChosenQuotation(BaseModel, frozen=True):
    """A quotation of a passage; `share` is that of the asked words in it, 0 to 1.

    `score` orders the parts of a passage: it has the weight of the form and of the side.
    `is_on_side`: it has a word of the side that was looked for.
    """

    text: str
    share: float
    score: float
    is_on_side: bool = False


def choose_quotation(
    asked: str, passage: FoundPassage, sides: Iterable[str] = (), *, subject: str = ""
) -> ChosenQuotation | None:
    """Return the part of a passage that has most of the asked words; None where none has any.

    `sides` are words of the side that a worker takes, such as risks. A row of a table is quoted
    about a `subject` only if a cell names it: the other rows are about other things.
    """
    wanted = {term: weight_of(term) for term in terms(asked)}
    total = sum(wanted.values()) or 1.0
    taken = {term for side in sides for term in terms(side) if weight_of(term) >= 1}
    best: ChosenQuotation | None = None
    for text, weight in _list_quotable(passage, set(terms(subject))):
        if is_order_to_assistant(text):
            continue
        own = set(terms(f"{passage.citation.title} {text}"))
        share = sum(found for term, found in wanted.items() if term in own) / total
        is_on_side = not taken.isdisjoint(terms(text))
        score = weight * share + _SIDE * is_on_side
        if share > 0 and (best is None or score > best.score):
            best = ChosenQuotation(text=text, share=share, score=score, is_on_side=is_on_side)
    return best


def _list_quotable(passage: FoundPassage, subject: set[str]) -> Iterator[tuple[str, float]]:
    """Yield what can be quoted, with its weight; the text as a whole if nothing in it can."""
    place = " ".join((passage.citation.title, *passage.citation.heading_path))
    source = PromptSource(
        number=1, chunk_id=passage.citation.chunk_id, place=place, text=passage.text
    )
    lead, is_empty = "", True
    for kind, group in groupby(extracts([source], ()), key=lambda one: one.kind):
        found = list(group)
        if kind is UnitKind.ITEM:
            yield from _list_items(lead, found)
        elif kind is UnitKind.TABLE:
            own = subject - set(terms(f"{place} {found[0].head}"))
            yield from (
                (_clean(_name_cells(one)), 1.0)
                for one in found
                if not own or own.intersection(terms(one.text))
            )
        elif kind is not UnitKind.CODE:
            yield from ((_clean(one.text), 1.0) for one in found if not one.leads)
        lead = found[-1].text if found[-1].leads else ""
        is_empty = False
    if is_empty and passage.text.strip():
        yield _clean(passage.text), 1.0


def _list_items(lead: str, items: Sequence[Extract]) -> Iterator[tuple[str, float]]:
    texts = [one.text.strip()[len(marker(one.text.strip())) :] for one in items]
    if all(len(text.split()) <= _LONGEST_NAME for text in texts):
        listed = "; ".join(texts)
        yield _clean(f"{lead} {listed}"), 1.0 if lead else _BARE_LIST
        return
    yield from ((_clean(f"{lead} {text}"), 1.0) for text in texts)


def _name_cells(row: Extract) -> str:
    """Return a row as "head: cell; head: cell"; cells without a head stand alone."""
    heads = split_cells(row.head.partition("\n")[0])
    cells = split_cells(row.text)
    heads += [""] * (len(cells) - len(heads))
    named = (
        f"{head}: {cell}" if head else cell
        for head, cell in zip(heads, cells, strict=False)
        if cell
    )
    return "; ".join(named)


def _clean(text: str) -> str:
    return " ".join(text.split())[:_LONGEST]
