"""Answers without a model: quotes what the sources say on the question, each with its source.

A question how to do something gets the steps of the section that is about it; any other gets the
sentences, items and table rows that hold most of the question's words. Quotations stay in the
language of the documents.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby

from citations.claims import UnitKind, marker
from citations.feedback import same_claim
from llm.offline.dialogue.subjects import split_subject
from llm.offline.extracts import Extract, Relevance, extracts, subject_terms
from llm.offline.found_chunks import select_found
from llm.offline.question_kinds import QuestionKinds, classify_question
from llm.offline.words import content_words
from llm.tasks.respond import Inputs, Output

_ENOUGH = 0.2
_NEAR_THE_BEST = 0.75
_LEAD_SHARE = 0.5
_SAME_TERMS = 0.8
_CODE_SHARE = 0.6
_ONLY_CODE_SHARE = 0.8
_SENTENCES = 4
_STEPS = 12
_ROWS = 20
_STEPS_SHARE = 0.6
_ENTRY_BONUS = 0.4
_LIST_BONUS = 0.3
_ASKED_BONUS = 0.2
_FOREIGN_CONFIDENCE = 0.3
_MISSING_WORDS = 6


def answer(inputs: Inputs) -> Output:
    """Return the quotations that answer best, or what the sources do not speak of."""
    inputs = inputs.model_copy(update={"sources": select_found(inputs.sources)})
    found = extracts(inputs.sources, inputs.avoid)
    own, _ = split_subject(inputs.question)
    # The search has used the subject; sentences that only repeat it answer nothing.
    relevance = Relevance(own if content_words(own) else inputs.question, inputs.sources, found)
    asked = classify_question(own)
    best = max((_score(extract, relevance, asked) for extract in found), default=0.0)
    if best >= _ENOUGH:
        chosen = _choose_extracts(found, inputs, relevance, asked)
        if inputs.style == "shorter":
            chosen = [max(chosen, key=lambda extract: _score(extract, relevance, asked))]
        covered = relevance.coverage(chosen)
        return _make_answer(chosen, min(0.9, 0.25 + 0.65 * covered))
    if found and _is_foreign(inputs):
        return _make_answer(_beginning(found, inputs, asked), _FOREIGN_CONFIDENCE)
    return Output(status="insufficient_context", missing=_missing(inputs))


def _make_answer(chosen: Sequence[Extract], confidence: float) -> Output:
    return Output(status="answered", answer=_laid_out(chosen), confidence=confidence)


def _score(extract: Extract, relevance: Relevance, asked: QuestionKinds) -> float:
    score = relevance.score(extract)
    if extract.kind is UnitKind.CODE and not asked.steps:
        score *= _CODE_SHARE
    if extract.kind is UnitKind.TABLE and _is_entry(extract, relevance):
        score += _ENTRY_BONUS
    elif extract.kind is UnitKind.TABLE and _lists_what_is_asked(extract, relevance):
        score += _LIST_BONUS
    return score + _ASKED_BONUS if score and asked.fits(extract.text) else score


def _is_entry(row: Extract, relevance: Relevance) -> bool:
    """Tell whether the question asks for what the first cell of a table's row names."""
    named = subject_terms(row.text.strip().strip("|").partition("|")[0])
    return bool(named) and named <= relevance.asked


def _lists_what_is_asked(row: Extract, relevance: Relevance) -> bool:
    """Tell whether the question asks for what the head of the table's first column names."""
    head = row.head.strip().strip("|").partition("|")[0]
    return not relevance.asked.isdisjoint(subject_terms(head))


