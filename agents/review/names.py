"""Replaces the ids in sentences of models by the names that people know."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from pydantic import BaseModel

from agents.review.requirements import name_headings
from citations.verbatim import cut_text
from envelope.json_values import map_texts, read_objects
from envelope.texts import put_in_quotes
from llm.port import O

_CITED = r"\\cite\{[^{}\n]{1,1000}\}"
_LABEL = re.compile(r"\b(?:(?:REQ|DEF)-\d{3,5}|p\d{1,5})\b")
_LABELS = re.compile(rf"[ \t]?\({_LABEL.pattern}(?:[,;][ \t]?{_LABEL.pattern}){{0,20}}\)")
"""Ids in brackets; those that are not in the inputs are invented."""
_LONGEST = 80
_ENDS = ".;:, "


def name_ids(output: O, inputs: BaseModel, known: Iterable[BaseModel] = ()) -> O:
    r"""Return the output of a model whose sentences contain the names of its inputs, and of other
    `known` items, not their ids.

    A text that consists of an id, and `\cite{id}`, are not changed. An id that also occurs in the
    text of a document is not replaced, because the model may quote it.
    """
    values = inputs.model_dump(mode="json")
    items = [item for value in values.values() for item in read_objects(value) if item.get("id")]
    items += [item.model_dump(mode="json") for item in known]
    texts = "\n".join(str(text) for item in items for key, text in item.items() if key != "id")
    quoted = frozenset(_LABEL.findall(texts))
    words = {str(item["id"]): item.get("statement") or item.get("text") or "" for item in items}
    headings = {str(item["id"]): _read_heading(item) for item in items}
    names = name_items(headings, words, str(values.get("language", "en")))
    written = output.model_dump_json()
    names = {name: shown for name, shown in names.items() if name in written}
    ids = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    pattern = re.compile(rf"{_CITED}|(?<![\w-])(?:{ids})(?![\w-])" if ids else _CITED)
    for held in pattern.findall(texts):
        names.pop(held, None)

    def write(text: str) -> str:
        if text in names:
            return text
        named = pattern.sub(lambda found: names.get(found[0], found[0]), text)
        return _LABELS.sub(remove, named)

    def remove(labels: re.Match[str]) -> str:
        return "" if quoted.isdisjoint(_LABEL.findall(labels[0])) else labels[0]

    return type(output).model_validate(map_texts(output.model_dump(mode="json"), write))


def name_items(
    headings: Mapping[str, str], words: Mapping[str, object], language: str
) -> dict[str, str]:
    """Return a name for each id: its heading, and its words if others have the same heading."""
    counts = Counter(headings.values())
    names = {}
    for name, heading in headings.items():
        shown = shorten_line(str(words[name]), _LONGEST)
        quoted = put_in_quotes(shown, language) if shown else ""
        is_clear = counts[heading] == 1 or not quoted
        names[name] = (heading if is_clear else f"{heading} ({quoted})") if heading else quoted
    return names


def shorten_line(text: str, longest: int) -> str:
    """Return the text on one line, shortened, and without a final full stop."""
    return cut_text(" ".join(text.split()), longest).rstrip(_ENDS)


def _read_heading(item: Mapping[str, object]) -> str:
    keys = ("heading", "title", "citation", "place")
    name = next((str(item[key]) for key in keys if item.get(key)), "")
    return name_headings(name.split(" > "))
