r"""Checks whether the citations of an answer exist and support it.

An answer is Markdown that cites with `[1]` and a list of sources, with `\cite{id}`, or with links.
The list begins with a line such as "Sources" and has one line per source: `[1] Title`, `1. Title`
or `- [1] [Title](address)`, optionally followed by a line with the address. Footnotes (`[^1]`) and
definitions (`[1]: address`) can be anywhere in the text. A model judges what rules cannot prove.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel

from agents.review.measures import COUNT, Measure, list_measures, list_numbers
from agents.review.passages import PassageSearch, RulePassage
from agents.review.requirements import TextPlace
from citations.claims import UnitKind, citations, split_units
from citations.legal_references import LABELS, list_part_numbers, list_references
from citations.marking import remove_marks
from citations.verbatim import remove_struck
from knowledge.index.listing import ListedDocument
from knowledge.library.library import WholeDocument

CitationForm = Literal["number", "cite", "link"]
_CITE = re.compile(r"\\cite\{([^{}\n]{1,400})\}")
_LINK = re.compile(r"(?<!!)\[([^\[\]\n]{1,300})\]\(([^()\s]{1,500})\)")
_SOURCES = re.compile(
    r"[#*_\s]{0,8}(?:sources|references|bibliography|citations|quellen|fundstellen|quellenverzeichnis"
    r"|zdroje|odkazy|źródła|références|fuentes|referencias|fonti|riferimenti|fontes|referências"
    r"|источники|джерела|المصادر|स्रोत|来源|參考|参考文献|出典)[*_:\s]{0,8}\Z",
    re.IGNORECASE,
)
_ENTRY = re.compile(
    r"[\s*+-]{0,8}(?:((?:\[\^?\d{1,4}\]){1,20})|(\d{1,4})[.)])[:.]?\s{0,8}(\S[^\n]*)"
)
_NEXT_ENTRY = re.compile(r"[ \t](?=\[\^?\d{1,4}\][ \t:.])")
"""Where an entry begins if a document was read without the line breaks in its paragraphs."""
_DEFINITION = re.compile(r"(?m)^[ ]{0,3}\[(\^?)([^\[\]\n]{1,60})\]:[ \t]{0,8}(\S[^\n]*)$")
_FOOTNOTE = re.compile(r"\[\^([^\[\]\n]{1,60})\]")
_NUMBER_LINK = re.compile(r"(?<!!)\[(?:(\d{1,4})|\[(\d{1,4})\])\]\(([^()\s]{1,500})\)")
_REFERENCE_LINK = re.compile(r"(?<!!)\[([^\[\]\n]{1,300})\]\[([^\[\]\n]{1,60})\]")
_NUMBER = re.compile(r"\d{1,4}")
_CITED = re.compile(r"\[\^?(\d{1,4})\]")
_DASH = re.compile(r"\s[–—-]\s|,\s")
_LEAST_WORDS = 4
_LETTERS = re.compile(r"\w")
Says = Literal["yes", "partly", "no", "contradicts", "unjudged"]
_WORD = re.compile(r"§+|[^\W_]+")
_MOST = 20


@dataclass(frozen=True, slots=True)
class CitedClaim:
    """A sentence with one of its citations.

    `label` is the citation as written. `names` contains the texts that identify its source: the id,
    or the title and address from the list of sources. `names` is empty if the citation number is
    not in the list.
    """

    claim: str
    label: str
    form: CitationForm
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """The citations in a text in order, the sentences without any, and the sources that are never
    cited.
    """

    claims: tuple[CitedClaim, ...]
    uncited: tuple[str, ...]
    unused: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CitablePassage:
    """A passage that can be cited, with the names by which a citation may refer to it.

    `names` must match exactly: IDs, titles, and URLs. The name of a whole document applies to each
    of its passages.
    """

    passage_id: str
    text: str
    names: frozenset[str]
    place: str = ""
    language: str = "en"


class AuditedCitation(BaseModel, frozen=True):
    """A checked citation. `problems` contains human-readable descriptions of what is wrong; it is
    empty if the citation is correct.

    `says` is a model's judgement, or `unjudged` if the citation was checked only by rules.
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
        """Whether no problem was found."""
        return not self.problems


