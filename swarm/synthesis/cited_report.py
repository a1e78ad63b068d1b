"""Turns a report into numbered sources with their texts, and a text that cites them."""

from collections.abc import Collection, Mapping, Sequence

from pydantic import BaseModel

from citations.claims import without_citations
from citations.feedback import same_claim
from envelope.sources import TOOL_SOURCE
from swarm.synthesis.report import SwarmReport
from swarm.workers.output import WorkerOutput
from tools.calls import CitedPassage

CHECKED = "check_criteria"
_LONGEST_SOURCE = 3_000
_LEAST_PLAIN = 12


class NumberedSource(BaseModel, frozen=True, extra="forbid"):
    """A source of an answer with its text."""

    number: int
    citation: CitedPassage
    text: str


class CitedReport(BaseModel, frozen=True, extra="forbid"):
    """The text of a report with the sources that it cites; without sources nothing was found."""

    text: str
    sources: tuple[NumberedSource, ...]


def cite_report(
    report: SwarmReport, outputs: Mapping[str, WorkerOutput], *, avoid: Sequence[str] = ()
) -> CitedReport:
    """Return a report with its sources; lines with claims of `avoid` are left out.

    A count of checked documents is a source itself, with the name of the tool that checked them.
    """
    texts = _collect_texts(outputs)
    cited = {claim.source.chunk_id: claim.source for claim in report.claims}
    sources = [
        NumberedSource(
            number=number,
            citation=cited[name],
            text=_complete(texts.get(name, ""), report, name)[:_LONGEST_SOURCE],
        )
        for number, name in enumerate(report.sources, start=1)
    ]
    text = _leave_out(report.text, avoid)
    if report.documents is not None and report.documents.checked:
        sentence = text.split("\n", 1)[0]
        number = len(sources) + 1
        text = text.replace(sentence, f"{sentence} [{number}]", 1)
        own = CitedPassage(
            chunk_id=f"{TOOL_SOURCE}{CHECKED}", document_id=f"{TOOL_SOURCE}{CHECKED}", title=CHECKED
        )
        sources.append(NumberedSource(number=number, citation=own, text=sentence))
    return CitedReport(text=text, sources=tuple(sources))


def _collect_texts(outputs: Mapping[str, WorkerOutput]) -> dict[str, str]:
    """Return the longest text of each passage."""
    texts: dict[str, str] = {}
    for output in outputs.values():
        met = [one.passage for one in output.verdicts if one.passage is not None]
        for passage in (*output.passages, *met):
            name = passage.citation.chunk_id
            if len(passage.text) > len(texts.get(name, "")):
                texts[name] = passage.text
    return texts


def _complete(text: str, report: SwarmReport, chunk_id: str) -> str:
    """Return the text of a source with every quotation of it: a cut text may have lost one."""
    plain = " ".join(text.split())
    lost = [
        claim.text
        for claim in report.claims
        if claim.source.chunk_id == chunk_id and claim.text not in plain
    ]
    return "\n".join((*dict.fromkeys(lost), text)) if lost else text


def _leave_out(text: str, avoid: Sequence[str]) -> str:
    unwanted = {same_claim(one) for one in avoid}
    if not unwanted:
        return text
    lines = text.split("\n")
    return "\n".join(line for line in lines if not _is_among(line, unwanted))


def _is_among(line: str, unwanted: Collection[str]) -> bool:
    """Return whether a line has an unwanted claim, or is a row of an unwanted table."""
    plain = same_claim(without_citations(line))
    is_long = len(plain) >= _LEAST_PLAIN
    return any(one and (one in plain or (is_long and plain in one)) for one in unwanted)
