"""Finds every place in the source of worker and manager where a task may wait."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.faults.labels import ROOT

PACKAGES = ("worker", "manager")
Waiting = ast.Await | ast.AsyncWith | ast.AsyncFor


@dataclass(frozen=True, slots=True)
class AwaitPoint:
    """One `await`, `async with` or `async for`, from its first line to its last."""

    file: str
    function: str
    first: int
    last: int

    def has(self, label: str) -> bool:
        """Whether a label names this place."""
        file, function, line = label.split(":")
        return (file, function) == (self.file, self.function) and (
            self.first <= int(line) <= self.last
        )

    def __str__(self) -> str:
        return f"{self.file}:{self.function}:{self.first}"


def places() -> list[AwaitPoint]:
    """Return every place, in the order of the files and lines."""
    files = sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
    return [place for file in files for place in _of(file)]


def _of(file: Path) -> Iterator[AwaitPoint]:
    name = str(file.relative_to(ROOT))
    for function in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(function, ast.AsyncFunctionDef):
            for node in _own(function):
                last = node.end_lineno if isinstance(node, ast.Await) else _head(node)
                yield AwaitPoint(name, function.name, node.lineno, last or node.lineno)


def _own(function: ast.AsyncFunctionDef) -> Iterator[Waiting]:
    """Yield what waits in a function, but not in functions inside it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, Waiting) and not _is_a_limit(node):
            yield node
        if not isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef | ast.Lambda):
            waiting = [*ast.iter_child_nodes(node), *waiting]


def _head(node: ast.AsyncWith | ast.AsyncFor) -> int:
    """Return the last line before the body of a block."""
    return max(node.lineno, node.body[0].lineno - 1)


def _is_a_limit(node: Waiting) -> bool:
    """Whether it is `async with asyncio.timeout(...)`, which never waits itself."""
    return isinstance(node, ast.AsyncWith) and all(
        isinstance(item.context_expr, ast.Call)
        and ast.unparse(item.context_expr.func) == "asyncio.timeout"
        for item in node.items
    )