class CitationAudit(BaseModel, frozen=True):
    """All citations in an answer; `uncited` contains the sentences without citations, and `unused`
    the sources that are listed but never cited.
    """

    citations: tuple[AuditedCitation, ...]
    uncited: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()

    @property
    def is_valid(self) -> bool:
        """Whether all citations are valid."""
        return all(citation.is_good for citation in self.citations)

    @property
    def used_citations(self) -> tuple[str, ...]:
        """The ids of the passages referenced by valid citations, without duplicates."""
        return tuple(
            dict.fromkeys(citation.passage_id for citation in self.citations if citation.is_good)
        )

    @property
    def invalid_citations(self) -> tuple[str, ...]:
        """The labels of the invalid citations, without duplicates."""
        return tuple(
            dict.fromkeys(citation.label for citation in self.citations if not citation.is_good)
        )


def read_citations(text: str) -> ReadAnswer:
    """Return the citations in an answer, ignoring code and struck-out text."""
    body, listed = _split_sources(text)
    body = _read_definitions(body, listed)
    claims: list[CitedClaim] = []
    uncited: list[str] = []
    before = ""
    for unit in split_units(body):
        text = remove_struck(unit.text)
        if unit.kind in {UnitKind.CODE, UnitKind.HEADING} or not text.strip():
            continue
        is_alone = _stands_alone(text)
        cited_claims = list(_read_unit(text, before if is_alone else text, listed))
        claims += cited_claims
        plain = " ".join(text.split())
        if cited_claims and is_alone and uncited[-1:] == [before]:
            uncited.pop()
        if not cited_claims and len(plain.split()) >= _LEAST_WORDS:
            uncited.append(plain)
        before = "" if cited_claims else plain
    used = {claim.label for claim in claims}
    unused = tuple(f"[{number}]" for number in listed if f"[{number}]" not in used)
    return ReadAnswer(tuple(claims), tuple(uncited), unused)


def audit_citations(answer: ReadAnswer, passages: Sequence[CitablePassage]) -> CitationAudit:
    """Return the audit of an answer; `passages` are those that its reader may read."""
    by_name: dict[str, list[CitablePassage]] = {}
    for passage in passages:
        for name in passage.names:
            by_name.setdefault(normalise_name(name), []).append(passage)
    is_mixed = {"number", "cite"} <= {cited_claim.form for cited_claim in answer.claims}
    audited = tuple(
        audit_citation(claim, find_named(claim, by_name), is_mixed=is_mixed)
        for claim in answer.claims
    )
    return CitationAudit(citations=audited, uncited=answer.uncited, unused=answer.unused)


def find_named(
    claim: CitedClaim, by_name: Mapping[str, Sequence[CitablePassage]]
) -> list[CitablePassage]:
    """Return the passages that a citation refers to, by the name that fits the fewest."""
    known = [by_name[name] for name in map(normalise_name, claim.names) if name in by_name]
    return list({each.passage_id: each for each in min(known, key=len, default=())}.values())


def audit_citation(
    claim: CitedClaim, named: Sequence[CitablePassage], *, is_mixed: bool = False
) -> AuditedCitation:
    """Return the results of the rules for a citation and the passages that it refers to."""
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
    """Return a name in a normalized form that ignores case and spaces."""
    return " ".join(name.casefold().split())


def choose_closest(claim: str, named: Sequence[CitablePassage]) -> CitablePassage | None:
    """Return the passage that shares the most rare words with a claim, or None."""
    if len(named) < 2:
        return named[0] if named else None
    place = TextPlace(document_id="", unit_id="", start=0, end=0)
    search = PassageSearch(
        [
            RulePassage(str(at), place, passage.text, passage.language)
            for at, passage in enumerate(named)
        ]
    )
    passages = search.find(claim, named[0].language, 1)
    return named[int(passages[0].id)] if passages else named[0]


