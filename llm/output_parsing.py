"""Parses a model's text as the output of a task, and describes validation errors.

Also parses partial output while an answer streams.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import structlog
from pydantic import BaseModel, JsonValue, ValidationError
from pydantic_core import from_json, to_json

from citations.faults import select_finished
from llm.port import O, PartialText, TextListener

PROBLEMS_SHOWN = 8
KEPT_SHARE = 0.5
"""The minimum share of a truncated text that must consist of complete values."""
_FENCE = "```"
_THOUGHTS_BEGIN, _THOUGHTS_END = "<think>", "</think>"
_SENTENCE_ENDS = (". ", ".\\n", '."', "! ", "? ", ".\\t", "] ", "]\\n", "。", "！", "？", "।", "؟")
_SCHEMA_ERRORS = frozenset(
    {"json_invalid", "missing", "extra_forbidden", "model_type", "model_attributes_type"}
)
"""Validation errors that cannot occur if the server enforced the schema."""
T = TypeVar("T")
OnText = Callable[[PartialText], Awaitable[None]]
log = structlog.get_logger("llm")
_OPENING = re.compile(r"\s*+(?:```[a-z]*+\s*+)?+\{")
_THOUGHTS_LAST = "</think>"
OnFinished = Callable[[str, int], Awaitable[None]]
"""Receives the finished sentences, and the number of the attempt that wrote them."""
_FIELD = "canonical_question"


class NotReadable(ValueError):  # noqa: N818 - a finding, which never leaves this package
    """The text is not valid output; the message has one line per validation error.

    `ignores_schema` is True if the server cannot have enforced the schema.
    """

    def __init__(self, message: str, *, ignores_schema: bool = False) -> None:
        super().__init__(message)
        self.ignores_schema = ignores_schema


@dataclass(frozen=True, slots=True)
class Silence:
    """An action that is performed once if no text arrives within `seconds`."""

    seconds: float
    act: Callable[[], Awaitable[None]]


class DraftReader:
    """Calls `on_finished` each time another sentence of a streamed answer is complete."""

    def __init__(self, on_finished: OnFinished) -> None:
        self._on_finished = on_finished
        self._last = ("", 0)

    async def read(self, partial: PartialText) -> None:
        """Process the text of an answer that has arrived so far."""
        finished = select_finished(read_partial_answer(partial.text))
        read = (finished, partial.attempt)
        if finished and read != self._last:
            self._last = read
            await self._on_finished(finished, partial.attempt)


class QuestionReader:
    """Calls `on_question` once, as soon as the question in the output of a combined call is
    complete.
    """

    def __init__(self, on_question: Callable[[str], Awaitable[None]]) -> None:
        self._on_question = on_question
        self.question: str | None = None
        """The question that was passed to `on_question`, or None until then."""

    async def read(self, partial: PartialText) -> None:
        """Process the text that has arrived so far."""
        if self.question is not None:
            return
        question = read_complete_fields(partial.text).get(_FIELD)
        if isinstance(question, str):
            self.question = question
            await self._on_question(question)


def read(text: str, output: type[O]) -> O:
    """Parse the output in `text`.

    Skips thoughts, Markdown fences, and other prose around the output. A null in a field that does
    not allow it counts as a missing field. Raises `NotReadable` with the locations and kinds of the
    errors; the message contains no part of `text`.
    """
    first: ValidationError | None = None
    for candidate in _candidates(text):
        try:
            return output.model_validate_json(candidate)
        except ValidationError as error:
            if (kept := _without_nulls(candidate, error)) is not None:
                try:
                    return output.model_validate(kept)
                except ValidationError:
                    pass
            # Errors of a candidate that is JSON are more helpful than those of other text.
            first = error if first is None or _is_invalid_json(first) else first
    if first is None:
        raise NotReadable("the output is empty; expected JSON", ignores_schema=bool(text.strip()))
    raise NotReadable(_describe(first, output), ignores_schema=_ignores_schema(first)) from first


def read_complete_part(text: str, output: type[O]) -> O:
    """Parse truncated output: keep complete values and, of the last one, complete sentences.

    Raises `NotReadable` if the result is invalid or contains less than `KEPT_SHARE` of the text.
    """
    bare = remove_thoughts(text)
    bare = bare[max(0, bare.find("{")) :]
    best, longest = None, int(len(bare) * KEPT_SHARE)
    for parsed in (_parse_part(bare), _parse_sentences(bare)):
        size = len(to_json(parsed))
        if size <= longest:
            continue
        try:
            best, longest = output.model_validate(parsed), size
        except ValidationError:
            continue
    if best is None:
        raise NotReadable("the output is truncated and does not contain enough complete values")
    return best


def is_complete(text: str) -> bool:
    """Return whether the text contains complete JSON."""
    for candidate in _candidates(text):
        try:
            from_json(candidate)
        except ValueError:
            continue
        return True
    return False


def remove_thoughts(text: str) -> str:
    """Return the text after the thoughts of a reasoning model; some servers omit the opening
    tag.
    """
    before, mark, after = text.rpartition(_THOUGHTS_END)
    if mark and (before.lstrip().startswith(_THOUGHTS_BEGIN) or "{" in after):
        # Without text after the thoughts, the answer is inside them.
        return after if after.strip() else before.replace(_THOUGHTS_BEGIN, "", 1)
    return text


async def ask_and_follow(
    listener: TextListener,
    ask: Callable[[TextListener], Awaitable[T]],
    on_text: OnText,
    silence: Silence | None = None,
) -> T:
    """Return the result of `ask`, and call `on_text` with the latest text in the meantime.

    Only one call of `on_text` runs at a time; outdated texts are skipped. If it fails, the error is
    logged and it is not called again; the answer is not affected.
    """
    outcome: T | Exception
    async with asyncio.TaskGroup() as group:
        group.create_task(_follow(listener, on_text, silence))
        try:
            outcome = await ask(listener)
        except Exception as error:  # noqa: BLE001 - raised again outside of the group
            outcome = error
        finally:
            listener.close()
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def read_partial_answer(text: str) -> str:
    """Return the `answer` field from incomplete JSON, or an empty string if there is nothing to
    show yet.

    Requires that `status` is already complete and is `answered`.
    """
    fields = _read_fields(text, "trailing-strings")
    answer = fields.get("answer") if fields.get("status") == "answered" else None
    return answer if isinstance(answer, str) else ""


def read_complete_fields(text: str) -> Mapping[str, object]:
    """Return the fields of incomplete JSON, without the field that is still being written."""
    return _read_fields(text, "on")


def _candidates(text: str) -> Iterator[str]:
    """Yield the parts of the text that may be the output, most likely first."""
    bare = remove_thoughts(text).strip()
    if not bare:
        return
    yield bare
    fenced = _inside_fence(bare)
    if fenced:
        yield fenced
    begin, end = bare.find("{"), bare.rfind("}")
    if 0 <= begin < end and (begin, end) != (0, len(bare) - 1):
        yield bare[begin : end + 1]


def _inside_fence(text: str) -> str:
    """Return the content of the first fenced block, which may lack the closing fence."""
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


def _without_nulls(candidate: str, error: ValidationError) -> JsonValue:
    """Return the JSON without its nulls if they are the only errors, otherwise None."""
    problems = error.errors(include_url=False, include_context=False)
    if any(problem["input"] is not None or not problem["loc"] for problem in problems):
        return None
    parsed: JsonValue = from_json(candidate)
    for problem in problems:
        *path, name = problem["loc"]
        holder: Any = parsed
        try:
            for step in path:
                holder = holder[step]
        except (LookupError, TypeError):
            return None
        if not isinstance(holder, dict):
            return None
        holder.pop(name, None)
    return parsed


def _is_invalid_json(error: ValidationError) -> bool:
    return any(detail["type"] == "json_invalid" for detail in error.errors(include_url=False))


def _ignores_schema(error: ValidationError) -> bool:
    return any(detail["type"] in _SCHEMA_ERRORS for detail in error.errors(include_url=False))


def _describe(error: ValidationError, output: type[BaseModel]) -> str:
    errors = error.errors(include_url=False, include_input=False, include_context=False)
    lines = []
    for detail in errors[:PROBLEMS_SHOWN]:
        place = ".".join(str(part) for part in detail["loc"])
        lines.append(f"{place or output.__qualname__}: {detail['msg']}")
    if len(errors) > PROBLEMS_SHOWN:
        lines.append(f"and {len(errors) - PROBLEMS_SHOWN} more")
    return "\n".join(lines)


async def _follow(listener: TextListener, on_text: OnText, silence: Silence | None) -> None:
    try:
        if silence is not None and not await listener.has_begun_within(silence.seconds):
            await silence.act()
        while (partial := await listener.wait_for_text()) is not None:
            await on_text(partial)
    except Exception:
        log.exception("draft_failed", task=listener.task_name)


def _read_fields(text: str, partial: Literal["on", "trailing-strings"]) -> Mapping[str, object]:
    """Return the fields of an incomplete object; empty if it has not begun.

    Skips a fence and the thoughts of a reasoning model. If other prose comes first, nothing is
    read, because prose may contain braces.
    """
    _, mark, after = text.rpartition(_THOUGHTS_LAST)
    bare = after if mark else text
    opening = _OPENING.match(bare)
    if opening is None:
        return {}
    try:
        parsed = from_json(bare[opening.end() - 1 :], allow_partial=partial)
    except ValueError:
        # Not JSON; the complete text is parsed later.
        return {}
    return parsed if isinstance(parsed, dict) else {}
