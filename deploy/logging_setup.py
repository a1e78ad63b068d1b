"""Writes every log line to standard error, in a readable format on a terminal and as JSON
elsewhere.

Standard output is reserved for results. Lines written while an envelope is processed contain its
`conversation_id` and `message_id`. The secrets in the settings are redacted in every line. No line
contains user text: an exception is logged with only its class and location, because its message may
quote users, and libraries are logged only at the level of warnings and above.
"""

import json
import logging
import re
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TextIO
from urllib.parse import unquote, urlsplit

import structlog
from pydantic import BaseModel, SecretStr
from structlog.typing import EventDict, Processor, WrappedLogger

from config.notification_settings import WebhookEndpoint
from config.settings import Settings
from envelope.question import Question
from worker.log_context import PRESENT, add_message_ids

RETRY = "stamina.retry_scheduled"
"""The event that the retry library logs as a warning, although most retries succeed."""

_QUOTES = frozenset({"args", "kwargs", "caused_by"})
HIDDEN = "[hidden]"
_SHORTEST_SECRET = 8
"""Minimum length of a secret that is also redacted within words."""
_SHORTEST_PATH_SECRET = 16
"""Minimum length of a part of a webhook's path that is treated as a secret."""
Forward = Callable[[EventDict, Question | None], None]
"""Receives a line without secrets, and the question that is being processed."""
_FORWARDS: list[Forward] = []
"""Destinations of lines in addition to standard error, which remain when the level is changed."""
_PROCESSORS: list[Processor] = []
"""Additional processors for all lines."""


def add_error_place(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Replace an exception with its class and location, and those of its causes."""
    exc_info = event.pop("exc_info", None)
    error = (
        sys.exc_info()[1]
        if exc_info is True
        else exc_info[1]
        if isinstance(exc_info, tuple)
        else exc_info
    )
    if isinstance(error, BaseException):
        event["exception"] = "\n".join(_places(error))
    return event


def _places(error: BaseException) -> list[str]:
    lines = [
        f"{frame.filename}:{frame.lineno} in {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
    ]
    before = error.__cause__ if error.__cause__ is not None else error.__context__
    others = list(error.exceptions) if isinstance(error, BaseExceptionGroup) else []
    hidden = error.__suppress_context__ and error.__cause__ is None
    others += [] if before is None or hidden else [before]
    named = [f"{type(error).__module__}.{type(error).__qualname__}", *lines]
    for other in others:
        named += [f"  {line}" for line in _places(other)]
    return named


_SHARED: Sequence[Processor] = (
    structlog.contextvars.merge_contextvars,
    add_message_ids,
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    add_error_place,
)


class ErrorStreamLogger:
    """Writes finished lines to the current standard error."""

    def __init__(self, name: str) -> None:
        self.name = name

    def msg(self, message: str) -> None:
        """Write one line."""
        sys.stderr.write(f"{message}\n")
        sys.stderr.flush()

    debug = info = warning = error = critical = msg


class _LibraryHandler(logging.StreamHandler[TextIO]):
    """The log handler for libraries; its class identifies it, so that it is never added twice."""


@contextmanager
def processing(processor: Processor) -> Iterator[None]:
    """Pass each line of this product through `processor` inside the context."""
    _PROCESSORS.append(processor)
    try:
        yield
    finally:
        _PROCESSORS.remove(processor)


@contextmanager
def forwarding(forward: Forward) -> Iterator[None]:
    """Pass each line of this product, but not of libraries, to `forward` inside the context."""
    _FORWARDS.append(forward)
    try:
        yield
    finally:
        _FORWARDS.remove(forward)


def configure_logging(level: str, *, secrets: Collection[str] = ()) -> None:
    """Log messages of `level` and above, and redact `secrets`; called once when the command
    starts.
    """
    number = logging.getLevelNamesMapping()[level.upper()]
    hide = _make_hide(secrets)
    render = _hiding(hide, _renderer(terminal=sys.stderr.isatty()))
    calming: list[Processor] = [_drop_retry_events] if number > logging.INFO else []
    structlog.configure(
        processors=[
            *calming,
            _without_arguments,
            *_SHARED,
            _add_logger_name,
            _process,
            _forwarder(hide),
            render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=lambda *names: ErrorStreamLogger(str(names[0]) if names else "refdesk"),
        cache_logger_on_first_use=False,
    )
    logging.getLogger("worker").setLevel(number)
    _route_libraries(number, render)


def secrets_of(settings: Settings) -> set[str]:
    """Return the strings that no line may contain: keys, and the secret parts of URLs.

    The path of a webhook may be its only secret, as with Slack's webhooks.
    """
    held = [getattr(settings, name) for name in Settings.model_fields]
    secrets = {*_find_secrets(held), *settings.otlp_headers().values()}
    return {form for secret in secrets for form in (secret, unquote(secret)) if form}


def _process(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    for processor in _PROCESSORS:
        event = processor(logger, method, event)  # type: ignore[assignment] # none of ours renders
    return event


def _find_secrets(value: object) -> Iterator[str]:
    """Yield the secrets in a setting's value, at any depth."""
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
        yield from _find_in_address(value.get_secret_value())
    elif isinstance(value, str):
        yield from _find_in_address(value)
    elif isinstance(value, WebhookEndpoint):
        parts = urlsplit(value.url).path.split("/")
        yield from (part for part in parts if len(part) >= _SHORTEST_PATH_SECRET)
        yield from _find_secrets(dict(value))
    elif isinstance(value, BaseModel):
        yield from _find_secrets(dict(value))
    elif isinstance(value, Mapping):
        yield from _find_secrets(list(value.values()))
    elif isinstance(value, Collection):
        for item in value:
            yield from _find_secrets(item)


def _find_in_address(text: str) -> Iterator[str]:
    """Yield the password in a URL, a user name without a password, and the values in its query."""
    if "://" not in text:
        return
    try:
        address = urlsplit(text)
        yield (address.password or address.username or "")
    except ValueError:  # such as an IPv6 address without an end
        return
    # Splitting at "&" keeps the values as they are written; `secrets_of` adds the decoded form.
    values = (part.partition("=")[2] for part in address.query.split("&"))
    yield from (value for value in values if len(value) >= _SHORTEST_SECRET)


def _route_libraries(level: int, render: Processor) -> None:
    root = logging.getLogger()
    for handler in [known for known in root.handlers if isinstance(known, _LibraryHandler)]:
        root.removeHandler(handler)
    ours = _LibraryHandler(sys.stderr)
    ours.setLevel(max(level, logging.WARNING))
    ours.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*_SHARED, structlog.stdlib.add_logger_name],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                render,
            ],
        )
    )
    root.addHandler(ours)


