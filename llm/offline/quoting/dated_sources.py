"""Recognises sources of one series by their dates: messages of a thread, minutes of a committee.

A later one often changes one point and repeats nothing else. What it says otherwise on the point
of a quotation is what holds.
"""

import re
from collections.abc import Sequence

from llm.offline.phrases import MONTHS
from llm.offline.quoting.extracts import Extract
from llm.offline.quoting.relevance import Relevance
from llm.tasks.respond import PromptSource

Date = tuple[int, ...]
"""Year, month, day, and the time of the day where it is stated."""

_ISO = re.compile(r"(?<!\d)(\d{4})-(\d{2})-(\d{2})(?:[ T](\d{2}):(\d{2}))?(?!\d)")
_DOTTED = re.compile(r"(?<!\d)(\d{1,2})\. ?(\d{1,2})\. ?(\d{4})(?!\d)")
_DAY_FIRST = re.compile(
    r"(?<!\d)(\d{1,2})(?:st|nd|rd|th|\.)? (?:of |de )?([^\W\d_]{3,12})\.?,? (?:de )?(\d{4})(?!\d)",
    re.IGNORECASE,
)
_MONTH_FIRST = re.compile(
    r"\b([^\W\d_]{3,12})\.? (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})(?!\d)", re.IGNORECASE
)
_SPELLED = ((_DOTTED, (2, 1, 0)), (_DAY_FIRST, (2, 1, 0)), (_MONTH_FIRST, (2, 0, 1)))
"""Patterns, and which of their groups are year, month and day."""
_SENDER = re.compile(r",[^,<>]{0,80}(?:<[^<>]{0,200}>|\S{1,100}@\S{1,100})")
_REPLY = re.compile(r"\b(?:re|fwd?|aw|wg|sv|antw)\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{2,}")
_MOST_CHARACTERS = 2000
_REPLACES = re.compile(
    r"\b(?:instead|postponed|rescheduled|delayed|brought forward|moved (?:to|from)|extended"
    r"|prolonged|shortened|changed|corrected|correction|no longer|not any more|cancelled|canceled"
    r"|now (?:on|at|is|costs?|until)|(?:is|are|costs?) now|rather than"
    r"|new (?:date|day|time|price|fee|rate|deadline)"
    r"|stattdessen|statt|anstatt|verschoben|verlegt|verlängert|verkürzt|geändert|korrigiert"
    r"|korrektur|nicht mehr|abgesagt|neue[rs]? (?:termin|preis|frist)"
    r"|reporté|repoussé|prolongé|modifié|annulé|au lieu|désormais)\b",
    re.IGNORECASE,
)
"""By which a message says that it changes what an earlier one said."""
_CLOCK = re.compile(r"(?<![\d:.])\d{1,2}(?::\d{2}| ?(?:am|pm|uhr|h)\b)", re.IGNORECASE)
_SUM = re.compile(
    r"[€$£¥]\s?\d|\d\s?(?:[€$£¥%]|(?:EUR|USD|GBP|CHF|euros?|dollars?|pounds?|francs?)\b)",
    re.IGNORECASE,
)
_DAY = re.compile(
    r"(?<!\d)\d{1,2}(?:st|nd|rd|th|\.)? (?:of |de )?([^\W\d_]{3,12})"
    r"|\b([^\W\d_]{3,12})\.? \d{1,2}(?!\d)"
)
_SHARE = 0.6
"""How far a later statement is about the question, compared with the quotation."""


def read_date(place: str) -> Date:
    """Return the last date that a place states; empty if it states none."""
    text = place[:_MOST_CHARACTERS]
    found = [(at.start(), _list_numbers(at.groups())) for at in _ISO.finditer(text)]
    for pattern, order in _SPELLED:
        for at in pattern.finditer(text):
            parts = [at.groups()[one] for one in order]
            month = MONTHS.get(parts[1].lower()) if not parts[1].isdigit() else int(parts[1])
            if month is not None:
                found.append((at.start(), (int(parts[0]), month, int(parts[2]))))
    return max(found, default=(0, ()))[1]


def find_later(
    best: Extract, found: Sequence[Extract], sources: Sequence[PromptSource], relevance: Relevance
) -> Extract | None:
    """Return what the latest source of a series says otherwise on the point of a quotation."""
    own, series = read_date(sources[best.rank].place), _name_series(sources[best.rank].place)
    if not own:
        return None
    later = [
        (read_date(sources[other.rank].place), relevance.score(other), -other.order, other)
        for other in found
        if (_is_on_point(other, best, relevance) or _replaces(other, best, found, relevance))
        and read_date(sources[other.rank].place) > own
        and _name_series(sources[other.rank].place) == series
    ]
    return max(later, key=lambda one: one[:3])[3] if later else None


def name_dated(place: str) -> str:
    """Return a place from its dated part on."""
    parts = place.split(" > ")
    at = max((at for at, part in enumerate(parts) if read_date(part)), default=0)
    return " > ".join(parts[at:])


def _is_on_point(other: Extract, best: Extract, relevance: Relevance) -> bool:
    """Return whether an extract itself is about the question, and says something else."""
    return (
        other.kind is best.kind
        and bool(other.terms & best.terms & relevance.asked)
        and relevance.share(other) >= _SHARE * relevance.share(best)
        and (relevance.fits(other) or not relevance.fits(best))
        and not relevance.is_ruled_out(other)
        and not other.text.rstrip().endswith(("?", "\uff1f"))
        and not other.terms <= best.terms
    )


def _replaces(
    other: Extract, best: Extract, found: Sequence[Extract], relevance: Relevance
) -> bool:
    """Return whether an extract says that it changes the day, time or sum of a quotation.

    "We come on 19 March instead" names the point only by the day. An earlier message that
    states several such values may mean another of them, unless both name the point.
    """
    if not relevance.fits(other) or _REPLACES.search(other.text) is None:
        return False
    forms = _list_forms(best.text) & _list_forms(other.text)
    if forms and other.terms & best.terms & relevance.asked:
        return True
    neighbours = (e for e in found if e.rank == best.rank and e is not best)
    return bool(forms) and not any(forms & _list_forms(e.text) for e in neighbours)


def _list_forms(text: str) -> frozenset[str]:
    """Return which of day, time of the day and sum of money a text states."""
    days = (one or other for one, other in _DAY.findall(text[:_MOST_CHARACTERS]))
    has_day = _ISO.search(text) or _DOTTED.search(text) or any(d.lower() in MONTHS for d in days)
    stated = (("day", has_day), ("time", _CLOCK.search(text)), ("sum", _SUM.search(text)))
    return frozenset(name for name, found in stated if found)


def _name_series(place: str) -> tuple[str, ...]:
    """Return the words of the part of a place that is dated, without sender, date and "Re:"."""
    parts = place[:_MOST_CHARACTERS].split(" > ")
    dated = [part for part in parts if read_date(part)]
    name = _REPLY.sub(" ", _SENDER.sub(" ", dated[-1])) if dated else ""
    return tuple(word for word in _WORD.findall(name.lower()) if word not in MONTHS)


def _list_numbers(groups: Sequence[str | None]) -> Date:
    return tuple(int(group) for group in groups if group is not None)
