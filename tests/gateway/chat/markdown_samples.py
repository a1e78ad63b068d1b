"""Markdown as models write it, and hostile signs, for the tests of properties."""

from hypothesis import settings
from hypothesis import strategies as st

from gateway.chat.marked_text import Marked

QUICK = settings(max_examples=100, derandomize=True, database=None)
SIGNS = "*_`~#>-+1.[]()!|\\<&: \n\tab\u00e9\u0301😀👩\u200d👧🇩🇪\ufe0f。؟"
"""What Markdown and Unicode make something of."""

words = st.text(alphabet="abcxyz0129é漢😀🇩", min_size=1, max_size=9)
lines = st.lists(words, min_size=1, max_size=12).map(" ".join)
hostile = st.text(alphabet=SIGNS, max_size=200)


def _fence(code: list[str]) -> str:
    return "\n".join(("```python", *code, "```"))


inline = st.one_of(
    lines,
    words.map("**{}**".format),
    words.map("*{}*".format),
    words.map("~~{}~~".format),
    words.map("`{}`".format),
    st.builds("[{}](https://example.org/{})".format, lines, st.just("a")),
    words.map("**a `{}` b**".format),
    words.map("[`{}`](https://example.org)".format),
)
paragraphs = st.lists(inline, min_size=1, max_size=8).map(" ".join)
blocks = st.one_of(
    paragraphs,
    st.lists(paragraphs, min_size=1, max_size=3).map(". ".join),
    paragraphs.map("## {}".format),
    paragraphs.map("> {}".format),
    paragraphs.map("> > {}".format),
    st.lists(lines, min_size=1, max_size=6).map(
        lambda them: "\n".join(f"- {item}" for item in them)
    ),
    st.lists(lines.map("    {}".format), min_size=1, max_size=8).map(_fence),
)
markdown = st.lists(blocks, min_size=1, max_size=8).map("\n\n".join)
texts = st.one_of(markdown, hostile)


def paint(piece: Marked) -> list[tuple[str, frozenset[tuple[str, str]]]]:
    """Return for each character of a piece what it is marked as."""
    return [
        (
            character,
            frozenset(
                (mark.kind, mark.detail) for mark in piece.marks if mark.start <= place < mark.end
            ),
        )
        for place, character in enumerate(piece.text)
    ]
