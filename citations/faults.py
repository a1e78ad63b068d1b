"""Finds faults in an answer with rules: proven faults, and suspected ones for the judge to check.

| fault                                                        | proven |
|--------------------------------------------------------------|--------|
| a number that is in no source and cannot be computed         | yes    |
| code with an IP address or an eight-digit number, as above   | yes    |
| a number that may be computed, but not from known numbers    | no     |
| a number that occurs only in uncited sources                 | no     |
| a reference, such as "Article 27", that is in no source      | no     |
| a line of code, or an identifier in code, that is in no source | no   |
| code from which a foreign address was removed                | no     |
| a paragraph, an item or a row without a citation             | no     |

Names, negations and meaning are left to the judge. Code that contains a word which is neither in a
source nor in a user message is marked as foreign. It may be correct, but is shown only after a
judge has approved it.

For a streaming answer, `select_finished` selects the complete part, which excludes the last
sentence, row, or code block. A draft ends with a cited block or sentence, and omits every block
that has a fault.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from citations.addresses import addresses_of, find_addresses
from citations.blocks import BlockForm, LineBlock, names_what_follows, read_blocks, remove_blocks
from citations.citing import (
    SourcedText,
    claims_something,
    cover,
    cover_nearby,
    uncovered,
    without_blocks,
)
from citations.claims import sentences
from citations.facts import KnownNumbers
from citations.legal_references import KnownReferences
from citations.links import REMOVED_ADDRESS, Allowed, keep_links, plain_line
from citations.marking import read_marks, remove_marks, shown_text
from citations.proof import ProofSource, SourceTexts
from citations.sources import collect_allowed, references_of
from envelope.sources import SourceReference, SourceUsed

_SHOWN = 4
_LEAST = 12
_SPAN = re.compile(r"(?<!`)(`{1,3})(?!`)([^`\n]+)\1(?!`)")
_QUANTITY = re.compile(r"[<>=~\u2248+-]{0,3}\s?\d[\d.,:]*\s?[^\W\d]{0,12}%?")
_TARGET = re.compile(r"\]\([^()\s]*\)")
_ADDRESS = re.compile(r"(?<![\w.])(?:\d{1,3}(?:\.\d{1,3}){3}|0[xX][0-9A-Fa-f]{8,16})(?![\w.]*\d)")
_LONG_NUMBER = re.compile(r"(?<![\w.])\d{8,}+(?![\w.]*\d)")
_CODE_WORD = re.compile(r"[^\W\d_]{2,}")
_DOTS = str.maketrans("\u3002\uff0e\uff61", "...")
"""Characters that browsers and DNS resolvers treat as a full stop."""
_ORDERED = re.compile(r"[ \t>]*\d{1,9}[.)]")
CERTAIN_CHARACTERS = 40
"""Minimum number of characters for reliable language detection."""
_OPEN_CITATION = re.compile(
    r"(?<!\s)\s*+[\[(\u3010\uff3b][^\[\]()\u3010\u3011\uff3b\uff3d\n]{0,40}+\Z"
)
_LAST_MARK = re.compile(r"(?<!\])(?:\[\d{1,6}\])++[.,;:!?)*_\u3002]*+(?=\s|\Z)")

LanguageOf = Callable[[str], str | None]
"""Returns the language of a text (ISO 639-1), or None if it is uncertain."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault in a block or in one of its cells; `quote` is the faulty text without marks."""

    block: int
    quote: str
    reason: str
    is_proved: bool = False
    is_foreign: bool = False
    cell: int | None = None


