r"""Reads and writes citation marks, which have the format `[n]` and occur only in prose, not in
code.

Models cite in several styles, which `write_plainly` converts to one style:

| written                                       | becomes      |
|-----------------------------------------------|--------------|
| `[1]`, `[1, 2]`, `[1-3]`, `[^1]`, `[Source 1]` | `[1]`, `[1][2]`, `[1][2][3]`, `[1]`, `[1]` |
| `【1】`, `【1†page.md】`, `(Source 1)`          | `[1]`        |
| `[tool:add]`, `{tool:add}`, `【tool:add】`      | the marks of the results of this tool |
| `[14]` in words that a source contains        | `\[14\]`     |

A bracket after a backslash is plain text. Brackets in documents are escaped in this way in prompts
and answers, so that `[14] days` in a contract is not a citation.
"""

import re
import string
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from citations.blocks import BlockForm, read_blocks
from citations.claims import citations, with_citations
from citations.reading import restore, spans_aside
from citations.verbatim import PUNCTUATION, STRUCK, as_markdown

Shown = Callable[[int], int | None]
"""Returns the number under which a mark is shown, or None to remove the mark."""

_LABEL = "sources?|src|refs?|references?|documents?|docs?|quellen?|dokumente?|fuentes?|fontes?|"
_LABEL += "fonti|fonte|источники?|джерел[оа]|zdroje?|出典|来源|المصدر|स्रोत"
_MORE = r"(?:[ \t]{0,2}(?:,|;|&|and|und|-|\u2013)[ \t]{0,2}\d{1,4}){0,20}"
_NAMED = re.compile(
    rf"[(\[\u3010\uff08](?:{_LABEL})[ \t.:#]{{0,3}}(\d{{1,4}}{_MORE})[)\]\u3011\uff09]",
    re.IGNORECASE,
)
_TOOL = re.compile(
    r"[\[{\u3010\uff3b][ \t]{0,3}tool:[ \t]{0,3}([\w./-]{1,80})[ \t]{0,3}[\]}\u3011\uff3d]"
)
_BRACKETS = re.compile(r"(?<!\\)\[\^?(\d{1,6}(?:[ \t]?[,;\u2013-][ \t]?\d{1,6}){0,20})\](?!\()")
_ESCAPED = re.compile(r"\\([\[\]])")
_ESCAPE = re.compile(rf"\\([{PUNCTUATION}])")
_HIDDEN = {ord(sign): 0x10FF00 + number for number, sign in enumerate(string.punctuation)}
_SHOWN = {hidden: sign for sign, hidden in _HIDDEN.items()}
_BARE = re.compile(r"[ \t>]*+(?:\[\d{1,6}\])++[ \t]*+[.]?+[ \t]*+")
_SIDE = re.compile(r"[^\W_]+")
_PAUSE = re.compile(r"[ \t]*(?:[.,;:!?)\u3002\uff0c]|\Z|\n)")
_ANY_WORD = re.compile(r"\S+")
_UNSIGNED = re.compile(r"[^*_~\\<&`]*")
_LONGEST_WORD = 200
_LETTER = re.compile(r"[^\W_]")
_OPENING_SIGNS = "(\"'\u201c\u201e\u00ab"
_REVERSED_END = re.compile(r"\A(?:\]\d{1,4}\[|[.,;:!?)\"'\u201d\u00bb\u3002\uff0c])+")
_COMPARED = re.compile(r"(?P<before>\A[ \t]*(?:(?:[-*]|\d{1,3}[.)])[ \t]+)?)(?P<said>>[ \t]?\d\S*)")
_OPENING = "[\u3010\uff3b"
_WIDTH = 40
_SENTINELS = str.maketrans("\ue000\ue001", "[]")
_DEEPEST = 8


class LiteralBrackets:
    """Bracketed numbers in documents, with the words around them."""

    def __init__(self, texts: Iterable[str]) -> None:
        every = {context for text in texts for context in _read_contexts(text)}
        # At the end of a sentence the word before suffices, but not a number: [2][4] are marks.
        at_end = {(word, number, "") for word, number, _ in every if not word.isdecimal()}
        self._contexts = every | at_end

    def __bool__(self) -> bool:
        return bool(self._contexts)

    def has(self, text: str, match: re.Match[str]) -> bool:
        """Return whether a document contains these brackets between the same words."""
        before, number, after = _context(text, match)
        return bool(before or after) and (before, number, after) in self._contexts


NO_BRACKETS = LiteralBrackets(())


