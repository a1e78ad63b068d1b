"""Tolerant parsing of vendor replies, and conversion of vendor errors.

Servers that claim to be compatible may omit fields, or send null, other types, lists of parts, or a
web page. The functions here treat a value of an unexpected type as absent, and never raise. Errors
of the clients become errors of `llm.errors`, with the server's message.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, cast
from urllib.parse import urlsplit

import httpx2
from pydantic import BaseModel, JsonValue

from llm.errors import (
    AccessDenied,
    MissingKey,
    ModelError,
    ModelTimeout,
    ModelUnavailable,
    PromptTooLong,
    QuotaExhausted,
    RateLimited,
    Refused,
    RejectedRequest,
    UnknownModel,
    UnknownReply,
    WrongAddress,
)
from llm.port import ToolUse, Usage
from llm.vendors.catalogue import Vendor, VendorAccess
from llm.vendors.wire import Delta, ModelReply, Request, check_allowed, shorten

_MESSAGE_FIELDS = ("message", "detail", "error", "msg", "reason", "error_description", "errors")
_TOO_LONG = re.compile(
    r"context.?(?:length|window|size)|maximum context|too long|too large|token count|"
    r"too many tokens|must have less than \d+ tokens"
)
_UNKNOWN_MODEL = re.compile(r"invalid model(?: name| id|:)|not a valid model\b|model not exist")
"""Messages that mean an unknown model, from servers that respond with 400 instead of 404: LiteLLM,
Mistral, OpenRouter, DeepSeek.
"""
_DELAY = re.compile(r'"retryDelay":\s?"(\d+(?:\.\d+)?)s"')
_LINE_END = re.compile(rb"\r\n|\r|\n")
_STREAM_FIELDS = frozenset({"", "data", "event", "id", "retry"})
_TITLE = re.compile(r"<title[^<>]{0,200}>([^<]{0,200})", re.IGNORECASE)
_ENDPOINTS = re.compile(r"/(?:chat/completions|completions|embeddings|messages|models|rerank)/?$")
_VERSION = re.compile(r"/(?:v\d|api|openai)")
_NO_API = frozenset({404, 405, 501})
"""Statuses that mean a wrong path or method, unless the body contains an error about a model."""
_CUT = frozenset({"length", "max_tokens"})
"""Finish reasons that mean that the token limit was reached."""
_REFUSED = frozenset(
    {"content_filter", "refusal", "safety", "recitation", "blocklist", "prohibited_content", "spii"}
)
"""Finish reasons that mean a refusal because of the content."""
_SHAPE_FAULTS = (AttributeError, LookupError, TypeError, ValueError, RecursionError)
UNNAMED = "unnamed"
"""The name given to a tool call without a name. The call is rejected like a call of any unknown
tool, so that the model can correct it, and the reply lists it with its error.
"""


def pick(value: object, *path: str | int) -> Any:
    """Return the value at a path of names and indexes, or None if it does not exist."""
    for step in path:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int):
            value = value[step] if step < len(value) else None
        else:
            return None
    return value


def pick_rows(value: object, *path: str | int) -> list[dict[str, Any]]:
    """Return the objects in the list at a path."""
    rows = pick(value, *path)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def read_text(value: object, *, thoughts: bool = False) -> str:
    """Return the text of a string or a list of parts, or "" for anything else.

    If `thoughts` is true, return the text of the parts that do not belong to the answer.
    """
    if isinstance(value, str):
        return "" if thoughts else value
    if isinstance(value, list):
        return "".join(read_text(part, thoughts=thoughts) for part in value)
    if not isinstance(value, dict):
        return ""
    kind = str(value.get("type") or "text")
    if kind.endswith("text") is thoughts:
        return ""
    return read_text(value.get("text") or value.get("content") or value.get(kind))


def read_count(value: object, *names: str) -> int | None:
    """Return the first of these fields that contains a valid count, or None."""
    for name in names:
        count = pick(value, name)
        if isinstance(count, int | float) and not isinstance(count, bool) and 0 <= count < 1e12:
            return int(count)
    return None


def parse_body(content: str) -> object:
    """Parse a body as JSON; return its text if it is not JSON."""
    value = _parse_json(content)
    return content if value is None else value


async def iterate_events(response: httpx2.Response) -> AsyncIterator[tuple[object, bool]]:
    """Yield (event, False) for each event of a stream, or (body, True) if it is not a stream.

    Invalid lines are skipped. The content type is ignored, because some servers set it incorrectly.
    """
    body: list[str] = []
    is_stream = False
    async for line in _iterate_lines(response):
        name, _, data = line.partition(":")
        event = _parse_json(data) if name.strip() == "data" else None
        if isinstance(event, dict):
            is_stream = True
            yield event, False
        elif name.strip() not in _STREAM_FIELDS:
            body.append(line)
    if body and not is_stream:
        yield parse_body("\n".join(body)), True


def find_message(body: object) -> str:
    """Return the message in an error body, which can be an object, a list, text, or a web page."""
    if isinstance(body, dict):
        fields = (body[name] for name in _MESSAGE_FIELDS if body.get(name))
        message = find_message(next(fields, ""))
        return message or json.dumps(body)
    if isinstance(body, list):
        return "; ".join(filter(None, map(find_message, body)))
    text = "" if body is None else str(body)
    title = _TITLE.search(text) if _is_page(text) else None
    return " ".join((text if title is None else title[1]).split())


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of `Retry-After`, in any of its formats, or None."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None or value is None:
        return seconds
    try:
        when = parsedate_to_datetime(value)
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


def _parse_json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


@dataclass(frozen=True, slots=True)
class AddressGuard:
    """Converts errors of requests to a model's server into errors of `llm.errors`."""

    model: str
    vendor: Vendor
    address: str

    @classmethod
    def of(cls, model: str, vendor: Vendor, access: VendorAccess) -> "AddressGuard":
        """Return the guard of a model; raises `RealRequestForbidden`."""
        address = vendor.base_url if access.base_url is None else access.base_url
        check_allowed(address or "")
        return cls(model, vendor, address or "")

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Convert errors raised in the block."""
        try:
            yield
        except httpx2.TimeoutException as error:
            raise self.timeout() from error
        except httpx2.HTTPError as error:
            raise self.broken_connection(error) from error
        except json.JSONDecodeError as error:
            raise self.unknown_reply(error.doc) from error
        except _SHAPE_FAULTS as error:
            raise self.unknown_reply(f"{type(error).__name__}: {error}") from error

    def timeout(self) -> ModelTimeout:
        """Return the error for a server that did not respond in time."""
        return ModelTimeout(f"{self.model!r} did not answer in time")

    def broken_connection(self, error: Exception) -> ModelUnavailable:
        """Return the error for a connection that failed."""
        # Some clients only report that the connection failed; the cause has the reason.
        reason = shorten(str(error.__cause__ or error)) or type(error).__name__
        return ModelUnavailable(f"the connection to {self.model!r} failed: {reason}")

    def unknown_reply(self, reply: object) -> ModelError:
        """Return the error for a response with status 200 that is not a model's reply."""
        if isinstance(reply, str) and _is_page(reply):
            return self._wrong_address(reply)
        if isinstance(reply, BaseModel):
            reply = reply.model_dump(exclude_none=True)
        fields = f"an object with the fields {sorted(reply)}" if isinstance(reply, dict) else reply
        return UnknownReply(
            f"expected a reply of {self.model!r}, found {shorten(str(fields or 'nothing'))}"
            f"{self._advise()}"
        )

    def check(self, event: object) -> None:
        """Raise the error contained in a response with status 200, if any."""
        error = pick(event, "error")
        if not error or isinstance(error, bool):
            return
        code = read_count(error, "code", "status", "status_code")
        if code is not None and 400 <= code < 600:
            raise self.error_of(code, json.dumps(event), {})
        raise ModelUnavailable(
            f"the vendor of {self.model!r} reports: {shorten(find_message(event)).rstrip('.')}"
            f"{self._advise()}"
        )

    def error_of(self, status: int, content: str, headers: Mapping[str, str]) -> ModelError:
        """Return the error for a status of 300 or above, with the vendor's message."""
        body = _parse_json(content)
        explanation = find_message(content if body is None else body)
        code = pick(body, "error", "code")
        known = self._find_known_error(code, status, content)
        if known is not None:
            return known
        is_api = status not in _NO_API or (status == 404 and self._concerns_model(body))
        if status < 400 or (status < 500 and _is_page(content)) or not is_api:
            return self._wrong_address(content, status)
        named = f"{self.model!r} ({status}): {shorten(explanation).rstrip('.')}"
        if status == 404:
            advice = self._advise()
            if not advice and self.model not in explanation:
                advice = f"; if it has the model, check the address in {self.vendor.url_variable}"
            return UnknownModel(f"the vendor does not know the model {named}{advice}")
        if status == 429 or status >= 500 or status in {408, 409}:
            delay = _DELAY.search(content)
            wait = retry_after_seconds(headers)
            if wait is None and delay is not None:
                wait = float(delay[1])
            if status == 429:
                message = f"the vendor limits the rate of {named}"
                return RateLimited(message, retry_after_seconds=wait)
            return ModelUnavailable(f"the vendor failed on {named}", retry_after_seconds=wait)
        is_long = status == 413 or code == "context_length_exceeded"
        is_long = is_long or _TOO_LONG.search(explanation.lower()) is not None
        return (PromptTooLong if is_long else RejectedRequest)(
            f"the vendor rejects the request to {named}",
            parameter=str(pick(body, "error", "param") or ""),
            explanation=explanation,
        )

    def _find_known_error(self, code: object, status: int, content: str) -> ModelError | None:
        """Return the error for a code or status that is unambiguous by itself, or None."""
        key = self.vendor.key_variable
        if status == 401 or (status == 400 and "API_KEY_INVALID" in content):
            # The message is omitted because it may contain parts of the key.
            return MissingKey(
                f"the vendor of {self.model!r} rejected the key in {key} (status {status})"
            )
        body = _parse_json(content)
        explanation = find_message(body or content)
        message = shorten(explanation).rstrip(".")
        if status == 402 or code == "insufficient_quota":
            return QuotaExhausted(f"the account of {self.model!r} has no quota left: {message}")
        is_unknown = {"model_not_found", "invalid_model"} & {
            str(code),
            str(pick(body, "error", "type")),
        }
        if is_unknown or _UNKNOWN_MODEL.search(explanation.lower()):
            return UnknownModel(f"the vendor does not know the model {self.model!r}: {message}")
        if code == "content_filter":
            return Refused(f"{self.model!r}: the vendor's content filter refused the request")
        if status == 403:
            return AccessDenied(
                f"the vendor does not allow a request to {self.model!r} (403): {message}; check "
                f"the permissions of the key in {key}"
            )
        return None

    def _concerns_model(self, body: object) -> bool:
        """Return whether an error of status 404 is about a model, and not about a path."""
        error = pick(body, "error")
        text = find_message(error).lower() if isinstance(error, dict | str) else ""
        return any(name in text for name in (self.model.lower(), "model", "deployment"))

    def _wrong_address(self, content: str, status: int = 200) -> WrongAddress:
        body = _parse_json(content)
        message = shorten(find_message(content if body is None else body))
        reply = f"{'a web page' if _is_page(content) else 'a reply'} ({message!r})"
        advice = self._advise() or f"; check the address in {self.vendor.url_variable}"
        return WrongAddress(
            f"expected the API of {self.model!r} at {self.address}, found {reply} with status "
            f"{status}{advice}"
        )

    def _advise(self) -> str:
        """Return advice if the URL lacks a version or has an extra path, or ""."""
        without = _ENDPOINTS.sub("", self.address.rstrip("/"))
        usual = without if _VERSION.search(urlsplit(without).path) else f"{without}/v1"
        is_versioned = _VERSION.search(urlsplit(self.vendor.base_url or "/v1").path)
        if not is_versioned or usual == self.address.rstrip("/"):
            return ""
        return f"; the address may be wrong: try {usual} in {self.vendor.url_variable}"


