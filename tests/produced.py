"""What the product produces while tests run: metrics, events of the log, codes of errors.

    make produced                        runs every test and prints what nothing produced
    python -m tests.produced FOLDER      prints it for recordings of earlier runs

`REFDESK_PRODUCED=FOLDER` has each process of a test run, and each that it starts, append to a file
in the folder. A name counts when it was counted, logged or sent, not when it stands in the code.
"""

import ast
import os
import re
import sys
from collections.abc import Callable, Iterator
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

VARIABLE = "REFDESK_PRODUCED"
PATH = Path(__file__).parent / "support" / "produced_path"
"""The folder by which the processes that tests start record, too."""
CODES = ("code", "reason")
"""Fields of a log line that hold the code of a refusal."""
Note = Callable[[str, str], None]


def record(folder: Path) -> None:
    """Append each name that this process produces, once, to a file of its own."""
    # Open all the time: some of these processes may open no more files. By lines: some are killed.
    file = (folder / f"{os.getpid()}.txt").open("a", encoding="utf-8", buffering=1)
    seen: set[tuple[str, str]] = set()

    def note(kind: str, name: str) -> None:
        if (kind, name) not in seen:
            seen.add((kind, name))
            file.write(f"{kind} {name}\n")

    sys.meta_path.insert(0, _Watcher(note))


class _Watcher(MetaPathFinder):
    """Watches functions of modules when they are imported, before anything else holds them."""

    def __init__(self, note: Note) -> None:
        self._note = note
        self._waiting = dict(WATCHED)
        for name in list(self._waiting):
            if (loaded := sys.modules.get(name)) is not None:
                self._waiting.pop(name)(loaded, note)

    def find_spec(self, name: str, _path: Any, _target: Any = None) -> ModuleSpec | None:
        watch = self._waiting.pop(name, None)
        if watch is None:
            return None
        spec = find_spec(name)
        assert spec is not None
        assert spec.loader is not None
        execute = spec.loader.exec_module

        def execute_and_watch(module: ModuleType) -> None:
            execute(module)
            watch(module, self._note)

        spec.loader.exec_module = execute_and_watch  # type: ignore[method-assign] # of this loader
        return spec


def _watch(owner: Any, name: str, see: Callable[..., None]) -> None:
    """Have `see` receive the arguments of each call of a function."""
    watched = getattr(owner, name)

    def call(*args: Any, **more: Any) -> Any:
        see(*args, **more)
        return watched(*args, **more)

    setattr(owner, name, call)


def _watch_log(module: Any, note: Note) -> None:
    def see(_logger: Any, _method: str, event: Any = None, **fields: Any) -> None:
        note("event", str(event))
        for name in CODES:
            if isinstance(fields.get(name), str):
                note("code", fields[name])

    _watch(module.BoundLoggerBase, "_proxy_to_logger", see)


def _watch_metrics(module: Any, note: Note) -> None:
    moves = {
        module.Counter: ["inc"],
        module.Gauge: ["inc", "dec", "set", "set_function"],
        module.Histogram: ["observe"],
    }
    for kind, names in moves.items():
        for name in names:
            _watch(kind, name, lambda metric, *_, **__: note("metric", metric._name))  # noqa: SLF001 - it has no other


def _watch_families(module: Any, note: Note) -> None:
    for kind in (module.CounterMetricFamily, module.GaugeMetricFamily):
        _watch(kind, "add_metric", lambda family, *_, **__: note("metric", family.name))


def _watch_errors(module: Any, note: Note) -> None:
    _watch(module, "failure", lambda error, *_: note("code", error.code))


def _watch_refusals(module: Any, note: Note) -> None:
    _watch(module.Refusal, "body", lambda refusal, *_: note("code", refusal.code))


WATCHED: dict[str, Callable[[Any, Note], None]] = {
    "structlog._base": _watch_log,
    "prometheus_client.metrics": _watch_metrics,
    "prometheus_client.metrics_core": _watch_families,
    "gateway.http.errors": _watch_errors,
    "gateway.connections.limits": _watch_refusals,
}


def read(folder: Path) -> dict[str, set[str]]:
    """Return the names that were produced, by kind."""
    found: dict[str, set[str]] = {"event": set(), "metric": set(), "code": set()}
    for file in folder.glob("*.txt"):
        for line in file.read_text("utf-8").splitlines():
            kind, _, name = line.partition(" ")
            found[kind].add(name)
    return found


def list_declared() -> dict[str, set[str]]:
    """Return the names that the product can produce by its code and its pages, by kind."""
    from tests.test_nothing_is_unused import read_column
    from tests.test_project_rules import PACKAGES, ROOT, events_logged, list_tracked

    product = [path for path in list_tracked("*.py") if path.relative_to(ROOT).parts[0] in PACKAGES]
    events = {event for path in product for event in events_logged(path.read_text("utf-8"))}
    page = (ROOT / "docs" / "deployment.md").read_text("utf-8")
    metrics = set(re.findall(r"`(refdesk_\w+)`", "\n".join(_list_rows(page))))
    codes = {code for path in product for code in find_error_codes(path.read_text("utf-8"))}
    codes |= read_column("http.md", "| Status | `code` | Meaning |", 2)
    return {"event": events, "metric": metrics, "code": codes}


def find_error_codes(source: str) -> Iterator[str]:
    """Yield the constants that a module passes as the code of a refusal or an error."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id="Refusal" | "WebhookRefusedError"), args=[_, code, *_]):
                yield from _list_texts(code)
            case ast.Call(keywords=keywords) if ast.unparse(node.func).endswith("Error"):
                for keyword in keywords:
                    if keyword.arg == "code":
                        yield from _list_texts(keyword.value)


def _list_texts(node: ast.expr) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def _list_rows(page: str) -> Iterator[str]:
    """Yield the first cells of the tables of metrics."""
    yield from re.findall(r"^\| (`refdesk_[^|]+) \|", page, re.MULTILINE)


def list_unproduced(folder: Path) -> dict[str, list[str]]:
    """Return the names that the product declares and no recorded process produced, by kind."""
    produced = read(folder)
    produced["metric"] |= {f"{name}_total" for name in produced["metric"]}
    return {kind: sorted(names - produced[kind]) for kind, names in list_declared().items()}


def main() -> int:
    """Print what nothing produced; return 1 if there is anything."""
    missing = list_unproduced(Path(sys.argv[1]))
    for kind, names in missing.items():
        for name in names:
            sys.stdout.write(f"{kind:7} {name}\n")
    return int(any(missing.values()))


if __name__ == "__main__":
    raise SystemExit(main())
