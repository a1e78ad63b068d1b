"""Finds every regular expression of the product: in its source, and in what its modules hold.

A call of `re` is found in the syntax tree; its pattern is evaluated in the module's own namespace,
with local names looked up in their function. Patterns that a module builds at import, such as those
of a table in its folder, are found in its values.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[2]
CALLS = {"compile", "search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn"}
PACKAGES: tuple[str, ...] = tuple(
    tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"]
)
METHODS = frozenset(CALLS - {"compile"})
UNKNOWN = "unknown"
"""Stands for a value that only a run of the program knows."""

_DEEPEST = 4


@dataclass(frozen=True)
class Pattern:
    """A regular expression, the place that it stands at, and the methods that it is used by."""

    place: str
    source: str | bytes
    flags: int = 0
    methods: frozenset[str] = frozenset({"search"})

    @property
    def key(self) -> tuple[str | bytes, int]:
        """What two finds of one expression have in common."""
        return self.source, re.compile(self.source, self.flags).flags


class UnreadablePattern(Exception):  # noqa: N818 - a finding of the check
    """A call of `re` whose pattern cannot be evaluated from outside its function."""


def find_patterns(package: str) -> list[Pattern]:
    """Return the patterns of a package; raises `UnreadablePattern` for what cannot be read."""
    found: dict[tuple[str | bytes, int], Pattern] = {}
    for path in product_files():
        is_script = path.stem == "__main__" or "migrations" in path.parts  # not to be imported
        if path.relative_to(ROOT).parts[0] != package or is_script:
            continue
        for pattern in _patterns_of(path):
            found.setdefault(pattern.key, pattern)
    return list(found.values())


def _patterns_of(path: Path) -> Iterator[Pattern]:
    relative = path.relative_to(ROOT)
    module = import_module(".".join(relative.with_suffix("").parts).removesuffix(".__init__"))
    source = Source(path.read_text(encoding="utf-8"), module)
    written: dict[tuple[str | bytes, int], Pattern] = {}
    unread: list[str] = []
    for call, argument in source.calls():
        place = f"{relative}:{call.lineno}"
        try:
            pattern = source.evaluate(call, argument, place)
        except Exception as error:  # noqa: BLE001 - whatever evaluation raises is the finding
            unread.append(f"{place}: {type(error).__name__}: {error}")
        else:
            written[pattern.key] = pattern
            yield pattern
    methods = source.methods_called() or METHODS
    held = [it for it in find_held_patterns(module, relative, methods) if it.key not in written]
    yield from held
    if unread and not held:
        raise UnreadablePattern("; ".join(unread))


class Source:
    """A module's text as a tree, with what its names are worth."""

    def __init__(self, text: str, module: ModuleType) -> None:
        self._module = module
        self._tree = ast.parse(text)
        self._parents = {
            child: node for node in ast.walk(self._tree) for child in ast.iter_child_nodes(node)
        }

    def calls(self) -> Iterator[tuple[ast.Call, ast.expr]]:
        """Return the calls that take a pattern, each with the pattern's expression."""
        for node in ast.walk(self._tree):
            if isinstance(node, ast.ImportFrom) and node.module == "re":
                raise UnreadablePattern(f"{self._module.__name__}: expected `import re`")
            if not isinstance(node, ast.Call):
                continue
            if _is_of_re(node.func):
                yield node, node.args[0]
            yield from ((node, it.value) for it in node.keywords if it.arg == "pattern")

    def evaluate(self, call: ast.Call, argument: ast.expr, place: str) -> Pattern:
        """Return the pattern of a call."""
        of_re = _is_of_re(call.func)
        flags = self._worth(_flags_of(call), call) if of_re else 0
        source = self._worth(argument, call)
        if not isinstance(source, str | bytes):
            raise TypeError(f"expected a text, found {type(source).__name__}")
        re.compile(source, flags)
        methods = self._methods(call) if of_re else frozenset({"search"})
        return Pattern(place, source, int(flags), methods)

    def methods_called(self) -> frozenset[str]:
        """Return the methods that the module calls on any of its patterns."""
        called = (node.func for node in ast.walk(self._tree) if isinstance(node, ast.Call))
        return (
            frozenset(
                it.attr for it in called if isinstance(it, ast.Attribute) and not _is_of_re(it)
            )
            & METHODS
        )

    def _worth(self, expression: ast.expr, inside: ast.AST) -> Any:
        code = compile(ast.Expression(expression), "<pattern>", "eval")
        return eval(code, {**vars(self._module), "re": re}, self._locals(inside))  # noqa: S307

    def _locals(self, node: ast.AST) -> dict[str, Any]:
        found: dict[str, Any] = {}
        function = self._function(node)
        if function is None:
            return found
        for argument in ast.walk(function.args):
            if isinstance(argument, ast.arg):
                found[argument.arg] = UNKNOWN
        for it in ast.walk(function):
            if isinstance(it, ast.Assign) and isinstance(target := it.targets[0], ast.Name):
                code = compile(ast.Expression(it.value), "<local>", "eval")
                try:
                    values = {**vars(self._module), "re": re}
                    found[target.id] = eval(code, values, found)  # noqa: S307 - our own source
                except Exception:  # noqa: BLE001 - only a run knows it
                    found[target.id] = UNKNOWN
        return found

    def _function(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        parent: ast.AST | None = node
        while parent is not None:
            if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
                return parent
            parent = self._parents.get(parent)
        return None

    def _methods(self, call: ast.Call) -> frozenset[str]:
        """Return the methods that a pattern's name is used by; every one where none is seen."""
        if call.func.attr != "compile":  # type: ignore[attr-defined]
            return frozenset({call.func.attr})  # type: ignore[attr-defined]
        parent = self._parents.get(call)
        if not (isinstance(parent, ast.Assign) and isinstance(name := parent.targets[0], ast.Name)):
            return METHODS
        used: set[str] = set()
        for node in ast.walk(self._tree):
            if not isinstance(node, ast.Name) or node.id != name.id or node is name:
                continue
            above = self._parents[node]
            if not (isinstance(above, ast.Attribute) and above.attr in METHODS):
                return METHODS
            used.add(above.attr)
        if not name.id.startswith("_"):
            used |= find_users(name.id)
        return frozenset(used) or METHODS


def find_users(name: str) -> set[str]:
    uses = re.compile(rf"\b{name}\.(\w+)")
    texts = (path.read_text(encoding="utf-8") for path in product_files())
    return {use for text in texts for use in uses.findall(text)} & METHODS


@cache
def product_files() -> tuple[Path, ...]:
    """Return the modules of every package of the product."""
    return tuple(path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))