class ReplyReader:
    """Joins the events of a reply; a reply that is not streamed is a single event.

    Subclasses for each vendor implement `read`, which adds the content of an event.
    """

    def __init__(self, guard: AddressGuard, request: Request) -> None:
        self.guard = guard
        self.text = self.thoughts = self.refusal = self.finish = self.answered_by = ""
        self.usage: Usage | None = None
        self.request = request
        self.calls: dict[str, ToolUse] = {}
        self._first: object = None

    @property
    def is_cut(self) -> bool:
        """Whether the reply reached the token limit."""
        return self.finish.lower() in _CUT

    def read(self, event: Any) -> None:
        """Add the content of an event; implemented for each vendor."""
        raise NotImplementedError

    def add(self, event: object, *, is_whole: bool) -> Delta:
        """Add an event, and return its text and thoughts."""
        self.guard.check(event)
        self._first = self._first or event
        texts, thoughts = len(self.text), len(self.thoughts)
        self.read(event)
        return Delta(self.text[texts:], thoughts=self.thoughts[thoughts:], is_whole=is_whole)

    def add_call(
        self, call_id: object, name: object, arguments: object, signature: str = ""
    ) -> None:
        """Add a tool call.

        A call that is repeated with the same id is added only once. A call without a unique id gets
        an id that is different in each message.
        """
        call = ToolUse(
            call_id=call_id if isinstance(call_id, str) else "",
            name=(name.strip() if isinstance(name, str) else "") or UNNAMED,
            arguments=_read_arguments(arguments),
            signature=signature,
        )
        if call.call_id and self.calls.get(call.call_id) == call:
            return
        if not call.call_id or call.call_id in self.calls:
            place = f"{len(self.request.conversation.messages)}-{len(self.calls)}"
            call = call.model_copy(update={"call_id": f"call-{place}"})
        self.calls[call.call_id] = call

    def end(self) -> Delta:
        """Return the last delta, with the whole reply; raises `UnknownReply` if it is empty."""
        has_part = self.text or self.thoughts or self.refusal or self.finish or self.calls
        if not has_part:
            raise self.guard.unknown_reply(self._first)
        if not self.refusal and self.finish.lower() in _REFUSED:
            self.refusal = f"the answer was stopped ({self.finish})"
        reply = ModelReply(
            self.text,
            self.usage,
            tuple(self.calls.values()),
            self.refusal,
            truncated=self.is_cut,
            answered_by=self.answered_by,
            has_end=bool(self.finish or self.refusal),
            thoughts=self.thoughts,
        )
        return Delta("", reply)


def _read_arguments(arguments: object) -> JsonValue:
    """Parse the arguments that a model wrote; return the text if they are not JSON."""
    if isinstance(arguments, str):
        parsed = _parse_json(arguments)
        arguments = (
            arguments if parsed is None and arguments.strip() not in {"", "null"} else parsed
        )
    return {} if arguments is None else cast("JsonValue", arguments)


async def _iterate_lines(response: httpx2.Response) -> AsyncIterator[str]:
    """Yield the lines of a body; the client's own method also splits at Unicode separators."""
    rest = b""
    async for part in response.aiter_bytes():
        *lines, rest = _LINE_END.split(rest + part)
        for line in lines:
            yield line.decode("utf-8", "replace")
    if rest:
        yield rest.decode("utf-8", "replace")


def _is_page(text: str) -> bool:
    return text.lstrip()[:100].lower().startswith(("<!doctype", "<html", "<head", "<?xml"))


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else -1.0
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None
