"""The form in which a report keeps its links before somebody reads it.

A channel that shows the report turns them into addresses that its reader can open. No other link is
one of this form.
"""

import json
from urllib.parse import quote, unquote

from compliance.requirements.requirement import TextPlace

_MARK = "place:"
_LEAST = 2


def make_place_link(place: TextPlace) -> str:
    """Return the link of a place: the ids of its document and unit, and its headings."""
    return _MARK + quote(
        json.dumps([place.document_id, place.unit_id, *place.heading_path]), safe=""
    )


def read_place_link(link: str) -> TextPlace | None:
    """Return the place of a link; None for any other text."""
    if not link.startswith(_MARK):
        return None
    try:
        found = json.loads(unquote(link.removeprefix(_MARK)))
    except ValueError:
        return None
    if not isinstance(found, list) or len(found) < _LEAST:
        return None
    document_id, unit_id, *headings = map(str, found)
    return TextPlace(
        document_id=document_id, unit_id=unit_id, heading_path=tuple(headings), start=0, end=0
    )