def _drop_retry_events(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Drop the events of single retries, because the caller logs their final result."""
    if event.get("event") == RETRY:
        raise structlog.DropEvent
    return event


def _without_arguments(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Remove the arguments of a retried call, because they quote the prompt of a model."""
    if event.get("event") == RETRY:
        return {name: value for name, value in event.items() if name not in _QUOTES}
    return event


def _add_logger_name(logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    event.setdefault("logger", logger.name)
    return event


def _renderer(*, terminal: bool) -> Processor:
    if terminal:
        return structlog.dev.ConsoleRenderer(colors=True)
    return structlog.processors.JSONRenderer(default=_readable, ensure_ascii=False)


def _forwarder(hide: Callable[[str], str]) -> Processor:
    def forward_line(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        if _FORWARDS:
            delivery = PRESENT.get()
            question = None if delivery is None else delivery.question
            shown = {k: hide(v) if isinstance(v, str) else v for k, v in event.items()}
            for forward in _FORWARDS:
                forward(shown, question)
        return event

    return forward_line


def _make_hide(secrets: Collection[str]) -> Callable[[str], str]:
    """Return a function that redacts secrets, which error messages of vendors and clients may
    quote.
    """
    # JSON may contain an escaped secret. Longest first, because one may contain another.
    forms = {form for secret in secrets for form in (secret, json.dumps(secret)[1:-1])}
    ordered = [_make_pattern(form) for form in sorted(forms, key=len, reverse=True)]

    def hide(line: str) -> str:
        for form in ordered:
            line = form.sub(HIDDEN, line)
        return line

    return hide


def _hiding(hide: Callable[[str], str], render: Processor) -> Processor:
    def render_hidden(logger: WrappedLogger, method: str, event: EventDict) -> str:
        return hide(str(render(logger, method, event)))

    return render_hidden


def _make_pattern(secret: str) -> re.Pattern[str]:
    """Return a pattern that matches a secret. A short secret, such as the key `x` of a local
    server, is redacted only as a whole word, because it may be part of other words.
    """
    exact = re.escape(secret)
    return re.compile(exact if len(secret) >= _SHORTEST_SECRET else rf"(?<!\w){exact}(?!\w)")


def _readable(value: Any) -> str:
    return str(value)
