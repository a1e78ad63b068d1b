"""Parses e-mail of unknown origin. No other code of Refdesk parses e-mail.

The standard library's address parser takes quadratic time, and other parts of the library raise
errors for malformed headers. Therefore headers are truncated before they are parsed, with the
simplest policy. Code outside of ingestion uses
`knowledge.isolation.reader_process.ReaderProcess.read_mail`.
"""

from base64 import b64decode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from email import message_from_bytes
from email.errors import MessageError
from email.header import decode_header
from email.message import Message
from email.policy import Compat32
from email.utils import getaddresses
from itertools import islice, takewhile

from selectolax.lexbor import LexborHTMLParser

from knowledge.documents.decoding import clean_text, decode
from knowledge.documents.errors import NotTextError, TooLargeError, WrongFormatError
from knowledge.documents.markup.html import find_charset

LONGEST_HEADER = 8_000
"""Maximum number of characters of a header; the rest is cut off, and addresses in a longer header
are not read.
"""
_MOST_PARTS = 200
_SIGNATURE = "-- "
_MOST_HEADERS = 1_000
_ADDRESSES = ("from", "to", "cc", "delivered-to")
_TEXTS = (*_ADDRESSES, "subject", "date", "message-id", "auto-submitted", "precedence",
          "return-path", "x-mozilla-status", "in-reply-to", "references")  # fmt: skip
_FAULTS = (
    ValueError, LookupError, TypeError, AttributeError, AssertionError, MessageError, RecursionError
)  # fmt: skip
"""Exceptions that the standard library raises for malformed mail."""


class _BoundedHeaders(Compat32):
    """Unfolds and truncates each header, including those of parts, before it is parsed."""

    def header_source_parse(self, sourcelines: Sequence[str]) -> tuple[str, str]:
        name, value = super().header_source_parse([line.strip("\r\n") for line in sourcelines])
        # One character more tells that the header was cut.
        return name, value[: LONGEST_HEADER + 1]


_POLICY = _BoundedHeaders()
_KINDS = {"text/plain": "text", "text/html": "html", "text/calendar": "calendar"}
_MESSAGES = frozenset({"message/rfc822", "message/global"})
_DEEPEST_MESSAGES = 10
_STRUCK = "body :is(s, strike, del, [style*='line-through'])"


@dataclass(frozen=True, slots=True)
class ParsedMail:
    """One e-mail. `headers` maps each name (in lower case) to its first header, decoded and on one
    line. `addresses` maps it to the addresses in all headers of that name, in lower case.

    `text` is the first plain text, or that of the first HTML without quotations.
    """

    content_type: str
    headers: dict[str, str] = field(default_factory=dict)
    addresses: dict[str, list[str]] = field(default_factory=dict)
    text: str = ""

    def read_header(self, name: str) -> str:
        """Return a header on one line; empty if it is missing."""
        return self.headers.get(name.lower(), "")


@dataclass(frozen=True, slots=True)
class MailPart:
    """A part of an e-mail. `kind` is `text`, `html`, `calendar`, `file` or `message`.

    For a message, only the name is set, and its parts follow. Only a file has `data`, a name, and
    the `location` by which other parts refer to it (RFC 2557).
    """

    kind: str
    text: str = ""
    name: str = ""
    data: bytes = b""
    location: str = ""


def list_content(data: bytes) -> list[MailPart]:
    """Return all parts of an e-mail in order; only the most informative one of alternative parts.

    Raises `WrongFormatError` if the e-mail cannot be read.
    """
    try:
        return list(_list_content(message_from_bytes(data, policy=_POLICY), 0))[:_MOST_PARTS]
    except _FAULTS as error:
        raise WrongFormatError(f"the e-mail is damaged: {error!s:.120}") from error


def parse_mail(data: bytes) -> ParsedMail:
    """Return a parsed e-mail; raise `WrongFormatError` if it cannot be read."""
    try:
        message = message_from_bytes(data, policy=_POLICY)
        raw = [(name.lower(), value) for name, value in message.raw_items()][:_MOST_HEADERS]
        # Text after a forwarded message is not the sender's.
        own = takewhile(lambda part: part.kind != "message", _list_content(message, 0))
        parts = [part for part in islice(own, _MOST_PARTS) if part.text]
        texts = {part.kind: part.text for part in reversed(parts)}
        return ParsedMail(
            message.get_content_type(),
            {name: _decode(value) for name, value in reversed(raw) if name in _TEXTS},
            {name: _read_addresses(raw, name) for name in _ADDRESSES},
            texts.get("text") or _remove_markup(texts.get("html", "")),
        )
    except _FAULTS as error:
        raise WrongFormatError(f"the e-mail is damaged: {error!s:.120}") from error


def make_line(text: str) -> str:
    """Return text on one line, without control characters."""
    return " ".join(clean_text(text).split())


