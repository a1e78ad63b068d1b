"""What reads a model's answer takes time in proportion to it, whatever the answer is."""

import gc
from collections.abc import Callable
from time import thread_time

import pytest

from citations.blocks import read_blocks, remove_blocks
from citations.citing import cite
from citations.claims import citations, split_units
from citations.facts import KnownNumbers
from citations.marking import hide_escapes, keep_known_marks
from citations.proof import ProofSource, SourceTexts
from citations.verbatim import as_markdown
from citations.wording import find_secret_words
from gateway.chat.marked_text import parse_marked
from gateway.slack.channel import messages as slack_messages
from gateway.slack.channel import mrkdwn
from gateway.slack.channel import parse_text as slack_said
from gateway.telegram.channel import messages as telegram_messages
from knowledge.documents.page import Block, BlockKind
from knowledge.language.protecting import code_spans, natural
from knowledge.link_places import find_linked
from llm.injection import attack_in

pytestmark = pytest.mark.slow

LENGTHS = (8_000, pytest.param(32_000, marks=pytest.mark.long))
LINEAR_GROWTH = 9
"""Four times the length may take this much longer; 4 is linear and 16 is quadratic."""
SECONDS_ENOUGH = 0.1
"""What takes less for the larger text is not looked at more closely."""

FUNCTIONS: dict[str, Callable[[str], object]] = {
    "cut": split_units,
    "citations": citations,
    "keep_known_marks": lambda text: keep_known_marks(text, (1,)),
    "cited": lambda text: cite(text, SourceTexts([ProofSource(1, text)])),
    "blocks": lambda text: remove_blocks(text, range(0, len(read_blocks(text)), 2)),
    "numbers": lambda text: KnownNumbers(["1"]).find_unknown(text),
    "proof": lambda text: SourceTexts([ProofSource(1, text)]).find_prose(text),
    "find_secret_words": lambda text: find_secret_words(text, text),
    "attack_in": attack_in,
    "natural": natural,
    "code_spans": lambda text: list(code_spans(text)),
    "marked": parse_marked,
    "as_markdown": as_markdown,
    "hide_escapes": hide_escapes,
    "slack_said": lambda text: slack_said(text, without="U1"),
    "slack": lambda text: slack_messages(text, (), (), title="Sources"),
    "telegram": lambda text: telegram_messages(text, (), title="Sources"),
}
REPEATED = (
    "a. A. A. ",
    "E.g. a ",
    "a [1]\n\n",
    "[1",
    "[1, ",
    "[1\u2020",
    " [ ^0 , ^0\u2020  ](a)",
    "【1】",
    "[1](a)",
    "`a` ",
    "**a** ",
    "***a***",
    "_a_ ",
    "a*b*",
    "**a [b](https://c) `d`** ",
    "- a\n",
    "- a\n  - b\n",
    "|a|b|\n",
    "```\n",
    "> a\n",
    "a\n",
    "\n",
    " ",
    "<a|b> ",
    "<@U1> ",
    "-0",
    "中。",
    "\U0001f1e9",
    "\u0301",
)


def nest_citations(length: int) -> str:
    """Citations within citations: what is left of each is another."""
    return "[" * (length // 3) + "7]" * (length // 3)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_answer_takes_a_function_longer_than_its_length(name: str, length: int) -> None:
    function = FUNCTIONS[name]
    texts = [lambda length, it=it: it * (length // len(it)) for it in REPEATED]

    grown = [text(40) for text in (*texts, nest_citations) if _grows(function, text, length)]

    assert grown == []


def test_a_page_of_many_links_takes_no_longer_than_its_length() -> None:
    def find(text: str) -> object:
        return find_linked([Block(BlockKind.TEXT, text)], [(word, "/") for word in text.split()])

    def write_page(length: int) -> str:
        return " ".join(f"link{number}" for number in range(length // 9))

    assert not _grows(find, write_page, 180_000)


def _grows(function: Callable[[str], object], text: Callable[[int], str], length: int) -> bool:
    large = _seconds(function, text(length))
    if large < SECONDS_ENOUGH:
        return False
    small = _seconds(function, text(length // 4))
    if large <= LINEAR_GROWTH * small:
        return False
    small = min(small, _seconds(function, text(length // 4)))
    again = (_seconds(function, text(length)) for _ in range(2))
    return min(large, *again) > LINEAR_GROWTH * small


def _seconds(function: Callable[[str], object], text: str) -> float:
    gc.disable()  # it takes longer the more a test run holds
    try:
        started = thread_time()
        function(text)
        return thread_time() - started
    finally:
        gc.enable()


def test_emphasis_within_emphasis_is_written_to_a_depth_and_shown_beyond_it() -> None:
    written = mrkdwn(parse_marked("*" * 4_000 + "a" + "*" * 4_000))

    assert "a" in written
    assert len(written) < 100


def test_citations_within_citations_leave_no_citation_of_what_is_unknown() -> None:
    assert citations(keep_known_marks(nest_citations(300), ())) == ()
    assert keep_known_marks("a [[7]7] [1]", (1,)) == "a [1]"
