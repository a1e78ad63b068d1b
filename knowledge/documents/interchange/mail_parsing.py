"""Parses e-mail of unknown origin. No other code of Refdesk parses e-mail.

The parser of the standard library for addresses takes quadratic time, and other parts of it raise
errors for odd headers. Therefore headers are cut before they are parsed, and parsed in the simplest
way. Callers outside of ingestion use `knowledge.isolation.reader_process.ReaderProcess.read_mail`.
"""

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from email import message_from_bytes
from email.errors import MessageError
from email.header import decode_header
from email.message import Message
from email.policy import Compat32
from email.utils import getaddresses

from selectolax.lexbor import LexborHTMLParser

from knowledge.documents.decoding import clean_text
from knowledge.documents.errors import WrongFormatError

LONGEST_HEADER = 8_000
"""Characters of one header; the rest is cut, and addresses of a longer one are not read."""
_MOST_PARTS = 200
_MOST_HEADERS = 1_000
_NO_CHARSETS = frozenset({"idna", "punycode", "unicode_escape", "raw_unicode_escape"})
"""Codecs of Python that are no charsets of mail; some of them take quadratic time."""
_ADDRESSES = ("from", "to", "cc", "delivered-to")
_TEXTS = (*_ADDRESSES, "subject", "date", "message-id", "auto-submitted", "precedence",
          "return-path")  # fmt: skip
_FAULTS = (
    ValueError, LookupError, TypeError, AttributeError, AssertionError, MessageError, RecursionError
)  # fmt: skip
"""What the standard library raises for odd mail."""


@dataclass(frozen=True, slots=True)
class ParsedMail:
    """One e-mail. `headers` are the first ones of their names (in lower case), decoded, in one
    line. `addresses` are those of all headers of a name, in lower case.

    `text` is the first plain text, `html` the first HTML if there is no plain text. `attachments`
    are names or types of the parts that are not read.
    """

    content_type: str
    headers: dict[str, str] = field(default_factory=dict)
    addresses: dict[str, list[str]] = field(default_factory=dict)
    text: str = ""
    html: str = ""
    attachments: list[str] = field(default_factory=list)

    def read_header(self, name: str) -> str:
        """Return a header in one line; empty if there is none."""
        return self.headers.get(name.lower(), "")

    def without_markup(self) -> "ParsedMail":
        """Return the mail with the text of its HTML, without quotations, as its text."""
        if self.text or not self.html:
            return replace(self, html="")
        page = LexborHTMLParser(self.html)
        for quoted in page.css("blockquote, style, script, head"):
            quoted.decompose()
        text = "" if page.body is None else page.body.text(separator="\n")
        return replace(self, text=text, html="")


class _BoundedHeaders(Compat32):
    """Cuts each header, also those of parts, before anything is parsed in it."""

    def header_source_parse(self, sourcelines: Sequence[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(list(sourcelines))
        # One character more tells that the header was cut.
        return name, value[: LONGEST_HEADER + 1]


_POLICY = _BoundedHeaders()


def parse_mail(data: bytes) -> ParsedMail:
    """Return an e-mail; raise `WrongFormatError` if it cannot be read."""
    try:
        message = message_from_bytes(data, policy=_POLICY)
        raw = [(name.lower(), value) for name, value in message.raw_items()][:_MOST_HEADERS]
        parts = list(_list_parts(message))
        attached = [part for part in parts if _is_attachment(part)]
        read = [part for part in parts if not _is_attachment(part)]
        text = _find_text(read, "text/plain")
        html = "" if text else _find_text(read, "text/html")
        return ParsedMail(
            message.get_content_type(),
            {name: _decode(value) for name, value in reversed(raw) if name in _TEXTS},
            {name: _read_addresses(raw, name) for name in _ADDRESSES},
            text,
            html,
            [_name_attachment(part) for part in attached],
        )
    except _FAULTS as error:
        raise WrongFormatError(
            f"expected an e-mail, found a damaged one: {error!s:.120}"
        ) from error


def _list_parts(message: "Message[str, str]") -> Iterator["Message[str, str]"]:
    """Yield the parts without further parts, and the attachments."""
    waiting = [message]
    for _ in range(_MOST_PARTS):
        if not waiting:
            return
        part = waiting.pop()
        inner = part.get_payload()
        if isinstance(inner, list) and not _is_attachment(part):
            waiting += [one for one in reversed(inner) if isinstance(one, Message)]
        else:
            yield part


def _is_attachment(part: "Message[str, str]") -> bool:
    stated = str(part.get("Content-Disposition", ""))
    return stated.partition(";")[0].strip().lower() == "attachment"


def _find_text(parts: Sequence["Message[str, str]"], kind: str) -> str:
    return next((text for part in parts if (text := _read_text(part, kind))), "")


def _read_text(part: "Message[str, str]", kind: str) -> str:
    if part.get_content_type() != kind:
        return ""
    payload = part.get_payload(decode=True)
    raw = payload if isinstance(payload, bytes) else b""
    try:
        charset = part.get_content_charset()
    except _FAULTS:
        charset = None
    text = _decode_bytes(raw, charset)
    return text if text.strip() else ""


def _name_attachment(part: "Message[str, str]") -> str:
    try:
        return make_line(part.get_filename() or part.get_content_type())
    except _FAULTS:
        return part.get_content_type()


def _read_addresses(headers: Sequence[tuple[str, str]], name: str) -> list[str]:
    """Return the addresses of the raw headers: decoded, a name might look like an address."""
    raw = [value for one, value in headers if one == name and len(value) <= LONGEST_HEADER]
    if len(raw) > 1 and sum(map(len, raw)) > LONGEST_HEADER:
        return []
    try:
        return [address.lower() for _, address in getaddresses(raw) if address]
    except _FAULTS:
        return []


def _decode(value: str) -> str:
    """Return a header in one line, with its encoded words (RFC 2047) decoded."""
    text = value[:LONGEST_HEADER].encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    try:
        parts = decode_header(text)
    except _FAULTS:
        return make_line(text)
    words = (
        word if isinstance(word, str) else _decode_bytes(word, charset) for word, charset in parts
    )
    return make_line("".join(words))


def _decode_bytes(raw: bytes, charset: str | None) -> str:
    try:
        name = codecs.lookup(charset or "utf-8").name
        return raw.decode("utf-8" if name in _NO_CHARSETS else name, "replace")
    except (LookupError, ValueError):
        return raw.decode("utf-8", "replace")


def make_line(text: str) -> str:
    """Return a text in one line, without control characters."""
    return " ".join(clean_text(text).split())
