"""Searches for several questions of one message, and for what a person chose among places.

Every question gets its share of the context, so that none is crowded out by another. What stands at
a chosen place comes first.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, zip_longest

from knowledge.port import ContextSection, Findings, Hit, Searcher, SearchRequest

_QUALITIES = ("poor", "good", "excellent")


async def search_parts(
    searcher: Searcher, request: SearchRequest, parts: Sequence[str]
) -> Findings:
    """Return the findings of the questions of one message, the best of each first."""
    share = request.context_tokens // len(parts)
    asked = [
        replace(request, question=part, text="", text_eng=part, related=(), context_tokens=share)
        for part in parts
    ]
    found = await asyncio.gather(*(searcher.search(one) for one in asked))
    best = max(found, key=lambda one: one.answerability)
    return replace(
        best,
        hits=tuple(_join_hits(found))[: request.limit],
        context=tuple(_join_sections(chain.from_iterable(one.context for one in found))),
        quality=max((one.quality for one in found), key=_QUALITIES.index),
        places=tuple(dict.fromkeys(chain.from_iterable(one.places for one in found))),
        common=tuple(dict.fromkeys(chain.from_iterable(one.common for one in found))),
        fallbacks=tuple(dict.fromkeys(chain.from_iterable(one.fallbacks for one in found))),
        from_cache=all(one.from_cache for one in found),
    )


async def search_place(
    searcher: Searcher, request: SearchRequest, place: tuple[str, ...]
) -> Findings:
    """Return the findings of a question, first what stands at `place`, which crumbs lead to.

    Where the search of the question finds nothing there, the place itself is searched for.
    """
    found = await searcher.search(request)
    there = [one for one in found.context if _is_at(one.best, place)]
    if not there:
        asked = replace(request, question=" ".join(place[-2:]), text="", text_eng="", related=())
        named = await searcher.search(asked)
        there = [one for one in named.context if _is_at(one.best, place)]
        found = replace(found, hits=(*(h for h in named.hits if _is_at(h, place)), *found.hits))
    if not there:
        return found
    top = max(one.best.score for one in (*there, *found.context))
    first = [replace(one, best=replace(one.best, score=top)) for one in there]
    hits = sorted(dict.fromkeys(found.hits), key=lambda hit: not _is_at(hit, place))
    return replace(
        found,
        hits=tuple(hits),
        context=tuple(_join_sections((*first, *found.context))),
        quality="good" if found.quality == "poor" else found.quality,
    )


def _is_at(hit: Hit, place: tuple[str, ...]) -> bool:
    """Return whether a hit stands at a place or below it."""
    path = tuple(dict.fromkeys((*hit.place.crumbs, *hit.place.heading_path)))
    return path[: len(place)] == place


def _join_hits(found: Sequence[Findings]) -> Iterator[Hit]:
    """Yield the first hits of all searches, then the second ones, each once."""
    seen: set[str] = set()
    for hit in chain.from_iterable(zip_longest(*(one.hits for one in found))):
        if hit is not None and hit.chunk_id not in seen:
            seen.add(hit.chunk_id)
            yield hit


def _join_sections(sections: Iterable[ContextSection]) -> Iterator[ContextSection]:
    """Yield sections of which something has not been given before."""
    seen: set[str] = set()
    for one in sections:
        if not seen.issuperset(one.chunk_ids):
            seen.update(one.chunk_ids)
            yield one
