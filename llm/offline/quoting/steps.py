"""Puts together the steps of a procedure from the chunks of its section."""

from collections.abc import Sequence
from itertools import pairwise

from citations.claims import UnitKind, marker
from llm.offline.quoting.extracts import Extract
from llm.offline.quoting.key_terms import extract_key_terms
from llm.offline.quoting.relevance import Relevance
from llm.offline.quoting.repeats import in_order, without_repeats
from llm.tasks.respond import PromptSource

MOST_STEPS = 12
_SENTENCES = 4
_LEAD_SHARE = 0.5
_ONLY_CODE_SHARE = 0.8
_STEPS_SHARE = 0.7
_AS_GOOD = 0.93
_CLOSE_SHARE = 0.3
_LEAST_TABS = 2
_LABEL_TERMS = 3


def find_steps(
    found: Sequence[Extract], sources: Sequence[PromptSource], relevance: Relevance
) -> list[list[Extract]]:
    """Return the lists of the sections that are most about the question; none where none is.

    More than one is returned where sections of several pages are equally about it.
    """
    sections: dict[str, list[Extract]] = {}
    for extract in found:
        sections.setdefault(sources[extract.rank].place, []).append(extract)
    listed = {place: parts for place, parts in sections.items() if _is_procedure(parts)}
    if not listed:
        return []
    weights = {place: _weigh_section(parts, relevance) for place, parts in sections.items()}
    best = max(listed, key=lambda place: weights[place])
    if weights[best] < _STEPS_SHARE * max(weights.values()):
        return []
    chosen = [best, *_find_twins(best, listed, weights)]
    return [
        _with_lead(put_together(listed[place], relevance), found, sources, relevance)
        for place in chosen
    ]


def put_together(parts: Sequence[Extract], relevance: Relevance) -> list[Extract]:
    """Return the items of a section in order, else its sentences with its first code.

    Points without numbers are no steps where the code of the section is more about the question.
    """
    items = [part for part in parts if part.kind is UnitKind.ITEM]
    code = [part for part in parts if part.kind is UnitKind.CODE][:1]
    numbered = any(_number_step(item) for item in items)
    if not items or (code and not numbered and _is_nearer(code[0], items[0], parts, relevance)):
        return _put_tabs_together(parts, relevance) or _put_code_together(parts)
    return sorted(without_repeats(items), key=_number_step)[:MOST_STEPS] + code


def _is_nearer(
    one: Extract, other: Extract, parts: Sequence[Extract], relevance: Relevance
) -> bool:
    """Return whether the sentence before `one` holds more of the question than that of `other`."""
    first, second = (_find_before(part, parts) for part in (one, other))
    if first is None or second is None:
        return False
    return relevance.share(first) > relevance.share(second)


def _find_before(part: Extract, parts: Sequence[Extract]) -> Extract | None:
    before = [e for e in parts if e.rank == part.rank and e.order < part.order]
    sentences = [e for e in before if e.kind is UnitKind.SENTENCE]
    return max(sentences, key=lambda e: e.order, default=None)


def _put_tabs_together(parts: Sequence[Extract], relevance: Relevance) -> list[Extract]:
    """Return the code below labels ("macOS:"): that of the label which the question names, or all.

    A sentence behind a label ("Windows: ...") counts where the question names its label. Nothing is
    returned where fewer than two labels have code.
    """
    tabs = [
        (label, code)
        for label, code in pairwise(parts)
        if code.kind is UnitKind.CODE and label.leads and _label_terms(label)
    ]
    if len(tabs) < _LEAST_TABS:
        return []
    labelled = [*tabs, *((part,) for part in parts if not part.leads and _label_terms(part))]
    named = [tab for tab in labelled if _label_terms(tab[0]) & relevance.asked]
    return [extract for tab in named or tabs for extract in tab][:MOST_STEPS]


def _label_terms(part: Extract) -> frozenset[str]:
    """Return the terms of the few words before the colon of a sentence, if it has such words."""
    label, colon, _ = part.text.partition(":")
    if part.kind is not UnitKind.SENTENCE or not colon:
        return frozenset()
    held = extract_key_terms(label)
    return held if len(held) <= _LABEL_TERMS else frozenset()


def _put_code_together(parts: Sequence[Extract]) -> list[Extract]:
    """Return the first sentences of a section with its first code."""
    wording = [part for part in parts if part.kind is UnitKind.SENTENCE]
    code = [part for part in parts if part.kind is UnitKind.CODE][:1]
    return in_order([*without_repeats(wording)[:_SENTENCES], *code])


def _is_procedure(parts: Sequence[Extract]) -> bool:
    return sum(part.kind is UnitKind.ITEM for part in parts) > 1 or _has_code(parts)


def _find_twins(
    best: str, listed: dict[str, list[Extract]], weights: dict[str, float]
) -> list[str]:
    """Return another page's section of the same heading that is as much about the question."""
    *above, heading = best.split(" > ")
    return [
        place
        for place in listed
        if place != best
        and above
        and place.split(" > ")[-1] == heading
        and weights[place] >= _AS_GOOD * weights[best]
    ][:1]


def _weigh_section(parts: Sequence[Extract], relevance: Relevance) -> float:
    rank = parts[0].rank
    score = max(relevance.share(part) for part in parts) + relevance.place(rank)
    score *= 1 + _CLOSE_SHARE * relevance.closeness(rank)
    only_code = _has_code(parts) and all(part.kind is not UnitKind.ITEM for part in parts)
    return score * _ONLY_CODE_SHARE if only_code else score


def _has_code(parts: Sequence[Extract]) -> bool:
    return any(part.kind is UnitKind.CODE for part in parts)


def _number_step(item: Extract) -> int:
    digits = marker(item.text).strip().rstrip(".)")
    return int(digits) if digits.isdigit() else 0


def _with_lead(
    steps: list[Extract],
    found: Sequence[Extract],
    sources: Sequence[PromptSource],
    relevance: Relevance,
) -> list[Extract]:
    """Return the steps below the best opening sentence of the same section or page."""
    place = sources[steps[0].rank].place
    openings = [
        extract
        for extract in found
        if extract.kind is UnitKind.SENTENCE
        and extract.order == 0
        and not extract.leads
        and place.startswith(sources[extract.rank].place)
    ]
    best = max(openings, key=relevance.share, default=None)
    if best is None or best in steps or relevance.share(best) < _LEAD_SHARE:
        return steps
    return [best, *steps]