def _choose_extracts(
    found: Sequence[Extract], inputs: Inputs, relevance: Relevance, asked: QuestionKinds
) -> list[Extract]:
    if asked.steps:
        steps = _steps(found, inputs, relevance)
        if steps:
            return _with_lead(steps, found, inputs, relevance)
    ranked = sorted(found, key=lambda extract: -_score(extract, relevance, asked))
    least = _score(ranked[0], relevance, asked) * _NEAR_THE_BEST
    near = [
        extract
        for extract in ranked
        if _score(extract, relevance, asked) >= least
        and (not asked.steps or extract.kind in (UnitKind.SENTENCE, UnitKind.ITEM))
    ]
    picked = _without_repeats([*_around(ranked[0], found), *near])
    limit = max(_SENTENCES, len(_around(ranked[0], found)))
    return _in_order(_with_whole_tables(picked[:limit], found, relevance))


def _with_whole_tables(
    picked: Sequence[Extract], found: Sequence[Extract], relevance: Relevance
) -> list[Extract]:
    """Return the picked with every row beside a row that was not asked for by its name.

    A few rows of a schedule would read as if they were all of it.
    """
    whole = {
        (row.rank, row.head)
        for row in picked
        if row.kind is UnitKind.TABLE and not _is_entry(row, relevance)
    }
    rows = [row for row in found if row.kind is UnitKind.TABLE and (row.rank, row.head) in whole]
    return [*(extract for extract in picked if extract not in rows), *rows[:_ROWS]]


def _around(best: Extract, found: Sequence[Extract]) -> list[Extract]:
    """Return the best extract with what it needs: what it leads to, or what leads to it."""
    same = [extract for extract in found if extract.rank == best.rank]
    at = same.index(best)
    if best.leads:
        following = same[at + 1 : at + 1 + _STEPS]
        run = [e for e in following if following and e.kind is following[0].kind]
        return [best, *run]
    if best.kind is UnitKind.SENTENCE:
        return [best, *(e for e in same[at + 1 : at + 2] if e.kind is best.kind and not e.leads)]
    if best.kind is UnitKind.CODE and at and same[at - 1].kind is UnitKind.SENTENCE:
        return [same[at - 1], best]
    return [best]


def _steps(found: Sequence[Extract], inputs: Inputs, relevance: Relevance) -> list[Extract]:
    """Return the list of the section that is most about the question, put together again."""
    sections: dict[str, list[Extract]] = {}
    for extract in found:
        sections.setdefault(inputs.sources[extract.rank].place, []).append(extract)
    listed = {
        place: parts
        for place, parts in sections.items()
        if sum(part.kind is UnitKind.ITEM for part in parts) > 1 or _has_code(parts)
    }
    if not listed:
        return []
    weights = {place: _section_score(parts, relevance) for place, parts in sections.items()}
    best = max(listed, key=lambda place: weights[place])
    if weights[best] < _STEPS_SHARE * max(weights.values()):
        return []
    return _put_together(listed[best])


def _section_score(parts: Sequence[Extract], relevance: Relevance) -> float:
    score = max(relevance.score(part) for part in parts) + relevance.place(parts[0].rank)
    only_code = _has_code(parts) and all(part.kind is not UnitKind.ITEM for part in parts)
    return score * _ONLY_CODE_SHARE if only_code else score


def _has_code(parts: Sequence[Extract]) -> bool:
    return any(part.kind is UnitKind.CODE for part in parts)


def _put_together(parts: Sequence[Extract]) -> list[Extract]:
    items = [part for part in parts if part.kind is UnitKind.ITEM]
    code = [part for part in parts if part.kind is UnitKind.CODE][:1]
    if not items:
        said = [part for part in parts if part.kind is UnitKind.SENTENCE]
        return _in_order([*_without_repeats(said)[:_SENTENCES], *code])
    return sorted(_without_repeats(items), key=_step_number)[:_STEPS] + code


def _step_number(item: Extract) -> int:
    digits = marker(item.text).strip().rstrip(".)")
    return int(digits) if digits.isdigit() else 0


