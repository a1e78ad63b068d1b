"""Reads e-mail: a single message or a mailbox; repeated text of a thread is kept once.

A message is a section headed by its subject, sender and date. Quoted lines that repeat an earlier
message of the same file are left out. Other quotations are kept, because they may be the only copy;
below an answer they are sections headed by their author, because they are not the sender's words.
Messages and files inside a message follow it; unreadable ones are counted.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from pathlib import PurePosixPath

from knowledge.documents import plain_text
from knowledge.documents.decoding import decode
from knowledge.documents.errors import TooLargeError, WrongFormatError
from knowledge.documents.interchange.mail_parsing import (
    MailPart,
    ParsedMail,
    list_content,
    parse_mail,
)
from knowledge.documents.markup import html
from knowledge.documents.page import Block, BlockKind, LeftOutCounts, Page, make_code
from knowledge.documents.readers import read_inner_file

_MOST_MESSAGES = 10_000
_QUOTE = re.compile(r"[ \t]{0,3}((?:>(?!=)[ \t]?)+)")
_HEADER = re.compile(rb"[A-Za-z][A-Za-z0-9-]{0,70}[ \t]{0,9}:")
_BETWEEN_MESSAGES = re.compile(
    rb"(?:\A|\n)From (?:[^\n]*\n(?=[A-Za-z][A-Za-z0-9-]{0,70}:)|[^\n]*\d\d:\d\d:\d\d \d{4}\r?\n)"
)
_REPLY = re.compile(r"(?:(?:re|fwd?|aw|wg|sv|vs|antw|tr|rv)(?:\[\d{1,3}\])?[ \t]{0,3}:[ \t]{0,3})+",
                    re.IGNORECASE)  # fmt: skip
# The line above a quotation, as programs of different languages write it.
_ATTRIBUTION = re.compile(
    r"(?:on|am|le|el|em|il|op|den|w dniu)\b[^\n]{6,240}"
    r"(?:wrote|schrieb[^\n]{0,80}|écrit|escribió|escreveu|ha scritto|schreef|skrev|"
    r"napisał[^\n]{0,9})"
    r"[ \t\u00a0]{0,3}:",
    re.IGNORECASE,
)
_SEPARATOR = re.compile(
    r"(?:-{2,}[ \t]{0,3}(?:original message|forwarded message|ursprüngliche nachricht|"
    r"message d'origine|weitergeleitete nachricht)[ \t]{0,3}-{2,}|_{20,})",
    re.IGNORECASE,
)
# The header of a copied message; of the next line only a date is expected.
_COPIED_FROM = re.compile(
    r"\*?(?:from|von|de|da|van|od|от)[ \t]{0,2}:\*?[ \t]{1,3}\S", re.IGNORECASE
)
_COPIED_DATE = re.compile(
    r"\*?(?:sent|date|gesendet|datum|envoyé|enviado|inviato|data|fecha|verzonden|отправлено|дата)"
    r"[ \t]{0,2}:",
    re.IGNORECASE,
)
_LONGEST_FURNITURE = 600
_SHOWN_HEADERS = ("From", "To", "Cc")
_SIGNATURE = "-- "
_REPEATED = ("repeated paragraph", "already read earlier in the same file")
_EVENT_FIELDS = ("SUMMARY", "DTSTART", "DTEND", "DURATION", "RRULE", "EXDATE", "LOCATION",
                 "ORGANIZER", "ATTENDEE", "STATUS", "DESCRIPTION")  # fmt: skip
_FOLD = re.compile(r"\n[ \t]")
_MOMENT = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)\d\d)?")
_ESCAPE = re.compile(r"\\([nN,;\\])")
_ENCRYPTED = "encrypted; decrypt the message in a mail program and save its text"
_NO_TEXT = "signatures contain no text"
# Content that only mail programs open, by a sign near its beginning. Those of S/MIME are
# identifiers of content types (RFC 5652, RFC 5083).
_UNOPENED = {
    b"\x78\x9f\x3e\x22": "packed in a format of Outlook (TNEF); save the message as .msg "
    "in Outlook, or ask for a message in HTML",
    b"-----BEGIN PGP MESSAGE": _ENCRYPTED,
    b"\x2a\x86\x48\x86\xf7\x0d\x01\x07\x03": _ENCRYPTED,
    b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x10\x01\x17": _ENCRYPTED,
    b"\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02": "inside a signature (S/MIME); open the message in "
    "a mail program and save its text",
    b"-----BEGIN PGP SIGNATURE": _NO_TEXT,
}
_SIGN_BYTES = 64
_ARMOUR = "-----BEGIN PGP "
SUFFIX = ".eml"
_MOST_BYTES = 64 * 1024
_ID = re.compile(r"<([^<>\s]{1,250})>")


@dataclass(frozen=True, slots=True)
class _MessageParagraph:
    """Lines without quotation marks, the number of marks, and whether the lines are quoted."""

    lines: list[str]
    marks: int
    is_quoted: bool
    is_signature: bool = False

    def join(self) -> str:
        return " ".join(" ".join(self.lines).split())


def read(data: bytes, source: str, *, keeps_quotations: bool = True) -> Page:
    """Return the page of a message, or of a mailbox with its messages in order.

    Without `keeps_quotations`, quotations below an answer are left out because the quoted messages
    are read from other files.
    """
    seen: set[str] = set()
    blocks: list[Block] = []
    left_out = LeftOutCounts()
    title = ""
    for number, raw in enumerate(_split_box(data), start=1):
        if number > _MOST_MESSAGES:
            raise TooLargeError(f"a mailbox can have at most {_MOST_MESSAGES} messages")
        mail = parse_mail(raw)
        if _is_deleted(mail):
            left_out.add("message", "marked as deleted in the mailbox")
            continue
        subject = mail.read_header("Subject")
        title = title or _REPLY.sub("", subject, count=1).strip()
        blocks += _write_head(mail, subject, number)
        for part in list_content(raw):
            blocks += _write_part(part, seen, left_out, keeps_quotations=keeps_quotations)
    has_text = any(block.kind is not BlockKind.HEADING for block in blocks)
    return Page(source, title, tuple(blocks) if has_text else (), left_out=left_out.list())


def find_replies(messages: Iterable[tuple[PurePosixPath, bytes]]) -> frozenset[PurePosixPath]:
    """Return the files of messages that answer a message of another of these files."""
    own: dict[str, PurePosixPath] = {}
    answered: dict[PurePosixPath, list[str]] = {}
    for path, data in messages:
        header = data[:_MOST_BYTES].replace(b"\r\n", b"\n").partition(b"\n\n")[0]
        try:
            mail = parse_mail(header)
        except WrongFormatError:
            # The file is reported when it is read as a document.
            continue
        own.update((name, path) for name in _ID.findall(mail.read_header("Message-ID"))[:1])
        stated = (mail.read_header(name) for name in ("In-Reply-To", "References"))
        answered[path] = _ID.findall(" ".join(stated))
    return frozenset(
        path for path, ids in answered.items() if any(own.get(name, path) != path for name in ids)
    )


def _split_box(data: bytes) -> Iterator[bytes]:
    """Yield the messages of a mailbox in mbox format, or `data` itself if it is a single
    message.
    """
    if b"\0" in data[:4]:
        # UTF-16, which editors write.
        data = decode(data)[0].encode()
    data = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    separators = list(_BETWEEN_MESSAGES.finditer(data))
    if not separators or separators[0].start():
        if _HEADER.match(data) is None:
            raise WrongFormatError("the file is not an e-mail: its first line is not a header")
        yield data
        return
    ends = [separator.start() + 1 for separator in separators[1:]]
    for separator, end in zip(separators, [*ends, len(data)], strict=False):
        # Lines of the text that begin like a separator are escaped.
        yield data[separator.end() : end].replace(b"\n>From ", b"\nFrom ")


def _is_deleted(mail: ParsedMail) -> bool:
    """Return whether a message is deleted, but still in the file of the mailbox (Thunderbird)."""
    stated = mail.read_header("X-Mozilla-Status")
    return len(stated) == 4 and stated[3] in "89abcdefABCDEF"  # the bit 8 of a hexadecimal number


def _read_date(mail: ParsedMail) -> str:
    text = mail.read_header("Date")
    try:
        return parsedate_to_datetime(text).strftime("%Y-%m-%d %H:%M")
    except (ValueError, TypeError, IndexError, OverflowError):
        return text


def _write_head(mail: ParsedMail, subject: str, number: int) -> Iterator[Block]:
    sender, date = mail.read_header("From"), _read_date(mail)
    named = ", ".join(part for part in (subject or "Message", sender, date) if part)
    yield Block(BlockKind.HEADING, named, 2, f"message={number}")
    shown = (f"{name}: {text}" for name in _SHOWN_HEADERS if (text := mail.read_header(name)))
    yield Block(BlockKind.TEXT, "; ".join(shown) or "Message")


def _write_part(
    part: MailPart, seen: set[str], left_out: LeftOutCounts, *, keeps_quotations: bool
) -> Iterator[Block]:
    if part.kind == "text":
        yield from _write_plain(part.text, seen, left_out, keeps_quotations=keeps_quotations)
    elif part.kind in ("html", "calendar"):
        for block in _list_blocks(part, left_out):
            if _is_new(block.text, seen):
                yield block
            else:
                left_out.add(*_REPEATED)
    elif part.kind == "message":
        yield Block(BlockKind.HEADING, part.text or "Message", 3)
    else:
        yield from _write_file(part, left_out)


def _list_blocks(part: MailPart, left_out: LeftOutCounts) -> Iterator[Block]:
    """Yield the blocks of HTML, or the events of a calendar; headings become text."""
    if part.kind == "calendar":
        yield from (Block(BlockKind.TEXT, text) for text in _write_events(part.text))
        return
    page = html.read(part.text.encode(), "")
    left_out.take(page.left_out)
    for block in page.blocks:
        yield Block(BlockKind.TEXT if block.level else block.kind, block.text)


def _write_file(part: MailPart, left_out: LeftOutCounts) -> Iterator[Block]:
    inner: tuple[Block, ...] = ()
    if reason := _explain_unopened(part):
        left_out.add("attachment", reason, name=part.name)
    elif part.data:
        inner = read_inner_file(part.data, part.name, left_out, what="attachment")
    else:
        left_out.add("attachment", "without readable content", name=part.name)
    if inner:
        yield Block(BlockKind.HEADING, part.name, 3)
        yield from inner


def _explain_unopened(part: MailPart) -> str:
    """Return why only a mail program can open a file; empty if it is not such a file."""
    if part.name.lower().endswith((".p7s", "pkcs7-signature")):
        return _NO_TEXT
    beginning = part.data[:_SIGN_BYTES]
    return next((reason for sign, reason in _UNOPENED.items() if sign in beginning), "")


def _remove_armour(text: str, left_out: LeftOutCounts) -> str:
    """Return text without its encrypted parts and signatures (OpenPGP, RFC 9580)."""
    shown, *parts = text.split(_ARMOUR)
    for part in parts:
        kind = part.partition("-----")[0]
        _, end, rest = part.partition(f"-----END PGP {kind}-----")
        if kind == "SIGNED MESSAGE":
            # Lines that begin with a hyphen are escaped.
            shown += part.partition("\n\n")[2].replace("\n- ", "\n")
        elif kind in ("MESSAGE", "SIGNATURE") and end:
            is_text = kind == "MESSAGE"
            left_out.add(*(("encrypted text", _ENCRYPTED) if is_text else ("signature", _NO_TEXT)))
            shown += rest
        else:
            shown += f"{_ARMOUR}{part}"
    return shown


def _write_events(calendar: str) -> Iterator[str]:
    """Yield the events of an invitation (iCalendar) as text, with the names of the fields."""
    fields: list[str] = []
    parts: list[str] = []
    for line in _FOLD.sub("", calendar).split("\n"):
        head, _, value = line.partition(":")
        name, _, parameters = head.partition(";")
        if name == "BEGIN":
            parts.append(value.strip())
        elif name == "END":
            if parts[-1:] == ["VEVENT"] and fields:
                yield "\n".join(fields)
                fields = []
            del parts[-1:]
        elif parts[-1:] == ["VEVENT"] and name in _EVENT_FIELDS and value.strip():
            text = _ESCAPE.sub(lambda found: "\n" if found[1] in "nN" else found[1], value.strip())
            zone = parameters.partition("TZID=")[2].partition(";")[0]
            fields.append(f"{name.capitalize()}: {_write_moment(name, text)} {zone}".rstrip())


def _write_moment(name: str, text: str) -> str:
    match = _MOMENT.match(text) if name.startswith("DT") else None
    if match is None:
        return text.removeprefix("mailto:").removeprefix("MAILTO:")
    day, clock = "-".join(match.groups()[:3]), f" {match[4]}:{match[5]}" if match[4] else ""
    return f"{day}{clock}{' UTC' if text.endswith('Z') else ''}"


def _write_plain(
    text: str, seen: set[str], left_out: LeftOutCounts, *, keeps_quotations: bool
) -> Iterator[Block]:
    """Yield the paragraphs of plain text; quotations below an answer follow a heading."""
    paragraphs = [
        message_paragraph
        for message_paragraph in _paragraphs(_remove_armour(text, left_out).split("\n"))
        if "".join(message_paragraph.lines).strip()
    ]
    signatures = [paragraph for paragraph in paragraphs if paragraph.is_signature]
    left_out.add("signature paragraph", "only about the sender", len(signatures))
    paragraphs = [paragraph for paragraph in paragraphs if not paragraph.is_signature]
    shown = ""
    for paragraph, author, marks in _find_authors(paragraphs):
        if author and not keeps_quotations:
            left_out.add("quotation", "already in another message of the source")
            continue
        is_code = _looks_like_code(paragraph.lines)
        if not is_code and not _is_new(paragraph.join(), seen):
            left_out.add(*_REPEATED)
            continue
        if author and author != shown:
            yield Block(BlockKind.HEADING, author, 3)
            shown = author
        lines = "\n".join(paragraph.lines).rstrip()
        # Other marks may be signs (`> 3 boxes`).
        mark = "> " * (paragraph.marks - marks)
        for block in (make_code(lines),) if is_code else plain_text.paragraphs(lines):
            yield replace(block, text=mark + block.text.replace("\n", f"\n{mark}"))


def _find_authors(
    paragraphs: list[_MessageParagraph],
) -> Iterator[tuple[_MessageParagraph, str, int]]:
    """Yield each paragraph with the author of the quotation below the answer to which it belongs,
    or an empty string, and the number of marks of the lines of this quotation.
    """
    quoted = [paragraph.is_quoted for paragraph in paragraphs]
    # Text of the sender below a quotation replies to it.
    is_answer_first = any(quoted) and not quoted[0] and all(quoted[quoted.index(True) :])
    author, quotations = "", [("", 0)]
    for paragraph in paragraphs:
        introduced = _find_author(paragraph.join())
        if introduced is not None and (is_answer_first or not introduced):
            author = introduced
            continue
        while paragraph.marks < quotations[-1][1]:
            quotations.pop()
        if author and paragraph.is_quoted:
            quotations.append((author, paragraph.marks))
            author = ""
        yield paragraph, *quotations[-1]


def _paragraphs(lines: Sequence[str]) -> Iterator[_MessageParagraph]:
    """Yield the paragraphs without quotation marks; those of the signature are flagged."""
    marks, is_copied, is_signature = 0, False, False
    held: list[str] = []
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        match = _QUOTE.match(line)
        # The rest is quoted without marks, behind the header of its message.
        begins_copy = match is None and _begins_copy(line.strip(), following.strip())
        now = match[1].count(">") if match else 0
        text = line[match.end() :] if match else line
        begins = text.rstrip("\r") == _SIGNATURE
        if now != marks or begins_copy or not text.strip() or begins:
            yield _MessageParagraph(held, marks, is_copied or marks > 0, is_signature)
            held = []
        is_signature = begins or (is_signature and now == marks and not begins_copy)
        marks, is_copied = now, is_copied or begins_copy
        if not begins:
            held.append(text)
    yield _MessageParagraph(held, marks, is_copied or marks > 0, is_signature)


def _looks_like_code(lines: list[str]) -> bool:
    filled = [line for line in lines if line.strip()]
    return bool(filled) and all(line.startswith(("    ", "\t")) for line in filled)


def _begins_copy(line: str, following: str) -> bool:
    """Return whether a copied message begins at this line, in the style of mail programs that do
    not mark quotations.
    """
    is_header = _COPIED_FROM.match(line) is not None and _COPIED_DATE.match(following) is not None
    return is_header or (line.startswith("-") and _SEPARATOR.match(line) is not None)


def _find_author(text: str) -> str | None:
    """Return the author and date of a quotation that a paragraph introduces, empty if it states
    neither, or None if it introduces no quotation.
    """
    if len(text) >= _LONGEST_FURNITURE:
        return None
    above = _SEPARATOR.match(text)
    if copied := _read_copied_header(text[above.end() :].strip() if above is not None else text):
        return ", ".join(copied[:2])
    if _ATTRIBUTION.match(text):
        return text.rstrip(": \t\u00a0")
    return None if above is None else ""


def _read_copied_header(text: str) -> list[str]:
    """Return the values in the header of a copied message, such as author and date."""
    if _COPIED_FROM.match(text) is None:
        return []
    values: list[list[str]] = []
    names: list[str] = []
    for word in text.split():
        if word.rstrip("*").endswith(":"):
            names.append(word)
            values.append([])
        elif values:
            values[-1].append(word)
    is_header = len(names) > 1 and _COPIED_DATE.match(names[1]) is not None
    return [" ".join(value) for value in values] if is_header else []


def _is_new(text: str, seen: set[str]) -> bool:
    """Return whether a paragraph has not occurred in the thread before, regardless of line
    breaks.
    """
    key = "".join(text.split())
    if key in seen:
        return False
    if len(key) > 20:
        seen.add(key)
    return True
