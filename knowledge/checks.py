"""Compares what searches for questions find in two states of the documents.

A question is **broken** if one of these conditions is met:

- an expected fact is no longer in the context of its answer;
- the expected page no longer states a fact, and the only sections that still do are on other pages
  and already contained it before;
- a section that it cites was deleted;
- every expected page was deleted, and no other page contains the facts.

It is **changed** if such a section changed or moved, if the rank of its page changed, or if a
search finds something in only one of the two states. Otherwise, it is **unchanged**. No model is
called.

A section has moved if at least half of its text is in documents that were added or changed.
"""

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Literal
from urllib.parse import urlsplit

from citations.statements import Statement, contains, normalize
from knowledge.index.listing import ListedDocument
from knowledge.open_index import OpenIndex
from knowledge.port import Findings, SearchRequest
from knowledge.sections import Section

MakeRequest = Callable[["CheckQuestion"], SearchRequest]
"""Returns the search for the answer to a question."""
Origin = Literal["golden", "marked", "verified", "recorded", "gap"]
State = Literal["broken", "changed", "unchanged"]
Fate = Literal["changed", "moved", "deleted"]
STATES: tuple[State, ...] = ("broken", "changed", "unchanged")
_CONCURRENT_SEARCHES = 4
"""The number of concurrent searches; the engine and the ranking use different threads."""
_RUN = 4
"""The number of consecutive words by which moved text is recognized."""
_MOVED_SHARE = 0.5
_WORD = re.compile("[\u3040-\u30ff\u3400-\u9fff]|[^\\W\u3040-\u30ff\u3400-\u9fff]+")


@dataclass(frozen=True, slots=True)
class Citation:
    """A cited section, or a whole page if `is_page` is true."""

    document_id: str
    heading_path: tuple[str, ...] = ()
    anchor: str | None = None
    is_page: bool = False


@dataclass(frozen=True, slots=True)
class CheckQuestion:
    """A question and its expected results.

    `facts` are texts that the context of an answer must contain. `pages` are suffixes of a path or
    URL; any matching page answers the question. `citations` are the sections that an earlier answer
    cited. `asked` is the number of recorded questions with this meaning. `groups` are the groups of
    the person who asked.
    """

    id: str
    text: str
    origin: Origin
    language: str = ""
    facts: tuple[Statement, ...] = ()
    pages: tuple[str, ...] = ()
    citations: tuple[Citation, ...] = ()
    must_be_declined: bool = False
    asked: int = 1
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The results of a search for a question.

    `sections` maps the IDs of the documents, best first, to the best section of each. `facts`
    contains the sections in the context where each fact occurs, by the number of the fact.
    """

    sections: Mapping[str, Citation]
    facts: Mapping[int, Sequence[Citation]]
    is_clear: bool

    def find_rank(self, document_ids: Iterable[str]) -> int | None:
        """Return the 1-based rank of the best of these documents."""
        ranks = {name: rank for rank, name in enumerate(self.sections, start=1)}
        return min((ranks[name] for name in document_ids if name in ranks), default=None)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A state of the documents from the point of view of the questions.

    `results`, and `expected` (the ids of the documents that match the expected pages), are keyed by
    question. `sections` contains the sections of the documents that are needed for a comparison.
    """

    listed: Mapping[str, ListedDocument]
    results: Mapping[str, SearchResult]
    expected: Mapping[str, tuple[str, ...]]
    sections: Mapping[str, Sequence[Section]]


