"""Reads messages saved by Outlook (.msg): converts their properties to an e-mail, which `mail`
reads.
"""

import io
from datetime import UTC, datetime
from email import message_from_string, policy
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any

from knowledge.documents.decoding import MAX_BYTES, clean_text, decode
from knowledge.documents.errors import WrongFormatError
from knowledge.documents.interchange import mail
from knowledge.documents.interchange.mail_parsing import make_line
from knowledge.documents.markup.html import find_charset
from knowledge.documents.page import Page

_EXPECTED = "an Outlook message (.msg)"
_HEADER = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# The numbers of properties are those of [MS-OXPROPS]; text is in Unicode or in 8 bits.
_SUBJECT, _BODY, _HTML, _HEADERS = "0037", "1000", "1013", "007D"
_SENDER, _ADDRESS, _SMTP, _TO, _CC = "0C1A", "0C1F", "5D01", "0E04", "0E03"
_NAMES = ("3707", "3704", "3001")
_PART, _TEXT_TYPES = "__substg1.0_", ("001F", "001E", "0102")
_ATTACHMENT = "__attach_version1.0_"
_CONTENT, _MESSAGE = f"{_PART}37010102", f"{_PART}3701000D"
_MOST_ATTACHMENTS = 100
_DEEPEST_MESSAGES = 10
_SENT_AT = 0x00390040
# The encodings of 8-bit text and of its source; those below say nothing about the former.
_CODE_PAGES = (0x3FFD0003, 0x3FDE0003)
_UNUSED_CODE_PAGES = frozenset({0, 20127, 65001})
_SECONDS_BEFORE_1970 = 11_644_473_600


class _Folder:
    """The properties of a message or an attachment; `path` is its folder in the file."""

    def __init__(self, file: Any, path: str = "", encoding: str = "cp1252") -> None:
        self._file = file  # the library has no types
        self._path = path
        self._numbers = self._read_numbers()
        pages = (self._numbers.get(tag, 0) & 0xFFFF_FFFF for tag in _CODE_PAGES)
        page = next((page for page in pages if page not in _UNUSED_CODE_PAGES), 0)
        self._encoding = f"cp{page}" if page else encoding

    def read(self, name: str) -> bytes:
        """Return a property; empty if it is missing."""
        path = f"{self._path}{name}"
        return (
            bytes(self._file.openstream(path).read(MAX_BYTES)) if self._file.exists(path) else b""
        )

    def read_text(self, *numbers: str) -> str:
        """Return the first of several properties that contains text."""
        for number in numbers:
            wide, narrow, raw = (self.read(f"{_PART}{number}{kind}") for kind in _TEXT_TYPES)
            text = wide.decode("utf-16-le", "replace")
            if narrow or raw:
                stated = find_charset(raw) or self._encoding
                text = text or decode((narrow or raw).replace(b"\x00", b""), stated)[0]
            if text := clean_text(text).strip("\x00 \n"):
                return text
        return ""

    def read_date(self) -> str:
        """Return when the message was sent, stored as a number of 100 ns intervals since 1601."""
        seconds = self._numbers.get(_SENT_AT, 0) / 10_000_000 - _SECONDS_BEFORE_1970
        return format_datetime(datetime.fromtimestamp(seconds, UTC)) if seconds > 0 else ""

    def open_inner(self, name: str) -> "list[_Folder]":
        """Return the folders in this one whose names begin with `name`."""
        start = f"{self._path}{name}"
        depth = start.count("/") + 1
        paths = {"/".join(entry[:depth]) for entry in self._file.listdir() if len(entry) > depth}
        found = sorted(path for path in paths if path.startswith(start))[:_MOST_ATTACHMENTS]
        return [_Folder(self._file, f"{path}/", self._encoding) for path in found]

    def _read_numbers(self) -> dict[int, int]:
        """Return the properties of a fixed size, by type and number."""
        data = self.read("__properties_version1.0")
        header = 24 if self._path.endswith(f"{_MESSAGE}/") else 8 if self._path else 32
        entries = (data[at : at + 16] for at in range(header, len(data) - 15, 16))
        return {
            int.from_bytes(entry[:4], "little"): int.from_bytes(entry[8:], "little")
            for entry in entries
        }


def read(data: bytes, source: str) -> Page:
    """Return the page of a message."""
    import olefile

    if not data.startswith(_HEADER):
        raise WrongFormatError(f"expected {_EXPECTED}, found another format")
    try:
        with olefile.OleFileIO(io.BytesIO(data)) as file:
            message = _make_message(_Folder(file), 0)
    except (OSError, ValueError, IndexError, KeyError, TypeError) as error:
        raise WrongFormatError(f"expected {_EXPECTED}, found a damaged one") from error
    return mail.read(message.as_bytes(), source)


def _make_message(folder: _Folder, depth: int) -> EmailMessage:
    message = EmailMessage()
    subject = make_line(folder.read_text(_SUBJECT))
    body, markup = folder.read_text(_BODY), folder.read_text(_HTML)
    if not (subject or body or markup):
        raise ValueError("no message")
    sender, address = folder.read_text(_SENDER), folder.read_text(_SMTP, _ADDRESS)
    shown = f"{sender} <{address}>" if "@" in address and address != sender else sender or address
    headers = message_from_string(folder.read_text(_HEADERS), policy=policy.default)
    stated = {
        "Subject": subject,
        "From": shown,
        "To": folder.read_text(_TO),
        "Cc": folder.read_text(_CC),
        "Date": str(headers.get("Date", "")) or folder.read_date(),
    }
    for name, value in stated.items():
        if line := make_line(value):
            message[name] = line
    message.set_content(body)
    if markup:
        message.add_alternative(markup, subtype="html")
    for attachment in folder.open_inner(_ATTACHMENT):
        inner = attachment.open_inner(_MESSAGE) if depth < _DEEPEST_MESSAGES else []
        if inner and inner[0].read_text(_SUBJECT, _BODY, _HTML):
            message.add_attachment(_make_message(inner[0], depth + 1))
        else:
            name = make_line(attachment.read_text(*_NAMES)) or "attachment"
            data = attachment.read(_CONTENT)
            message.add_attachment(data, "application", "octet-stream", filename=name)
    return message
