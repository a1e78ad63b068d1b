"""Turns bytes into clean text: the encoding found, control and hidden characters gone."""

import codecs
import re

from envelope.encoding import remove_hidden_characters
from knowledge.documents.errors import NotTextError, TooLargeError

MAX_BYTES = 64 * 1024 * 1024
LONG_LINE_CHARACTERS = 1_000_000

_UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff]")
_LINE_END = re.compile("\r\n|[\r\x0c\x85]")
_CONTROL_BYTES = bytes(set(range(32)) - set(b"\t\n\r\f\x1b\x08"))
_SAMPLE_BYTES = 8192
# Codecs that turn bytes into bytes, or that interpret escapes: no encodings of a document.
_TRANSFORMATIONS = frozenset(
    {"base64", "bz2", "hex", "quopri", "uu", "zlib", "rot13", "idna", "punycode"}
    | {"raw-unicode-escape", "unicode-escape", "undefined"}
)


def decode(data: bytes, stated: str | None = None) -> tuple[str, tuple[str, ...]]:
    """Return the text and the warnings; raise `NotTextError` or `TooLargeError`.

    `stated` is the encoding that the document claims: believed when it is not UTF-8.
    """
    if len(data) > MAX_BYTES:
        raise TooLargeError(f"a document may have {MAX_BYTES} bytes, this one has {len(data)}")
    text, warnings = _decode(data, stated)
    text = clean_text(text)
    if any(len(line) > LONG_LINE_CHARACTERS for line in text.split("\n")):
        warnings = (*warnings, f"a line is longer than {LONG_LINE_CHARACTERS} characters")
    return text, warnings


def clean_text(text: str) -> str:
    """Return the text with unix line ends, without control and hidden characters.

    Half surrogates go too; see `envelope.encoding`.
    """
    text = (
        text.replace("\r\n", "\n").replace("\r", "\n").replace("\x0c", "\n").replace("\x85", "\n")
    )
    return remove_hidden_characters(_UNPRINTABLE.sub("", text))


def _decode(data: bytes, stated: str | None) -> tuple[str, tuple[str, ...]]:
    if data.startswith(_UTF_16_MARKS):
        return _utf_16(data), ()
    _refuse_binary(data)
    try:
        return data.decode("utf-8-sig"), ()
    except UnicodeDecodeError as error:
        _refuse_noise(data)
        if stated is not None and (text := _decode_as_stated(data, stated)) is not None:
            return text, ()
        warning = f"not UTF-8 at byte {error.start}; read as Latin-1, some letters may be wrong"
        return data.decode("latin-1"), (warning,)


def _decode_as_stated(data: bytes, stated: str) -> str | None:
    try:
        return codecs.decode(data, stated) if _is_text_encoding(stated) else None
    except UnicodeError:
        return None


def _is_text_encoding(name: str) -> bool:
    try:
        return codecs.lookup(name).name not in _TRANSFORMATIONS
    except LookupError:
        return False


def _utf_16(data: bytes) -> str:
    try:
        return data.decode("utf-16")
    except UnicodeDecodeError as error:
        raise NotTextError(f"it starts as UTF-16 but is not: {error.reason}") from error


def _refuse_binary(data: bytes) -> None:
    position = data.find(b"\x00", 0, _SAMPLE_BYTES)
    if position >= 0:
        raise NotTextError(f"expected text, found a binary file (a zero byte at {position})")


def _refuse_noise(data: bytes) -> None:
    sample = data[:_SAMPLE_BYTES]
    controls = len(sample) - len(sample.translate(None, _CONTROL_BYTES))
    if controls * 50 > len(sample):
        raise NotTextError(
            f"expected text, found {controls} control bytes in the first {len(sample)}"
        )
