"""Checks the citations of an answer against the passages of the documents.

For each citation: does the source exist, does it say the claim, does the claim leave out a
condition of the source, and is the citation well formatted?
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel

from compliance.auditing.citation_reading import CitedClaim, ReadAnswer
from compliance.requirements.segments import split_segments
from compliance.wording.cues import count_cues, find_cues, split_words
from compliance.wording.thesaurus import find_features
from llm.offline.support import foreign_facts, support

Says = Literal["yes", "partly", "no", "contradicts"]
SUPPORTED = 0.6
_RELATED = 0.3
_STRONG = frozenset(
    {"if", "unless", "except", "only", "provided", "subject", "where", "until", "without", "wenn",
     "sofern", "soweit", "falls", "außer", "nur", "vorbehaltlich", "es"}
)  # fmt: skip
_LEAST_SHARED = 0.34
_LONGEST_CONDITION = 160


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
    """One citation, checked; `problems` are sentences for people, empty for a good citation."""

    label: str
    claim: str
    exists: bool
    says: Says
    support: float = 0.0
    omitted: tuple[str, ...] = ()
    is_well_formatted: bool = True
    passage_id: str = ""
    place: str = ""
    problems: tuple[str, ...] = ()

    @property
    def is_good(self) -> bool:
        """Whether nothing is wrong with it."""
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
    forms = {one.form for one in answer.claims}
    is_mixed = {"number", "cite"} <= forms
    audited = []
    for claim in answer.claims:
        found = [
            passage
            for name in dict.fromkeys(map(normalise_name, claim.names))
            for passage in by_name.get(name, ())
        ]
        audited.append(_audit(claim, found, is_mixed))
    return CitationAudit(citations=tuple(audited), uncited=answer.uncited, unused=answer.unused)


def normalise_name(name: str) -> str:
    """Return a name for comparing: case and spaces do not matter."""
    return " ".join(name.casefold().split())


def find_omitted_conditions(claim: str, passage: str, language: str = "en") -> tuple[str, ...]:
    """Return the conditions in the sentence of a passage that a claim is about and leaves out."""
    sentence = _choose_sentence(claim, passage)
    known = find_features(claim, language)
    return tuple(
        clause
        for clause in _list_clauses(sentence, language)
        if _share_features(find_features(clause, language), known) < _LEAST_SHARED
    )


def _audit(claim: CitedClaim, found: Sequence[CitablePassage], is_mixed: bool) -> AuditedCitation:
    problems = list(_check_format(claim, is_mixed))
    is_formatted = not problems
    if not found:
        problems.append(_describe_missing(claim))
        return AuditedCitation(
            label=claim.label,
            claim=claim.claim,
            exists=False,
            says="no",
            is_well_formatted=is_formatted,
            problems=tuple(problems),
        )
    best = max(found, key=lambda one: support(claim.claim, one.text))
    share = support(claim.claim, best.text)
    says = _compare(claim.claim, best, share)
    omitted = (
        find_omitted_conditions(claim.claim, best.text, best.language) if says == "yes" else ()
    )
    problems += _describe_content(claim, best, says, omitted)
    return AuditedCitation(
        label=claim.label,
        claim=claim.claim,
        exists=True,
        says=says,
        support=round(share, 4),
        omitted=omitted,
        is_well_formatted=is_formatted,
        passage_id=best.passage_id,
        place=best.place,
        problems=tuple(problems),
    )


def _compare(claim: str, passage: CitablePassage, share: float) -> Says:
    if share < _RELATED:
        return "no"
    if share >= SUPPORTED and _is_turned_round(claim, passage):
        return "contradicts"
    if share < SUPPORTED or foreign_facts(claim, passage.text):
        return "partly"
    return "yes"


def _is_turned_round(claim: str, passage: CitablePassage) -> bool:
    """Return whether exactly one of the claim and its sentence in the passage is negated."""
    sentence = _choose_sentence(claim, passage.text)
    own = count_cues(split_words(claim), passage.language, "negation")
    other = count_cues(split_words(sentence), passage.language, "negation")
    return (own == 0) != (other == 0)


def _choose_sentence(claim: str, passage: str) -> str:
    sentences = [passage[one.start : one.end] for one in split_segments(passage)]
    return max(sentences, key=lambda one: support(claim, one), default=passage)


def _list_clauses(sentence: str, language: str) -> Iterator[str]:
    stop = 0
    for cue in find_cues(split_words(sentence), language, "condition", "exception"):
        first = sentence[cue.start : cue.end].lower().split()[0]
        if cue.start < stop or first not in _STRONG:
            continue
        rest = sentence[cue.start : cue.start + _LONGEST_CONDITION]
        cut = min((at for sign in ",;." if (at := rest.find(sign)) > 0), default=len(rest))
        stop = cue.start + cut
        clause = " ".join(rest[:cut].split())
        if len(clause.split()) > 1:
            yield clause


def _share_features(wanted: frozenset[str], known: frozenset[str]) -> float:
    return len(wanted & known) / len(wanted) if wanted else 1.0


def _check_format(claim: CitedClaim, is_mixed: bool) -> Iterator[str]:
    if is_mixed and claim.form != "link":
        yield f"expected one form of citations, found [n] and \\cite{{}}: {claim.label}"
    if not claim.claim:
        yield f"expected a sentence with {claim.label}, found only the citation"


def _describe_missing(claim: CitedClaim) -> str:
    if not claim.names:
        return f"expected {claim.label} in the list of sources, found no such entry"
    return f"expected a document or passage named {claim.names[0]!r:.120}, found none"


def _describe_content(
    claim: CitedClaim, passage: CitablePassage, says: Says, omitted: Iterable[str]
) -> Iterator[str]:
    if says == "contradicts":
        yield f"{passage.passage_id} says the opposite: one of both is negated"
    if says == "no":
        yield f"{passage.passage_id} does not say it: hardly a word is shared"
    if says == "partly":
        foreign = foreign_facts(claim.claim, passage.text)
        lacks = f": it lacks {', '.join(foreign[:5])}" if foreign else ""
        yield f"{passage.passage_id} says it only partly{lacks}"
    for condition in omitted:
        yield f"the claim leaves out a condition: {condition!r}"
