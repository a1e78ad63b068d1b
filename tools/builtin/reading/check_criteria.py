"""The tool `check_criteria`."""

from collections.abc import Iterable

from pydantic import BaseModel, Field

from llm.offline.criteria.check_text import check_texts
from tools.calls import CitedPassage, ToolCaller
from tools.library_tool import LibraryTool
from tools.passage_search.passages import FoundPassage, cite_chunk, cite_passages, describe_place

_LONGEST_QUOTATION = 600


class Inputs(BaseModel, frozen=True, extra="forbid"):
    """A document, and the conditions to look for."""

    document_id: str = Field(min_length=1, max_length=500, description="the id of a document")
    criteria: tuple[str, ...] = Field(
        min_length=1,
        max_length=8,
        description="conditions in words, such as: is there a cap on liability?",
    )


class CriterionResult(BaseModel, frozen=True):
    """Whether the document states what a criterion asks for, with the sentence that does.

    `kind` is the kind of clause whose rules were used; empty: words alone were compared, which is
    much less certain.
    """

    criterion: str
    is_met: bool
    kind: str = ""
    passage: FoundPassage | None = None


class Output(BaseModel, frozen=True):
    """The verdicts of a document in the order of the criteria."""

    document_id: str
    title: str
    results: tuple[CriterionResult, ...]


class CheckCriteria(LibraryTool[Inputs, Output]):
    """Reads one document whole and says which conditions it states."""

    name = "check_criteria"
    aliases = ("check_document", "find_clauses", "verify_compliance")
    description = (
        "Read one whole document and say for each condition whether the document states it, with "
        "the sentence. Use it for every document of a collection to find those that meet or lack "
        "something."
    )
    inputs = Inputs
    output = Output
    carries_data = True

    async def run(self, inputs: Inputs, caller: ToolCaller) -> Output:
        document = await self._read_document(inputs.document_id, caller)
        texts = [one.chunk.text for one in document.chunks]
        headings = [" ".join(one.chunk.heading_path) for one in document.chunks]
        results = []
        for criterion in inputs.criteria:
            met = check_texts(criterion, texts, headings)
            passage = None
            if met.is_met:
                citation = cite_chunk(document, met.position, score=met.score)
                passage = FoundPassage(citation=citation, text=met.quotation[:_LONGEST_QUOTATION])
            results.append(
                CriterionResult(
                    criterion=criterion, is_met=met.is_met, kind=met.kind, passage=passage
                )
            )
        listed = document.listed
        return Output(document_id=listed.id, title=listed.title, results=tuple(results))

    def render(self, output: Output) -> str:
        lines = [f"{output.title} ({output.document_id})"]
        for one in output.results:
            found = "no sentence states it"
            if one.passage is not None:
                place = describe_place(one.passage.citation)
                found = f"[{one.passage.citation.chunk_id}] {place}: {one.passage.text}"
            lines.append(f"- {'yes' if one.is_met else 'no'}: {one.criterion}\n  {found}")
        return "\n".join(lines)

    def cite(self, output: Output) -> Iterable[CitedPassage]:
        return cite_passages(one.passage for one in output.results if one.passage is not None)