def _list_content(part: "Message[str, str]", depth: int) -> Iterator[MailPart]:
    payload = part.get_payload()
    inner = (
        [message for message in payload if isinstance(message, Message)]
        if isinstance(payload, list)
        else []
    )
    kind = part.get_content_type()
    if depth > _DEEPEST_MESSAGES:
        yield MailPart("file", name=_name_attachment(part))
    elif kind in _MESSAGES and inner:
        message = _decode_message(part, inner[0])
        headers = (message.get(name, "") for name in ("Subject", "From", "Date"))
        yield MailPart(
            "message", ", ".join(filter(None, (_decode(str(header)) for header in headers)))
        )
        yield from _list_content(message, depth + 1)
    elif kind.startswith("message/") and inner:
        # Reports about a delivery consist of fields (RFC 3464, RFC 8098).
        for message in inner:
            fields = (f"{name}: {_decode(str(value))}" for name, value in message.items())
            yield MailPart("text", "\n".join(fields))
            yield from _list_content(message, depth + 1)
    elif inner:
        # The first part of encrypted content only names the method (RFC 1847).
        inner = inner[-1:] if kind == "multipart/encrypted" else inner
        mail_parts = [list(_list_content(message, depth + 1)) for message in inner]
        chosen = [_choose(mail_parts)] if kind == "multipart/alternative" else mail_parts
        yield from (mail_part for parts in chosen for mail_part in parts)
    elif kind in _KINDS and (
        kind == "text/calendar" or part.get_content_disposition() != "attachment"
    ):
        yield MailPart(_KINDS[kind], _read_text(part))
    elif kind.startswith("multipart/"):
        # Without a boundary that occurs, its parts cannot be distinguished.
        yield MailPart("text", clean_text(str(payload or "")))
    else:
        content = part.get_payload(decode=True)
        raw = content if isinstance(content, bytes) else b""
        location = make_line(str(part.get("Content-Location", "")))
        yield MailPart("file", name=_name_attachment(part), data=raw, location=location)


def _decode_message(part: "Message[str, str]", message: "Message[str, str]") -> "Message[str, str]":
    """Return the message in a part, which some programs encode as a whole."""
    if str(part.get("Content-Transfer-Encoding", "")).strip().lower() != "base64":
        return message
    try:
        return message_from_bytes(b64decode(str(message.get_payload())), policy=_POLICY)
    except ValueError:
        return message


def _choose(alternatives: Sequence[list[MailPart]]) -> list[MailPart]:
    """Return the first alternative that contains most of the last one, with the files of the
    others.

    Plain text that does not is only a placeholder for programs that cannot display HTML. It also
    cannot state that text is struck out, and lacks the texts of files between the parts of the last
    alternative.
    """
    words = [frozenset().union(*map(_list_words, parts)) for parts in alternatives]
    last = next((at for at in reversed(range(len(words))) if words[at]), 0)
    richest = words[last] if words else frozenset()
    best = next((at for at, word in enumerate(words) if 2 * len(word & richest) >= len(richest)), 0)
    if words and (
        any(map(_has_struck_text, alternatives[last]))
        or sum(part.kind in ("text", "html") for part in alternatives[last]) > 1
    ):
        best = last
    others = (
        part
        for at, parts in enumerate(alternatives)
        for part in parts
        if at != best and part.kind in ("calendar", "file")
    )
    return [*alternatives[best], *others] if alternatives else []


def _has_struck_text(part: MailPart) -> bool:
    if part.kind != "html":
        return False
    return LexborHTMLParser(part.text).css_first(_STRUCK) is not None


def _list_words(part: MailPart) -> frozenset[str]:
    text = part.text if part.kind in ("text", "html") else ""
    if part.kind == "html":
        text = _remove_markup(text, "style, script, head")
    return frozenset(text.split())


def _remove_markup(html: str, unseen: str = "blockquote, style, script, head") -> str:
    """Return the text of HTML without the elements that match a selector."""
    page = LexborHTMLParser(html)
    for element in page.css(unseen):
        element.decompose()
    return "" if page.body is None else page.body.text(separator="\n")


def _read_text(part: "Message[str, str]") -> str:
    payload = part.get_payload(decode=True)
    raw = payload if isinstance(payload, bytes) else b""
    try:
        charset = part.get_content_charset()
        layout = [str(part.get_param(name, "")).lower() for name in ("format", "delsp")]
    except _FAULTS:
        charset, layout = None, []
    text = _decode_bytes(raw, charset or find_charset(raw))
    if layout[:1] == ["flowed"]:
        text = _unflow(text, "" if layout[1] == "yes" else " ")
    return text if text.strip() else ""


def _unflow(text: str, space: str) -> str:
    """Return text in which paragraphs are lines (RFC 3676); `space` replaces the one at each break.

    A line continues the previous one if that ends with a space, at the same depth of quotation.
    """
    lines: list[str] = []
    quoted = flowing = None
    for line in text.split("\n"):
        bare = line.lstrip(">")
        depth = line[: len(line) - len(bare)]
        bare = bare.removeprefix(" ")
        if flowing and depth == quoted and bare != _SIGNATURE:
            lines[-1] = f"{lines[-1][:-1]}{space}{bare}"
        else:
            lines.append(f"{depth} {bare}" if depth else bare)
        quoted, flowing = depth, bare.endswith(" ") and bare != _SIGNATURE
    return "\n".join(lines)


def _decode_bytes(raw: bytes, charset: str | None) -> str:
    try:
        return decode(raw, charset)[0]
    except (NotTextError, TooLargeError):
        return raw.decode("utf-8", "replace")


def _name_attachment(part: "Message[str, str]") -> str:
    try:
        return _decode(part.get_filename() or part.get_content_type())
    except _FAULTS:
        return part.get_content_type()


def _read_addresses(headers: Sequence[tuple[str, str]], name: str) -> list[str]:
    """Return the addresses in the raw headers, because a decoded name might look like an
    address.
    """
    raw = [value for header, value in headers if header == name and len(value) <= LONGEST_HEADER]
    if len(raw) > 1 and sum(map(len, raw)) > LONGEST_HEADER:
        return []
    try:
        return [address.lower() for _, address in getaddresses(raw) if address]
    except _FAULTS:
        return []


def _decode(value: str) -> str:
    """Return a header on one line, with its encoded words (RFC 2047) decoded."""
    text = _decode_bytes(value[:LONGEST_HEADER].encode("utf-8", "surrogateescape"), None)
    try:
        parts = decode_header(text)
    except _FAULTS:
        return make_line(text)
    words = (
        word if isinstance(word, str) else _decode_bytes(word, charset) for word, charset in parts
    )
    return make_line("".join(words))
