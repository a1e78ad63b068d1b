"""Tools that compare two documents, or the definitions of a term across documents."""

import asyncio
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, Self

from pydantic import BaseModel, Field

from citations.claims import split_units
from knowledge.documents.stated_version import remove_version
from knowledge.index.listing import ListedDocument
from knowledge.library.comparison import SectionPair, compare_documents
from knowledge.library.library import WholeDocument
from knowledge.port import Findings, Searcher, SearchRequest
from knowledge.sections import Section
from tools.calls import CitedPassage, PassageText, ToolCaller
from tools.errors import InvalidInput
from tools.passages import (
    FoundPassage,
    cite_chunk,
    cite_hit,
    cite_passages,
    describe_place,
    quote_passages,
    render_passages,
)
from tools.tool import LibraryTool, Tool, ToolParts

_MOST_PHRASES = 8
_LONGEST_PHRASE = 200
_LONGEST_SECTION = 800
_MOST_READ = 30
"""If more documents than this have changed, they are only listed, and not compared by section."""
_MOST_SECTIONS = 10
_MOST_BYTES = 30_000
"""The size of a comparison as JSON beyond which further changes are listed without details, because
the data of larger results is not stored.
"""
_READ_AT_ONCE = 256
_WITHDRAWN = re.compile(
    r"\W{0,3}(?:withdrawn|repealed|deleted|removed|superseded|deprecated|revoked)\b", re.IGNORECASE
)
"""Matches the beginning of a document that was withdrawn."""
_MARKS = (
    " means ",
    " is defined as ",
    " refers to ",
    " is a ",
    " is an ",
    " is the ",
    " are ",
    ": ",
)
_MOST = 5


class Inputs(BaseModel, frozen=True, extra="forbid"):
    """Two documents, given by id, or two versions of the documents with a title prefix."""

    old: str = Field(
        min_length=1, max_length=500, description="id of the older document, or its version"
    )
    new: str = Field(
        min_length=1, max_length=500, description="id of the newer document, or its version"
    )
    title_prefix: str = Field(
        default="",
        max_length=200,
        description="with two versions: compare only documents whose title begins so",
    )
    limit: int = Field(default=30, ge=1, le=500, description="changes to return")


class DocumentChange(BaseModel, frozen=True):
    """A section or document that was added, removed or changed."""

    change: Literal["changed", "added", "removed"]
    title: str
    document_id: str = ""
    old: CitedPassage | None = None
    new: CitedPassage | None = None
    only_old: tuple[str, ...] = ()
    only_new: tuple[str, ...] = ()
    old_text: str = ""
    new_text: str = ""


class Output(BaseModel, frozen=True):
    """The differences; `total` counts all changes, and `same` counts the unchanged sections or
    documents.
    """

    changes: tuple[DocumentChange, ...]
    total: int
    same: int


