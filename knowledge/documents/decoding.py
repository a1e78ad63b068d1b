"""Decodes bytes into clean text: determines the encoding, removes control and hidden characters.

Encoding labels follow the WHATWG Encoding Standard, as in browsers: `iso-8859-1` means
Windows-1252. Without a valid label, chardet detects the encoding, and the choice is reported.
"""

import codecs
import re
import unicodedata

import webencodings

from envelope.encoding import remove_hidden_characters
from knowledge.documents.errors import NotTextError, TooLargeError

MAX_BYTES = 64 * 1024 * 1024
LONG_LINE_CHARACTERS = 1_000_000

_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufeff]")
_MULTIBYTE = re.compile(rb"[\xc2-\xf4][\x80-\xbf]{1,3}")
_CONTROL_BYTES = bytes(set(range(32)) - set(b"\t\n\r\f\x1b\x08"))
# The corner of a table drawn with lines, which only the code pages of DOS have.
_DRAWN_LINES = re.compile(rb"[\xda\xc3\xd6\xc7]\xc4{3}|[\xc9\xcc\xd5\xc6]\xcd{3}")
_SAMPLE_BYTES = 8192
_DETECTION_BYTES = 100_000
_CONTEXT_BYTES = 2000
_FALLBACK = "windows-1252"
_DOS = ("cp850", "cp437")
"""The code pages of DOS for Western Europe and America, which differ in few characters."""
_WESTERN = ("cp1252", *_DOS)
_FEW_BYTES = 10
# Letters and signs, without apostrophes, dashes, and signs that Unicode calls letters.
_FOREIGN = re.compile("[^\x00-\x7f\u2018\u2019\u2010-\u2015\xa0\xaa\xad\xb5\xb7\xba]")
_HALVES = "\u2320\u2321"
"""The halves of a large integral, which occur in no text."""
# Codecs that turn bytes into bytes, or that interpret escapes: no encodings of a document.
_TRANSFORMATIONS = frozenset(
    {"base64", "bz2", "hex", "quopri", "uu", "zlib", "rot13", "idna", "punycode"}
    | {"raw-unicode-escape", "raw_unicode_escape", "unicode-escape", "unicode_escape", "undefined"}
)
# Their bytes are those of ASCII, so that UTF-8 reads them, too, and reads other characters.
_SEVEN_BIT = ("iso2022", "hz", "utf-7")
# Browsers read the numbers 128 to 159 of characters as bytes of Windows-1252. The sign that begins
# a command to terminals is none of them.
_WINDOWS_CHARACTERS = {
    number: bytes([number]).decode("cp1252", "ignore")
    for number in range(0x80, 0xA0)
    if number != 0x9B
}


def decode(data: bytes, stated: str | None = None) -> tuple[str, tuple[str, ...]]:
    """Return the text and the warnings; raise `NotTextError` or `TooLargeError`.

    `stated` is the encoding that the document declares. It is used only if the bytes are not UTF-8.
    """
    if len(data) > MAX_BYTES:
        raise TooLargeError(
            f"a document can have at most {MAX_BYTES} bytes; this one has {len(data)}"
        )
    text, warnings = _decode(data, stated)
    text = clean_text(text)
    if any(len(line) > LONG_LINE_CHARACTERS for line in text.split("\n")):
        warnings = (*warnings, f"a line is longer than {LONG_LINE_CHARACTERS} characters")
    return text, warnings


def clean_text(text: str) -> str:
    """Return the text with Unix line endings, without control and hidden characters.

    Surrogates are removed, too; see `envelope.encoding`.
    """
    text = (
        text.replace("\r\n", "\n").replace("\r", "\n").replace("\x0c", "\n").replace("\x85", "\n")
    )
    if _UNPRINTABLE.search(text) is not None:
        text = _UNPRINTABLE.sub("", text.translate(_WINDOWS_CHARACTERS))
    return remove_hidden_characters(text)


def _decode(data: bytes, stated: str | None) -> tuple[str, tuple[str, ...]]:
    if data.startswith(codecs.BOM_UTF8):
        data, stated = data.removeprefix(codecs.BOM_UTF8), "utf-8"
    for name in (name for mark, name in _MARKS.items() if data.startswith(mark)):
        try:
            return data.decode(name), ()
        except UnicodeDecodeError as error:
            raise NotTextError(f"it starts as {name.upper()} but is not: {error.reason}") from error
    if (position := data.find(b"\x00", 0, _SAMPLE_BYTES)) >= 0:
        return _decode_wide(data, position)
    codec = _find_codec(stated) if stated is not None else None
    if codec is not None and codec.name.startswith(_SEVEN_BIT):
        return codec.decode(data, "replace")[0], ()
    try:
        return data.decode(), ()
    except UnicodeDecodeError as error:
        return _decode_legacy(data, error.start, codec)


