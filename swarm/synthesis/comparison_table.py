"""A table of the items that an answer compares: a row for each, with its claim and source."""

from collections.abc import Mapping, Sequence

from pydantic import BaseModel

from swarm.planning.plan import SwarmPlan
from swarm.synthesis.document_set import DocumentSet
from swarm.synthesis.merged_claims import MergedClaim
from swarm.synthesis.report_wording import Say
from swarm.workers.output import WorkerOutput

LEAST_ROWS = 2
_LONGEST_CELL = 200
_LONGEST_QUOTED = 600


class TableRow(BaseModel, frozen=True, extra="forbid"):
    """An item with a cell for each column; `sources` are the ids of the chunks of the cells.

    With `is_cited_by_cell`, each cell has its own source, or an empty text.
    """

    item: str
    cells: tuple[str, ...]
    sources: tuple[str, ...] = ()
    is_cited_by_cell: bool = False

    def render(self, numbers: Mapping[str, int]) -> str:
        """Return the row as Markdown; `numbers` are those of the sources by chunk."""
        marks = [f" [{numbers[one]}]" if one in numbers else "" for one in self.sources]
        if not self.is_cited_by_cell:
            marks = [*[""] * (len(self.cells) - 1), "".join(marks)]
        cells = (f"{cell}{mark}" for cell, mark in zip(self.cells, marks, strict=True))
        return _render_row([self.item, *cells])


class ComparisonTable(BaseModel, frozen=True, extra="forbid"):
    """Rows of the same columns; the first column is the item."""

    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]

    def render(self, numbers: Mapping[str, int]) -> str:
        """Return the table as Markdown; `numbers` are those of the sources by chunk."""
        lines = [_render_row(self.columns), _render_row(["---"] * len(self.columns))]
        return "\n".join([*lines, *(row.render(numbers) for row in self.rows)])


def make_item_table(
    plan: SwarmPlan, claims: Sequence[MergedClaim], say: Say
) -> ComparisonTable | None:
    """Return a table of the compared items; None where fewer than two are compared.

    None, too, where less than half of them have something in it: a table of which most cells say
    that nothing was found is supported by no source.
    """
    found = {claim.subject for claim in claims}.intersection(plan.compared)
    if len(plan.compared) < LEAST_ROWS or 2 * len(found) < len(plan.compared):
        return None
    rows = []
    for item in plan.compared:
        own = [claim for claim in claims if claim.subject == item]
        text = _shorten(own[0].text) if own else say("report_nothing")
        sources = (own[0].source.chunk_id,) if own else ()
        rows.append(TableRow(item=item, cells=(text,), sources=sources))
    columns = (say("report_item"), say("report_found"))
    return ComparisonTable(columns=columns, rows=tuple(rows))


def make_document_table(plan: SwarmPlan, found: DocumentSet, say: Say) -> ComparisonTable | None:
    """Return a table of the selected documents by criterion; None for one criterion or document."""
    if len(found.selected) < LEAST_ROWS or len(plan.criteria) < LEAST_ROWS:
        return None
    rows = [
        TableRow(
            item=one.title,
            cells=tuple(
                say("report_yes" if verdict.is_met else "report_no") for verdict in one.verdicts
            ),
            sources=tuple(
                verdict.passage.citation.chunk_id
                for verdict in one.verdicts
                if verdict.passage is not None
            ),
        )
        for one in found.selected
    ]
    columns = (say("report_document"), *(one.text[:_LONGEST_CELL] for one in plan.criteria))
    return ComparisonTable(columns=columns, rows=tuple(rows))


def make_topic_table(
    plan: SwarmPlan,
    outputs: Mapping[str, WorkerOutput],
    claims: Sequence[MergedClaim],
    say: Say,
) -> ComparisonTable | None:
    """Return a table of what each compared document says on each topic; None without topics."""
    topics = next((one.criteria for one in plan.workers if one.criteria), ())
    if plan.criteria or not topics:
        return None
    shown = {claim.source.chunk_id for claim in claims}
    found = [verdict for output in outputs.values() for verdict in output.verdicts]
    titles = dict.fromkeys(verdict.title for verdict in found)
    rows = []
    for topic in topics:
        passages = {one.title: one.passage for one in found if one.criterion == topic}
        own = [passages.get(title) for title in titles]
        cited = [one if one and one.citation.chunk_id in shown else None for one in own]
        rows.append(
            TableRow(
                item=topic,
                cells=tuple(
                    one.text[:_LONGEST_QUOTED] if one else say("report_nothing") for one in cited
                ),
                sources=tuple(one.citation.chunk_id if one else "" for one in cited),
                is_cited_by_cell=True,
            )
        )
    columns = (say("report_topic"), *titles)
    return ComparisonTable(columns=columns, rows=tuple(rows)) if titles else None


def _shorten(text: str) -> str:
    """Return the beginning of a long quotation, up to the end of a word."""
    if len(text) <= _LONGEST_CELL:
        return text
    return f"{text[:_LONGEST_CELL].rpartition(' ')[0] or text[:_LONGEST_CELL]} …"


def _render_row(cells: Sequence[str]) -> str:
    """Return a row; a bar in a cell would end it."""
    return f"| {' | '.join(' '.join(cell.split()).replace('|', '/') for cell in cells)} |"
