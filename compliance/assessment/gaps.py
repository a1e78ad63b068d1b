"""Collects gaps of five kinds.

regulatory   a requirement that no passage of the document fulfils
coverage     a heading of the rule of which only some requirements are fulfilled
consistency  two passages of the document of which one forbids what the other obliges or permits
citation     a claim without a source, or with one that does not say it
temporal     a date that has passed, of a thing that is still to come or in force
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import combinations
from typing import Literal

from pydantic import BaseModel

from compliance.auditing.citation_audit import CitationAudit
from compliance.requirements.requirement import Requirement, TextPlace
from compliance.verdicts.passages import PreparedDocument
from compliance.verdicts.verdict import Status, Verdict
from compliance.wording.cues import RuleKind, find_rule_cue, split_words
from compliance.wording.thesaurus import is_concept

GapKind = Literal["regulatory", "coverage", "consistency", "citation", "temporal"]
_YEAR = re.compile(r"\b(?:19|20)\d{2}\b")
_ISO = re.compile(r"\b(20\d{2}|19\d{2})-(\d{2})-(\d{2})\b")
_COMING = frozenset({"until", "by", "from", "effective", "valid", "expires", "expire", "version",
                     "as", "bis", "ab", "gültig", "stand", "spätestens"})  # fmt: skip
_LIKENESS = 0.6
_MOST_COMPARED = 400


class SynthesizedGap(BaseModel, frozen=True):
    """One gap; `requirement_ids` and `places` name its subject."""

    kind: GapKind
    summary: str
    requirement_ids: tuple[str, ...] = ()
    places: tuple[TextPlace, ...] = ()


def synthesize_gaps(
    requirements: Sequence[Requirement],
    verdicts: Sequence[Verdict],
    *,
    document: PreparedDocument | None = None,
    audit: CitationAudit | None = None,
    today: date | None = None,
) -> tuple[SynthesizedGap, ...]:
    """Return the gaps in the order of their kinds; kinds without input are left out."""
    by_id = {one.id: one for one in requirements}
    found = [*_list_regulatory(by_id, verdicts), *_list_coverage(by_id, verdicts)]
    if document is not None:
        found += _list_contradictions(document)
    if audit is not None:
        found += _list_citations(audit)
    if document is not None and today is not None:
        found += _list_outdated(document, today)
    return tuple(found)


def _list_regulatory(
    by_id: Mapping[str, Requirement], verdicts: Sequence[Verdict]
) -> Iterator[SynthesizedGap]:
    for verdict in verdicts:
        requirement = by_id.get(verdict.requirement_id)
        if verdict.status is Status.GAP and requirement is not None:
            yield SynthesizedGap(
                kind="regulatory",
                summary=f"{requirement.id}: {requirement.statement}",
                requirement_ids=(requirement.id,),
                places=(requirement.place,),
            )


def _list_coverage(
    by_id: Mapping[str, Requirement], verdicts: Sequence[Verdict]
) -> Iterator[SynthesizedGap]:
    by_heading: dict[tuple[str, ...], list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.requirement_id in by_id:
            by_heading[by_id[verdict.requirement_id].place.heading_path].append(verdict)
    for heading, own in by_heading.items():
        missing = [one for one in own if one.status is Status.GAP]
        if missing and len(missing) < len(own):
            yield SynthesizedGap(
                kind="coverage",
                summary=f"{len(own) - len(missing)} of {len(own)} requirements have a passage: "
                f"{' > '.join(heading) or 'the rule'}",
                requirement_ids=tuple(one.requirement_id for one in missing),
            )


def _list_contradictions(document: PreparedDocument) -> Iterator[SynthesizedGap]:
    rules = []
    for at, passage in enumerate(document.passages[:_MOST_COMPARED]):
        cue = find_rule_cue(split_words(passage.text), document.language)
        concepts = frozenset(one for one in document.features[at] if is_concept(one))
        if cue is not None and cue.group != RuleKind.DEFINITION and len(concepts) > 1:
            rules.append((at, cue.group == RuleKind.BAN, document.features[at]))
    for (one, forbids, own), (other, also, others) in combinations(rules, 2):
        likeness = len(own & others) / len(own | others)
        if forbids != also and likeness >= _LIKENESS:
            places = (document.passages[one].place, document.passages[other].place)
            texts = [document.passages[at].text for at in (one, other)]
            yield SynthesizedGap(
                kind="consistency",
                summary=f"one passage forbids what another does not: {texts[0]} / {texts[1]}",
                places=places,
            )


def _list_citations(audit: CitationAudit) -> Iterator[SynthesizedGap]:
    for one in audit.citations:
        if not one.is_good:
            yield SynthesizedGap(kind="citation", summary=f"{one.label} {'; '.join(one.problems)}")
    for sentence in audit.uncited:
        yield SynthesizedGap(kind="citation", summary=f"no source: {sentence}")


def _list_outdated(document: PreparedDocument, today: date) -> Iterator[SynthesizedGap]:
    for passage in document.passages:
        dated = list(_list_dates(passage.text))
        words = {word.text for word in split_words(passage.text)}
        if dated and max(dated) < today and not words.isdisjoint(_COMING):
            yield SynthesizedGap(
                kind="temporal",
                summary=f"the last date of the passage has passed: {passage.text}",
                places=(passage.place,),
            )


def _list_dates(text: str) -> Iterable[date]:
    exact = [found for one in _ISO.finditer(text) if (found := _make_date(one)) is not None]
    return exact or [date(int(one[0]), 12, 31) for one in _YEAR.finditer(text)]


def _make_date(found: re.Match[str]) -> date | None:
    try:
        return date(*(int(part) for part in found.groups()))
    except ValueError:
        return None
