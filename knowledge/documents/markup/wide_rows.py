"""Keeps the cells of table rows that are longer than the header, which Markdown drops."""

import re

from markdown_it import MarkdownIt

_BAR = re.compile(r"(?<!\\)\|")


def widen_tables(markdown: str, parser: MarkdownIt) -> str:
    """Return text in which each table has as many columns as its longest row; added columns have no
    name.

    Rows become longer if code contains a vertical bar, because some website generators do not split
    code.
    """
    if "|" not in markdown:
        return markdown
    lines = markdown.split("\n")
    for token in parser.parse(markdown):
        if token.type != "table_open" or token.map is None:
            continue
        first, end = token.map
        missing = max(map(_count_cells, lines[first:end])) - _count_cells(lines[first])
        if missing > 0:
            for at, cell in ((first, " |"), (first + 1, "---|")):
                lines[at] = f"{lines[at].rstrip().removesuffix('|')}|{cell * missing}"
    return "\n".join(lines)


def _count_cells(line: str) -> int:
    return len(_BAR.split(line.strip().removeprefix("|").removesuffix("|")))
