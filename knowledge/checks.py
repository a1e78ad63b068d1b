"""Compares what questions find in two states of the documents.

A question is **broken** if the context of its answer no longer contains an expected fact, or if a
section that it cites, or every page that it expects, was deleted. It is **changed** if such a
section changed or moved, if the rank of its page changed, or if a search for it finds something
now and did not before, or the reverse. Otherwise it is **unchanged**. No model is asked.

A section has moved if at least half of its text stands in documents that were added or changed.
"""

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal
from urllib.parse import urlsplit

from citations.statements import Statement, contains, normalize
from knowledge.index.listing import ListedDocument
from knowledge.library.library import WholeDocument
from knowledge.open_index import OpenIndex
from knowledge.port import ContextSection, Findings, SearchRequest
from knowledge.sections import Section

Origin = Literal["golden", "marked", "verified", "recorded", "gap"]
State = Literal["broken", "changed", "unchanged"]
Fate = Literal["changed", "moved", "deleted"]
STATES: tuple[State, ...] = ("broken", "changed", "unchanged")
_AT_ONCE = 4
"""Searches at once: the engine and the ranking use different threads."""
_RUN = 4
"""Words of a sequence by which a moved text is recognised."""
_MOVED_SHARE = 0.5
_WORD = re.compile("[\u3040-\u30ff\u3400-\u9fff]|[^\\W\u3040-\u30ff\u3400-\u9fff]+")


@dataclass(frozen=True, slots=True)
class Citation:
    """A cited section, or a whole page if `is_page`."""

    document_id: str
    heading_path: tuple[str, ...] = ()
    anchor: str | None = None
    is_page: bool = False


@dataclass(frozen=True, slots=True)
class CheckQuestion:
    """A question and what is expected of the documents.

    `facts` are texts that the context of an answer must contain. `pages` are ends of a path or URL;
    any of them answers. `citations` are the places that an earlier answer cited. `asked` counts the
    recorded questions of this meaning. `groups` are those of the person who asked.
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
class SearchOptions:
    """How questions are searched for: as the search of an answer."""

    limit: int
    context_tokens: int
    language_of: Callable[[str], str]
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """What the search found for a question.

    `documents` are ids, the best first. `facts` are the places of the facts that the context
    contains, by the number of the fact. `first` is the best section of each document in the
    context.
    """

    documents: tuple[str, ...]
    facts: Mapping[int, Citation]
    first: Mapping[str, Citation]
    finds: bool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One state of the documents as the questions see it; `read` are whole documents by id."""

    listed: Mapping[str, ListedDocument]
    found: Mapping[str, Found]
    expected: Mapping[str, tuple[str, ...]]
    """The ids of the documents that are expected pages, by question."""
    read: Mapping[str, WholeDocument]


