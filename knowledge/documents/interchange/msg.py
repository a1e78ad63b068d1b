"""Reads messages saved by Outlook (.msg): converts their properties to an e-mail, which `mail`
reads.
"""

import io
from datetime import UTC, datetime
from email import message_from_string, policy
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any

from knowledge.documents.decoding import MAX_BYTES, clean_text
from knowledge.documents.errors import TooLargeError, WrongFormatError
from knowledge.documents.interchange import mail
from knowledge.documents.page import Page

_EXPECTED = "an Outlook message (.msg)"
_HEADER = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# The numbers of properties are those of [MS-OXPROPS]; text is in Unicode or in 8 bits.
_SUBJECT, _BODY, _HTML, _HEADERS = "0037", "1000", "1013", "007D"
_SENDER, _ADDRESS, _SMTP, _TO, _CC = "0C1A", "0C1F", "5D01", "0E04", "0E03"
_CONTENT = "__substg1.0_37010102"
_ATTACHMENT_NAMES = ("3707", "3704", "3001")
_MOST_ATTACHMENTS = 100
_PROPERTIES_BEGIN = 32
_SENT_AT = 0x00390040
_SECONDS_BEFORE_1970 = 11_644_473_600


def read(data: bytes, source: str) -> Page:
    """Return the page of a message."""
    import olefile

    if len(data) > MAX_BYTES:
        raise TooLargeError(
            f"a document can have at most {MAX_BYTES} bytes; this one has {len(data)}"
        )
    if not data.startswith(_HEADER):
        raise WrongFormatError(f"expected {_EXPECTED}, found another format")
    try:
        with olefile.OleFileIO(io.BytesIO(data)) as file:
            message = _make_message(file)
    except (OSError, ValueError, IndexError, KeyError, TypeError) as error:
        raise WrongFormatError(f"expected {_EXPECTED}, found a damaged one") from error
    return mail.read(message.as_bytes(), source)


def _make_message(file: Any) -> EmailMessage:  # the library has no types
    message = EmailMessage()
    subject = _line(_read_text(file, _SUBJECT))
    body, markup = _read_text(file, _BODY), _read_text(file, _HTML)
    if not (subject or body or markup):
        raise ValueError("no message")
    sender, address = _read_text(file, _SENDER), _read_text(file, _SMTP)
    address = address or _read_text(file, _ADDRESS)
    shown = f"{sender} <{address}>" if "@" in address and address != sender else sender or address
    headers = message_from_string(_read_text(file, _HEADERS), policy=policy.default)
    stated = {
        "Subject": subject,
        "From": shown,
        "To": _read_text(file, _TO),
        "Cc": _read_text(file, _CC),
        "Date": str(headers.get("Date", "")) or _read_date(file),
    }
    for name, value in stated.items():
        if line := _line(value):
            message[name] = line
    if body.strip():
        message.set_content(body)
    else:
        message.set_content(markup, subtype="html")
    for name, data in _list_attachments(file):
        message.add_attachment(data, "application", "octet-stream", filename=name)
    return message


def _read_text(file: Any, number: str, folder: str = "") -> str:  # as above
    for kind, encoding in (("001F", "utf-16-le"), ("001E", "cp1252"), ("0102", "utf-8")):
        name = f"{folder}__substg1.0_{number}{kind}"
        if file.exists(name):
            data = file.openstream(name).read(MAX_BYTES)
            return clean_text(data.decode(encoding, "replace")).strip("\x00 \n")
    return ""


def _read_date(file: Any) -> str:  # as above
    """Return when the message was sent, stored as a number of 100 ns intervals since 1601."""
    properties = file.openstream("__properties_version1.0").read(MAX_BYTES)
    for at in range(_PROPERTIES_BEGIN, len(properties) - 15, 16):
        tag, ticks = int.from_bytes(properties[at : at + 4], "little"), properties[at + 8 : at + 16]
        if tag == _SENT_AT:
            seconds = int.from_bytes(ticks, "little") / 10_000_000 - _SECONDS_BEFORE_1970
            return format_datetime(datetime.fromtimestamp(seconds, UTC))
    return ""


def _list_attachments(file: Any) -> list[tuple[str, bytes]]:  # as above
    folders = {entry[0] for entry in file.listdir() if entry[0].startswith("__attach_version1.0_")}
    attachments: list[tuple[str, bytes]] = []
    for folder in sorted(folders)[:_MOST_ATTACHMENTS]:
        names = (_read_text(file, name, f"{folder}/") for name in _ATTACHMENT_NAMES)
        content = f"{folder}/{_CONTENT}"
        data = file.openstream(content).read(MAX_BYTES) if file.exists(content) else b""
        attachments.append((_line(next(filter(None, names), "attachment")), data))
    return attachments


def _line(text: str) -> str:
    return " ".join(text.split())
