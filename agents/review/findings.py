"""Lists the findings of a review, with notes in the reader's language."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter

from agents.review.audit import CitationAudit
from agents.review.names import name_items, shorten_line
from agents.review.requirements import Extraction, Requirement, TextPlace, load_tables
from agents.review.verdicts import ReviewResult, RuleVerdict, Status, SynthesizedGap
from envelope.specialists import SpecialistError

_ENGLISH = "en"
_SEPARATOR = "; "
_LONGEST = 260
_MOST_NAMED, _MOST_REASONS = 100, 3
MOST_FINDINGS = 12
"""Maximum number of findings in an answer; the report contains all of them."""
_MOST_CLOSEST = 2
"""Maximum number of passages that are cited for a gap."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence for the answer, and the locations that prove it.

    `is_verdict` is true if the sentence also states the decision of the review and its reason.
    """

    text: str
    places: tuple[TextPlace, ...] = ()
    is_verdict: bool = False


class _Names:
    """The names of the requirements and locations in a review."""

    def __init__(
        self, requirements: Sequence[Requirement], law: str, document: str, language: str
    ) -> None:
        self._law, self._document = law, document
        articles = {requirement.id: requirement.place.name(law) for requirement in requirements}
        words = {requirement.id: requirement.statement for requirement in requirements}
        self._names = name_items(articles, words, language)

    def rule(self, requirement: Requirement) -> str:
        """Return the article of a requirement, with its wording if the article has several
        requirements.
        """
        return self._names[requirement.id]

    def clause(self, place: TextPlace) -> str:
        """Return the clause of the document that contains a location."""
        return place.name(self._document)

    def list(self, requirements: Iterable[Requirement]) -> str:
        """Return the names of requirements on one line."""
        names = list(dict.fromkeys(map(self.rule, requirements)))
        shown = "; ".join(names[:_MOST_NAMED])
        return f"{shown}; …" if len(names) > _MOST_NAMED else shown


def translate_note(note: str, language: str) -> str:
    """Return a fixed note in a language; text without a translation is returned unchanged.

    Several notes on one line are translated separately. In an error of the form `[id] specialist:
    text`, only the text is translated.
    """
    if language == _ENGLISH:
        return note
    name, mark, text = note.partition(": ")
    if mark and name.startswith("["):
        return f"{name}: {translate_note(text, language)}"
    whole = _translate(note, language)
    if whole is not None:
        return whole
    pieces = [(piece, _translate(piece, language)) for piece in note.split(_SEPARATOR)]
    return _SEPARATOR.join(one if translated is None else translated for one, translated in pieces)


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
    """Return the counts and the undecided requirements, then violations and gaps, then fulfilled
    requirements.

    Violations and gaps whose IDs are in `order` come first. `gaps` that do not concern a single
    requirement, such as two contradictory clauses, come last.
    """
    known = {requirement.id: requirement for requirement in extraction.requirements}
    names = _Names(extraction.rules, law, document, language)
    rank = {name: place for place, name in enumerate(order)}
    texts = load_finding_texts(language)

    def pair(verdicts: Iterable[RuleVerdict]) -> list[tuple[RuleVerdict, Requirement]]:
        return [
            (verdict, known[verdict.requirement_id])
            for verdict in verdicts
            if verdict.requirement_id in known
        ]

    shown = [Finding(_count_verdicts(review, texts, law, document, language))]
    undecided = pair(review.of_status(Status.UNDECIDED))
    if undecided and len(undecided) < len(review.verdicts):
        named = names.list(rule for _, rule in undecided)
        reasons = _list_reasons((verdict for verdict, _ in undecided), language)
        text = fill(
            texts["undecided"],
            count=len(undecided),
            total=len(review.verdicts),
            reasons=reasons,
            ids=named,
        )
        shown.append(Finding(text))
    open_ones = pair(
        sorted(review.findings, key=lambda item: rank.get(item.requirement_id, len(rank)))
    )
    shown += [_describe(*finding, names, language) for finding in open_ones[:MOST_FINDINGS]]
    more = len(open_ones) - MOST_FINDINGS
    if more > 0:
        shown.append(Finding(fill(texts["more"], count=more)))
    met = pair(review.of_status(Status.COMPLIANT))
    shown += [_describe_met(*finding, names, language) for finding in met[:MOST_FINDINGS]]
    if met[MOST_FINDINGS:]:
        others = names.list(rule for _, rule in met[MOST_FINDINGS:])
        shown.append(Finding(fill(texts["fulfilled"], places=others), is_verdict=True))
    shown += [Finding(gap.summary, gap.places) for gap in gaps if gap.kind != "regulatory"]
    return tuple(shown)


def describe_closest(
    extraction: Extraction, review: ReviewResult, *, law: str, document: str, language: str
) -> tuple[Finding, ...]:
    """Return a statement that no model is in use, and the first units of the law, each with its
    closest passage.
    """
    texts = load_finding_texts(language)
    known = {requirement.id: requirement for requirement in extraction.requirements}
    names = _Names(extraction.rules, law, document, language)
    first = fill(texts["no_model"], law=law, document=document, total=len(review.verdicts))
    shown = []
    for verdict in review.verdicts[:MOST_FINDINGS]:
        rule = known[verdict.requirement_id]
        # A unit is quoted as a whole: its heading names it.
        named = {"place": rule.place.name(law), "rule": quote(rule.quotation)}
        if verdict.closest:
            read = verdict.closest[0]
            text = fill(
                texts["closest"], **named, read=quote(read.text), there=names.clause(read.place)
            )
            shown.append(Finding(text, (rule.place, read.place)))
        else:
            shown.append(Finding(fill(texts["none_close"], **named), (rule.place,)))
    more = len(review.verdicts) - MOST_FINDINGS
    if more > 0:
        shown.append(Finding(fill(texts["more_units"], count=more)))
    return (Finding(first), *shown)


def describe_checklist(
    extraction: Extraction, *, law: str, language: str, read: int, unread: int
) -> tuple[Finding, ...]:
    """Return the number of requirements in the units that were read, and the first of these
    requirements.

    Unread units are counted separately, because their requirements are unknown.
    """
    texts = load_finding_texts(language)
    rules = extraction.rules
    first = [Finding(fill(texts["listed"], law=law, total=len(rules), units=read))] if read else []
    if unread:
        lost = fill(texts["unread"], law=law, count=unread, total=read + unread)
        first.append(Finding(lost))
    shown = [
        Finding(
            # The sentence contains the statement: the article is enough of a name.
            fill(texts["requirement"], place=rule.place.name(law), rule=quote(rule.statement)),
            (rule.place,),
        )
        for rule in rules[:MOST_FINDINGS]
    ]
    more = len(rules) - MOST_FINDINGS
    if more > 0:
        shown.append(Finding(fill(texts["more"], count=more)))
    return (*first, *shown)


def describe_audit(audit: CitationAudit, language: str) -> tuple[Finding, ...]:
    """Return the number of correct citations, and each wrong one with its problems."""
    wrong = [citation for citation in audit.citations if not citation.is_good]
    total = len(audit.citations)
    counts = load_tables("report_texts.toml")
    text = {**counts["en"], **counts.get(language, {})}["citation_counts"]
    shown = [Finding(text.format(good=total - len(wrong), total=total))]
    for citation in wrong[:MOST_FINDINGS]:
        problems = "; ".join(translate_note(problem, language) for problem in citation.problems)
        shown.append(Finding(f"{citation.label} {quote(citation.claim)}: {problems}"))
    return tuple(shown)


def describe_notes(notes: Iterable[str], language: str) -> Iterator[Finding]:
    """Yield each note, without duplicates."""
    text = load_finding_texts(language)["note"]
    for note in dict.fromkeys(notes):
        yield Finding(fill(text, note=quote(translate_note(note, language))))


def list_errors(errors: Iterable[SpecialistError]) -> list[str]:
    """Return the errors as text; of errors that differ only in their IDs, only the first is
    included.
    """
    known: dict[tuple[str, str], str] = {}
    for error in errors:
        known.setdefault((error.specialist, error.text), str(error))
    return list(known.values())


def quote(text: str) -> str:
    """Return the text on one line, shortened, and without a final full stop."""
    return shorten_line(text, _LONGEST)


def fill(template: str, **values: object) -> str:
    """Return a sentence with these values, without a second full stop after a value that ends with
    a full stop.
    """
    text = ""
    for literal, name, _, _ in Formatter().parse(template):
        text += literal[1:] if literal.startswith(".") and text.endswith(".") else literal
        text += "" if name is None else str(values[name])
    return text


def load_finding_texts(language: str) -> Mapping[str, str]:
    """Return the sentences in a language, or in English if there are none."""
    tables = load_tables("finding_texts.toml")
    return {**tables["en"], **tables.get(language, {})}


def _translate(note: str, language: str) -> str | None:
    for texts in load_tables("fixed_notes.toml").values():
        values = _read_values(note, texts[_ENGLISH])
        if values is not None and language in texts:
            return fill(texts[language], **values)
    return None


def _read_values(note: str, template: str) -> dict[str, str] | None:
    """Return the values with which a template produces this note, or None if it cannot produce
    it.
    """
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


def _count_verdicts(
    review: ReviewResult, texts: Mapping[str, str], law: str, document: str, language: str
) -> str:
    """Return the number of verdicts with each status or, if there are no verdicts, the reason."""
    total, undecided = len(review.verdicts), review.of_status(Status.UNDECIDED)
    if total and len(undecided) == total:
        reasons = _list_reasons(undecided, language)
        return fill(texts["none_judged"], total=total, law=law, document=document, reasons=reasons)
    return fill(
        texts["counts"],
        document=document,
        law=law,
        total=total,
        compliant=len(review.of_status(Status.COMPLIANT)),
        violations=len(review.of_status(Status.VIOLATION)),
        gaps=len(review.of_status(Status.GAP)),
    )


def _list_reasons(verdicts: Iterable[RuleVerdict], language: str) -> str:
    notes = (translate_note(verdict.note, language) for verdict in verdicts if verdict.note)
    return "; ".join(list(dict.fromkeys(map(quote, notes)))[:_MOST_REASONS]) or "–"


def _describe(
    verdict: RuleVerdict, requirement: Requirement, names: _Names, language: str
) -> Finding:
    """Return a violation or a gap; a gap includes the passages that were considered for it."""
    texts = load_finding_texts(language)
    place, rule = names.rule(requirement), quote(requirement.quotation)
    reason = " ".join(translate_note(verdict.note, language).split())
    if verdict.status is Status.GAP or not verdict.evidence:
        text = fill(texts["gap"], place=place, rule=rule, reason=reason)
        judged = [evidence.place for evidence in (*verdict.evidence, *verdict.closest)][
            :_MOST_CLOSEST
        ]
        if judged:
            there = "; ".join(dict.fromkeys(map(names.clause, judged)))
            text = f"{text} {fill(texts['gap_closest'], there=there)}"
        return Finding(text, (requirement.place, *judged), is_verdict=True)
    read = verdict.evidence[0]
    text = fill(
        texts["violation"],
        place=place,
        rule=rule,
        read=quote(read.text),
        there=names.clause(read.place),
        reason=reason,
    )
    return Finding(text, (requirement.place, read.place), is_verdict=True)


def _describe_met(
    verdict: RuleVerdict, requirement: Requirement, names: _Names, language: str
) -> Finding:
    """Return a fulfilled requirement with the text that fulfils it or, if there is none, the
    reason.
    """
    texts = load_finding_texts(language)
    place = names.rule(requirement)
    if not verdict.evidence:
        text = fill(texts["met"], place=place, reason=translate_note(verdict.note, language))
        return Finding(text.strip(), (requirement.place,), is_verdict=True)
    read = verdict.evidence[0]
    text = fill(texts["met_by"], place=place, there=names.clause(read.place), read=quote(read.text))
    return Finding(text, (requirement.place, read.place), is_verdict=True)
