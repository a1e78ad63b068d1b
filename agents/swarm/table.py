"""Makes the table of items by criteria, and counts its cells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ItemTable:
    """The findings by item and criterion; a cell without a finding is empty."""

    items: tuple[str, ...]
    criteria: tuple[str, ...]
    cells: Mapping[tuple[str, str], str]

    @property
    def found(self) -> int:
        """The number of cells with a finding."""
        return sum(bool(self._find(item, one)) for item in self.items for one in self.criteria)

    @property
    def total(self) -> int:
        """The number of all cells."""
        return len(self.items) * len(self.criteria)

    def list_missing(self) -> tuple[str, ...]:
        """Return the item and the criterion of each empty cell."""
        return tuple(
            f"{item}: {one}"
            for item in self.items
            for one in self.criteria
            if not self._find(item, one)
        )

    def render(self, head: str, nothing: str) -> str:
        """Return the table as Markdown; `head` is above the items, `nothing` in empty cells."""
        rows = [
            (item, *(self._find(item, one) or nothing for one in self.criteria))
            for item in self.items
        ]
        lines = ((head, *self.criteria), ("---",) * (len(self.criteria) + 1), *rows)
        return "\n".join(map(_render_row, lines))

    def _find(self, item: str, criterion: str) -> str:
        return self.cells.get((_fold(item), _fold(criterion)), "").strip()


def make_table(
    items: Sequence[str], criteria: Sequence[str], cells: Mapping[tuple[str, str], str]
) -> ItemTable:
    """Return the table of these items and criteria; cells of others are left out."""
    folded = {(_fold(item), _fold(one)): text for (item, one), text in cells.items()}
    return ItemTable(tuple(items), tuple(criteria), folded)


def _fold(text: str) -> str:
    return " ".join(text.split()).casefold()


def _render_row(cells: Sequence[str]) -> str:
    """Return a row; a bar in a cell would end it."""
    return f"| {' | '.join(' '.join(cell.split()).replace('|', '/') for cell in cells)} |"
