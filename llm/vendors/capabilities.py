"""What one model's server accepts: assumed at first, corrected by what the server rejects."""

import re
from dataclasses import dataclass, replace
from typing import Literal

from llm.errors import RejectedRequest

Structure = Literal["schema", "object", "text"]
"""How the form of an answer is demanded: by a JSON schema, as any JSON object, or in words."""
Room = Literal["max_completion_tokens", "max_tokens"]
_SIMPLER: dict[Structure, Structure] = {"schema": "object", "object": "text"}
_STREAM = re.compile(r"\bstream(?:ing|s|_options)?\b")
_TOO_LONG = ("context_length", "context length", "maximum context", "too long", "too large")


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The parameters that a model's server accepts.

    `room` names the parameter for the most output tokens; None: the usual one for the model's
    name. Unless `structure` is "schema", the prompt tells the schema. A server that `streams` sends
    an answer while it is written.
    """

    structure: Structure = "schema"
    room: Room | None = None
    has_temperature: bool = True
    has_reasoning_effort: bool = True
    streams: bool = True


def reduce_capabilities(known: Capabilities, error: RejectedRequest) -> Capabilities | None:
    """Return what to try after a rejection; None where the request itself is the reason.

    A rejection that names no parameter may be about the schema; one about length never is.
    """
    told = f"{error.parameter} {error}".lower()
    if any(words in told for words in _TOO_LONG):
        return None
    if known.streams and _STREAM.search(told):
        return replace(known, streams=False)
    if "reasoning" in told:
        return replace(known, has_reasoning_effort=False)
    if "temperature" in told:
        return replace(known, has_temperature=False)
    room = _read_other_room(told)
    if room is not None:
        return replace(known, room=room)
    simpler = _SIMPLER.get(known.structure)
    if simpler is None or (error.parameter and "response_format" not in told):
        return None
    return replace(known, structure=simpler)


def _read_other_room(told: str) -> Room | None:
    """Return the parameter to use where a rejection is about the other one.

    The rejected one is named first: "'max_tokens' is not supported, use 'max_completion_tokens'".
    """
    older, newer = told.find("max_tokens"), told.find("max_completion_tokens")
    if older < 0 and newer < 0:
        return None
    is_older_rejected = newer < 0 or 0 <= older < newer
    return "max_completion_tokens" if is_older_rejected else "max_tokens"
