"""The order of a module: constants, then classes, then functions, public ones before private ones.

What something needs while the module is imported stands above it: a class above a constant that is
an instance of it, a function above a class that it decorates. Everything else keeps its order.
"""

import ast
import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

CONSTANT, CLASS, FUNCTION = 0, 2, 4
PRIVATE = 1
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SIMPLE = (ast.Assign, ast.AnnAssign)


@dataclass(slots=True)
class Unit:
    """A statement of a module with the comments above it and the docstring below it.

    `first` and `last` are its lines, `names` what it defines, `needs` the units that it needs.
    """

    node: ast.stmt
    first: int
    last: int
    names: frozenset[str]
    rank: int
    needs: set[int] = field(default_factory=set)


def order_module(source: str) -> str:
    """Return the source of a module in its order; the same text if it has it already."""
    lines = source.splitlines(keepends=True)
    body = ast.parse(source).body
    start, end = _find_span(body)
    units = _read_units(body[start:end], lines, body[start - 1] if start else None)
    if not units:
        return source
    _find_needs(units)
    chosen = _sort(units)
    if chosen == list(range(len(units))):
        return source
    head = "".join(lines[: units[0].first]).rstrip()
    tail = "".join(lines[units[-1].last :]).strip("\n")
    parts = [
        _cut(lines, units[at]) + _space(units, lines, at, following)
        for at, following in zip(chosen, [*chosen[1:], None], strict=True)
    ]
    return f"{head}\n\n{''.join(parts).rstrip()}\n" + (f"\n\n{tail}\n" if tail else "")


def _space(units: Sequence[Unit], lines: Sequence[str], at: int, following: int | None) -> str:
    """Return the line breaks after a unit: constants stay as close as they were."""
    if following is None or not (_is_constant(units[at]) and _is_constant(units[following])):
        return "\n\n\n"
    before = units[following].first - 1
    was_apart = before > 0 and not lines[before].strip()
    was_first = following == 0 or not _is_constant(units[following - 1])
    return "\n\n" if was_apart and not was_first else "\n"


def _find_span(body: Sequence[ast.stmt]) -> tuple[int, int]:
    """Return where the statements after the imports begin, and where those of a script begin."""
    imports = [at for at, node in enumerate(body) if _is_import(node)]
    docstring = 1 if body and _is_text(body[0]) else 0
    start = docstring
    while start < len(body) and _is_import(body[start]):
        start += 1
    end = len(body)
    while end > start and isinstance(body[end - 1], ast.If):
        end -= 1
    return (start, end) if not imports or imports[-1] < start else (end, end)


def _is_import(node: ast.stmt) -> bool:
    if isinstance(node, ast.If):
        return all(map(_is_import, node.body)) and not node.orelse
    return isinstance(node, ast.Import | ast.ImportFrom)


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _is_constant(unit: Unit) -> bool:
    return not isinstance(unit.node, (*_FUNCTIONS, ast.ClassDef))


def _read_units(
    body: Sequence[ast.stmt], lines: Sequence[str], before: ast.stmt | None
) -> list[Unit]:
    units: list[Unit] = []
    end = 0 if before is None else before.end_lineno or 0
    for node in body:
        last = node.end_lineno or node.lineno
        if _is_text(node) and units:
            units[-1].last = end = last
            continue
        first = (
            min([node.lineno, *(item.lineno for item in getattr(node, "decorator_list", ()))]) - 1
        )
        above = [at for at in range(end, first) if lines[at].startswith("#")]
        first = min([first, *above])
        while last < len(lines) and lines[last].strip() == "# fmt: on":
            last += 1
        units.append(Unit(node, first, last, _list_defined(node), _find_rank(node)))
        end = last
    return units


def _find_rank(node: ast.stmt) -> int:
    if isinstance(node, ast.ClassDef):
        return CLASS + (PRIVATE if node.name.startswith("_") else 0)
    if isinstance(node, _FUNCTIONS):
        return FUNCTION + (PRIVATE if node.name.startswith("_") else 0)
    return CONSTANT


def _list_defined(node: ast.stmt) -> frozenset[str]:
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        return frozenset({node.name})
    stored = (name for name in ast.walk(node) if isinstance(name, ast.Name))
    return frozenset(name.id for name in stored if isinstance(name.ctx, ast.Store))


