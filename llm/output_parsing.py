"""Parses a model's text as the output of a task, and reports its faults."""

from collections.abc import Iterator

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

from llm.port import O

PROBLEMS_SHOWN = 8
KEPT_SHARE = 0.5
"""The least share of complete values in the text of an answer that was cut off."""
_FENCE = "```"
_THOUGHTS_BEGIN, _THOUGHTS_END = "<think>", "</think>"
_SENTENCE_ENDS = (". ", ".\\n", '."', "! ", "? ", ".\\t", "] ", "]\\n", "。", "！", "？", "।", "؟")
_OF_THE_SCHEMA = frozenset(
    {"json_invalid", "missing", "extra_forbidden", "model_type", "model_attributes_type"}
)
"""Findings of pydantic that an answer cannot have if the server enforced the schema."""


class NotReadable(ValueError):  # noqa: N818 - a finding, which never leaves this package
    """The text is not of the output's type; the message is one line per finding.

    `ignores_schema` is true if the server cannot have enforced the schema.
    """

    def __init__(self, message: str, *, ignores_schema: bool = False) -> None:
        super().__init__(message)
        self.ignores_schema = ignores_schema


def read(text: str, output: type[O]) -> O:
    """Return the output in `text`.

    Thoughts before it, a Markdown fence around it and other prose are skipped. Raises `NotReadable`
    with the positions and kinds of the faults, which repeats nothing of `text`.
    """
    first: ValidationError | None = None
    for candidate in _candidates(text):
        try:
            return output.model_validate_json(candidate)
        except ValidationError as error:
            # The faults of a candidate that is JSON explain more than those of other text.
            first = error if first is None or _is_no_json(first) else first
    if first is None:
        raise NotReadable("expected JSON, found no text", ignores_schema=True)
    raise NotReadable(_describe(first, output), ignores_schema=_ignores_schema(first)) from first


def read_complete_part(text: str, output: type[O]) -> O:
    """Return the output in a text that was cut off: whole values, and whole sentences of the last.

    Raises `NotReadable` if they make no output, or less than `KEPT_SHARE` of the text.
    """
    bare = _without_thoughts(text)
    bare = bare[max(0, bare.find("{")) :]
    best, longest = None, int(len(bare) * KEPT_SHARE)
    for found in (_parse_part(bare), _parse_sentences(bare)):
        size = len(to_json(found))
        if size <= longest:
            continue
        try:
            best, longest = output.model_validate(found), size
        except ValidationError:
            continue
    if best is None:
        raise NotReadable("expected whole values before the cut, found too little")
    return best


def _candidates(text: str) -> Iterator[str]:
    """Yield the parts of a text that may be the answer, the likeliest first."""
    bare = _without_thoughts(text).strip()
    if not bare:
        return
    yield bare
    fenced = _inside_fence(bare)
    if fenced:
        yield fenced
    begin, end = bare.find("{"), bare.rfind("}")
    if 0 <= begin < end and (begin, end) != (0, len(bare) - 1):
        yield bare[begin : end + 1]


def _without_thoughts(text: str) -> str:
    """Return what follows the thoughts of a reasoning model; some servers omit the first mark."""
    before, mark, after = text.rpartition(_THOUGHTS_END)
    if mark and (before.lstrip().startswith(_THOUGHTS_BEGIN) or "{" in after):
        return after
    return text


def _inside_fence(text: str) -> str:
    """Return the content of the first fenced block; the end of the text may be its end."""
    _, opened, rest = text.partition(_FENCE)
    _, line_end, body = rest.partition("\n")
    if not opened or not line_end:
        return ""
    closing = body.rfind(_FENCE)
    return body[:closing] if closing >= 0 else body


def _parse_part(text: str) -> object:
    try:
        return from_json(text, allow_partial=True)
    except ValueError:
        return None


def _parse_sentences(text: str) -> object:
    end = max(text.rfind(mark) for mark in _SENTENCE_ENDS)
    try:
        return from_json(text[: end + 1], allow_partial="trailing-strings")
    except ValueError:
        return None


def _is_no_json(error: ValidationError) -> bool:
    return any(detail["type"] == "json_invalid" for detail in error.errors(include_url=False))


def _ignores_schema(error: ValidationError) -> bool:
    return any(detail["type"] in _OF_THE_SCHEMA for detail in error.errors(include_url=False))


def _describe(error: ValidationError, output: type[BaseModel]) -> str:
    found = error.errors(include_url=False, include_input=False, include_context=False)
    lines = []
    for detail in found[:PROBLEMS_SHOWN]:
        place = ".".join(str(part) for part in detail["loc"])
        lines.append(f"{place or output.__qualname__}: {detail['msg']}")
    if len(found) > PROBLEMS_SHOWN:
        lines.append(f"and {len(found) - PROBLEMS_SHOWN} more")
    return "\n".join(lines)
