"""The parameters that a model's server accepts: assumed at first, reduced after rejections."""

import re
from dataclasses import dataclass, replace
from typing import Literal

from llm.errors import RejectedRequest

Structure = Literal["schema", "object", "text"]
"""How a request defines the form of the answer: JSON schema, any JSON object, or in the prompt."""
TokenParameter = Literal["max_completion_tokens", "max_tokens"]
_SIMPLER: dict[Structure, Structure] = {"schema": "object", "object": "text"}
_STREAM = re.compile(r"\bstream(?:ing|s|_options)?\b")
_TOO_LONG = ("context_length", "context length", "maximum context", "too long", "too large")


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The parameters that a model's server accepts.

    `token_parameter` limits the output tokens; None means the usual one for the model's name.
    Unless `structure` is "schema", the prompt contains the schema. A server that `streams` sends an
    answer while it is written.
    """

    structure: Structure = "schema"
    token_parameter: TokenParameter | None = None
    has_temperature: bool = True
    has_reasoning_effort: bool = True
    streams: bool = True


def reduce_capabilities(known: Capabilities, error: RejectedRequest) -> Capabilities | None:
    """Return reduced capabilities after a rejection, or None if the request itself is the reason.

    A rejection that names no parameter may concern the schema; one about length never does.
    """
    message = f"{error.parameter} {error}".lower()
    if any(words in message for words in _TOO_LONG):
        return None
    if known.streams and _STREAM.search(message):
        return replace(known, streams=False)
    if "reasoning" in message:
        return replace(known, has_reasoning_effort=False)
    if "temperature" in message:
        return replace(known, has_temperature=False)
    token_parameter = _read_other_parameter(message)
    if token_parameter is not None:
        return replace(known, token_parameter=token_parameter)
    simpler = _SIMPLER.get(known.structure)
    if simpler is None or (error.parameter and "response_format" not in message):
        return None
    return replace(known, structure=simpler)


def _read_other_parameter(message: str) -> TokenParameter | None:
    """Return the parameter for output tokens that a rejection demands, or None.

    The rejected one is named first: "'max_tokens' is not supported, use 'max_completion_tokens'".
    """
    older, newer = message.find("max_tokens"), message.find("max_completion_tokens")
    if older < 0 and newer < 0:
        return None
    is_older_rejected = newer < 0 or 0 <= older < newer
    return "max_completion_tokens" if is_older_rejected else "max_tokens"
