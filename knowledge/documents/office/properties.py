"""Reads what an office file states about itself, and which titles are worth nothing."""

import re
from dataclasses import dataclass

from knowledge.documents.decoding import clean_text
from knowledge.documents.office.zipped_xml import ZippedXml, local_name

_LEFT_BY_PROGRAMS = re.compile(
    r"(?:microsoft (?:word|powerpoint|excel)\s*-|(?:untitled|anonymous|unnamed|document|slide|"
    r"presentation|title|unspecified|none|new document|powerpoint presentation|"
    r"pptx? presentation|blank presentation)[\s\d]*\Z)",
    re.IGNORECASE,
)
_NAME_OF_A_FILE = re.compile(r"\S+\.(?:docx?|pptx?|xlsx?|pdf|odt|rtf|tex|dvi|indd|pages|html?)\Z")


@dataclass(frozen=True, slots=True)
class Properties:
    """The title, description and keywords that a file states."""

    title: str = ""
    description: str = ""
    keywords: tuple[str, ...] = ()


def read_properties(archive: ZippedXml) -> Properties:
    """Return the core properties of an office file; empty when it has none."""
    name = archive.find_related("", "core-properties")
    if name is None:
        return Properties()
    stated = {
        local_name(element.tag): " ".join(clean_text(element.text or "").split())
        for element in archive.parse(name)
    }
    words = (word.strip() for word in stated.get("keywords", "").replace(";", ",").split(","))
    description = stated.get("subject", "")
    return Properties(
        title=choose_title(stated.get("title", "")),
        description="" if _LEFT_BY_PROGRAMS.match(description) else description,
        keywords=tuple(word for word in words if word)[:64],
    )


def choose_title(stated: str) -> str:
    """Return a stated title; empty for one that a word processor left, such as `untitled`."""
    title = " ".join(clean_text(stated).split()).strip("() ")
    found = _LEFT_BY_PROGRAMS.match(title) or _NAME_OF_A_FILE.match(title)
    return "" if found else title