def _with_lead(
    steps: list[Extract], found: Sequence[Extract], inputs: Inputs, relevance: Relevance
) -> list[Extract]:
    """Return the steps below the best opening sentence of their own section or page."""
    place = inputs.sources[steps[0].rank].place
    openings = [
        extract
        for extract in found
        if extract.kind is UnitKind.SENTENCE
        and extract.order == 0
        and not extract.leads
        and place.startswith(inputs.sources[extract.rank].place)
    ]
    best = max(openings, key=relevance.score, default=None)
    if best is None or best in steps or relevance.score(best) < _LEAD_SHARE:
        return steps
    return [best, *steps]


def _beginning(found: Sequence[Extract], inputs: Inputs, asked: QuestionKinds) -> list[Extract]:
    """Return how the best source begins: words cannot be compared across languages."""
    first = [extract for extract in found if extract.rank == found[0].rank]
    if asked.steps:
        place = inputs.sources[found[0].rank].place
        section = [e for e in found if inputs.sources[e.rank].place == place]
        steps = _put_together(section)
        if steps:
            return steps
    fitting = [extract for extract in first if asked.fits(extract.text)]
    return _in_order(_without_repeats(fitting or first)[:_SENTENCES])


def _without_repeats(ranked: Iterable[Extract]) -> list[Extract]:
    """Return each once: of two versions of a sentence the first, of a cut one the whole."""
    kept: list[Extract] = []
    for extract in ranked:
        twin = next((at for at, other in enumerate(kept) if _repeats(extract, other)), None)
        if twin is None:
            kept.append(extract)
        elif _holds(extract, kept[twin]):
            kept[twin] = extract
    return kept


def _repeats(one: Extract, other: Extract) -> bool:
    if one.kind is not other.kind:
        return False
    if _holds(one, other) or _holds(other, one):
        return True
    union = one.terms | other.terms
    return one.kind is UnitKind.SENTENCE and len(one.terms & other.terms) >= _SAME_TERMS * len(
        union
    )


def _holds(longer: Extract, shorter: Extract) -> bool:
    return same_claim(longer.text).startswith(same_claim(shorter.text))


def _in_order(chosen: Sequence[Extract]) -> list[Extract]:
    """Return the extracts source by source, the best source first, as they stand in it."""
    first = {extract.rank: place for place, extract in reversed(list(enumerate(chosen)))}
    return sorted(chosen, key=lambda extract: (first[extract.rank], extract.order))


def _laid_out(chosen: Sequence[Extract]) -> str:
    blocks = [
        _block(kind, list(run))
        for (kind, _, _), run in groupby(chosen, key=lambda e: (e.kind, e.head, _source_of(e)))
    ]
    return "\n\n".join(blocks)


def _source_of(extract: Extract) -> int:
    """Items of one list may stand in several chunks; anything else is laid out by its source."""
    return 0 if extract.kind is UnitKind.ITEM else extract.number


def _block(kind: UnitKind, run: Sequence[Extract]) -> str:
    cite = f"[{run[0].number}]"
    if kind is UnitKind.CODE:
        return "\n\n".join(f"{extract.text}\n\n{cite}" for extract in run)
    if kind is UnitKind.TABLE:
        return "\n".join((run[0].head, *(extract.text for extract in run))) + f"\n\n{cite}"
    if kind is UnitKind.ITEM and len(run) == 1:
        return f"{run[0].text[len(marker(run[0].text)) :]} {cite}"
    joint = "\n" if kind is UnitKind.ITEM else " "
    return joint.join(f"{extract.text} [{extract.number}]" for extract in run)


def _is_foreign(inputs: Inputs) -> bool:
    languages = {source.language for source in inputs.sources[:1]}
    return None not in languages and inputs.language not in languages


def _missing(inputs: Inputs) -> str:
    given = " ".join(source.text.casefold() for source in inputs.sources)
    absent = dict.fromkeys(w for w in content_words(inputs.question) if w not in given)
    return ", ".join(list(absent)[:_MISSING_WORDS])
