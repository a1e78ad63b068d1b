"""Vendor requests and replies, and the ports of the vendor clients.

Also contains the switch that prevents tests from calling real models.
"""

import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from types import MappingProxyType
from typing import Literal, Protocol
from urllib.parse import urlsplit

from pydantic import JsonValue

from llm.errors import PromptTooLong, RealRequestForbidden, RejectedRequest
from llm.port import ToolConversation, ToolUse, Usage

_forbidden = False
Structure = Literal["schema", "object", "text"]
"""How a request defines the output format: a JSON schema, any JSON object, or only the prompt."""
TokenParameter = Literal["max_completion_tokens", "max_tokens"]
_SIMPLER: dict[Structure, Structure] = {"schema": "object", "object": "text"}
Parameter = Literal["stream_options", "reasoning", "temperature", "tool_choice"]
"""A parameter that can be omitted from a request."""
_MENTIONS: Mapping[Parameter, re.Pattern[str]] = MappingProxyType(
    {
        "stream_options": re.compile(r"\bstream_?options\b"),
        "reasoning": re.compile(r"reasoning|thinking"),
        "temperature": re.compile(r"temperature"),
        "tool_choice": re.compile(r"tool_?choice"),
    }
)
_STREAM = re.compile(r"\bstream(?:ing|s|_?options)?\b")
_STRUCTURE = re.compile(r"response_?(?:format|mime|schema|json)|json_?schema|grammar")
Schema = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class RerankForm:
    """The format of a request: `texts` is the field name of the texts, and `further` contains extra
    fields.
    """

    texts: str = "documents"
    further: Mapping[str, JsonValue] = field(default_factory=lambda: MappingProxyType({}))

    def make_body(self, model: str, question: str, texts: Sequence[str]) -> dict[str, JsonValue]:
        """Return the body of a request."""
        return {"model": model, "query": question, self.texts: list(texts), **self.further}


TEI = RerankForm("texts", MappingProxyType({"truncate": True}))
"""The request format of Text Embeddings Inference."""
MESSAGE_CHARACTERS = 500
"""Maximum number of characters of a vendor's message in an error."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The parameters that a model's server accepts.

    `token_parameter` limits the output tokens; None selects the default for the model's name.
    Unless `structure` is "schema", the prompt contains the schema. `streams` is true if the server
    can stream answers. `omitted` contains the parameters that it rejects.
    """

    structure: Structure = "schema"
    token_parameter: TokenParameter | None = None
    streams: bool = True
    omitted: frozenset[Parameter] = frozenset()

    def accepts(self, parameter: Parameter) -> bool:
        """Return whether a request may contain this parameter."""
        return parameter not in self.omitted


@dataclass(frozen=True, slots=True)
class Request:
    """One request for the next message of a conversation.

    `schema` defines the output format. `capabilities` are the capabilities of the server.
    `time_share` is the share of the time limit that the request may take. `streams` requests a
    streamed reply.
    """

    conversation: ToolConversation
    timeout_seconds: float
    schema: Schema | None = None
    capabilities: Capabilities = field(default_factory=Capabilities)
    time_share: float = 1.0
    streams: bool = False


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The reply of a model.

    `usage` is None if the vendor does not report it; `refusal` contains the reason for a refusal;
    `truncated` is True if the reply reached the token limit. `has_end` is False if the vendor
    states no finish reason, so that the reply may be truncated. `thoughts` are not part of the
    answer, but some servers put the whole answer there. `answered_by` is the model named in the
    reply, or empty.
    """

    text: str
    usage: Usage | None
    calls: tuple[ToolUse, ...] = ()
    refusal: str = ""
    truncated: bool = False
    answered_by: str = ""
    has_end: bool = True
    thoughts: str = ""


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a reply. The last piece has `reply`, with the whole text and the usage.

    `thoughts` are not part of the answer, but show that the model is working. `is_whole` marks a
    reply that the server sent in one piece.
    """

    text: str
    reply: ModelReply | None = None
    is_whole: bool = False
    thoughts: str = ""


class ChatClient(Protocol):
    """A vendor's client, which sends one request without retries; every failure is an error of
    `llm.errors`.
    """

    def send(self, request: Request) -> AsyncGenerator[Delta, None]: ...

    async def close(self) -> None: ...


class EmbeddingClient(Protocol):
    """A vendor's client for embeddings; takes at most `batch` texts at once.

    `forms` identifies the model's separate modes for questions and documents, and is empty if it
    has none.
    """

    batch: int
    forms: str

    async def embed(
        self, texts: Sequence[str], timeout_seconds: float, *, are_questions: bool
    ) -> tuple[Sequence[Sequence[float]], Usage | None]:
        """Return a vector for each text, and the usage if the vendor reports it."""
        ...

    async def close(self) -> None: ...


def forbid_real_requests() -> None:
    """Allow only requests to this machine for the rest of the process lifetime."""
    global _forbidden
    _forbidden = True


def check_allowed(base_url: str) -> None:
    """Raise `RealRequestForbidden` if requests to `base_url` are forbidden in this process."""
    if _forbidden and not _is_loopback(urlsplit(base_url).hostname):
        raise RealRequestForbidden(
            f"requests to {base_url!r} are forbidden in this process; only servers on this "
            "machine are allowed"
        )


def reduce_capabilities(known: Capabilities, error: RejectedRequest) -> Capabilities | None:
    """Return reduced capabilities after a rejection, or None if the request itself caused it.

    A rejection that does not name a parameter may concern the schema, unless it is about the length
    of the prompt.
    """
    if isinstance(error, PromptTooLong):
        return None
    message = f"{error.parameter} {error.explanation}".lower()
    reduced = _list_reduced(known, message, names_parameter=bool(error.parameter))
    return next((capabilities for capabilities in reduced if capabilities != known), None)


def choose_other_form(form: RerankForm, rejection: str) -> RerankForm | None:
    """Return the format to try after a rejection, or None if the format is not the cause.

    A server that uses the format of Text Embeddings Inference reports that `texts` is missing.
    """
    return TEI if form != TEI and "`texts`" in rejection else None


def shorten(message: str) -> str:
    """Return a message on one line, with at most `MESSAGE_CHARACTERS`."""
    line = " ".join(message.split())
    return line if len(line) <= MESSAGE_CHARACTERS else f"{line[: MESSAGE_CHARACTERS - 1]}…"


def _is_loopback(host: str | None) -> bool:
    if host is None:
        return False
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _list_reduced(
    known: Capabilities, message: str, *, names_parameter: bool
) -> Iterator[Capabilities]:
    """Yield capabilities without each parameter that a rejection mentions, in order."""
    mentions = ((mention.search(message), name) for name, mention in _MENTIONS.items())
    for _, name in sorted((match.start(), name) for match, name in mentions if match is not None):
        yield replace(known, omitted=known.omitted | {name})
    if _STREAM.search(message):
        yield replace(known, streams=False)
    if (token_parameter := _read_other_parameter(message)) is not None:
        yield replace(known, token_parameter=token_parameter)
    if not names_parameter or _STRUCTURE.search(message):
        yield replace(known, structure=_SIMPLER.get(known.structure, known.structure))


def _read_other_parameter(message: str) -> TokenParameter | None:
    """Return the parameter for output tokens that a rejection asks for, or None.

    The rejected parameter is named first: "'max_tokens' is not supported, use
    'max_completion_tokens'".
    """
    older, newer = message.find("max_tokens"), message.find("max_completion_tokens")
    if older < 0 and newer < 0:
        return None
    is_older_rejected = newer < 0 or 0 <= older < newer
    return "max_completion_tokens" if is_older_rejected else "max_tokens"
