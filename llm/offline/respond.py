"""Answers without a model: quotes what the sources say on the question, each with its source.

A question how to do something gets the steps of the section that is about it; a comparison
gets quotations about both sides; any other gets the sentence, item or table row that holds most of
the question and the kind of thing that it asks for. When no
quotation does, the documents do not say. Quotations stay in the language of the documents.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from citations.claims import UnitKind
from llm.offline.dialogue.subjects import join_subject, split_subject
from llm.offline.found_chunks import select_found
from llm.offline.quoting.dated_sources import find_later, name_dated
from llm.offline.quoting.extracts import Extract, extracts, is_open_question, is_order_to_assistant
from llm.offline.quoting.naming import find_compared
from llm.offline.quoting.quotation_text import lay_out
from llm.offline.quoting.ranges import hold_numbers
from llm.offline.quoting.relevance import Relevance
from llm.offline.quoting.repeats import in_order, without_repeats
from llm.offline.quoting.steps import find_steps, put_together
from llm.offline.quoting.surroundings import find_around
from llm.offline.quoting.versions import (
    find_earlier,
    find_equals,
    find_otherwise,
    find_passed_over,
)
from llm.offline.support import numbers_of
from llm.offline.words import content_words, stems
from llm.tasks.respond import Inputs, Output

_JOINT = re.compile(r"[,?;] (?:and|or|but) (?=how|what|when|who|where|why|which|can|is|are|do)")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
ENOUGH = 0.4
ENOUGH_FITTING = 0.36
"""The least share of the question that a quotation holds; see `docs/measurements/evaluation.md`."""
_SHORT = 4
_LESS_PER_TERM = 0.03
_LESS_AT_MOST = 0.12
"""A long question is answered by a smaller share of it."""
_AS_GOOD = 0.75
_SENTENCES = 3
_ROWS = 20
_LIKE = 0.5
_LOOKED_AT = 12
_RIVAL_SHARE = 0.95
_FOREIGN_CONFIDENCE = 0.3
_MISSING_WORDS = 6


@dataclass(frozen=True, slots=True)
class _Quotation:
    """Quotations, the share of the question that it holds, and headings to show, by rank."""

    chosen: list[Extract]
    share: float
    headings: dict[int, str] = field(default_factory=dict)


def answer(inputs: Inputs) -> Output:
    """Return the quotations that answer best, or that the sources do not answer."""
    own, subject = split_subject(inputs.question)
    # The search has used the subject; sentences that only repeat it answer nothing.
    question = own if content_words(own) else join_subject(own, subject)
    inputs = inputs.model_copy(
        update={"sources": select_found(inputs.sources), "question": question}
    )
    found = hold_numbers(extracts(inputs.sources, inputs.avoid), question)
    quotation = _quote_safely(found, inputs) or _quote_parts(found, inputs)
    if quotation is not None:
        relevance = Relevance(inputs.question, inputs.sources, found)
        if inputs.style == "shorter":
            best = max(
                quotation.chosen,
                key=lambda one: (len(stems(question) & stems(one.text)), relevance.score(one)),
            )
            quotation = replace(quotation, chosen=[best])
        covered = relevance.coverage(quotation.chosen)
        return _make_output(quotation, min(0.9, 0.25 + 0.65 * covered))
    if found and _is_foreign(inputs):
        relevance = Relevance(inputs.question, inputs.sources, found)
        beginning = _Quotation(_find_beginning(found, inputs, relevance), 0.0)
        return _make_output(beginning, _FOREIGN_CONFIDENCE)
    return Output(status="insufficient_context", missing=_find_missing(inputs))


def _make_output(quotation: _Quotation, confidence: float) -> Output:
    text = lay_out(quotation.chosen, quotation.headings)
    return Output(status="answered", answer=text, confidence=confidence)


def _quote_safely(found: list[Extract], inputs: Inputs) -> _Quotation | None:
    """Return a quotation that holds no order to the assistant.

    Looking for orders is the dearest step, so only what would be quoted is looked at first.
    """
    quotation = _quote(found, inputs)
    if quotation is None or not _find_orders(quotation.chosen):
        return quotation
    orders = _find_orders(found)
    found[:] = [extract for extract in found if extract not in orders]
    return _quote(found, inputs)


def _quote_parts(found: list[Extract], inputs: Inputs) -> _Quotation | None:
    """Return a quotation for the first part of a double question that the sources answer."""
    parts = [*_JOINT.split(inputs.question), *_find_asking_sentences(inputs.question)]
    asked = (inputs.model_copy(update={"question": part}) for part in parts if len(parts) > 1)
    quotations = (_quote_safely(found, part) for part in asked)
    return next((one for one in quotations if one is not None), None)


def _find_asking_sentences(text: str) -> list[str]:
    """Return the questions of a message that also says other things: "Sorry! How do I ...?"."""
    sentences = [sentence.strip() for sentence in _SENTENCE_END.split(text) if sentence.strip()]
    return [one for one in sentences if one.endswith("?")] if len(sentences) > 1 else []


def _find_orders(chosen: Sequence[Extract]) -> list[Extract]:
    return [extract for extract in chosen if is_order_to_assistant(extract.text)]


def _quote(found: Sequence[Extract], inputs: Inputs) -> _Quotation | None:
    if not found:
        return None
    relevance = Relevance(inputs.question, inputs.sources, found)
    if relevance.unknown_names() and not _is_foreign(inputs):
        return None
    found = [e for e in found if not relevance.is_about_another_version(e)]
    passed_over = find_passed_over(inputs.sources, inputs.question)
    found = [e for e in found if e.rank not in passed_over]
    earlier = find_earlier(inputs.sources, inputs.question)
    newest = [extract for extract in found if extract.rank not in earlier]
    quotation = _quote_newest(newest, inputs, relevance) if newest else None
    if quotation is None:
        return None
    best = max(quotation.chosen, key=relevance.score)
    versions = earlier | find_equals(best.rank, inputs.sources)
    others = [extract for extract in found if extract.rank in versions]
    rival = find_otherwise(best, others, inputs.sources, relevance) if others else None
    return _add_version(quotation, best, rival, inputs) if rival else quotation


def _quote_newest(
    found: Sequence[Extract], inputs: Inputs, relevance: Relevance
) -> _Quotation | None:
    compared = find_compared(inputs.question)
    if compared is not None:
        both = _quote_both(found, inputs, relevance, compared)
        if both is not None:
            return both
    if relevance.kinds.steps:
        steps = find_steps(found, inputs.sources, relevance)
        quoted = _quote_steps(steps, inputs, relevance) if steps else None
        if quoted is not None:
            return quoted
    return _quote_best(found, inputs, relevance)


def _add_version(
    quotation: _Quotation, best: Extract, rival: Extract, inputs: Inputs
) -> _Quotation:
    """Return a quotation with what another version says otherwise on the same point."""
    named = {rank: inputs.sources[rank].place for rank in (best.rank, rival.rank)}
    chosen = without_repeats([*quotation.chosen, rival])
    return replace(quotation, chosen=chosen, headings={**quotation.headings, **named})


def _quote_steps(
    lists: Sequence[list[Extract]], inputs: Inputs, relevance: Relevance
) -> _Quotation | None:
    chosen = [step for steps in lists for step in steps]
    if relevance.coverage(lists[0]) < ENOUGH or relevance.lacks_names(lists[0][-1]):
        return None
    headings = _name_places(chosen, inputs) if len(lists) > 1 else {}
    return _Quotation(chosen, relevance.coverage(chosen), headings)


def _quote_both(
    found: Sequence[Extract],
    inputs: Inputs,
    relevance: Relevance,
    compared: tuple[frozenset[str], frozenset[str]],
) -> _Quotation | None:
    """Return quotations about each side of a comparison; None where a side is not spoken of."""
    sides = []
    for one, other in (compared, compared[::-1]):
        own = [
            e for e in found if one <= relevance.names_of(e) and not other <= relevance.names_of(e)
        ]
        best = sorted(
            own, key=lambda e: (-len(one & e.terms), -relevance.score(e), e.rank, e.order)
        )
        sides.append(without_repeats(best)[:2])
    if not all(sides):
        together = [e for e in found if compared[0] | compared[1] <= relevance.names_of(e)]
        best = sorted(together, key=lambda e: -relevance.score(e))[:_SENTENCES]
        return _Quotation(in_order(best), 1.0) if best else None
    # A row of a table says all of its side.
    sides = [side[:1] if side[0].kind is UnitKind.TABLE else side for side in sides]
    chosen = in_order(without_repeats([extract for side in sides for extract in side]))
    return _Quotation(chosen, 1.0, _name_silent_places(chosen, inputs, relevance))


def _quote_best(
    found: Sequence[Extract], inputs: Inputs, relevance: Relevance
) -> _Quotation | None:
    ranked = sorted(found, key=lambda extract: (-relevance.score(extract), extract.rank))
    ranked = [extract for extract in ranked if not is_open_question(extract, found)]
    best = next((extract for extract in ranked[:_LOOKED_AT] if _answers(extract, relevance)), None)
    if best is None:
        return None
    later = find_later(best, found, inputs.sources, relevance)
    if later is not None:
        return _quote_later(later, best, found, inputs, relevance)
    around = find_around(best, found, relevance)
    rivals = _find_rivals(best, ranked, inputs, relevance)
    near = [e for e in ranked if _is_as_good(e, best, relevance)]
    picked = without_repeats([*around, *rivals, *near])[: max(_SENTENCES, len(around))]
    chosen = in_order(_with_whole_tables(picked, found, relevance))
    headings = _name_silent_places(chosen, inputs, relevance)
    if rivals:
        headings |= _name_places(chosen, inputs)
    return _Quotation(chosen, relevance.share(best), headings)


def _quote_later(
    later: Extract,
    best: Extract,
    found: Sequence[Extract],
    inputs: Inputs,
    relevance: Relevance,
) -> _Quotation:
    """Return what the latest message or minutes say on a point, then the earlier quotation."""
    headings = {one.rank: name_dated(inputs.sources[one.rank].place) for one in (later, best)}
    chosen = [*in_order(find_around(later, found, relevance)), best]
    return _Quotation(without_repeats(chosen), relevance.share(best), headings)


def _answers(extract: Extract, relevance: Relevance) -> bool:
    """Return whether an extract holds enough of the question, and the thing asked for."""
    if relevance.is_ruled_out(extract) or relevance.lacks_names(extract):
        return False
    if relevance.holds_only_names(extract):
        return False
    if _only_repeats(extract, relevance):
        return False
    least = ENOUGH_FITTING if relevance.fits(extract) else ENOUGH
    least -= min(_LESS_PER_TERM * max(len(relevance.asked) - _SHORT, 0), _LESS_AT_MOST)
    return relevance.share(extract) >= least


def _only_repeats(extract: Extract, relevance: Relevance) -> bool:
    """Return whether a text only has words of the question, and so says neither yes nor no."""
    kinds = relevance.kinds
    may_answer = kinds.yes_or_no or kinds.permission or kinds.may_stand_in_heading
    is_text = extract.kind in (UnitKind.SENTENCE, UnitKind.ITEM)
    return is_text and not may_answer and relevance.is_repetition(extract)


def _is_as_good(extract: Extract, best: Extract, relevance: Relevance) -> bool:
    """Return whether an extract answers as well as the best, about the same named thing."""
    if relevance.score(extract) < _AS_GOOD * relevance.score(best):
        return False
    if relevance.is_past_change(extract) and not relevance.is_past_change(best):
        return False
    if relevance.fits(best) and not relevance.fits(extract):
        return False
    return relevance.names_of(best) <= relevance.names_of(extract)


def _find_rivals(
    best: Extract, ranked: Sequence[Extract], inputs: Inputs, relevance: Relevance
) -> list[Extract]:
    """Return a quotation of another page that says of the same something else."""
    page, own, numbers = _page_of(best, inputs), best.terms, numbers_of(best.text)
    return [
        other
        for other in ranked[:_LOOKED_AT]
        if other.kind is best.kind
        and (_page_of(other, inputs) != page or _is_other_date(other, best, relevance))
        and relevance.share(other) >= _RIVAL_SHARE * relevance.share(best)
        and relevance.fits(other) == relevance.fits(best)
        and relevance.is_past_change(other) == relevance.is_past_change(best)
        and numbers_of(other.text) != numbers
        and len(other.terms & own) >= _LIKE * len(other.terms | own)
    ][:1]


def _is_other_date(other: Extract, best: Extract, relevance: Relevance) -> bool:
    """Return whether two sentences, as of one thread, date the same thing."""
    is_sentence = best.kind is UnitKind.SENTENCE and other is not best
    return is_sentence and relevance.kinds.time and relevance.fits(other)


def _page_of(extract: Extract, inputs: Inputs) -> str:
    return inputs.sources[extract.rank].place.split(" > ")[0]


def _name_places(chosen: Sequence[Extract], inputs: Inputs) -> dict[int, str]:
    """Return the places of quotations that answer differently, without what they share."""
    return {extract.rank: inputs.sources[extract.rank].place for extract in chosen}


def _name_silent_places(
    chosen: Sequence[Extract], inputs: Inputs, relevance: Relevance
) -> dict[int, str]:
    """Return the headings that hold a part of the question which the quotation does not."""
    named: dict[int, str] = {}
    for extract in chosen:
        if extract.kind is UnitKind.TABLE and relevance.is_entry(extract):
            continue
        only = relevance.only_in_place(extract)
        held = frozenset[str]().union(*(e.terms for e in chosen if e.rank == extract.rank))
        if not only - held and not relevance.needs_place(extract):
            continue
        place = inputs.sources[extract.rank].place
        named[extract.rank] = place.split(" > ")[-1]
    return named


def _with_whole_tables(
    picked: Sequence[Extract], found: Sequence[Extract], relevance: Relevance
) -> list[Extract]:
    """Return the picked with every other row of its table, unless the row was asked for by name.

    A few rows of a schedule would read as if they were all of it.
    """
    whole = {
        (row.rank, row.head)
        for row in picked
        if row.kind is UnitKind.TABLE and not relevance.is_entry(row)
    }
    rows = [row for row in found if row.kind is UnitKind.TABLE and (row.rank, row.head) in whole]
    return [*(extract for extract in picked if extract not in rows), *rows[:_ROWS]]


def _find_beginning(
    found: Sequence[Extract], inputs: Inputs, relevance: Relevance
) -> list[Extract]:
    """Return how the best source begins: words cannot be compared across languages."""
    first = [extract for extract in found if extract.rank == found[0].rank]
    if relevance.kinds.steps:
        place = inputs.sources[found[0].rank].place
        section = [e for e in found if inputs.sources[e.rank].place == place]
        steps = put_together(section, relevance)
        if steps:
            return steps
    fitting = [extract for extract in first if relevance.fits(extract)]
    return in_order(without_repeats(fitting or first)[: _SENTENCES + 1])


def _is_foreign(inputs: Inputs) -> bool:
    languages = {source.language for source in inputs.sources[:1]}
    return None not in languages and inputs.language not in languages


def _find_missing(inputs: Inputs) -> str:
    given = " ".join(source.text.casefold() for source in inputs.sources)
    absent = dict.fromkeys(w for w in content_words(inputs.question) if w not in given)
    return ", ".join(list(absent)[:_MISSING_WORDS])