@dataclass(frozen=True, slots=True)
class SectionChange:
    """What happened to a section or a page; `target` is where it stands now, if it moved.

    `file` is the path or address of the document before the change.
    """

    title: str
    source: str
    file: str
    fate: Fate
    target: str = ""

    def __str__(self) -> str:
        moved = f" to {self.target}" if self.fate == "moved" else ""
        return f"{self.fate}{moved}: {self.title} ({self.source})"


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """What a change of the documents does to a question.

    Ranks count pages from 1; None: it is not found, or no page is expected. `lost` are the facts
    that the context no longer contains, `missing` those that it did not contain before either.
    `newly_answered`: the documents seem to answer it now, and did not before; `no_longer_found` is
    the reverse.
    """

    question: CheckQuestion
    state: State
    lost: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    sections: tuple[SectionChange, ...] = ()
    rank_before: int | None = None
    rank_after: int | None = None
    newly_answered: bool = False
    no_longer_found: bool = False

    @property
    def reasons(self) -> list[str]:
        """What happened to the question, one sentence each."""
        reasons = [f"no longer in the context: “{fact}”" for fact in self.lost]
        reasons += map(str, self.sections)
        if self.rank_before != self.rank_after:
            ranks = [rank or "none" for rank in (self.rank_before, self.rank_after)]
            reasons.append(f"rank of the page: {ranks[0]} → {ranks[1]}")
        if self.newly_answered:
            reasons.append("newly answered: the documents did not cover it before")
        if self.no_longer_found:
            reasons.append("the search no longer finds a clear answer")
        return reasons + [f"not in the context before either: “{one}”" for one in self.missing]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The results by question, the broken ones first, and how many documents differ."""

    results: tuple[QuestionResult, ...]
    added: int = 0
    changed: int = 0
    removed: int = 0

    def count(self, state: State) -> int:
        """Return the number of questions in a state."""
        return sum(one.state == state for one in self.results)


def is_page(place: str, page: str) -> bool:
    """Return whether a path or URL ends in the parts of `page`, whatever its file ending is."""
    parts, wanted = _split_place(place), _split_place(page)
    return bool(wanted) and parts[-len(wanted) :] == wanted


@dataclass
class _Comparison:
    """Two snapshots, and where texts of the first stand in the second."""

    before: Snapshot
    after: Snapshot
    _fates: dict[Citation, tuple[Fate | None, str]] = field(default_factory=dict)

    def judge(self, question: CheckQuestion) -> QuestionResult:
        """Return what became of a question."""
        found, now = self.before.found[question.id], self.after.found[question.id]
        lost = _name_facts(question, found.facts.keys() - now.facts.keys())
        cited = {one: self._find_fate(one) for one in question.citations if self._was_there(one)}
        pages = self._list_pages(question)
        relied = {one: self._find_fate(one) for one in _list_relied(question, found, pages)}
        gone = {fate for fate, _ in pages.values()} == {"deleted"}
        rank_before, rank_after = self._rank(question, {**cited, **pages})
        newly_answered = _is_newly_answered(question, found, now)
        is_broken = bool(lost) or gone or any(fate == "deleted" for fate, _ in cited.values())
        moved = {one: fate for one, fate in pages.items() if fate[0] in ("moved", "deleted")}
        sections = tuple(self._describe({**relied, **moved, **cited}))
        no_longer_found = found.finds and not now.finds
        is_changed = bool(sections) or rank_before != rank_after or newly_answered
        return QuestionResult(
            question=question,
            state=_name_state(is_broken=is_broken, is_changed=is_changed or no_longer_found),
            lost=lost,
            missing=_name_facts(
                question, {*range(len(question.facts))} - found.facts.keys() - now.facts.keys()
            ),
            sections=sections,
            rank_before=rank_before,
            rank_after=rank_after,
            newly_answered=newly_answered,
            no_longer_found=no_longer_found,
        )

    def _was_there(self, one: Citation) -> bool:
        document = self.before.read.get(one.document_id)
        return document is not None and (one.is_page or bool(_find_sections(document, one)))

    def _list_pages(self, question: CheckQuestion) -> dict[Citation, tuple[Fate | None, str]]:
        """Return what became of the expected pages."""
        pages = (Citation(one, is_page=True) for one in self.before.expected[question.id])
        return {one: self._find_fate(one) for one in pages if self._was_there(one)}

    def _find_fate(self, one: Citation) -> tuple[Fate | None, str]:
        """Return what became of a section or page, and the document to which it moved."""
        if one not in self._fates:
            self._fates[one] = self._compare_text(one)
        return self._fates[one]

    def _compare_text(self, one: Citation) -> tuple[Fate | None, str]:
        listed = self.before.listed.get(one.document_id)
        now = self.after.listed.get(one.document_id)
        if listed is not None and now is not None and not _differ(listed, now):
            return None, ""
        text = _read_texts(self.before.read.get(one.document_id), one)
        texts = _read_texts(self.after.read.get(one.document_id), one)
        if texts:
            return (None if texts == text else "changed"), ""
        target = self._find_moved(" ".join(text))
        return ("moved", target) if target else ("deleted", "")

    def _find_moved(self, text: str) -> str:
        """Return the document that has most of a text, if added or changed ones have half of it."""
        runs = _list_runs(text)
        places = [self._places[run] for run in runs if run in self._places]
        if not runs or len(places) < _MOVED_SHARE * len(runs):
            return ""
        return Counter(one for place in places for one in place).most_common(1)[0][0]

    @cached_property
    def _places(self) -> Mapping[tuple[str, ...], set[str]]:
        """The documents that have each sequence of words, among those added or changed."""
        places: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
        for name, document in self.after.read.items():
            for run in _list_runs(" ".join(section.text for section in document.sections)):
                places[run].add(name)
        return places

    def _rank(
        self, question: CheckQuestion, fates: Mapping[Citation, tuple[Fate | None, str]]
    ) -> tuple[int | None, int | None]:
        """Return the rank of the first expected or cited page before and after."""
        wanted = {one.document_id for one in fates}
        moved = {target for _, target in fates.values() if target}
        found, now = self.before.found[question.id], self.after.found[question.id]
        expected = {*wanted, *moved, *self.after.expected[question.id]}
        return _find_rank(found.documents, wanted), _find_rank(now.documents, expected)

    def _describe(
        self, fates: Mapping[Citation, tuple[Fate | None, str]]
    ) -> Iterator[SectionChange]:
        for one, (fate, target) in fates.items():
            if fate is None:
                continue
            listed, moved = self.before.listed[one.document_id], self.after.listed.get(target)
            title = " > ".join(dict.fromkeys((listed.title, *one.heading_path)))
            place = f"{listed.source}#{one.anchor}" if one.anchor else listed.source
            target = moved.source if moved is not None else ""
            yield SectionChange(title, place, listed.file, fate, target)


async def take_snapshot(
    opened: OpenIndex,
    questions: Sequence[CheckQuestion],
    options: SearchOptions,
    since: Snapshot | None = None,
) -> Snapshot:
    """Return what the questions find in an index.

    Reads the documents that the questions rely on; with `since`, those that were added or changed
    after that snapshot.
    """
    groups = tuple({*options.groups, *(one for each in questions for one in each.groups)})
    listed = {one.id: one for one in await opened.library.list_documents(groups)}
    turns = asyncio.Semaphore(_AT_ONCE)

    async def search(question: CheckQuestion) -> Found:
        async with turns:
            request = SearchRequest(
                question=question.text,
                text=question.text,
                language=question.language or options.language_of(question.text),
                limit=options.limit,
                context_tokens=options.context_tokens,
                groups=tuple({*options.groups, *question.groups}),
                reranked=True,
            )
            return _keep(question, await opened.search(request))

    async with asyncio.TaskGroup() as tasks:
        searches = {one.id: tasks.create_task(search(one)) for one in questions}
    found = {name: task.result() for name, task in searches.items()}
    expected = _find_expected(listed, questions)
    if since is None:
        wanted = {one for question in questions for one in _list_wanted(question, found, expected)}
    else:
        wanted = {one.id for one in _list_different(since.listed, listed)}
    documents = await opened.library.read(sorted(wanted & listed.keys()), groups)
    return Snapshot(listed, found, expected, {one.listed.id: one for one in documents})


def compare(questions: Sequence[CheckQuestion], before: Snapshot, after: Snapshot) -> CheckResult:
    """Return what became of each question between two snapshots."""
    different = _list_different(before.listed, after.listed)
    added = sum(one.id not in before.listed for one in different)
    comparison = _Comparison(before, after)
    results = [comparison.judge(question) for question in questions]
    return CheckResult(
        tuple(sorted(results, key=lambda one: (STATES.index(one.state), -one.question.asked))),
        added=added,
        changed=len(different) - added,
        removed=len(before.listed.keys() - after.listed.keys()),
    )


def _keep(question: CheckQuestion, findings: Findings) -> Found:
    facts: dict[int, Citation] = {}
    first: dict[str, Citation] = {}
    for section in findings.context:
        place = section.best.place
        here = Citation(section.best.document_id, place.heading_path, place.anchor)
        first.setdefault(here.document_id, here)
        open_facts = [at for at in range(len(question.facts)) if at not in facts]
        if open_facts:
            text = normalize(_write_context(section))
            facts |= {at: here for at in open_facts if contains(text, question.facts[at])}
    return Found(
        documents=tuple(dict.fromkeys(hit.document_id for hit in findings.hits)),
        facts=facts,
        first=first,
        finds=findings.quality != "poor" and not findings.match_nothing,
    )


def _write_context(section: ContextSection) -> str:
    """Return a section with its place, as a writer receives it."""
    place = section.best.place
    return "\n".join((*dict.fromkeys((place.title, *place.crumbs, *place.heading_path)),
                      section.text))  # fmt: skip


def _find_expected(
    listed: Mapping[str, ListedDocument], questions: Iterable[CheckQuestion]
) -> dict[str, tuple[str, ...]]:
    """Return the documents that are expected pages of each question."""
    by_name: defaultdict[str, list[tuple[list[str], str]]] = defaultdict(list)
    for document in listed.values():
        for place in {document.source, document.url or ""}:
            if parts := _split_place(place):
                by_name[parts[-1]].append((parts, document.id))
    return {question.id: tuple(_match(by_name, question.pages)) for question in questions}


def _match(
    by_name: Mapping[str, Sequence[tuple[list[str], str]]], pages: Iterable[str]
) -> dict[str, None]:
    wanted = [parts for page in pages if (parts := _split_place(page))]
    return {
        name: None
        for parts in wanted
        for known, name in by_name.get(parts[-1], ())
        if known[-len(parts) :] == parts
    }


def _list_wanted(
    question: CheckQuestion,
    found: Mapping[str, Found],
    expected: Mapping[str, tuple[str, ...]],
) -> Iterator[str]:
    """Yield the documents on which a question relies."""
    yield from (one.document_id for one in question.citations)
    yield from expected[question.id]
    yield from (one.document_id for one in found[question.id].facts.values())


def _list_relied(
    question: CheckQuestion, found: Found, pages: Iterable[Citation]
) -> Iterator[Citation]:
    """Yield the sections that contain the facts; without facts, the best one of each page."""
    if question.facts or question.citations:
        yield from dict.fromkeys(found.facts.values())
        return
    yield from (found.first[one.document_id] for one in pages if one.document_id in found.first)


def _list_different(
    before: Mapping[str, ListedDocument], after: Mapping[str, ListedDocument]
) -> list[ListedDocument]:
    """Return the documents that were added or changed."""
    return [one for one in after.values() if one.id not in before or _differ(before[one.id], one)]


def _differ(before: ListedDocument, after: ListedDocument) -> bool:
    return before.content_hash != after.content_hash


def _find_sections(document: WholeDocument, one: Citation) -> list[Section]:
    """Return the sections with the heading and the anchor of a citation."""
    return [
        section
        for section in document.sections
        if section.heading_path == one.heading_path and one.anchor in (None, section.anchor)
    ]


def _read_texts(document: WholeDocument | None, one: Citation) -> list[str]:
    """Return the texts of a cited section, or of all sections of a cited page."""
    if document is None:
        return []
    sections = document.sections if one.is_page else _find_sections(document, one)
    return [section.text for section in sections]


def _list_runs(text: str) -> set[tuple[str, ...]]:
    """Return the sequences of four words of a text; a shorter text is one sequence."""
    words = _WORD.findall(text.casefold())
    return {tuple(words[at : at + _RUN]) for at in range(max(1, len(words) - _RUN + 1))} - {()}


def _name_facts(question: CheckQuestion, numbers: Iterable[int]) -> tuple[str, ...]:
    return tuple(question.facts[at][0] for at in sorted(numbers))


def _find_rank(documents: Sequence[str], wanted: Iterable[str]) -> int | None:
    own = set(wanted)
    return next((rank for rank, one in enumerate(documents, start=1) if one in own), None)


def _is_newly_answered(question: CheckQuestion, found: Found, now: Found) -> bool:
    if question.facts:
        return len(now.facts) == len(question.facts) > len(found.facts)
    is_open = question.origin == "gap" or question.must_be_declined
    return is_open and now.finds and not found.finds


def _name_state(*, is_broken: bool, is_changed: bool) -> State:
    if is_broken:
        return "broken"
    return "changed" if is_changed else "unchanged"


def _split_place(place: str) -> list[str]:
    path = urlsplit(place).path if "://" in place else place.partition("#")[0]
    parts = [part for part in path.split("/") if part]
    if parts:
        stem, _, ending = parts[-1].rpartition(".")
        parts[-1] = stem if stem and ending.isalnum() else parts[-1]
    return parts