def _find_needs(units: Sequence[Unit]) -> None:
    """Find what each unit needs while the module is imported, among what stands above it."""
    owners = {name: at for at, unit in enumerate(units) for name in unit.names}
    runs = [_find_owners(_list_names(unit.node), owners) for unit in units]
    for at, unit in enumerate(units):
        if not isinstance(unit.node, (*_FUNCTIONS, ast.ClassDef, *_SIMPLE)):
            # Anything may depend on what such a statement does, and on whether it was done.
            unit.needs |= set(range(at))
            for later in units[at + 1 :]:
                later.needs.add(at)
            continue
        needs = _find_owners(_list_mentioned(unit.node), owners)
        needs |= _close(_find_owners(_list_run(unit.node), owners), runs)
        unit.needs |= {need for need in needs if need < at}


def _find_owners(names: Iterator[str], owners: dict[str, int]) -> set[int]:
    return {owners[name] for name in names if name in owners}


def _close(found: set[int], runs: Sequence[set[int]]) -> set[int]:
    """Return units with all that runs when they run."""
    closed: set[int] = set()
    waiting = list(found)
    while waiting:
        at = waiting.pop()
        if at not in closed:
            closed.add(at)
            waiting += runs[at]
    return closed


def _list_names(node: ast.AST) -> Iterator[str]:
    """Yield all names in a statement, also those in annotations that are texts."""
    for a_s_t in ast.walk(node):
        if isinstance(a_s_t, ast.Name):
            yield a_s_t.id
        elif isinstance(a_s_t, ast.Constant) and isinstance(a_s_t.value, str):
            yield from _read_annotation(a_s_t.value)


def _read_annotation(text: str) -> Iterator[str]:
    if len(text) > 200 or "\n" in text:
        return
    try:
        parsed = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return
    yield from (name.id for name in ast.walk(parsed) if isinstance(name, ast.Name))


def _list_mentioned(node: ast.stmt) -> Iterator[str]:
    """Yield the names that are read while a statement is executed."""
    for a_s_t in _list_executed(node):
        yield from _list_names(a_s_t)


def _list_executed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a statement that are executed at once: no bodies of functions."""
    if isinstance(node, _FUNCTIONS):
        yield from node.decorator_list
        yield node.args
        yield from node.args.defaults
        yield from (default for default in node.args.kw_defaults if default is not None)
        yield from () if node.returns is None else (node.returns,)
    elif isinstance(node, ast.ClassDef):
        yield from (
            *node.decorator_list,
            *node.bases,
            *(keyword.value for keyword in node.keywords),
        )
        for item in node.body:
            yield from _list_executed(item)
    else:
        yield node


def _list_run(node: ast.stmt) -> Iterator[str]:
    """Yield the names of what may be called while a statement is executed."""
    for a_s_t in _list_executed(node):
        if isinstance(a_s_t, ast.AnnAssign):
            yield from () if a_s_t.value is None else _list_names(a_s_t.value)
        elif not isinstance(a_s_t, ast.arguments | ast.Subscript | ast.BinOp):
            yield from _list_names(a_s_t)


def _sort(units: Sequence[Unit]) -> list[int]:
    """Return the units by rank, each below what it needs; otherwise their order stays."""
    ranks = [unit.rank for unit in units]
    users: list[list[int]] = [[] for _ in units]
    for at in reversed(range(len(units))):
        for needed in units[at].needs:
            # What a constant needs belongs to the constants.
            users[needed].append(at)
    for at in reversed(range(len(units))):
        ranks[at] = min([ranks[at], *(ranks[user] for user in users[at] if ranks[user] < CLASS)])
    missing = [len(unit.needs) for unit in units]
    ready = [(ranks[at], at) for at, count in enumerate(missing) if not count]
    heapq.heapify(ready)
    chosen: list[int] = []
    while ready:
        _, at = heapq.heappop(ready)
        chosen.append(at)
        for user in users[at]:
            missing[user] -= 1
            if not missing[user]:
                heapq.heappush(ready, (ranks[user], user))
    return chosen


def _cut(lines: Sequence[str], unit: Unit) -> str:
    return "".join(lines[unit.first : unit.last]).rstrip("\n")