def _decode_legacy(
    data: bytes, position: int, codec: codecs.CodecInfo | None
) -> tuple[str, tuple[str, ...]]:
    """Decode text that is not valid UTF-8 at `position`."""
    _refuse_noise(data)
    if codec is not None and codec.name != "utf-8":
        try:
            return codec.decode(data, "strict")[0], ()
        except UnicodeError:
            pass  # the stated encoding is wrong: it is detected and reported
    text = data.decode("utf-8", _NAME_OF_HANDLER)
    if len(_MULTIBYTE.findall(data)) > len(data.decode("utf-8", "replace").split("\ufffd")):
        return text, (f"some bytes are not UTF-8, the first at {position}; read as {_FALLBACK}",)
    name, text = _detect(data, position)
    count = sum(byte > 0x7F for byte in data[:_DETECTION_BYTES])
    doubt = ", but uncertain because almost all of it is ASCII" if count < _FEW_BYTES else ""
    return text, (
        f"not UTF-8 at byte {position}; read as {name}, the most likely encoding{doubt}; if "
        "letters are wrong, save the file as UTF-8",
    )


def _detect(data: bytes, position: int) -> tuple[str, str]:
    """Return the most likely encoding, detected from the text after `position`, and the whole
    text.
    """
    import chardet
    from chardet import EncodingEra

    start = max(0, position - _CONTEXT_BYTES)
    sample = data[start : start + _DETECTION_BYTES]
    is_drawn = _DRAWN_LINES.search(sample) is not None
    era = EncodingEra.DOS if is_drawn else EncodingEra.MODERN_WEB
    detected = chardet.detect(sample, encoding_era=era)["encoding"] or _FALLBACK
    texts: dict[str, str] = {}
    for name in (detected, *(_DOS if is_drawn else (_FALLBACK, _DOS[0]))):
        codec = _find_codec(name)
        try:
            texts |= {} if codec is None else {codec.name: codec.decode(data, "strict")[0]}
        except UnicodeError:
            continue
    if not texts:
        return _FALLBACK, data.decode("cp1252", "replace")
    misread = {
        name: _count_misread(text[:_DETECTION_BYTES], is_drawn=is_drawn)
        for name, text in texts.items()
    }
    first = next(iter(texts))
    errors, count = misread[first]
    order = [first]
    if 2 * errors > count or first in _DOS:
        # An encoding of another script is the last choice.
        order = sorted(texts, key=lambda name: name == first and name not in _WESTERN)
    chosen = min(order, key=lambda name: misread[name][0])
    return chosen, texts[chosen]


def _count_misread(text: str, *, is_drawn: bool) -> tuple[int, int]:
    """Return how many characters outside of ASCII are out of place, and how many there are.

    A letter has a letter of the same script beside it, no sign is between two letters, and lines
    are those of a table, if one is drawn.
    """
    errors = count = 0
    for match in _FOREIGN.finditer(text):
        sign = match[0]
        before = text[match.start() - 1 : match.start()]
        after = text[match.end() : match.end() + 1]
        count += 1
        if sign.isalpha():
            scripts = {_find_script(beside) for beside in (before, after)}
            errors += _find_script(sign) not in scripts or (sign.islower() and after.isupper())
        else:
            is_line = "\u2500" <= sign <= "\u259f"
            errors += (
                sign in _HALVES
                or (is_line and not is_drawn)
                or (before.isalpha() and after.isalpha())
            )
    return errors, count


def _find_script(character: str) -> str:
    """Return the first word of a letter's name in Unicode, such as `LATIN`; otherwise nothing."""
    return unicodedata.name(character, "").partition(" ")[0] if character.isalpha() else ""


def _find_codec(name: str) -> codecs.CodecInfo | None:
    """Return the codec for a declared name, resolved as in browsers or, if they do not know it, as
    in Python.
    """
    known_codec = webencodings.lookup(name)
    if known_codec is not None:
        info: codecs.CodecInfo = known_codec.codec_info
        return info
    try:
        codec = codecs.lookup(name)
    except (LookupError, ValueError):
        return None
    return None if codec.name in _TRANSFORMATIONS else codec


def _read_as_windows(error: UnicodeError) -> tuple[str, int]:
    """Decode bytes that are not UTF-8 as Windows-1252, the encoding most often mixed into UTF-8
    text.
    """
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


_NAME_OF_HANDLER = "refdesk.windows-1252"
codecs.register_error(_NAME_OF_HANDLER, _read_as_windows)


def _decode_wide(data: bytes, position: int) -> tuple[str, tuple[str, ...]]:
    """Decode UTF-16 or UTF-32 without a byte order mark; the zero bytes of UTF-16 are almost all
    either high or low bytes.
    """
    import chardet

    sample = data[:_SAMPLE_BYTES]
    encoding = (chardet.detect(sample)["encoding"] or "").lower()
    zeros = sample[::2].count(0), sample[1::2].count(0)
    is_utf16 = encoding.startswith("utf-16") and 10 * min(zeros) <= max(zeros)
    if is_utf16 or encoding.startswith("utf-32"):
        name = encoding if encoding.endswith(("le", "be")) else "utf-16-le"
        try:
            text = data.decode(name)
        except UnicodeDecodeError:
            text = "\x00"
        if _UNPRINTABLE.search(text[:_SAMPLE_BYTES]) is None:
            return text, (f"it states no encoding; read as {name}, the most likely one",)
    raise NotTextError(f"expected text, found a binary file (a zero byte at {position})")


def _refuse_noise(data: bytes) -> None:
    sample = data[:_SAMPLE_BYTES]
    controls = len(sample) - len(sample.translate(None, _CONTROL_BYTES))
    if controls * 50 > len(sample):
        raise NotTextError(
            f"expected text, found {controls} control bytes in the first {len(sample)}"
        )
