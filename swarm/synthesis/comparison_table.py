"""A table of the items that an answer compares: a row for each, with its claim and source."""

from collections.abc import Mapping, Sequence

from pydantic import BaseModel

from swarm.planning.plan import SwarmPlan
from swarm.synthesis.document_set import DocumentSet
from swarm.synthesis.merged_claims import MergedClaim

LEAST_ROWS = 2
_NOTHING = "not found"
_LONGEST_CELL = 200


class TableRow(BaseModel, frozen=True, extra="forbid"):
    """An item with a cell for each column; `sources` are the ids of the chunks of the cells."""

    item: str
    cells: tuple[str, ...]
    sources: tuple[str, ...] = ()


class ComparisonTable(BaseModel, frozen=True, extra="forbid"):
    """Rows of the same columns; the first column is the item."""

    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]

    def render(self, numbers: Mapping[str, int]) -> str:
        """Return the table as Markdown; `numbers` are those of the sources by chunk."""
        lines = [_render_row(self.columns), _render_row(["---"] * len(self.columns))]
        for row in self.rows:
            marks = "".join(f" [{numbers[one]}]" for one in row.sources if one in numbers)
            lines.append(_render_row([row.item, *row.cells[:-1], f"{row.cells[-1]}{marks}"]))
        return "\n".join(lines)


def make_item_table(plan: SwarmPlan, claims: Sequence[MergedClaim]) -> ComparisonTable | None:
    """Return a table of the compared items; None where fewer than two are compared."""
    if len(plan.compared) < LEAST_ROWS:
        return None
    rows = []
    for item in plan.compared:
        own = [claim for claim in claims if claim.subject == item]
        text = own[0].text[:_LONGEST_CELL] if own else _NOTHING
        sources = (own[0].source.chunk_id,) if own else ()
        rows.append(TableRow(item=item, cells=(text,), sources=sources))
    return ComparisonTable(columns=("Item", "Found"), rows=tuple(rows))


def make_document_table(plan: SwarmPlan, found: DocumentSet) -> ComparisonTable | None:
    """Return a table of the selected documents by criterion; None for one criterion or document."""
    if len(found.selected) < LEAST_ROWS or len(plan.criteria) < LEAST_ROWS:
        return None
    rows = [
        TableRow(
            item=one.title,
            cells=tuple("yes" if verdict.is_met else "no" for verdict in one.verdicts),
            sources=tuple(
                verdict.passage.citation.chunk_id
                for verdict in one.verdicts
                if verdict.passage is not None
            ),
        )
        for one in found.selected
    ]
    columns = ("Document", *(one.text[:_LONGEST_CELL] for one in plan.criteria))
    return ComparisonTable(columns=columns, rows=tuple(rows))


def _render_row(cells: Sequence[str]) -> str:
    """Return a row; a bar in a cell would end it."""
    return f"| {' | '.join(' '.join(cell.split()).replace('|', '/') for cell in cells)} |"
