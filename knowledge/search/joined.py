"""Combines the searches for one message, and searches for the location that a person chose.

A message is searched for as typed, for each of its questions, and in the languages of the
documents. Every search gets its share of the context, so that it is not crowded out by another one.
Content at the chosen location comes first.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice, zip_longest

from knowledge.port import ContextSection, Findings, Hit, Searcher, SearchRequest
from knowledge.search.other_versions import group_versions
from knowledge.sections import count_tokens

_QUALITIES = ("poor", "good", "excellent")


async def search_all(searcher: Searcher, requests: Sequence[SearchRequest]) -> Findings:
    """Return the combined findings of several searches for one message, with the best of each
    first.

    The first request is the message itself, and its limits apply to all of them together. The
    context is divided among the searches that have results. The result of a single search is
    returned unchanged.
    """
    first = requests[0]
    results = await asyncio.gather(*(searcher.search(request) for request in requests))
    if not results[1:]:
        return results[0]
    best = max(results, key=lambda item: item.answerability)
    matching = [findings for findings in results if not findings.match_nothing] or [best]
    context = islice(_divide_context(matching, first.context_tokens), first.limit)
    return replace(
        best,
        hits=tuple(islice(_join_hits(matching), first.limit)),
        context=tuple(group_versions(context)),
        quality=max((findings.quality for findings in results), key=_QUALITIES.index),
        places=tuple(dict.fromkeys(chain.from_iterable(findings.places for findings in matching))),
        common=tuple(dict.fromkeys(chain.from_iterable(findings.common for findings in results))),
        fallbacks=tuple(
            dict.fromkeys(chain.from_iterable(findings.fallbacks for findings in results))
        ),
        uncompared=tuple(
            one for one in best.uncompared if all(one in other.uncompared for other in results)
        ),
        from_cache=all(findings.from_cache for findings in results),
        total=max(findings.total for findings in results),
    )


async def search_place(
    searcher: Searcher, request: SearchRequest, place: tuple[str, ...]
) -> Findings:
    """Return the findings for a question, starting with the content at `place`, which is given as
    breadcrumbs.

    If the search for the question finds nothing there, the location itself is searched for. Only
    content at the location counts as found, so that it is shown if no model answers.
    """
    findings = await searcher.search(request)
    there = [section for section in findings.context if _is_at(section.best, place)]
    if not there:
        asked = replace(request, question=" ".join(place[-2:]), text="", text_eng="", related=())
        named = await searcher.search(asked)
        there = [section for section in named.context if _is_at(section.best, place)]
        findings = replace(
            findings, hits=(*(h for h in named.hits if _is_at(h, place)), *findings.hits)
        )
    if not there:
        return findings
    top = max(section.best.score for section in (*there, *findings.context))
    first = [replace(section, best=replace(section.best, score=top)) for section in there]
    others = (
        replace(section, found=())
        for section in findings.context
        if not _is_at(section.best, place)
    )
    hits = sorted(dict.fromkeys(findings.hits), key=lambda hit: not _is_at(hit, place))
    return replace(
        findings,
        hits=tuple(hits),
        context=tuple(_join_sections((*first, *others))),
        quality="good" if findings.quality == "poor" else findings.quality,
    )


def _is_at(hit: Hit, place: tuple[str, ...]) -> bool:
    """Return whether a hit is at a location or below it."""
    path = tuple(dict.fromkeys((*hit.place.crumbs, *hit.place.heading_path)))
    return path[: len(place)] == place


def _join_hits(results: Sequence[Findings]) -> Iterator[Hit]:
    """Yield the first hits of all searches, then the second ones, and so on, without duplicates."""
    seen: set[str] = set()
    for hit in chain.from_iterable(zip_longest(*(findings.hits for findings in results))):
        if hit is not None and hit.chunk_id not in seen:
            seen.add(hit.chunk_id)
            yield hit


def _divide_context(results: Sequence[Findings], tokens: int) -> list[ContextSection]:
    """Return sections from all searches up to a number of tokens, without duplicates.

    The next section always comes from the search that has the fewest tokens so far. A section that
    contains earlier ones replaces the first of them.
    """
    waiting = [list(reversed(findings.context)) for findings in results]
    used = [0] * len(results)
    chosen: list[ContextSection] = []
    while any(waiting):
        at = min((at for at, sections in enumerate(waiting) if sections), key=used.__getitem__)
        section = waiting[at].pop()
        if any(_contains(other, section) for other in chosen):
            continue
        within = [other for other in chosen if _contains(section, other)]
        size = _count_section(section) - sum(map(_count_section, within))
        if sum(used) + size > tokens:
            continue
        used[at] += size
        place = chosen.index(within[0]) if within else len(chosen)
        chosen.insert(place, section)
        chosen = [other for other in chosen if other not in within]
    return chosen


def _contains(section: ContextSection, other: ContextSection) -> bool:
    return set(section.chunk_ids).issuperset(other.chunk_ids)


def _count_section(section: ContextSection) -> int:
    place = dict.fromkeys((*section.best.place.crumbs, *section.best.place.heading_path))
    return count_tokens(section.text) + count_tokens(" > ".join(place))


def _join_sections(sections: Iterable[ContextSection]) -> Iterator[ContextSection]:
    """Yield sections whose content has not been returned before."""
    seen: set[str] = set()
    for section in sections:
        if not seen.issuperset(section.chunk_ids):
            seen.update(section.chunk_ids)
            yield section
