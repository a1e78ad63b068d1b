"""Lists the findings of a review, with notes in the language of the reader."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Formatter

from agents.review.requirements import Extraction, Requirement, TextPlace
from agents.review.verdicts import ReviewResult, RuleVerdict, Status, SynthesizedGap
from envelope.specialists import SpecialistError

_NOTES_FILE = Path(__file__).with_name("fixed_notes.toml")
_ENGLISH = "en"
_SEPARATOR = "; "
_TEXTS_FILE = Path(__file__).with_name("finding_texts.toml")
_LONGEST = 260
_MOST_FULFILLED = 100
MOST_FINDINGS = 12
"""Findings that an answer names; the report has all."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence for the answer, and the places that show it."""

    text: str
    places: tuple[TextPlace, ...] = ()


def translate_note(note: str, language: str) -> str:
    """Return a note of the rules in a language; text without a translation stays as it is.

    Several notes on one line are translated one by one; of an error, `[id] specialist: text`, the
    text is translated.
    """
    if language == _ENGLISH:
        return note
    name, mark, text = note.partition(": ")
    if mark and name.startswith("["):
        return f"{name}: {translate_note(text, language)}"
    whole = _translate(note, language)
    if whole is not None:
        return whole
    pieces = [(one, _translate(one, language)) for one in note.split(_SEPARATOR)]
    return _SEPARATOR.join(one if found is None else found for one, found in pieces)


def describe_review(
    extraction: Extraction,
    review: ReviewResult,
    *,
    law: str,
    document: str,
    language: str,
    order: Sequence[str] = (),
    gaps: Sequence[SynthesizedGap] = (),
) -> tuple[Finding, ...]:
    """Return the counts, then violations and gaps; those whose ids `order` has come first.

    Fulfilled requirements and further `gaps`, such as two clauses that contradict each other,
    follow.
    """
    known = {one.id: one for one in extraction.requirements}
    rank = {name: place for place, name in enumerate(order)}
    findings = sorted(review.findings, key=lambda one: rank.get(one.requirement_id, len(rank)))
    texts = load_finding_texts(language)
    counts = texts["counts"].format(
        document=document,
        law=law,
        total=len(review.verdicts),
        compliant=len(review.of_status(Status.COMPLIANT)),
        violations=len(review.of_status(Status.VIOLATION)),
        gaps=len(review.of_status(Status.GAP)),
    )
    shown = [
        _describe(one, known[one.requirement_id], language, law, document)
        for one in findings[:MOST_FINDINGS]
        if one.requirement_id in known
    ]
    more = len(findings) - MOST_FINDINGS
    if more > 0:
        shown.append(Finding(texts["more"].format(count=more)))
    undecided = review.of_status(Status.UNDECIDED)
    if undecided:
        places = dict.fromkeys(
            _name_place(known[one.requirement_id].place, law)
            for one in undecided
            if one.requirement_id in known
        )
        names = "; ".join(list(places)[:MOST_FINDINGS])
        names = f"{names}; …" if len(places) > MOST_FINDINGS else names
        shown.insert(0, Finding(texts["undecided"].format(count=len(undecided), ids=names)))
    met = dict.fromkeys(
        _name_fulfilled(one, known[one.requirement_id], law, document)
        for one in review.of_status(Status.COMPLIANT)
        if one.requirement_id in known
    )
    if met:
        names = "; ".join(list(met)[:_MOST_FULFILLED])
        names = f"{names}; …" if len(met) > _MOST_FULFILLED else names
        shown.append(Finding(texts["fulfilled"].format(places=names)))
    shown += [Finding(one.summary, one.places) for one in gaps if one.kind != "regulatory"]
    return (Finding(counts), *shown)


def describe_closest(
    extraction: Extraction, review: ReviewResult, *, law: str, document: str, language: str
) -> tuple[Finding, ...]:
    """Return that no model is in use, and the first units of the law with the closest passage."""
    texts = load_finding_texts(language)
    known = {one.id: one for one in extraction.requirements}
    first = texts["no_model"].format(law=law, document=document, total=len(review.verdicts))
    shown = []
    for one in review.verdicts[:MOST_FINDINGS]:
        rule = known[one.requirement_id]
        named = {"place": _name_place(rule.place, law), "rule": quote(rule.quotation)}
        if one.closest:
            read = one.closest[0]
            text = texts["closest"].format(
                **named, read=quote(read.text), there=_name_place(read.place, document)
            )
            shown.append(Finding(text, (rule.place, read.place)))
        else:
            shown.append(Finding(texts["none_close"].format(**named), (rule.place,)))
    more = len(review.verdicts) - MOST_FINDINGS
    if more > 0:
        shown.append(Finding(texts["more_units"].format(count=more)))
    return (Finding(first), *shown)


