"""Reads a model's text as the output a task wants, and tells what is wrong with it."""

from pydantic import BaseModel, ValidationError

from llm.port import O

PROBLEMS_TOLD = 8
_FENCE = "```"


class NotReadable(ValueError):  # noqa: N818 - a finding, which never leaves this package
    """The text is not of the output's type; the message is one line per finding."""


def read(text: str, output: type[O]) -> O:
    """Return the output in `text`; a Markdown fence around it is looked through.

    Raises `NotReadable` with what is wrong where, which repeats nothing of `text`.
    """
    try:
        return output.model_validate_json(_without_fence(text))
    except ValidationError as error:
        raise NotReadable(_problems(error, output)) from error


def _without_fence(text: str) -> str:
    """Return what stands between a fence's lines, or `text` where there is no fence around it."""
    bare = text.strip()
    if not (bare.startswith(_FENCE) and bare.endswith(_FENCE)):
        return text
    opening, line_end, body = bare[len(_FENCE) : -len(_FENCE)].partition("\n")
    is_fence = bool(line_end) and not opening.removeprefix("json").strip()
    return body if is_fence else text


def _problems(error: ValidationError, output: type[BaseModel]) -> str:
    found = error.errors(include_url=False, include_input=False, include_context=False)
    lines = []
    for detail in found[:PROBLEMS_TOLD]:
        place = ".".join(str(part) for part in detail["loc"])
        lines.append(f"{place or output.__qualname__}: {detail['msg']}")
    if len(found) > PROBLEMS_TOLD:
        lines.append(f"and {len(found) - PROBLEMS_TOLD} more")
    return "\n".join(lines)