class CompareDocuments(LibraryTool[Inputs, Output]):
    """Aligns two documents section by section, or two versions document by document."""

    name = "compare_documents"
    aliases = ("compare_docs", "compare_versions")
    description = (
        "Compare two documents section by section, or two versions (such as 'r4' and 'r5') "
        "document by document: added, removed and changed."
    )
    inputs = Inputs
    output = Output
    is_source = True

    async def run(self, inputs: Inputs, caller: ToolCaller) -> Output:
        documents = await self._library.read([inputs.old, inputs.new], caller.groups, caller.run)
        if len(documents) == 2:
            pairs = await asyncio.to_thread(compare_documents, *documents)
            return _describe(pairs, documents[0], documents[1], inputs.limit)
        return await self._compare_versions(inputs, caller)

    def render(self, output: Output) -> str:
        lines = [_render_change(change) for change in output.changes]
        kinds = {change.change for change in output.changes}
        if output.total == len(output.changes):
            lines = [f"{kind}: none" for kind in ("added", "removed") if kind not in kinds] + lines
        return "\n".join((f"{output.total} changes, {output.same} unchanged", *lines))

    def cite(self, output: Output) -> Iterable[CitedPassage]:
        cited = (passage for change in output.changes for passage in (change.new, change.old))
        return list(
            {passage.chunk_id: passage for passage in cited if passage is not None}.values()
        )

    def quote(self, output: Output) -> Iterable[PassageText]:
        texts = (
            (citation, text)
            for change in output.changes
            for citation, text in ((change.new, change.new_text), (change.old, change.old_text))
        )
        quoted = (
            PassageText(citation=citation, text=text)
            for citation, text in texts
            if citation is not None and text
        )
        return list(
            {passage_text.citation.chunk_id: passage_text for passage_text in quoted}.values()
        )

    async def _compare_versions(self, inputs: Inputs, caller: ToolCaller) -> Output:
        listed = [
            document
            for document in await self._library.list_documents(caller.groups)
            if document.title.startswith(inputs.title_prefix)
        ]
        old = {
            _remove_version(document): document
            for document in listed
            if document.stated_version == inputs.old
        }
        new = {
            _remove_version(document): document
            for document in listed
            if document.stated_version == inputs.new
        }
        stated = {
            document.stated_version
            for document in await self._library.list_documents(caller.groups)
        }
        if not {inputs.old, inputs.new} <= stated:
            raise InvalidInput(
                "expected the ids of two documents, or two versions that documents state, "
                f"found {inputs.old[:100]!r} and {inputs.new[:100]!r}"
            )
        ids = [document.id for document in (*old.values(), *new.values())]
        withdrawn = await self._list_withdrawn(ids, caller)
        old = {name: document for name, document in old.items() if document.id not in withdrawn}
        active = {name: document for name, document in new.items() if document.id not in withdrawn}
        both = old.keys() & active.keys()
        changed = [
            name for name in sorted(both) if old[name].content_hash != new[name].content_hash
        ]
        added = [active[name] for name in active if name not in old]
        removed = [_list_change("removed", old[name]) for name in old if name not in active]
        if len(changed) <= _MOST_READ:
            pairs = [(old[name].id, new[name].id) for name in changed]
            alike = await self._compare_sections(pairs, caller)
        else:
            alike = [_list_change("changed", new[name]) for name in changed]
        changes = [*await self._quote_added(added, caller), *removed, *alike]
        shown = tuple(_bound_details(changes[: inputs.limit]))
        return Output(changes=shown, total=len(changes), same=len(both) - len(changed))

    async def _compare_sections(
        self, pairs: Sequence[tuple[str, str]], caller: ToolCaller
    ) -> list[DocumentChange]:
        """Return the changed sections in pairs of documents; each pair contains two ids, with the
        older document first.
        """
        changes = []
        for ids in pairs:
            documents = await self._library.read(ids, caller.groups, caller.run)
            if len(documents) == len(ids):
                old, new = documents
                sections = await asyncio.to_thread(compare_documents, old, new)
                whole = _describe(sections, old, new, _MOST_SECTIONS)
                title, own = new.listed.title, new.listed.id
                changes += [
                    change.model_copy(
                        update={
                            "change": "changed",
                            "title": _join_title(title, change.title),
                            "document_id": own,
                        }
                    )
                    for change in whole.changes
                ]
        return changes

    async def _quote_added(
        self, added: Sequence[ListedDocument], caller: ToolCaller
    ) -> list[DocumentChange]:
        """Return the added documents; for the first `_MOST_READ` of them, the beginning is
        quoted.
        """
        ids = [document.id for document in added[:_MOST_READ]]
        documents = {
            document.listed.id: document
            for document in await self._library.read(ids, caller.groups, caller.run)
        }
        return [_quote_beginning(document, documents.get(document.id)) for document in added]

    async def _list_withdrawn(self, document_ids: list[str], caller: ToolCaller) -> set[str]:
        """Return the ids of documents that consist only of a notice of withdrawal."""
        withdrawn = set()
        for start in range(0, len(document_ids), _READ_AT_ONCE):
            part = document_ids[start : start + _READ_AT_ONCE]
            for document in await self._library.read(part, caller.groups, caller.run):
                text = document.chunks[0].chunk.text
                if len(document.chunks) == 1 and _WITHDRAWN.match(text):
                    withdrawn.add(document.listed.id)
        return withdrawn


class DefinitionAlignerInputs(BaseModel, frozen=True, extra="forbid"):
    """A term."""

    term: str = Field(min_length=1, max_length=200, description="the term, such as 'controller'")


class DefinitionAlignerOutput(BaseModel, frozen=True):
    """Sentences that define a term in different documents."""

    term: str
    definitions: tuple[FoundPassage, ...]


class DefinitionAligner(Tool[DefinitionAlignerInputs, DefinitionAlignerOutput]):
    """Lists the definitions of a term."""

    name = "definition_aligner"
    aliases = ("define", "definition_search")
    description = "Find how the documents define a term, and compare the definitions."
    inputs = DefinitionAlignerInputs
    output = DefinitionAlignerOutput

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher

    @classmethod
    def make(cls, parts: ToolParts) -> Self:
        return cls(parts.searcher)

    async def run(
        self, inputs: DefinitionAlignerInputs, caller: ToolCaller
    ) -> DefinitionAlignerOutput:
        request = SearchRequest(
            run=caller.run,
            question=f"definition of {inputs.term}",
            language=caller.language or None,
            limit=20,
            groups=caller.groups,
        )
        findings = await self._searcher.search(request)
        definitions = list(_list_definitions(findings, inputs.term))[:_MOST]
        return DefinitionAlignerOutput(term=inputs.term, definitions=tuple(definitions))

    def render(self, output: DefinitionAlignerOutput) -> str:
        note = "" if output.definitions else f"no sentence defines {output.term!r}"
        return render_passages(output.definitions, note)

    def cite(self, output: DefinitionAlignerOutput) -> Iterable[CitedPassage]:
        return cite_passages(output.definitions)

    def quote(self, output: DefinitionAlignerOutput) -> Iterable[PassageText]:
        return quote_passages(output.definitions)