@dataclass(frozen=True, slots=True)
class SectionChange:
    """A change to a section or page.

    `file` is the path or URL of the document before the change. If the section moved, `target` is
    the new location, and `target_id` the id of the document there.
    """

    title: str
    source: str
    file: str
    fate: Fate
    target: str = ""
    target_id: str = ""

    def __str__(self) -> str:
        moved = f" to {self.target}" if self.fate == "moved" else ""
        return f"{self.fate}{moved}: {self.title} ({self.source})"


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """The effect of a change to the documents on a question.

    Ranks count pages from 1, and are None if no expected page was returned. `lost` contains the
    facts that are no longer in the context, `only_elsewhere` those that only other pages contain
    now, and `missing` those that were not in it before either. `unknown_pages` contains the
    expected pages if none of them exists in either state. `newly_answered` is true if the documents
    seem to answer the question only now, and `no_longer_found` in the reverse case.
    """

    question: CheckQuestion
    state: State
    lost: tuple[str, ...] = ()
    only_elsewhere: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unknown_pages: tuple[str, ...] = ()
    sections: tuple[SectionChange, ...] = ()
    rank_before: int | None = None
    rank_after: int | None = None
    newly_answered: bool = False
    no_longer_found: bool = False

    @property
    def reasons(self) -> list[str]:
        """The changes that affect the question, and what could not be compared, one sentence
        each.
        """
        reasons = [f"no longer in the context: “{fact}”" for fact in self.lost]
        reasons += [
            f"no longer on the expected page, only on others: “{fact}”"
            for fact in self.only_elsewhere
        ]
        reasons += map(str, self.sections)
        if self.rank_before != self.rank_after:
            ranks = [rank or "none" for rank in (self.rank_before, self.rank_after)]
            reasons.append(f"rank of the page: {ranks[0]} → {ranks[1]}")
        if self.newly_answered:
            reasons.append("newly answered: the documents did not cover it before")
        if self.no_longer_found:
            reasons.append("the search no longer finds a clear answer")
        reasons += [f"not in the context before either: “{fact}”" for fact in self.missing]
        return reasons + [f"no document matches the page {page}" for page in self.unknown_pages]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The results by question, with broken ones first, and the number of changed documents."""

    results: tuple[QuestionResult, ...]
    added: int = 0
    changed: int = 0
    removed: int = 0

    def count(self, state: State) -> int:
        """Return the number of questions in this state."""
        return sum(result.state == state for result in self.results)


def is_page(place: str, page: str) -> bool:
    """Return whether a path or URL ends with the segments of `page`, ignoring the file
    extension.
    """
    return _ends_with(_split_place(place), _split_place(page))


class _Comparison:
    """Compares two snapshots, and searches for texts of the first one in the second one."""

    def __init__(self, before: Snapshot, after: Snapshot) -> None:
        self._before = before
        self._after = after

    def judge(self, question: CheckQuestion) -> QuestionResult:
        """Return the result for a question."""
        before, after = self._before.results[question.id], self._after.results[question.id]
        lost = before.facts.keys() - after.facts.keys()
        only_elsewhere = {
            number for number in after.facts if self._is_only_elsewhere(question.id, number)
        }
        missing = {*range(len(question.facts))} - before.facts.keys() - after.facts.keys()
        expected = self._before.expected[question.id]
        cited = self._find_changes(question.citations)
        pages = self._find_changes(Citation(name, is_page=True) for name in expected)
        relied = self._find_changes(_list_relied(question, before, expected))
        # A whole page that moved or was deleted is listed instead of its sections.
        gone = {
            place.document_id: (place, page)
            for place, page in pages.items()
            if page.fate != "changed"
        }
        parts = {
            place: part
            for place, part in relied.items()
            if place.document_id not in gone or gone[place.document_id][1].fate != part.fate
        }
        sections = tuple({**parts, **dict(gone.values()), **cited}.values())
        wanted = {*expected, *(place.document_id for place in question.citations)}
        moved = {change.target_id for change in (*cited.values(), *pages.values())}
        rank_before = before.find_rank(wanted)
        rank_after = after.find_rank({*wanted, *moved, *self._after.expected[question.id]})
        newly_answered = _is_newly_answered(question, before, after)
        no_longer_found = before.is_clear and not after.is_clear
        deleted_pages = sum(page.fate == "deleted" for page in pages.values())
        # Where the facts are still found, they stand on another page.
        needs_page = not question.facts or len(after.facts) < len(question.facts)
        state: State = "unchanged"
        if (
            lost
            or only_elsewhere
            or (needs_page and 0 < len(expected) == deleted_pages)
            or any(section.fate == "deleted" for section in cited.values())
        ):
            state = "broken"
        elif sections or rank_before != rank_after or newly_answered or no_longer_found:
            state = "changed"
        return QuestionResult(
            question=question,
            state=state,
            lost=_name_facts(question, lost),
            only_elsewhere=_name_facts(question, only_elsewhere),
            missing=_name_facts(question, missing),
            unknown_pages=() if expected or self._after.expected[question.id] else question.pages,
            sections=sections,
            rank_before=rank_before,
            rank_after=rank_after,
            newly_answered=newly_answered,
            no_longer_found=no_longer_found,
        )

    def _is_only_elsewhere(self, question_id: str, number: int) -> bool:
        """Return whether the expected pages no longer state a fact, and the only sections that
        still do are on other pages and already contained it before.
        """
        expected = self._before.expected[question_id]
        before = self._before.results[question_id].facts.get(number, ())
        stated = [place for place in before if place.document_id in expected]
        others = {*before} - {*stated}
        return (
            bool(stated)
            and all(self._find_change(place) is not None for place in stated)
            and others.issuperset(self._after.results[question_id].facts[number])
        )

    def _find_changes(self, places: Iterable[Citation]) -> dict[Citation, SectionChange]:
        """Return the changes to those of the places that existed before."""
        changes = ((place, self._find_change(place)) for place in places)
        return {place: change for place, change in changes if change is not None}

    def _find_change(self, place: Citation) -> SectionChange | None:
        listed, now = (state.listed.get(place.document_id) for state in (self._before, self._after))
        if listed is None or (now is not None and now.content_hash == listed.content_hash):
            return None
        texts, new_texts = (_read_texts(state, place) for state in (self._before, self._after))
        if not texts or texts == new_texts:
            return None
        target = "" if new_texts else self._find_moved(" ".join(texts))
        return SectionChange(
            title=" > ".join(dict.fromkeys((listed.title, *place.heading_path))),
            source=f"{listed.source}#{place.anchor}" if place.anchor else listed.source,
            file=listed.file,
            fate="changed" if new_texts else "moved" if target else "deleted",
            target=self._after.listed[target].source if target else "",
            target_id=target,
        )

    def _find_moved(self, text: str) -> str:
        """Return the added or changed document that contains the most of a text, if it contains at
        least half of it.
        """
        runs = _list_runs(text)
        owners = [self._owners[run] for run in runs if run in self._owners]
        if not runs or len(owners) < _MOVED_SHARE * len(runs):
            return ""
        return Counter(name for names in owners for name in names).most_common(1)[0][0]

    @cached_property
    def _owners(self) -> Mapping[tuple[str, ...], set[str]]:
        """The added or changed documents that contain each sequence of words."""
        owners: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
        for name, sections in self._after.sections.items():
            for run in _list_runs(" ".join(section.text for section in sections)):
                owners[run].add(name)
        return owners


async def take_snapshot(
    opened: OpenIndex,
    questions: Sequence[CheckQuestion],
    make_request: MakeRequest,
    since: Snapshot | None = None,
) -> Snapshot:
    """Search for the questions in an index.

    Reads the documents on which the questions rely; if `since` is given, those that were added or
    changed after that snapshot.
    """
    requests = {question.id: make_request(question) for question in questions}
    groups = tuple({name for request in requests.values() for name in request.groups})
    listed = {document.id: document for document in await opened.library.list_documents(groups)}
    slots = asyncio.Semaphore(_CONCURRENT_SEARCHES)

    async def search(question: CheckQuestion) -> SearchResult:
        async with slots:
            return _read_findings(question, await opened.search(requests[question.id]))

    async with asyncio.TaskGroup() as tasks:
        searches = {question.id: tasks.create_task(search(question)) for question in questions}
    results = {question_id: task.result() for question_id, task in searches.items()}
    expected = _find_expected(listed, questions)
    if since is None:
        wanted = {
            citation.document_id
            for question in questions
            for citation in (*question.citations, *chain(*results[question.id].facts.values()))
        }.union(*expected.values())
    else:
        wanted = {document.id for document in _list_different(since.listed, listed)}
    documents = await opened.library.read(sorted(wanted & listed.keys()), groups)
    sections = {document.listed.id: document.sections for document in documents}
    return Snapshot(listed, results, expected, sections)


def compare(questions: Sequence[CheckQuestion], before: Snapshot, after: Snapshot) -> CheckResult:
    """Return the result for each question, comparing two snapshots."""
    different = _list_different(before.listed, after.listed)
    added = sum(document.id not in before.listed for document in different)
    comparison = _Comparison(before, after)
    results = [comparison.judge(question) for question in questions]
    return CheckResult(
        tuple(sorted(results, key=lambda item: (STATES.index(item.state), -item.question.asked))),
        added=added,
        changed=len(different) - added,
        removed=len(before.listed.keys() - after.listed.keys()),
    )


def _read_findings(question: CheckQuestion, findings: Findings) -> SearchResult:
    sections: dict[str, Citation] = {}
    for hit in findings.hits:
        here = Citation(hit.document_id, hit.place.heading_path, hit.place.anchor)
        sections.setdefault(hit.document_id, here)
    facts: defaultdict[int, list[Citation]] = defaultdict(list)
    for section in findings.context if question.facts else ():
        best, place = section.best, section.best.place
        # A writer reads a section below its place.
        names = dict.fromkeys((place.title, *place.crumbs, *place.heading_path))
        text = normalize("\n".join((*names, section.text)))
        for number, fact in enumerate(question.facts):
            if contains(text, fact):
                here = Citation(best.document_id, place.heading_path, place.anchor)
                facts[number].append(here)
    is_clear = findings.quality != "poor" and not findings.match_nothing
    return SearchResult(sections, facts, is_clear)


def _find_expected(
    listed: Mapping[str, ListedDocument], questions: Iterable[CheckQuestion]
) -> dict[str, tuple[str, ...]]:
    """For each question, return the documents that match its expected pages."""
    places = [
        (document.id, _split_place(place))
        for document in listed.values()
        for place in (document.source, document.url or "")
    ]
    return {
        question.id: tuple(
            dict.fromkeys(
                document_id
                for page in map(_split_place, question.pages)
                for document_id, place in places
                if _ends_with(place, page)
            )
        )
        for question in questions
    }


def _name_facts(question: CheckQuestion, numbers: Iterable[int]) -> tuple[str, ...]:
    return tuple(question.facts[number][0] for number in sorted(numbers))


def _list_relied(
    question: CheckQuestion, result: SearchResult, expected: Iterable[str]
) -> list[Citation]:
    """Return the sections that contain the facts; without facts, the best section of each page."""
    if question.facts or question.citations:
        return [places[0] for places in result.facts.values()]
    return [result.sections[name] for name in expected if name in result.sections]


def _is_newly_answered(question: CheckQuestion, before: SearchResult, after: SearchResult) -> bool:
    if question.facts:
        return len(after.facts) == len(question.facts) > len(before.facts)
    is_open = question.origin == "gap" or question.must_be_declined
    return is_open and after.is_clear and not before.is_clear


def _list_different(
    before: Mapping[str, ListedDocument], after: Mapping[str, ListedDocument]
) -> list[ListedDocument]:
    """Return the documents that were added or changed."""
    hashes = {name: document.content_hash for name, document in before.items()}
    return [
        listed_document
        for listed_document in after.values()
        if hashes.get(listed_document.id) != listed_document.content_hash
    ]


def _read_texts(state: Snapshot, place: Citation) -> list[str]:
    """Return the texts of a cited section, or of all sections of a cited page."""
    return [
        section.text
        for section in state.sections.get(place.document_id, ())
        if place.is_page
        or (section.heading_path == place.heading_path and place.anchor in (None, section.anchor))
    ]


def _list_runs(text: str) -> set[tuple[str, ...]]:
    """Return the sequences of four words of a text; a shorter text is one sequence."""
    words = _WORD.findall(text.casefold())
    return {tuple(words[at : at + _RUN]) for at in range(max(1, len(words) - _RUN + 1))} - {()}


def _ends_with(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    return bool(wanted) and parts[-len(wanted) :] == wanted


def _split_place(place: str) -> list[str]:
    path = urlsplit(place).path if "://" in place else place.partition("#")[0]
    parts = [part for part in path.split("/") if part]
    if parts:
        stem, _, ending = parts[-1].rpartition(".")
        parts[-1] = stem if stem and ending.isalnum() else parts[-1]
    return parts
