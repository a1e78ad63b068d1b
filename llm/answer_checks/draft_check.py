"""Selects the part of an answer that may be shown before it is complete and judged.

Only what is finished is shown: sentences that another one follows, rows and code that something
follows. A draft ends with something that has a source, and omits every block with a fault that
rules find, such as one that cites nothing: the judge decides about it later.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from citations.blocks import BlockKind, read_blocks, remove_blocks
from citations.citing import SourcedText, claims_something, cover_nearby, without_blocks
from citations.claims import sentences
from citations.marking import read_marks
from llm.answer_checks.faults import CheckedAnswer, find_faults

CERTAIN_CHARACTERS = 40
"""The language of a shorter text is uncertain."""
_OPEN_CITATION = re.compile(
    r"(?<!\s)\s*+[\[(\u3010\uff3b][^\[\]()\u3010\u3011\uff3b\uff3d\n]{0,40}+\Z"
)
_LAST_MARK = re.compile(r"(?<!\])(?:\[\d{1,6}\])++[.,;:!?)*_\u3002]*+(?=\s|\Z)")

LanguageOf = Callable[[str], str | None]
"""Returns the language of a text, ISO 639-1, or None when it cannot be determined."""


def select_finished(written: str) -> str:
    """Return the finished part of an answer that is being written, in Markdown."""
    text = _OPEN_CITATION.sub("", written)
    blocks = read_blocks(text)
    if not blocks:
        return ""
    last, lines = blocks[-1], text.split("\n")
    finished = lines[: last.start]
    if last.kind in (BlockKind.PARAGRAPH, BlockKind.ITEM):
        own = "\n".join(lines[last.start :]).rstrip()
        parts = list(sentences(own))
        if len(parts) > 1:
            finished.append(own[: own.rfind(parts[-1])].rstrip())
    return "\n".join(finished).rstrip()


def check_draft(answer: CheckedAnswer, language_of: LanguageOf | None) -> SourcedText | None:
    """Return the part of an incomplete answer that may be shown, or None.

    An answer in another language than the user's is not shown. If the sources are in another
    language, nothing is shown until the language of the answer is certain.
    """
    answer = replace(answer, text=_end_with_source(answer.text))
    faulty = {fault.block for fault in find_faults(answer, in_draft=True)}
    sound = [
        index
        for index, block in enumerate(answer.blocks)
        if index not in faulty and claims_something(block) and answer.covering[index]
    ]
    if not sound or not _is_in_language(answer, sound, language_of):
        return None
    whole = SourcedText(answer.text, answer.used)
    return without_blocks(whole, faulty, answer.references, answer.context, answer.typed)


def _end_with_source(text: str) -> str:
    """Return `text` up to the last block, or sentence, that has a source."""
    blocks = read_blocks(text)
    near = cover_nearby(blocks)
    last = max((index for index, found in enumerate(near) if found), default=-1)
    kept = remove_blocks(text, range(last + 1, len(blocks)))
    if last < 0 or blocks[last].kind not in (BlockKind.PARAGRAPH, BlockKind.ITEM):
        return kept
    marks = list(_LAST_MARK.finditer(kept)) if read_marks(blocks[last].text) else []
    return kept[: marks[-1].end()] if marks else kept


def _is_in_language(
    answer: CheckedAnswer, sound: list[int], language_of: LanguageOf | None
) -> bool:
    if language_of is None:
        return True
    own = own_words(answer, sound)
    if len(own) < CERTAIN_CHARACTERS:
        languages = {source.language for source in answer.used if source.language}
        return not languages or answer.language in languages
    return language_of(own) in (None, answer.language)


def own_words(answer: CheckedAnswer, indexes: Iterable[int]) -> str:
    """Return the prose of these blocks that is not quoted from a source."""
    prose = (BlockKind.PARAGRAPH, BlockKind.ITEM)
    texts = [answer.blocks[index].text for index in indexes if answer.blocks[index].kind in prose]
    return " ".join(text for text in texts if not answer.is_quoted(text))
