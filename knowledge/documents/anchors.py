"""Names the places inside a page: slugs of headings, each once."""

import re

_DROPPED = re.compile(r"[^\w\- ]+")


class Anchors:
    """Hands out one anchor per heading; a name taken before gets a number."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}

    def take(self, text: str, stated: str | None = None) -> str:
        """Return the stated anchor, or the slug of the text as the large code hosts make it."""
        wanted = slug(text) if stated is None else stated
        count = self._counts.get(wanted, 0)
        anchor = wanted if count == 0 else f"{wanted}-{count}"
        while anchor in self._taken:
            count += 1
            anchor = f"{wanted}-{count}"
        self._counts[wanted] = count + 1
        self._taken.add(anchor)
        return anchor


def slug(text: str) -> str:
    """Return the text in lower case, without punctuation, with hyphens for spaces."""
    return _DROPPED.sub("", text.lower()).strip().replace(" ", "-") or "section"
