"""The tool `summarize`."""

import math
from collections.abc import Iterable

from pydantic import BaseModel, Field

from citations.claims import UnitKind, split_units
from knowledge.index.terms import terms
from knowledge.library.library import WholeDocument
from llm.injection import attack_in
from tools.calls import CitedPassage, QuotedPassage, ToolCaller
from tools.passages import (
    FoundPassage,
    cite_chunk,
    cite_passages,
    quote_passages,
    render_passages,
)
from tools.tool import LibraryTool

_MOST_CHUNKS = 200
_LONGEST_SENTENCE = 400


class Inputs(BaseModel, frozen=True, extra="forbid"):
    """A document, and what about it."""

    document_id: str = Field(min_length=1, max_length=500, description="the id of a document")
    about: str = Field(default="", max_length=500, description="a subject to prefer, if any")
    sentences: int = Field(default=5, ge=1, le=15, description="sentences to return")


class Output(BaseModel, frozen=True):
    """Sentences of a document in their order, each with its citation."""

    document_id: str
    title: str
    sentences: tuple[FoundPassage, ...]


class Summarize(LibraryTool[Inputs, Output]):
    """Quotes the sentences that have most of what their document speaks of; writes none."""

    name = "summarize"
    aliases = ("document_summary", "summarise")
    description = "Summarize one document in its most important sentences, quoted with citations."
    inputs = Inputs
    output = Output

    async def run(self, inputs: Inputs, caller: ToolCaller) -> Output:
        document = await self._read_document(inputs.document_id, caller)
        return Output(
            document_id=document.listed.id,
            title=document.listed.title,
            sentences=tuple(choose_sentences(document, inputs.about, inputs.sentences)),
        )

    def render(self, output: Output) -> str:
        return render_passages(output.sentences)

    def cite(self, output: Output) -> Iterable[CitedPassage]:
        return cite_passages(output.sentences)

    def quote(self, output: Output) -> Iterable[QuotedPassage]:
        return quote_passages(output.sentences)


def choose_sentences(document: WholeDocument, about: str, wanted: int) -> list[FoundPassage]:
    """Return sentences in document order: those with the document's most frequent words.

    The words of the title and of `about` count twice. A sentence that repeats the words of a
    chosen one gains nothing by them.
    """
    language = document.listed.language
    sentences = list(_list_sentences(document))
    own = [(number, text, frozenset(terms(text, language))) for number, text in sentences]
    frequency: dict[str, float] = {}
    for _, _, words in own:
        for word in words:
            frequency[word] = frequency.get(word, 0.0) + 1.0
    preferred = {*terms(document.listed.title, language), *terms(about, language)}
    value = {
        word: (count**0.5 if count > 1 else 0.5) * (2.0 if word in preferred else 1.0)
        for word, count in frequency.items()
        if len(word) > 2
    }
    chosen: list[int] = []
    covered: set[str] = set()
    while len(chosen) < min(wanted, len(own)):
        rest = [place for place in range(len(own)) if place not in chosen]
        best = max(rest, key=lambda place: (_gain(own[place][2] - covered, value), -place))
        chosen.append(best)
        covered |= own[best][2]
    return [
        FoundPassage(citation=cite_chunk(document, own[place][0]), text=own[place][1])
        for place in sorted(chosen)
    ]


def _gain(words: frozenset[str], value: dict[str, float]) -> float:
    total: float = sum([value.get(word, 0.0) for word in sorted(words)])
    return total / math.sqrt(5 + len(words))


def _list_sentences(document: WholeDocument) -> Iterable[tuple[int, str]]:
    seen: set[str] = set()
    for number, one in enumerate(document.chunks[:_MOST_CHUNKS]):
        for unit in split_units(one.chunk.text):
            text = " ".join(unit.text.split())
            is_text = unit.kind in {UnitKind.SENTENCE, UnitKind.ITEM}
            if is_text and 20 < len(text) <= _LONGEST_SENTENCE and text not in seen:
                seen.add(text)
                if attack_in(text) is None:
                    yield number, text
