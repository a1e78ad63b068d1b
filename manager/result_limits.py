"""Limits the size of branch results by kind of content. Sizes are in bytes of JSON.

- *Passages*, the lists `quoted` and `passages` in results: at most `LARGEST_PASSAGES`. Beyond that,
  the last passage of the largest list is dropped first.
- *Logs*, the records of evidence and of tool calls: at most `LARGEST_LOGS`. Beyond that, the last
  records are dropped.
- *Texts*, which are reports, requested pages and everything else: at most `LARGEST_TEXTS`. Texts
  are never shortened. Above the limit, `data`, the structured copy of a tool's output, is dropped;
  a result that is still too large becomes a failure.

The limits are independent of each other. The field `left_out` of the result counts the dropped
items.
"""

from collections.abc import Iterator

import structlog
from pydantic import JsonValue
from pydantic_core import from_json

from envelope.encoding import to_json
from manager.state import Json

log = structlog.get_logger("manager")
LARGEST_PASSAGES = 64_000
LARGEST_LOGS = 128_000
LARGEST_TEXTS = 128_000
_PASSAGES = frozenset({"quoted", "passages"})
_LOGS = frozenset({"evidence_log", "tool_executions"})
_COPY, _TEXT = "data", "text"
_KEPT_BY_FAILURE = ("hops", "seconds", "model_usage", "exhausted_budget")
Holder = tuple[dict[str, JsonValue], str]
"""An object, and the name of one of its fields."""


def limit_result(result: Json, branch: str = "") -> Json:
    """Return the result of a branch, shortened to the limit of each kind of content."""
    if len(to_json(result)) <= min(LARGEST_PASSAGES, LARGEST_LOGS, LARGEST_TEXTS):
        return result
    limited: Json = from_json(to_json(result))
    left_out = {
        "passages": _drop_last(_find(limited, _PASSAGES), LARGEST_PASSAGES),
        "records": _drop_last(_find(limited, _LOGS), LARGEST_LOGS),
        "copies": 0,
    }
    if _measure_texts(limited) > LARGEST_TEXTS:
        left_out["copies"] = _drop_copies(limited)
    if (size := _measure_texts(limited)) > LARGEST_TEXTS:
        limited = _fail(limited, size)
    if not (dropped := {kind: count for kind, count in left_out.items() if count}):
        return limited
    log.warning("branch_result_shortened", branch=branch, **dropped)
    return {**limited, "left_out": {**dropped}}


def _find(value: JsonValue, names: frozenset[str]) -> Iterator[Holder]:
    """Yield the non-empty fields with these names, but not the fields inside them."""
    if isinstance(value, list):
        for item in value:
            yield from _find(item, names)
    elif isinstance(value, dict):
        for name, field in value.items():
            if name in names and field:
                yield value, name
            else:
                yield from _find(field, names)


def _drop_last(holders: Iterator[Holder], largest: int) -> int:
    """Drop the last item of the largest list until the size is within the limit; return how many
    were dropped.
    """
    lists = [items for holder, name in holders if isinstance(items := holder[name], list)]
    sizes = [[len(to_json(item)) for item in items] for items in lists]
    totals = [sum(item_sizes) for item_sizes in sizes]
    dropped = 0
    while sum(totals) > largest:
        place = totals.index(max(totals))
        lists[place].pop()
        totals[place] -= sizes[place].pop()
        dropped += 1
    return dropped


def _measure_texts(result: Json) -> int:
    others = [len(to_json(holder[name])) for holder, name in _find(result, _PASSAGES | _LOGS)]
    return len(to_json(result)) - sum(others)


def _drop_copies(result: Json) -> int:
    """Drop the structured copies in tool results; return how many were dropped."""
    holders = _find(result.get("writes"), frozenset({_COPY}))
    results = [holder for holder, _ in holders if holder.get(_TEXT)]
    for tool_result in results:
        tool_result[_COPY] = None
    return len(results)


def _fail(result: Json, size: int) -> Json:
    kept = {name: result[name] for name in (*_KEPT_BY_FAILURE, *_LOGS) if name in result}
    reason = f"expected at most {LARGEST_TEXTS:,} bytes of texts in the result, found {size:,}"
    return {"status": "failed", "writes": {}, "reason": reason, **kept}
