"""Splits an answer into claims, and checks each against its cited sources without a model.

A *hard* fault excludes a claim regardless of a judge's verdict: a link, an address or code that no
cited source contains, a heading that cannot be judged, a citation of a source that does not exist.
Every other fault is evidence for the judge.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from citations.citing import cite_units, is_bare_yes_or_no, is_frame, is_lead
from citations.claims import Unit, UnitKind, citations, marker, split_units, without_citations
from citations.links import Allowed, keep_links, plain_line
from citations.sources import collect_allowed, references_of
from envelope.sources import SourceReference, SourceUsed
from llm.answer_checks.facts import find_differences
from llm.answer_checks.leads import is_covered_by
from llm.offline.support import foreign_facts, support

LEAST_SUPPORT = 0.1
"""The least share of a claim's words in the cited text; below it the two are unrelated."""
_SHOWN_FACTS = 4
_FRAME_BLOCKS = 4
_INLINE_CODE = re.compile(r"`([^`\n]+)`")
_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """An answer with the texts that its claims are checked against."""

    text: str
    question: str
    context: str
    references: tuple[SourceReference, ...]
    used: tuple[SourceUsed, ...]
    language: str
    assumption: str = ""


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """A claim, the sources that it cites, and the findings of the checks without a model.

    `places` are the positions of its units in the answer; `foreign` claims cite texts in another
    language; `known` claims cite sources of the answer, or need none.
    """

    text: str
    places: tuple[int, ...]
    cites: tuple[int, ...]
    evidence: str
    foreign: bool = False
    known: bool = True
    fault: str = ""
    is_hard: bool = False

    @property
    def is_quoted(self) -> bool:
        """Whether the evidence contains the claim word for word."""
        text = without_citations(self.text)
        return _contains(self.evidence, text[len(marker(text)) :])


def collect_claims(answer: CheckedAnswer) -> tuple[CheckedClaim, ...]:
    """Return every claim of an answer, and every other part that must not be sent."""
    checks = _AnswerChecks(answer)
    found = (checks.check(place) for place in range(len(checks.units)))
    return tuple(claim for claim in found if claim is not None)


def references_by_number(
    used: Iterable[SourceUsed], references: Iterable[SourceReference]
) -> dict[int, SourceReference]:
    """Return the references by their numbers in an answer."""
    by_chunk = {reference.chunk_id: reference for reference in references}
    return {one.number: by_chunk[one.chunk_id] for one in used if one.chunk_id in by_chunk}


def text_of(reference: SourceReference, context: str) -> str:
    """Return the text of a source, preceded by its title, crumbs and headings."""
    start, end = reference.span
    place = " > ".join((reference.title, *reference.crumbs, *reference.heading_path))
    return f"{place}\n{context[start:end]}"


class _AnswerChecks:
    """The checks of one answer; it computes once the data that they share."""

    def __init__(self, answer: CheckedAnswer) -> None:
        self._answer = answer
        self.units: Sequence[Unit] = split_units(answer.text)
        self._cites = cite_units(self.units)
        self._by_number = references_by_number(answer.used, answer.references)
        used = references_of(answer.used, answer.references)
        self._allowed: Allowed = collect_allowed(used, answer.context)
        self._all = "\n".join(text_of(one, answer.context) for one in used)
        given = (text_of(one, answer.context) for one in answer.references)
        self._everything = "\n".join((answer.question, *given)).casefold()
        self._notices = self._count_notices()

    def check(self, place: int) -> CheckedClaim | None:
        """Return a unit as a claim, or None if it claims nothing and is harmless."""
        unit = self.units[place]
        if keep_links(unit.text, self._allowed).removed:
            return self._forbid(place, "a link or an address that no cited source has")
        if place < self._notices or unit.kind is UnitKind.CITATION or self._introduces(place):
            return None
        if is_lead(unit):
            known_text = f"{self._answer.question}\n{self._all}"
            if is_covered_by(unit.text, known_text):
                return None
            return self._forbid(place, "no source says it")
        return self._check_claim(place)

    def _introduces(self, place: int) -> bool:
        """Return whether a unit is only a yes or no, which is judged with the claim after it."""
        return is_bare_yes_or_no(self.units[place]) and place + 1 < len(self.units)

    def _check_claim(self, place: int) -> CheckedClaim:
        unit, cites = self.units[place], self._cites[place]
        if is_frame(self.units, self._cites, place):
            return CheckedClaim(
                unit.text, (place,), (), self._all, fault=self._fault(unit, self._all)
            )
        cited = [self._by_number[number] for number in cites if number in self._by_number]
        if not cites or len(cited) < len(cites):
            return self._forbid(place, "it cites no source of the answer")
        evidence = "\n".join(text_of(one, self._answer.context) for one in cited)
        languages = {reference.language for reference in cited} - {None}
        foreign = bool(languages) and self._answer.language not in languages
        before = place > 0 and is_bare_yes_or_no(self.units[place - 1])
        return CheckedClaim(
            text=f"{self.units[place - 1].text} {unit.text}" if before else unit.text,
            places=(place - 1, place) if before else (place,),
            cites=cites,
            evidence=evidence,
            foreign=foreign,
            fault=self._fault(unit, evidence, foreign=foreign),
            is_hard=unit.kind is UnitKind.CODE or self._holds_foreign_code(unit),
        )

    def _holds_foreign_code(self, unit: Unit) -> bool:
        """Return whether a unit has code that no source contains: people would run it."""
        code = _INLINE_CODE.findall(without_citations(unit.text))
        return any(not _contains(self._everything, one.casefold()) for one in code)

    def _forbid(self, place: int, fault: str) -> CheckedClaim:
        unit = self.units[place]
        known = bool(citations(unit.text)) and set(self._cites[place]) <= set(self._by_number)
        return CheckedClaim(
            unit.text, (place,), self._cites[place], "", known=known, fault=fault, is_hard=True
        )

    def _fault(self, unit: Unit, evidence: str, *, foreign: bool = False) -> str:
        if unit.kind is UnitKind.CODE:
            absent = [line for line in _code_lines(unit.text) if not _contains(evidence, line)]
            return f"code that the source does not have: {absent[0]}" if absent else ""
        if foreign:
            facts = foreign_facts(unit.text, f"{evidence}\n{self._answer.question}")
        else:
            facts = find_differences(unit.text, evidence, self._answer.question)
        if facts:
            return f"not in the source: {', '.join(facts[:_SHOWN_FACTS])}"
        if not foreign and support(unit.text, evidence) < LEAST_SUPPORT:
            return "hardly a word of it stands in the source"
        return ""

    def _count_notices(self) -> int:
        """Return how many units at the beginning are notices that the desk adds to an answer."""
        count = 0
        while count < len(self.units) and self._is_notice(self.units[count]):
            count += 1
        return count

    def _is_notice(self, unit: Unit) -> bool:
        """Return whether a unit states the assumption or the language of the quotations."""
        if unit.block > _FRAME_BLOCKS:
            return False
        block = " ".join(other.text for other in self.units if other.block == unit.block)
        if citations(block):
            return False
        assumed = plain_line(without_citations(self._answer.assumption))
        if assumed and assumed in block:
            return True
        languages = {source.language for source in self._answer.used}
        plain = not any(sign.isdigit() for sign in block)
        return plain and bool(languages) and self._answer.language not in languages


def _code_lines(fence: str) -> list[str]:
    return [line for line in fence.split("\n") if line.strip() and not _FENCE.match(line)]


def _contains(whole: str, part: str) -> bool:
    """Return whether `whole` contains `part`, apart from white space."""
    return "".join(part.split()) in "".join(whole.split())