def check_facts(
    claim: str, closest: CitablePassage, named: Sequence[CitablePassage]
) -> Iterator[str]:
    """Yield the numbers, periods, and references in a claim that do not occur in its source."""
    every = "\n".join(f"{passage.place}\n{passage.text}" for passage in named)
    known = list_measures(closest.text, closest.language)
    measured = list_measures(claim, closest.language)
    for measure in measured[:_MOST]:
        yield from _compare(measure, known, list_measures(every, closest.language))
    stated = {measure.value for measure in measured} | list_numbers(every)
    told = {number for measure in measured for number in list_numbers(measure.text)}
    missing = sorted(list_numbers(claim) - stated - told)
    yield from (f"the number {number} does not occur in the source" for number in missing[:_MOST])
    series = LABELS | {label.casefold() for label, _ in list_references(every)}
    words = f" {' '.join(_WORD.findall(every.casefold()))} "
    parts = list_part_numbers(every)
    for label, number in dict.fromkeys(list_references(claim)):
        is_named = f" {label} {number} ".casefold() in words or number.casefold() in parts
        if label.casefold() in series and not is_named:
            yield f"{label} {number} does not occur in the source"


def find_cited_documents(listed: Iterable[ListedDocument], wanted: set[str]) -> list[str]:
    """Return the ids of the documents that a normalized name matches, or whose name begins with
    it.
    """
    return [
        document.id
        for document in listed
        if any(
            normalise_name(name) == asked or asked.startswith(f"{normalise_name(name)}#")
            for name in (
                document.id,
                document.title,
                document.source,
                document.file,
                document.url or "",
            )
            if name
            for asked in wanted
        )
        or any(
            asked.startswith((f"{document.title.casefold()} >", f"{document.id}#"))
            for asked in wanted
        )
    ]


def list_citable_passages(document: WholeDocument) -> Iterator[CitablePassage]:
    """Yield the chunks of a document, each with the names of the chunk, the section, and the
    document.
    """
    listed = document.listed
    of_document = [name for name in (listed.id, listed.title, listed.source, listed.file) if name]
    of_document += [listed.url] if listed.url else []
    for vector in document.chunks:
        chunk = vector.chunk
        names = {chunk.chunk_id, *of_document, " > ".join((listed.title, *chunk.heading_path))}
        if chunk.heading_path and chunk.heading_path[0] == listed.title:
            names.add(" > ".join(chunk.heading_path))
        if chunk.anchor:
            names |= {f"{name}#{chunk.anchor}" for name in of_document}
        place = " > ".join((listed.title, *chunk.heading_path))
        yield CitablePassage(chunk.chunk_id, chunk.text, frozenset(names), place, listed.language)


def _read_definitions(body: str, listed: dict[int, tuple[str, ...]]) -> str:
    """Return a text in which footnotes and numbered links are written as `[n]`, and add their names
    to `listed`.

    Links to a definition (`[law][act]`) become ordinary links. A named footnote gets an unused
    number.
    """
    numbers: dict[str, int] = {}
    targets: dict[str, str] = {}

    def add(number: int, names: Iterable[str]) -> str:
        listed[number] = tuple(dict.fromkeys((*listed.get(number, ()), *names)))
        return f"[{number}]"

    def find_number(name: str) -> int:
        free = max((*listed, *numbers.values(), *map(int, _CITED.findall(body))), default=0) + 1
        return int(name) if _NUMBER.fullmatch(name) else numbers.setdefault(name, free)

    for sign, name, target in _DEFINITION.findall(body):
        if sign or _NUMBER.fullmatch(name):
            add(find_number(name), _list_names(target))
        else:
            targets[name.casefold()] = target.split()[0].strip("<>")
    plain = _DEFINITION.sub("", body)
    plain = _FOOTNOTE.sub(lambda found: f"[{find_number(found[1])}]", plain)
    plain = _NUMBER_LINK.sub(lambda found: add(int(found[1] or found[2]), (found[3],)), plain)
    return _REFERENCE_LINK.sub(
        lambda found: (
            f"[{found[1]}]({target})" if (target := targets.get(found[2].casefold())) else found[0]
        ),
        plain,
    )


