"""Puts findings into sentences, each with the places that show it."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from compliance.requirements.requirement import Extraction, Requirement, TextPlace
from compliance.verdicts.review import ReviewResult
from compliance.verdicts.verdict import Status, Verdict
from compliance.wording.cues import RuleKind
from compliance.wording.fixed_notes import translate_note
from envelope.ways.specialists import SpecialistError

_FILE = Path(__file__).with_name("finding_texts.toml")
_LONGEST = 260
MOST_FINDINGS = 12
"""Findings that an answer names; the report has all."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence for the answer, and the places that show it."""

    text: str
    places: tuple[TextPlace, ...] = ()


def describe_review(
    extraction: Extraction,
    review: ReviewResult,
    *,
    law: str,
    document: str,
    language: str,
    order: Sequence[str] = (),
) -> tuple[Finding, ...]:
    """Return the counts, then violations and gaps; those whose ids `order` has come first."""
    known = {one.id: one for one in extraction.requirements}
    findings = [*review.violations, *review.gaps]
    rank = {name: place for place, name in enumerate(order)}
    findings.sort(key=lambda one: rank.get(one.requirement_id, len(rank)))
    texts = load_finding_texts(language)
    decided = {one.requirement_id for one in review.verdicts}
    undecided = [one for one in list_rules(extraction) if one.id not in decided]
    counts = texts["counts"].format(
        document=document,
        law=law,
        total=len(review.verdicts) + len(undecided),
        compliant=len(review.verdicts) - len(findings),
        violations=len(review.violations),
        gaps=len(review.gaps),
    )
    shown = [
        _describe(one, known[one.requirement_id], language)
        for one in findings[:MOST_FINDINGS]
        if one.requirement_id in known
    ]
    more = len(findings) - MOST_FINDINGS
    if more > 0:
        shown.append(Finding(texts["more"].format(count=more)))
    if undecided:
        names = ", ".join(one.id for one in undecided[:MOST_FINDINGS])
        names = f"{names}, …" if len(undecided) > MOST_FINDINGS else names
        text = texts["undecided"].format(count=len(undecided), ids=names)
        shown.insert(0, Finding(text))
    return (Finding(counts), *shown)


def list_rules(extraction: Extraction) -> list[Requirement]:
    """Return the requirements that a document can fulfil: all but definitions."""
    return [one for one in extraction.requirements if one.kind is not RuleKind.DEFINITION]


def describe_checklist(extraction: Extraction, *, law: str, language: str) -> tuple[Finding, ...]:
    """Return how many requirements there are, and the first of them."""
    texts = load_finding_texts(language)
    rules = list_rules(extraction)
    first = Finding(texts["listed"].format(law=law, total=len(rules), units=len(extraction.units)))
    shown = [
        Finding(
            texts["requirement"].format(id=one.id, kind=one.kind.value, rule=quote(one.statement)),
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
    """Return the sentences of a language, or the English ones."""
    tables = _load()
    return tables.get(language, tables["en"])


def _describe(verdict: Verdict, requirement: Requirement, language: str) -> Finding:
    texts = load_finding_texts(language)
    rule = quote(requirement.statement)
    if verdict.status is Status.GAP or not verdict.evidence:
        return Finding(texts["gap"].format(id=requirement.id, rule=rule), (requirement.place,))
    read = verdict.evidence[0]
    reason = quote(translate_note(verdict.note, language)) or verdict.status.value
    return Finding(
        texts["violation"].format(
            id=requirement.id, rule=rule, read=quote(read.text), reason=reason
        ),
        (requirement.place, read.place),
    )


@cache
def _load() -> Mapping[str, Mapping[str, str]]:
    tables: dict[str, dict[str, str]] = tomllib.loads(_FILE.read_text("utf-8"))
    return tables
