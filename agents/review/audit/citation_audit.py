"""Checks the citations of an answer against the passages of the documents, as far as code proves.

Proved are: the source exists, the numbers and periods of the claim are those of the source, the
articles and annexes that the claim names occur in it, and the citation is well formatted. Whether
the source says the claim is for a model to judge, or for a reader.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel

from agents.review.audit.citation_reading import CitedClaim, ReadAnswer
from agents.review.requirements.requirement import TextPlace
from agents.review.verdicts.measures import COUNT, Measure, list_measures, list_numbers
from agents.review.verdicts.passages import Passage, PassageSearch

Says = Literal["yes", "partly", "no", "contradicts", "unjudged"]
_REFERENCE = re.compile(
    r"(?<![^\W\d_])([^\W\d_]{2,20}|§{1,2})\s{1,3}(\d{1,4}[a-z]?|[IVXLC]{1,6}|[A-Z])(?![^\W_])"
)
"""A capitalised word, or a sign, with a number or a letter: "Annex V", "§ 5"."""
_WORD = re.compile(r"§+|[^\W_]+")
_LABELS = frozenset(
    {"annex", "appendix", "article", "chapter", "clause", "exhibit", "paragraph", "part", "rule",
     "schedule", "section", "table", "§", "§§", "abschnitt", "absatz", "anhang", "anlage",
     "artikel", "kapitel", "příloha", "článek", "oddíl", "príloha", "článok", "załącznik",
     "artykuł", "annexe", "anexo", "artículo", "capítulo", "allegato", "articolo", "artigo"}
)  # fmt: skip
"""Words that number the parts of a document. Other words are one where the source numbers by it."""
_MOST = 20


@dataclass(frozen=True, slots=True)
class CitablePassage:
    """A passage that may be cited, with the names by which a citation may name it.

    `names` are exact: ids, titles, addresses; a name of a whole document is one of each passage.
    """

    passage_id: str
    text: str
    names: frozenset[str]
    place: str = ""
    language: str = "en"


class AuditedCitation(BaseModel, frozen=True):
    """One citation, checked; `problems` are sentences for people, empty for a good citation.

    `says` is a model's judgement; `unjudged` where only code has looked.
    """

    label: str
    claim: str
    exists: bool
    says: Says = "unjudged"
    omitted: tuple[str, ...] = ()
    is_well_formatted: bool = True
    passage_id: str = ""
    place: str = ""
    problems: tuple[str, ...] = ()

    @property
    def is_good(self) -> bool:
        """Whether nothing wrong was found."""
        return not self.problems


class CitationAudit(BaseModel, frozen=True):
    """All citations of an answer; `uncited` sentences cite nothing, `unused` sources are listed."""

    citations: tuple[AuditedCitation, ...]
    uncited: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()

    @property
    def is_valid(self) -> bool:
        """Whether every citation is good."""
        return all(one.is_good for one in self.citations)

    @property
    def used_citations(self) -> tuple[str, ...]:
        """The ids of the passages that good citations name, each once."""
        return tuple(dict.fromkeys(one.passage_id for one in self.citations if one.is_good))

    @property
    def invalid_citations(self) -> tuple[str, ...]:
        """The labels of the citations with a problem, each once."""
        return tuple(dict.fromkeys(one.label for one in self.citations if not one.is_good))


def audit_citations(answer: ReadAnswer, passages: Sequence[CitablePassage]) -> CitationAudit:
    """Return the audit of an answer; the passages are those that its reader may read."""
    by_name: dict[str, list[CitablePassage]] = {}
    for passage in passages:
        for name in passage.names:
            by_name.setdefault(normalise_name(name), []).append(passage)
    is_mixed = {"number", "cite"} <= {one.form for one in answer.claims}
    audited = tuple(
        audit_citation(claim, find_named(claim, by_name), is_mixed=is_mixed)
        for claim in answer.claims
    )
    return CitationAudit(citations=audited, uncited=answer.uncited, unused=answer.unused)


def find_named(
    claim: CitedClaim, by_name: Mapping[str, Sequence[CitablePassage]]
) -> list[CitablePassage]:
    """Return the passages that a citation names, each once."""
    names = dict.fromkeys(map(normalise_name, claim.names))
    found = [passage for name in names for passage in by_name.get(name, ())]
    return list({one.passage_id: one for one in found}.values())


def audit_citation(
    claim: CitedClaim, named: Sequence[CitablePassage], *, is_mixed: bool = False
) -> AuditedCitation:
    """Return what code proves about a citation and the passages that it names."""
    problems = list(_check_format(claim, is_mixed))
    is_formatted = not problems
    best = choose_closest(claim.claim, named)
    if best is None:
        problems.append(_describe_missing(claim))
    else:
        problems += check_facts(claim.claim, best, named)
    return AuditedCitation(
        label=claim.label,
        claim=claim.claim,
        exists=best is not None,
        is_well_formatted=is_formatted,
        passage_id="" if best is None else best.passage_id,
        place="" if best is None else best.place,
        problems=tuple(problems),
    )


def normalise_name(name: str) -> str:
    """Return a name for comparing: case and spaces do not matter."""
    return " ".join(name.casefold().split())


def choose_closest(claim: str, named: Sequence[CitablePassage]) -> CitablePassage | None:
    """Return the passage that shares most rare words with a claim; None: there is none."""
    if len(named) < 2:
        return named[0] if named else None
    place = TextPlace(document_id="", unit_id="", start=0, end=0)
    search = PassageSearch(
        [Passage(str(at), place, one.text, one.language) for at, one in enumerate(named)]
    )
    found = search.find(claim, named[0].language, 1)
    return named[int(found[0].id)] if found else named[0]


def check_facts(
    claim: str, closest: CitablePassage, named: Sequence[CitablePassage]
) -> Iterator[str]:
    """Yield the numbers, periods and references of a claim that its source does not have."""
    every = "\n".join(f"{one.place}\n{one.text}" for one in named)
    known = list_measures(closest.text, closest.language)
    measured = list_measures(claim, closest.language)
    for one in measured[:_MOST]:
        yield from _compare(one, known, list_measures(every, closest.language))
    stated = {one.value for one in measured} | list_numbers(every)
    told = {number for one in measured for number in list_numbers(one.text)}
    missing = sorted(list_numbers(claim) - stated - told)
    yield from (f"the number {one} does not occur in the source" for one in missing[:_MOST])
    series = _LABELS | {label.casefold() for label, _ in _list_references(every)}
    words = f" {' '.join(_WORD.findall(every.casefold()))} "
    for label, number in dict.fromkeys(_list_references(claim)):
        if label.casefold() in series and f" {label} {number} ".casefold() not in words:
            yield f"{label} {number} does not occur in the source"


def _compare(one: Measure, closest: Sequence[Measure], every: Sequence[Measure]) -> Iterator[str]:
    same = [known for known in closest if known.family == one.family]
    if same and all(known.value != one.value for known in same):
        yield f"the claim says “{one.text}”, and the source “{same[0].text}”"
    elif not (same or one.family.startswith(COUNT)) and all(
        (known.family, known.value) != (one.family, one.value) for known in every
    ):
        yield f"“{one.text}” does not occur in the source"


def _list_references(text: str) -> Iterator[tuple[str, str]]:
    """Yield each label with its number or letter, such as "Annex" and "V"."""
    for found in _REFERENCE.finditer(text):
        if found[1][0].isupper() or found[1].startswith("§"):
            yield found[1], found[2]


def _check_format(claim: CitedClaim, is_mixed: bool) -> Iterator[str]:
    if is_mixed and claim.form != "link":
        yield f"expected one form of citations, found [n] and \\cite{{}}: {claim.label}"
    if not claim.claim:
        yield f"expected a sentence with {claim.label}, found only the citation"


def _describe_missing(claim: CitedClaim) -> str:
    if not claim.names:
        return f"expected {claim.label} in the list of sources, found no such entry"
    return f"expected a document or passage named {claim.names[0]!r:.120}, found none"