class LiteralWords:
    """Words of documents that Markdown would not show as they stand there, such as `2*3*4`."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        words = {word for text in texts for word in text.split() if not _UNSIGNED.fullmatch(word)}
        bare = (word for word in map(_bare_word, words) if STRUCK not in word)
        self._words = {word for word in bare if _LETTER.search(word)}

    def escape(self, answer: str) -> str:
        """Escape the words of documents in the prose of an answer, and a `>` before a number."""
        return _in_prose(answer, self._escape) if self._words else answer

    def _escape(self, prose: str) -> str:
        return _ANY_WORD.sub(self._escape_word, _COMPARED.sub(self._escape_sign, prose))

    def _escape_word(self, found: re.Match[str]) -> str:
        bare = _bare_word(found[0])
        for word in (bare, bare.removeprefix("**").removesuffix("**")):
            if word in self._words:
                before, _, after = found[0].partition(word)
                return f"{before}{as_markdown(word)}{after}"
        return found[0]

    def _escape_sign(self, found: re.Match[str]) -> str:
        is_said = any(found["said"] in text for text in self._texts)
        return f"{found['before']}\\{found['said']}" if is_said else found[0]


def escape_brackets(text: str) -> str:
    r"""Escape brackets in a document that look like marks: `[14]` becomes `\[14\]`.

    Code is not changed.
    """
    if "[" not in text and "\\cite" not in text:
        return text

    def escape(prose: str) -> str:
        bare = prose.replace("\\cite{", "\\\\cite{")
        return _BRACKETS.sub(lambda match: f"\\{match[0][:-1]}\\]", bare)

    return _in_prose(text, escape)


def write_plainly(text: str, literal: LiteralBrackets = NO_BRACKETS) -> str:
    """Convert the marks of an answer to `[n]`, and separate a line of marks from a table above
    it.
    """

    def write(prose: str) -> str:
        shielded = _shield(prose, literal)
        named = _NAMED.sub(lambda match: f"[{match[1]}]", shielded)
        return with_citations(named, lambda number: number).translate(_SENTINELS)

    written = _in_prose(text, lambda prose: _keeping_indent(prose, write))
    return _separate_from_tables(written)


def mark_tools(text: str, find: Callable[[str, str], Iterable[int] | None]) -> str:
    """Replace tool names in brackets, such as `[tool:add]`, with marks of their results.

    `find` receives the brackets and the name. It returns the source numbers of the results, an
    empty result for an unknown tool, or None to keep the brackets because a document contains them.
    """

    def mark(match: re.Match[str]) -> str:
        numbers = find(match[0], match[1])
        return match[0] if numbers is None else "".join(f"[{number}]" for number in numbers)

    def treat(prose: str) -> str:
        return _keeping_indent(prose, lambda bare: _TOOL.sub(mark, bare).rstrip())

    return _in_prose(text, treat) if "tool:" in text else text


def read_marks(text: str) -> tuple[int, ...]:
    """Return the distinct numbers that are cited in an answer or a part of it, in order."""
    if not any(sign in text for sign in _OPENING):
        return ()
    numbers: dict[int, None] = {}

    def read(prose: str) -> str:
        numbers.update(dict.fromkeys(citations(_shield(prose))))
        return prose

    _in_prose(text, read)
    return tuple(numbers)


def map_marks(text: str, shown: Shown) -> str:
    """Renumber or remove each mark with `shown`, and remove lines that become empty.

    Everything else, such as brackets in code, is not changed.
    """

    def write(prose: str) -> str:
        shielded = _shield(prose)
        for _ in range(_DEEPEST):  # removing a mark may create another one, as in "[[7]7]"
            last, shielded = shielded, with_citations(shielded, shown)
            if shielded == last or not _is_nested(shielded):
                break
        return shielded.translate(_SENTINELS)

    def write_line(prose: str) -> str:
        return _keeping_indent(prose, write)

    return _in_prose(text, write_line, drops_emptied=True)


def remove_marks(text: str) -> str:
    """Return an answer without marks."""
    return map_marks(text, lambda number: None)


def keep_known_marks(text: str, known: Collection[int]) -> str:
    """Remove the marks of all numbers that are not in `known`."""
    for _ in range(_DEEPEST):
        text = map_marks(text, lambda number: number if number in known else None)
        if set(read_marks(text)) <= set(known):
            return text
    return text.replace("[", "").replace("]", "")  # maliciously nested


def is_only_marks(text: str) -> bool:
    """Return whether a paragraph consists only of marks."""
    return bool(text.strip()) and _BARE.fullmatch(text.strip()) is not None


def shown_text(text: str) -> str:
    """Return prose as it is shown to a reader, with brackets but without their backslashes."""
    return _ESCAPED.sub(r"\1", text)


def hide_escapes(markdown: str) -> str:
    r"""Replace each escaped character outside of code, such as `\[` or `\*`, with a private-use
    character, which `show_escapes` replaces with the character itself.
    """
    return _in_prose(markdown, _hide_escapes) if "\\" in markdown else markdown


def hide_signs(text: str) -> str:
    """Replace the signs of emphasis in a plain text as `hide_escapes` does, to show them."""
    return text.translate({ord(sign): _HIDDEN[ord(sign)] for sign in "*_"})


def show_escapes(text: str) -> str:
    """Replace the private-use characters of `hide_escapes` and `hide_signs`."""
    return text.translate(_SHOWN)


def code_lines(text: str) -> frozenset[int]:
    """Return the line numbers of code. Indented lines that consist only of marks do not count."""
    lines: set[int] = set()
    for block in read_blocks(text):
        is_code = block.is_fenced or not _BARE.fullmatch(block.text.strip())
        if block.kind is BlockForm.CODE and is_code:
            lines.update(range(block.start, block.end))
    return frozenset(lines)


def remove_escapes(markdown: str) -> str:
    """Return Markdown with escaped characters as they are shown, for readers of the raw text."""
    return show_escapes(hide_escapes(markdown))


def _hide_escapes(prose: str) -> str:
    return _ESCAPE.sub(lambda escape: chr(_HIDDEN[ord(escape[1])]), prose)


def _bare_word(word: str) -> str:
    """Return a word without quotation marks, punctuation and marks around it."""
    if len(word) > _LONGEST_WORD:
        return word
    return _REVERSED_END.sub("", word.lstrip(_OPENING_SIGNS)[::-1])[::-1]


def _is_nested(text: str) -> bool:
    return "[[" in text or "]]" in text


def _shield(prose: str, literal: LiteralBrackets = NO_BRACKETS) -> str:
    r"""Replace `\[`, `\]`, and brackets from documents with private-use characters."""
    if literal:
        prose = _BRACKETS.sub(
            lambda match: f"\\{match[0][:-1]}\\]" if literal.has(prose, match) else match[0], prose
        )
    return prose.replace("\\[", "\\\ue000").replace("\\]", "\\\ue001")


def _read_contexts(text: str) -> list[tuple[str, str, str]]:
    """Return the brackets in the prose of a document, with the words around them."""
    contexts: list[tuple[str, str, str]] = []

    def read(prose: str) -> str:
        contexts.extend(_context(prose, match) for match in _BRACKETS.finditer(prose))
        return prose

    if "[" in text:
        _in_prose(text, read)
    return contexts


def _context(text: str, match: re.Match[str]) -> tuple[str, str, str]:
    before = _SIDE.findall(text[max(0, match.start() - _WIDTH) : match.start()])
    ends = _PAUSE.match(text, match.end())
    after = [] if ends else _SIDE.findall(text[match.end() : match.end() + _WIDTH])
    return (
        before[-1].casefold() if before else "",
        match[1],
        after[0].casefold() if after else "",
    )


def _in_prose(text: str, treat: Callable[[str], str], *, drops_emptied: bool = False) -> str:
    """Return `text` with `treat` applied to each line outside of code."""
    return "\n".join(_treat_lines(text, treat, drops_emptied))


def _treat_lines(text: str, treat: Callable[[str], str], drops_emptied: bool) -> Iterator[str]:
    code = code_lines(text)
    for number, line in enumerate(text.split("\n")):
        if number in code or not line.strip():
            yield line
            continue
        aside: list[str] = []
        prose = spans_aside(line, aside, lambda span: span) if "`" in line else line
        treated = treat(prose)
        if treated.strip(" \t>") or not (drops_emptied and _BARE.fullmatch(prose)):
            yield restore(treated, aside) if aside else treated


def _keeping_indent(line: str, treat: Callable[[str], str]) -> str:
    bare = line.lstrip(" \t")
    treated = treat(bare)
    return line[: len(line) - len(bare)] + (treated.lstrip(" ") if bare[:1] != " " else treated)


def _separate_from_tables(text: str) -> str:
    """Insert a blank line between a table and marks on the line below it."""
    lines: list[str] = []
    for line in text.split("\n"):
        if lines and lines[-1].lstrip().startswith("|") and _BARE.fullmatch(line):
            lines.append("")
        lines.append(line)
    return "\n".join(lines)