def _bound_details(changes: Sequence[DocumentChange]) -> Iterator[DocumentChange]:
    """Yield the changes. Beyond the size limit, citations, phrases, and texts are omitted."""
    named = [_strip_details(change) for change in changes]
    room = _MOST_BYTES - sum(map(_measure_bytes, named))
    for whole, name in zip(changes, named, strict=True):
        room -= _measure_bytes(whole) - _measure_bytes(name)
        yield whole if room >= 0 else name


def _measure_bytes(change: DocumentChange) -> int:
    return len(json.dumps(change.model_dump(mode="json")))


def _strip_details(change: DocumentChange) -> DocumentChange:
    return DocumentChange(change=change.change, title=change.title, document_id=change.document_id)


def _quote_beginning(added: ListedDocument, document: WholeDocument | None) -> DocumentChange:
    named = _list_change("added", added)
    if document is None:
        return named
    text = document.chunks[0].chunk.text[:_LONGEST_SECTION]
    return named.model_copy(update={"new": cite_chunk(document, 0), "new_text": text})


def _list_change(
    change: Literal["changed", "added", "removed"], document: ListedDocument
) -> DocumentChange:
    return DocumentChange(change=change, title=document.title, document_id=document.id)


def _describe(
    pairs: Iterable[SectionPair], old: WholeDocument, new: WholeDocument, limit: int
) -> Output:
    changes: list[DocumentChange] = []
    same = 0
    for pair in pairs:
        if pair.change == "same":
            same += 1
            continue
        section = pair.new if pair.new is not None else pair.old
        heading = " > ".join(section.heading_path) if section is not None else ""
        changes.append(
            DocumentChange(
                change=pair.change,
                title=heading or new.listed.title,
                old=_cite_section(old, pair.old),
                new=_cite_section(new, pair.new),
                only_old=_cut_phrases(pair.only_old),
                only_new=_cut_phrases(pair.only_new),
                old_text=_cut_section(pair.old),
                new_text=_cut_section(pair.new),
            )
        )
    return Output(changes=tuple(changes[:limit]), total=len(changes), same=same)


def _join_title(document: str, section: str) -> str:
    return section if section.startswith(document) else f"{document} > {section}"


def _cite_section(document: WholeDocument, section: Section | None) -> CitedPassage | None:
    if section is None:
        return None
    places = range(len(document.chunks))
    own = (at for at in places if document.chunks[at].chunk.chunk_id in section.chunk_ids)
    first = next(own, None)
    return None if first is None else cite_chunk(document, first)


def _cut_section(section: Section | None) -> str:
    return "" if section is None else section.text[:_LONGEST_SECTION]


def _cut_phrases(phrases: Iterable[str]) -> tuple[str, ...]:
    return tuple(phrase[:_LONGEST_PHRASE] for phrase in phrases)[:_MOST_PHRASES]


def _render_change(change: DocumentChange) -> str:
    places = [
        f"{name}: [{citation.chunk_id}] {describe_place(citation)}"
        for name, citation in (("old", change.old), ("new", change.new))
        if citation is not None
    ]
    words = [f"- {phrase}" for phrase in change.only_old] + [
        f"+ {phrase}" for phrase in change.only_new
    ]
    return "\n  ".join((f"{change.change}: {change.title}", *places, *words))


def _remove_version(document: ListedDocument) -> str:
    """Return the id without the version, which follows `@` or is part of the path."""
    unversioned = document.id.rpartition("@")[0]
    return unversioned or remove_version(document.id, document.stated_version)


def _list_definitions(findings: Findings, term: str) -> Iterator[FoundPassage]:
    wanted = term.casefold()
    for hit in findings.hits:
        for unit in split_units(hit.text):
            text = " ".join(unit.text.split())
            before, _, after = text.casefold().partition(wanted)
            is_first = len(before) <= 12 and len(after) > 20
            if is_first and any(mark in f"{after[:40]} " for mark in _MARKS):
                yield FoundPassage(citation=cite_hit(hit), text=text)
                break
