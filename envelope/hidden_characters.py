"""Removes characters that change the displayed order of a text, or that hide text from a reader.

- Bidirectional embeddings and overrides (U+202A to U+202E) reorder the displayed text: "Trojan
  Source", CVE-2021-42574. Isolates and marks remain, because right-to-left texts need them.
- Tag characters (U+E0000 to U+E007F) repeat ASCII invisibly, and models read them.
- Supplementary variation selectors (U+E0100 to U+E01EF) can hide arbitrary bytes after one letter.
- Deprecated format controls (U+206A to U+206F), invisible operators (U+2061 to U+2064) and
  interlinear annotations (U+FFF9 to U+FFFB) have no place in plain text.
- Zero-width spaces (U+200B, U+2060, U+FEFF, U+180E) split words and addresses unseen, so that no
  check recognises them. Joiners (U+200C, U+200D) remain: they are spelling in some scripts.
"""

import re

HIDDEN_RANGES = (
    "\u180e\u200b\u202a-\u202e\u2060-\u2064\u206a-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\U000e0100-\U000e01ef"
)
"""Ranges for a character class of a regular expression."""

_HIDDEN = re.compile(f"[{HIDDEN_RANGES}]+")


def remove_hidden_characters(text: str) -> str:
    """Return `text` without hidden characters; every other character stays as it is."""
    return text if text.isascii() else _HIDDEN.sub("", text)
