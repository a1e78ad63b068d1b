"""Makes the texts of a report safe: no foreign link, and nothing that a viewer would make one."""

from citations.addresses import find_addresses
from citations.links import clean_text, plain_line

_BROKEN = str.maketrans({".": "[.]", ":": "[:]", "@": "[@]"})


def clean_words(text: str) -> str:
    """Return a text of a model or a title on one line, without links and addresses."""
    return break_addresses(plain_line(text))


def clean_quotation(text: str) -> str:
    """Return words of a document on one line; its addresses stay readable, but lead nowhere."""
    return break_addresses(" ".join(clean_text(text).split()))


def break_addresses(text: str) -> str:
    """Return a text in which no viewer finds an address: `example[.]com`."""
    parts, end = [], 0
    for found in find_addresses(text):
        parts += [text[end : found.start], found.text.translate(_BROKEN)]
        end = found.end
    return "".join((*parts, text[end:])) if parts else text