def _is_of_re(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "re"
        and function.attr in CALLS
    )


def _flags_of(call: ast.Call) -> ast.expr:
    for keyword in call.keywords:
        if keyword.arg == "flags":
            return keyword.value
    places = {"compile": 1, "sub": 4, "subn": 4, "split": 3}
    place = places.get(call.func.attr, 2)  # type: ignore[attr-defined]
    return call.args[place] if len(call.args) > place else ast.Constant(0, lineno=1, col_offset=0)


def find_held_patterns(
    module: ModuleType, relative: Path, methods: frozenset[str]
) -> Iterator[Pattern]:
    """Return the compiled patterns among a module's values, and in what these hold."""
    for name, value in vars(module).items():
        if not name.startswith("__"):
            for held in find_compiled(value, _DEEPEST):
                place = _line_in_table(relative.with_suffix(".toml"), held) or f"{relative}:{name}"
                yield Pattern(place, held.pattern, held.flags, methods)


def find_compiled(value: Any, deep: int) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif deep and isinstance(value, dict):
        for item in (*value.keys(), *value.values()):
            yield from find_compiled(item, deep - 1)
    elif deep and isinstance(value, tuple | list | set | frozenset):
        for item in value:
            yield from find_compiled(item, deep - 1)
    elif deep and is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from find_compiled(getattr(value, field.name), deep - 1)


def _line_in_table(path: Path, held: re.Pattern[Any]) -> str | None:
    """Return the line of the table of a module that a pattern was built from."""
    if not (ROOT / path).exists():
        return None
    text = (ROOT / path).read_text(encoding="utf-8")
    named = {k: v for k, v in tomllib.loads(text).items() if isinstance(v, str)}
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            values = tomllib.loads(f"x = [{line.strip().rstrip(',')}]")["x"]
        except tomllib.TOMLDecodeError:
            continue
        for value in filter(None, values):
            if isinstance(value, str) and fill(value, named) in held.pattern:
                return f"{path}:{number}"
    return None


def fill(pattern: str, named: dict[str, str]) -> str:
    for name, value in named.items():
        pattern = pattern.replace(f"<{name}>", value)
    return pattern