@dataclass(frozen=True)
class CheckedAnswer:
    """An answer with the texts that it is checked against.

    `said` contains the question, the conversation, and an assumption. `typed` contains the user's
    messages; addresses in them may be shown.
    """

    text: str
    context: str
    references: tuple[SourceReference, ...]
    used: tuple[SourceUsed, ...]
    language: str
    said: tuple[str, ...] = ()
    typed: tuple[str, ...] = ()
    assumption: str = ""

    @cached_property
    def blocks(self) -> tuple[LineBlock, ...]:
        """The blocks of the answer."""
        return read_blocks(self.text)

    @cached_property
    def covering(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of the sources that each block cites."""
        return cover(self.blocks)

    @cached_property
    def given(self) -> SourceTexts:
        """All sources that were given for the answer, with their numbers in the prompt."""
        return SourceTexts(
            ProofSource(reference.number, text_of(reference, self.context))
            for reference in self.references
        )

    @cached_property
    def cited(self) -> dict[int, str]:
        """The texts of the cited sources, by number in the answer."""
        numbered = references_by_number(self.used, self.references).items()
        return {number: text_of(reference, self.context) for number, reference in numbered}

    @cached_property
    def allowed(self) -> Allowed:
        """The links and addresses that the answer may contain."""
        cited = references_of(self.used, self.references)
        return collect_allowed(cited, self.context, self.typed, self.references)

    def is_quoted(self, text: str) -> bool:
        """Return whether a source contains the text verbatim, or most of it."""
        return self.given.contains_most(text)


class _Checks:
    """The checks of one answer, with the data that they share."""

    def __init__(self, answer: CheckedAnswer) -> None:
        self._answer = answer
        texts = [source.text for source in answer.given.sources]
        said = (*answer.said, *answer.typed)
        self._numbers = KnownNumbers(texts, said, tuple(_count_lists(answer)))
        self._references = KnownReferences((*texts, *said))
        self._letters = "\n".join("".join(text.split()) for text in (*texts, *said))
        self._words = frozenset(_CODE_WORD.findall(" ".join((*texts, *said)).casefold()))
        self._assumed = plain_line(remove_marks(answer.assumption))

    def find(self, index: int) -> Iterator[Fault]:
        """Yield the faults in a block, except missing citations."""
        block = self._answer.blocks[index]
        if block.kind is BlockForm.CODE:
            yield from self._find_in_code(block.text, index)
        elif block.cells:
            for cell, text in enumerate(block.cells):
                yield from self._find_in(text, index, cell)
        elif not self._is_notice(block):
            yield from self._find_in(block.text, index, None)

    def find_uncited(self, others: Iterable[int], in_draft: bool) -> list[Fault]:
        """Return a fault for each uncited block that has no other fault."""
        blocks, others = self._answer.blocks, set(others)
        return [
            Fault(index, _quote(blocks[index].text), "it cites nothing")
            for index in uncovered(blocks, cover_nearby(blocks))
            if index not in others
            and not self._is_notice(blocks[index])
            and not names_what_follows(blocks, index)
            and (in_draft or not _frames(blocks, index))
        ]

    def _find_in_code(self, code: str, index: int) -> Iterator[Fault]:
        absent = [line.strip() for line in code.split("\n") if not self._has(line)]
        if absent:
            is_proved = any(map(self._leads_elsewhere, absent))
            reason = f"no source contains the code: {'; '.join(absent[:_SHOWN])}"
            is_foreign = any(map(self._has_foreign_word, absent))
            quote = code.strip("\n")
            yield Fault(index, quote, reason, is_proved=is_proved, is_foreign=is_foreign)

    def _find_in(self, text: str, index: int, cell: int | None) -> Iterator[Fault]:
        bare = shown_text(_TARGET.sub("]", remove_marks(text)))
        cited = [self._answer.cited.get(number, "") for number in self._answer.covering[index]]
        figures = _SPAN.sub(_keep_quantity, bare)
        quote = _quote(text)
        if unknown := self._numbers.find_unknown(figures, cited):
            reason = f"no source contains: {', '.join(unknown[:_SHOWN])}"
            yield Fault(index, quote, reason, is_proved=True, cell=cell)
        elif reason := self._doubt(figures, bare, cited):
            yield Fault(index, quote, reason, cell=cell)
        elif absent := [span for span in self._spans(bare) if not self._has(span)]:
            yield Fault(
                index,
                quote,
                f"no source contains the code: {', '.join(absent[:_SHOWN])}",
                is_proved=any(map(self._leads_elsewhere, absent)),
                is_foreign=any(" " in span and self._has_foreign_word(span) for span in absent),
                cell=cell,
            )

    def _doubt(self, figures: str, bare: str, cited: Sequence[str]) -> str:
        """Return the reason why the judge must check numbers or references in a text, or an empty
        string.
        """
        if unexplained := self._numbers.find_unexplained(figures):
            shown = ", ".join(unexplained[:_SHOWN])
            return f"neither contained in a source nor computed in the answer: {shown}"
        if cited and (other := self._numbers.find_elsewhere(figures, cited)):
            return f"the cited sources do not contain: {', '.join(other[:_SHOWN])}"
        if unknown := self._references.find_unknown(bare):
            return f"no source contains: {', '.join(unknown[:_SHOWN])}"
        return ""

    def _spans(self, text: str) -> Iterator[str]:
        spans = (span[2].strip() for span in _SPAN.finditer(text))
        return (s for s in spans if s != REMOVED_ADDRESS and not _QUANTITY.fullmatch(s))

    def _has(self, code: str) -> bool:
        """Return whether this code occurs in a source or in a user message."""
        return "".join(code.split()) in self._letters

    def list_foreign_addresses(self) -> set[str]:
        """Return the addresses in code that occur in neither a source nor a user message."""
        code = (
            piece
            for block in self._answer.blocks
            for piece in (
                block.text.split("\n")
                if block.kind is BlockForm.CODE
                else self._spans(remove_marks(block.text))
            )
        )
        return {
            address for piece in code if not self._has(piece) for address in self._addresses(piece)
        }

    def _addresses(self, code: str) -> Iterator[str]:
        """Yield the unknown addresses of machines and people in code.

        Host names have already been removed, but numeric addresses look like versions.
        """
        plain = code.translate(_DOTS)
        named = addresses_of(plain) if plain != code else ()
        yield from (match for match in (*named, *_ADDRESS.findall(code)) if not self._has(match))
        yield from filter(self._numbers.find_unknown, _LONG_NUMBER.findall(code))

    def _leads_elsewhere(self, code: str) -> bool:
        """Return whether code contains an unknown address of a machine or a person."""
        return any(True for _ in self._addresses(code))

    def _has_foreign_word(self, code: str) -> bool:
        """Return whether code contains a word that occurs in neither a source nor a user
        message.
        """
        words = _CODE_WORD.findall(code.replace(REMOVED_ADDRESS, " "))
        return any(word.casefold() not in self._words for word in words)

    def _is_notice(self, block: LineBlock) -> bool:
        """Return whether a block states the assumption of the answer."""
        return bool(self._assumed) and self._assumed in block.text


def mark_addresses(answer: CheckedAnswer) -> CheckedAnswer:
    """Replace each unknown address in the code of an answer with `REMOVED_ADDRESS`.

    These are numeric addresses, long numbers, and host names with unusual full stops; other host
    names have already been removed.
    """
    foreign = _Checks(answer).list_foreign_addresses()
    if not foreign:
        return answer
    text = answer.text
    places = [
        (match.start(), match.end())
        for pattern in (_ADDRESS, _LONG_NUMBER)
        for match in pattern.finditer(text)
        if match[0] in foreign
    ]
    named = find_addresses(text.translate(_DOTS))
    places += [(address.start, address.end) for address in named if address.text in foreign]
    parts, copied_to = [], 0
    for start, end in sorted(places):
        if start >= copied_to:
            parts += [text[copied_to:start], REMOVED_ADDRESS]
            copied_to = end
    return replace(answer, text="".join((*parts, text[copied_to:])))


def find_faults(answer: CheckedAnswer, *, in_draft: bool = False) -> tuple[Fault, ...]:
    """Return the faults of an answer, proven ones first.

    In a draft, which no judge has approved, a sentence above a list needs its own source.
    """
    checks = _Checks(answer)
    faults = [fault for index in range(len(answer.blocks)) for fault in checks.find(index)]
    faults += checks.find_uncited({fault.block for fault in faults}, in_draft)
    return tuple(sorted(faults, key=lambda fault: not fault.is_proved))


def withhold_faults(answer: CheckedAnswer) -> CheckedAnswer:
    """Return the part of an answer that can be sent without having been judged.

    Omits addresses that appear in no source or message, blocks that a rule shows to be false, and
    code that contains words found in neither a source nor the question.
    """
    safe = keep_links(answer.text, answer.allowed).text
    answer = mark_addresses(replace(answer, text=safe))
    faults = find_faults(answer)
    withheld = {fault.block for fault in faults if fault.is_proved or fault.is_foreign}
    whole = SourcedText(answer.text, answer.used)
    kept = without_blocks(whole, withheld, answer.references, answer.context, answer.typed)
    return replace(answer, text=kept.text, used=kept.used)


def locate(blocks: Sequence[LineBlock], quote: str) -> tuple[int, int | None] | None:
    """Return the indexes of the block, and of the cell in a row, that a judge quotes, or None."""
    wanted = _fold(quote)
    if not wanted:
        return None
    for index, block in enumerate(blocks):
        folded = _fold(block.text)
        if block.kind is BlockForm.ROW and wanted in folded and wanted != folded:
            cells = (n for n, cell in enumerate(block.cells) if wanted in _fold(cell))
            return index, next(cells, None)
        if wanted in folded:
            return index, None
    # A quotation may extend beyond the block in which it begins.
    whole = ((index, _fold(block.text)) for index, block in enumerate(blocks))
    return next(((at, None) for at, text in whole if len(text) > _LEAST and text in wanted), None)


def references_by_number(
    used: Iterable[SourceUsed], references: Iterable[SourceReference]
) -> dict[int, SourceReference]:
    """Return the cited references, by their number in an answer."""
    by_chunk = {reference.chunk_id: reference for reference in references}
    return {
        source_used.number: by_chunk[source_used.chunk_id]
        for source_used in used
        if source_used.chunk_id in by_chunk
    }


def text_of(reference: SourceReference, context: str) -> str:
    """Return the text of a source, preceded by its title, breadcrumbs, and headings."""
    start, end = reference.span
    place = " > ".join((reference.title, *reference.crumbs, *reference.heading_path))
    return f"{place}\n{context[start:end]}"


def select_finished(written: str) -> str:
    """Return the complete part of a streaming answer in Markdown."""
    text = _OPEN_CITATION.sub("", written)
    blocks = read_blocks(text)
    if not blocks:
        return ""
    last, lines = blocks[-1], text.split("\n")
    finished = lines[: last.start]
    if last.kind in (BlockForm.PARAGRAPH, BlockForm.ITEM):
        own = "\n".join(lines[last.start :]).rstrip()
        parts = list(sentences(own))
        if len(parts) > 1:
            finished.append(own[: own.rfind(parts[-1])].rstrip())
    return "\n".join(finished).rstrip()


def check_draft(answer: CheckedAnswer, language_of: LanguageOf | None) -> SourcedText | None:
    """Return the part of an incomplete answer that may be shown, or None.

    An answer that is not in the user's language is not shown. If the sources are in a different
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


def own_words(answer: CheckedAnswer, indexes: Iterable[int]) -> str:
    """Return the prose in these blocks that is not quoted from a source, without marks."""
    prose = (BlockForm.PARAGRAPH, BlockForm.ITEM)
    texts = [answer.blocks[index].text for index in indexes if answer.blocks[index].kind in prose]
    return " ".join(remove_marks(text) for text in texts if not answer.is_quoted(text))


def _keep_quantity(span: re.Match[str]) -> str:
    return f" {span[2]} " if _QUANTITY.fullmatch(span[2].strip()) else " "


def _quote(text: str) -> str:
    return " ".join(remove_marks(text).split())


def _frames(blocks: Sequence[LineBlock], index: int) -> bool:
    """Return whether a block is a single sentence directly above a list, a table, or code."""
    block, following = blocks[index], blocks[index + 1 : index + 2]
    if not following or block.kind not in (BlockForm.PARAGRAPH, BlockForm.ITEM):
        return False
    begins = following[0].kind in (BlockForm.HEADER, BlockForm.CODE) or (
        following[0].kind is BlockForm.ITEM and following[0].group != block.group
    )
    return begins and len(list(sentences(block.text))) == 1


def _count_lists(answer: CheckedAnswer) -> Iterator[int]:
    """Yield the lengths of lists and tables, and the item numbers in ordered lists."""
    lengths: dict[int, int] = {}
    lines = answer.text.split("\n")
    ordered: set[int] = set()
    for block in answer.blocks:
        if block.kind in (BlockForm.ITEM, BlockForm.ROW):
            lengths[block.group] = lengths.get(block.group, 0) + 1
            if _ORDERED.match(lines[block.start]) and block.kind is BlockForm.ITEM:
                ordered.add(block.group)
    for group, length in lengths.items():
        yield length
        if group in ordered:
            yield from range(1, length)


def _fold(text: str) -> str:
    return "".join(sign for sign in remove_marks(text).casefold() if sign.isalnum())


def _end_with_source(text: str) -> str:
    """Return `text` up to the last block or sentence with a citation."""
    blocks = read_blocks(text)
    near = cover_nearby(blocks)
    last = max((index for index, numbers in enumerate(near) if numbers), default=-1)
    kept = remove_blocks(text, range(last + 1, len(blocks)))
    if last < 0 or blocks[last].kind not in (BlockForm.PARAGRAPH, BlockForm.ITEM):
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