def describe_checklist(extraction: Extraction, *, law: str, language: str) -> tuple[Finding, ...]:
    """Return how many requirements there are, and the first of them."""
    texts = load_finding_texts(language)
    rules = extraction.rules
    first = Finding(texts["listed"].format(law=law, total=len(rules), units=len(extraction.units)))
    shown = [
        Finding(
            texts["requirement"].format(
                place=_name_place(one.place, law), rule=quote(one.statement)
            ),
            (one.place,),
        )
        for one in rules[:MOST_FINDINGS]
    ]
    more = len(rules) - MOST_FINDINGS
    if more > 0:
        shown.append(Finding(texts["more"].format(count=more)))
    return (first, *shown)


def describe_notes(notes: Iterable[str], language: str) -> Iterator[Finding]:
    """Yield each note once."""
    text = load_finding_texts(language)["note"]
    for note in dict.fromkeys(notes):
        yield Finding(text.format(note=quote(translate_note(note, language))))


def list_errors(errors: Iterable[SpecialistError]) -> list[str]:
    """Return the errors as texts; of those that differ only in their ids, the first."""
    known: dict[tuple[str, str], str] = {}
    for one in errors:
        known.setdefault((one.specialist, one.text), str(one))
    return list(known.values())


def quote(text: str) -> str:
    """Return a text on one line, shortened, without a full stop at its end."""
    plain = " ".join(text.split())
    shown = plain if len(plain) <= _LONGEST else f"{plain[: _LONGEST - 1]}…"
    return shown.rstrip(".;:, ")


def load_finding_texts(language: str) -> Mapping[str, str]:
    """Return the sentences of a language; English ones where it has none."""
    tables = _load()
    return {**tables["en"], **tables.get(language, {})}


def _translate(note: str, language: str) -> str | None:
    for texts in _load_notes().values():
        values = _read_values(note, texts[_ENGLISH])
        if values is not None and language in texts:
            return texts[language].format(**values)
    return None


def _read_values(note: str, template: str) -> dict[str, str] | None:
    """Return the values with which a template makes this note; None: it does not make it."""
    values: dict[str, str] = {}
    rest, name = note, ""
    for literal, following, _, _ in Formatter().parse(template):
        at = rest.find(literal) if literal or not name else len(rest)
        if at < 0 or (not name and at > 0):
            return None
        if name:
            values[name] = rest[:at]
        rest, name = rest[at + len(literal) :], following or ""
    if name:
        values[name] = rest
        return values
    return None if rest else values


@cache
def _load_notes() -> Mapping[str, Mapping[str, str]]:
    tables: dict[str, dict[str, str]] = tomllib.loads(_NOTES_FILE.read_text("utf-8"))
    return tables


def _describe(
    verdict: RuleVerdict, requirement: Requirement, language: str, law: str, document: str
) -> Finding:
    texts = load_finding_texts(language)
    place, rule = _name_place(requirement.place, law), quote(requirement.quotation)
    reason = " ".join(translate_note(verdict.note, language).split())
    if verdict.status is Status.GAP or not verdict.evidence:
        text = texts["gap"].format(place=place, rule=rule, reason=reason)
        return Finding(text, (requirement.place,))
    read = verdict.evidence[0]
    text = texts["violation"].format(
        place=place,
        rule=rule,
        read=quote(read.text),
        there=_name_place(read.place, document),
        reason=reason,
    )
    return Finding(text, (requirement.place, read.place))


def _name_fulfilled(verdict: RuleVerdict, requirement: Requirement, law: str, document: str) -> str:
    """Return the heading of a rule, and that of the clause that fulfils it."""
    place = _name_place(requirement.place, law)
    return (
        f"{place} ({_name_place(verdict.evidence[0].place, document)})"
        if verdict.evidence
        else place
    )


def _name_place(place: TextPlace, title: str) -> str:
    return place.heading_path[-1] if place.heading_path else title


@cache
def _load() -> Mapping[str, Mapping[str, str]]:
    tables: dict[str, dict[str, str]] = tomllib.loads(_TEXTS_FILE.read_text("utf-8"))
    return tables