def _read_unit(
    text: str, claiming: str, listed: Mapping[int, tuple[str, ...]]
) -> Iterator[CitedClaim]:
    claim = _clean_claim(claiming)
    for number in citations(text):
        yield CitedClaim(claim, f"[{number}]", "number", listed.get(number, ()))
    for cited in _CITE.finditer(text):
        for name in filter(None, map(str.strip, cited[1].split(","))):
            yield CitedClaim(claim, f"\\cite{{{name}}}", "cite", (name,))
    for link in _LINK.finditer(text):
        if not link[1].strip().isdigit():
            yield CitedClaim(claim, link[0], "link", (link[2],))


def _stands_alone(text: str) -> bool:
    """Return whether the text consists only of citations, which then belong to the sentence before
    it.
    """
    return not _LETTERS.search(_LINK.sub("", _CITE.sub("", remove_marks(text))))


def _clean_claim(text: str) -> str:
    plain = _LINK.sub(lambda link: "" if link[1].isdigit() else link[1], _CITE.sub("", text))
    return " ".join(remove_marks(plain).split())


def _split_sources(text: str) -> tuple[str, dict[int, tuple[str, ...]]]:
    lines = text.split("\n")
    for at, line in enumerate(lines):
        if len(line) < 80 and _SOURCES.match(line):
            following = (entry for rest in lines[at + 1 :] for entry in _NEXT_ENTRY.split(rest))
            entries = _read_entries(following)
            if entries:
                return "\n".join(lines[:at]), entries
    return text, {}


def _read_entries(lines: Iterable[str]) -> dict[int, tuple[str, ...]]:
    entries: dict[int, tuple[str, ...]] = {}
    numbers: tuple[int, ...] = ()
    for line in lines:
        entry = _ENTRY.match(line)
        if entry is not None:
            numbers = tuple(int(match) for match in _NUMBER.findall(entry[1] or entry[2]))
            names = _list_names(entry[3])
        elif numbers and line.strip():
            names = _list_names(line)
        else:
            numbers, names = (), ()
        for number in numbers:
            entries[number] = (*entries.get(number, ()), *names)
    return entries


def _list_names(text: str) -> tuple[str, ...]:
    """Return the label and the target of a link or, if the text is not a link, the whole text and
    the parts before and after its first dash or comma, also as a title with a heading.
    """
    link = _LINK.search(text)
    parts = _DASH.split(text, maxsplit=1)
    names = (link[1], link[2]) if link is not None else (text, " > ".join(parts), *parts)
    cleaned = (name.strip().strip("*_<>").strip() for name in names)
    return tuple(dict.fromkeys(filter(None, cleaned)))


def _compare(
    measure: Measure, closest: Sequence[Measure], every: Sequence[Measure]
) -> Iterator[str]:
    same = [known for known in closest if known.family == measure.family]
    if same and all(known.value != measure.value for known in same):
        yield f"the claim says “{measure.text}”, but the source says “{same[0].text}”"
    elif not (same or measure.family.startswith(COUNT)) and all(
        (known.family, known.value) != (measure.family, measure.value) for known in every
    ):
        yield f"“{measure.text}” does not occur in the source"


def _check_format(claim: CitedClaim, is_mixed: bool) -> Iterator[str]:
    if is_mixed and claim.form != "link":
        yield f"the document mixes the citation forms [n] and \\cite{{}}: {claim.label}"
    if not claim.claim:
        yield f"there is no sentence with the citation {claim.label}"


def _describe_missing(claim: CitedClaim) -> str:
    if not claim.names:
        return f"the list of sources has no entry {claim.label}"
    return f"no document or passage is named {claim.names[0]!r:.120}"
