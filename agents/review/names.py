"""Replaces the ids in sentences of models by the names that people know."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from pydantic import BaseModel, JsonValue

from agents.review.requirements import name_headings
from envelope.texts import put_in_quotes
from llm.port import O

_CITED = r"\\cite\{[^{}\n]{1,1000}\}"
_LONGEST = 80


def name_ids(output: O, inputs: BaseModel) -> O:
    r"""Return the output of a model whose sentences contain the names of its inputs, not their ids.

    A text that consists of an id, and `\cite{id}`, are not changed. An id that also occurs in the
    text of a document is not replaced, because the model may quote it.
    """
    values = inputs.model_dump(mode="json")
    items = [item for value in values.values() for item in _list_items(value)]
    ids = sorted((item["id"] for item in items), key=len, reverse=True)
    pattern = re.compile(rf"{_CITED}|(?<![\w-])(?:{'|'.join(map(re.escape, ids))})(?![\w-])")
    texts = "\n".join(text for item in items for key, text in item.items() if key != "id")
    names = dict(_name_items(items, str(values.get("language", "en"))))
    for quoted in pattern.findall(texts):
        names.pop(quoted, None)
    if not names:
        return output
    named = _write(output.model_dump(mode="json"), lambda text: _replace(text, names, pattern))
    return type(output).model_validate(named)


def _list_items(value: JsonValue) -> Iterator[dict[str, str]]:
    """Yield the items of a list that have an id, as their texts by field."""
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict) and item.get("id"):
            yield {key: text for key, text in item.items() if isinstance(text, str)}


def _name_items(items: Iterable[Mapping[str, str]], language: str) -> Iterator[tuple[str, str]]:
    """Yield the id and the name of each item: its heading, and its words if others have the same
    heading.
    """
    headings = Counter(map(_read_heading, items))
    for item in items:
        heading, words = _read_heading(item), item.get("statement") or item.get("text", "")
        plain = " ".join(words.split())
        shown = plain if len(plain) <= _LONGEST else f"{plain[: _LONGEST - 1]}…"
        is_clear = headings[heading] == 1 or not shown
        quoted = "" if is_clear and heading else f"({put_in_quotes(shown, language)})"
        yield item["id"], f"{heading} {quoted}".strip()


def _read_heading(item: Mapping[str, str]) -> str:
    name = next((item[key] for key in ("heading", "title", "place") if item.get(key)), "")
    return name_headings(name.split(" > "))


def _replace(text: str, names: Mapping[str, str], pattern: re.Pattern[str]) -> str:
    if text in names:
        return text
    return pattern.sub(lambda found: names.get(found[0], found[0]), text)


def _write(value: JsonValue, write: Callable[[str], str]) -> JsonValue:
    if isinstance(value, str):
        return write(value)
    if isinstance(value, list):
        return [_write(item, write) for item in value]
    if isinstance(value, dict):
        return {name: _write(item, write) for name, item in value.items()}
    return value
