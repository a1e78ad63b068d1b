"""What a model wrote well leaves as it was written; rules add marks and remove invented ones."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from citations.blocks import BlockForm, read_blocks
from citations.citing import SourcedText, cite, cover, leave_out, without_blocks
from citations.marking import read_marks, remove_marks
from citations.proof import ProofSource, SourceTexts
from envelope.sources import SourceReference, SourceUsed

SENTENCES = (
    "Open the routing page and choose a new rule for it.",
    "A rule may have up to eight conditions that must all match.",
    "Exports are kept for thirty days and are then deleted for good.",
    "Only owners may delete a project from the list of projects.",
)
CODE = (
    'curl -X POST https://api.acme.test/v1/rules \\\n  -d \'{"ids": [1, 2], "all": [3]}\'',
    "rules:\n  - name: first\n    hosts: [1]\n    ports:\n      - 80:80",
    'print(prices[2])  # "[4]"\n\nrun(`ls`)',
)
ROWS = (("`to`", "yes", "recipient of the message"), ("`from`", "no", "a registered sender"))
TABLE = "| Field | Required | Meaning |\n|---|---|---|\n" + "\n".join(
    f"| {' | '.join(row)} |" for row in ROWS
)
SOURCES = SourceTexts(
    ProofSource(number, f"Page {number} > Part\n\n{text}", (f"Page {number}", "Part"))
    for number, text in enumerate((*SENTENCES, *(f"```\n{code}\n```" for code in CODE), TABLE), 1)
)
STYLES = ("[{0}]", "[{0}, {1}]", "[{0}][{1}]", "【{0}】", "(Source {0})", "[^{0}]", "[{0}-{1}]")


@st.composite
def marks(draw: st.DrawFn) -> str:
    first = draw(st.integers(1, 7))
    return draw(st.sampled_from(STYLES)).format(first, first + 1)


@st.composite
def fences(draw: st.DrawFn) -> str:
    sign = draw(st.sampled_from(("```", "~~~", "````")))
    language = draw(st.sampled_from(("", "bash", "yaml")))
    return f"{sign}{language}\n{draw(st.sampled_from(CODE))}\n{sign}"


def indent(text: str, width: int) -> str:
    return "\n".join(" " * width + line if line else line for line in text.split("\n"))


@st.composite
def items(draw: st.DrawFn, depth: int = 0) -> str:
    is_numbered = draw(st.booleans())
    written = []
    for number in range(1, draw(st.integers(1, 3)) + 1):
        sign = f"{number}. " if is_numbered else "- "
        parts = [f"{sign}{draw(st.sampled_from(SENTENCES))} {draw(marks())}"]
        if draw(st.booleans()):
            parts += ["", indent(draw(fences()), len(sign))]
        if depth < 2 and draw(st.booleans()):
            parts += ["", indent(draw(items(depth + 1)), len(sign))]
        written.append("\n".join(parts))
    return "\n\n".join(written)


@st.composite
def parts(draw: st.DrawFn) -> str:
    """Return a heading, or something that stands in a source and is cited nearby."""
    kind = draw(st.sampled_from(("text", "list", "code", "led code", "table", "quote")))
    mark = draw(marks())
    sentence = draw(st.sampled_from(SENTENCES))
    return {
        "text": f"## A heading\n\n{sentence} {mark}",
        "list": draw(items()),
        "code": f"{draw(fences())}\n{mark}",
        "led code": f"Do it like this: {mark}\n\n{draw(fences())}",
        "table": f"{TABLE}\n\n{mark}",
        "quote": f"> {sentence} {mark}",
    }[kind]


def bare(text: str) -> list[tuple[BlockForm, str, int]]:
    """Return the blocks of a text apart from marks."""
    return [
        (block.kind, block.text if block.kind is BlockForm.CODE else plain, block.depth)
        for block in read_blocks(text)
        if (plain := without_styles(block.text).strip()) or block.kind is BlockForm.CODE
    ]


def without_styles(text: str) -> str:
    written = re.sub(r"[\[【(](?:Source )?\^?\d+(?:[,-] ?\d+)?[\]】)]", "", text)
    return " ".join(remove_marks(written).split())


@given(st.lists(parts(), min_size=1, max_size=5).map("\n\n".join))
@settings(max_examples=120)
def test_supported_and_cited_text_is_unchanged(answer: str) -> None:
    cited = cite(answer, SOURCES)

    assert bare(cited.text) == bare(answer)
    assert read_marks(cited.text) == tuple(range(1, len(cited.order) + 1))
    assert set(cited.order) <= SOURCES.numbers
    blocks = read_blocks(cited.text)
    assert all(
        is_covered for block, is_covered in zip(blocks, cover(blocks), strict=True) if block.cells
    )
    assert not any(
        block.parent is not None and re.fullmatch(r"(\[\d+\])+", block.text) for block in blocks
    )


@given(st.lists(parts(), min_size=1, max_size=5).map("\n\n".join))
@settings(max_examples=50)
def test_citing_an_answer_twice_changes_nothing(answer: str) -> None:
    once = cite(answer, SOURCES)
    shown = {given: number for number, given in enumerate(once.order, start=1)}
    again = SourceTexts(
        ProofSource(shown[source.number], source.text)
        for source in SOURCES.sources
        if source.number in shown
    )

    assert cite(once.text, again).text == once.text


PARTS = ["[1]", "[2]", "[9]", "[", "]", "1", "9", "【9】", " ", ".", "\n", "`", "```\n", "- ", "a",
         "(x)", "|", ":", "\\", "(Source 9)", "    ", "1. ", "#"]  # fmt: skip


@given(st.lists(st.sampled_from(PARTS), max_size=30).map("".join))
@settings(max_examples=250)
def test_no_unknown_citation_survives_in_any_text(text: str) -> None:
    two = SourceTexts([ProofSource(1, "one"), ProofSource(2, "two")])

    cited = cite(text, two)

    assert set(cited.order) <= {1, 2}
    assert set(read_marks(cited.text)) <= set(range(1, len(cited.order) + 1))


def sources(*texts: str) -> SourceTexts:
    return SourceTexts(ProofSource(number, text) for number, text in enumerate(texts, start=1))


def test_sources_are_numbered_as_the_reader_meets_them() -> None:
    cited = cite("B is so. [5] A is so. [2][5]", sources(*"abcde"))

    assert cited.text == "B is so. [1] A is so. [2][1]"
    assert cited.order == (5, 2)


def test_an_invented_citation_goes_and_its_number_is_reported() -> None:
    cited = cite("Rules have names. [2] The moon is cheese. [7]", sources("a", "b"))

    assert cited.text == "Rules have names. [1] The moon is cheese."
    assert cited.unknown == (7,)


@pytest.mark.parametrize(
    "listed",
    [
        "Sources: [1], [2]",
        "**References:** [1][2]",
        "Quellen: Page 1, Page 2",
        "## Sources\n\n- [1] Page 1\n- Page 2 > Part [2]",
        "**Sources**\n\n1. Page 1\n2. Page 2",
        "Sources:\n[1] Page 1\n[2] Page 2",
        "[^1]: Page 1\n[^2]: Page 2",
    ],
)
def test_a_list_of_sources_of_the_models_own_goes(listed: str) -> None:
    answer = f"{SENTENCES[0]} [1]\n\n{SENTENCES[1]} [2]"

    assert cite(f"{answer}\n\n{listed}", SOURCES).text == answer


@pytest.mark.parametrize(
    "last",
    [
        "Default: 8 conditions [1]",
        "Note: it is free. [2]",
        "## Rules\n\nPage 1 has more. [1]",
        "In summary, few. [1][2]",
    ],
)
def test_a_last_line_with_content_stays(last: str) -> None:
    assert cite(f"{SENTENCES[0]} [1]\n\n{last}", SOURCES).text.endswith(last)


def test_numbers_of_a_list_of_sources_stay_where_they_alone_cover_something() -> None:
    answer = "The first one rules.\n\nThe second one too."

    assert cite(f"{answer}\n\nSources: [2][1]", SOURCES).text == f"{answer} [1][2]"


def test_verbatim_text_of_a_source_gets_its_mark() -> None:
    answer = f"{SENTENCES[2]}\n\nLike this:\n\n```bash\n{CODE[0]}\n```\n\n{TABLE}"

    cited = cite(answer, SOURCES)

    assert cited.order == (3, 5, 8)
    assert cited.text == (
        f"{SENTENCES[2]} [1]\n\nLike this: [2]\n\n```bash\n{CODE[0]}\n```\n\n"
        f"{TABLE.removesuffix(' |')} [3] |"
    )


@pytest.mark.parametrize(
    ("bold", "shown"),
    [
        ("**Exports are kept for thirty days**",) * 2,
        (f"**{SENTENCES[0]}**", f"**{SENTENCES[0]}** [1]"),
    ],
    ids=["heading", "sentence"],
)
def test_a_heading_in_bold_cites_nothing_but_a_sentence_in_bold_does(bold: str, shown: str) -> None:
    cited = cite(f"{bold}\n\n{SENTENCES[1]} [2]", SOURCES)

    assert remove_marks(cited.text) == f"{bold}\n\n{SENTENCES[1]}"
    assert cited.text.split("\n\n")[0] == shown


def test_marks_below_indented_code_stand_in_the_items_line() -> None:
    answer = f"1. Call it:\n\n   ```\n{indent(CODE[0], 3)}\n   ```\n   [5]\n\n2. Done. [1]"

    cited = cite(answer, SOURCES)

    assert cited.text == (
        f"1. Call it: [1]\n\n   ```\n{indent(CODE[0], 3)}\n   ```\n\n2. Done. [2]"
    )


def test_marks_directly_below_a_table_are_not_a_row() -> None:
    assert cite(f"{TABLE}\n[8]", SOURCES).text == f"{TABLE.removesuffix(' |')} [1] |"


def test_remaining_text_keeps_the_source_of_a_removed_mark() -> None:
    table = "| a | b |\n|---|---|\n| 1 | 2 |"
    answer = f"True. [4]\n\nFalse. [1]\n\n{table}\n\n- **Label** [2]\n  - One.\n  - Two. [3]"

    left = leave_out(answer, {1, 6})

    assert left.text == f"True. [1]\n\n{table[:-2]} [2] |\n\n- **Label** [3]\n  - One."
    assert left.order == (4, 1, 2)


def test_a_closing_mark_covers_otherwise_uncited_text() -> None:
    blocks = read_blocks("One.\n\n- Two.\n- Three. [2]\n\nFour. [1]\n\nFive.\n\nSix. [3]")

    assert cover(blocks) == ((3,), (2,), (2,), (1,), (3,), (3,))


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("Two ways.\n\n- One.\n- Two.\n\n[3]", "Two ways.\n\n- One.\n- Two. [1]"),
        ("Two ways:\n\n- One.\n- Two.\n\n[3]", "Two ways: [1]\n\n- One.\n- Two."),
        ("One way.\n\n[3]\n\nAnother. [1]", "One way. [1]\n\nAnother. [2]"),
        ("Run this.\n\n```\nls\n```\n\n[3]", "Run this. [1]\n\n```\nls\n```"),
        ("- One.\n  - A part.\n\n  [3]\n- Two. [1]", "- One. [1]\n  - A part.\n\n- Two. [2]"),
        (
            "## All\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n[3]",
            "## All\n\n| a | b |\n|---|---|\n| 1 | 2 [1] |",
        ),
        (
            "These:\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n[3]",
            "These: [1]\n\n| a | b |\n|---|---|\n| 1 | 2 |",
        ),
    ],
)
def test_a_mark_stands_in_the_line_of_what_it_is_about(written: str, shown: str) -> None:
    assert cite(written, SOURCES).text == shown


def test_marks_below_code_that_nothing_stands_above_stay_there() -> None:
    assert cite("```\nls\n```\n\n[3]", SOURCES).text == "```\nls\n```\n\n[1]"


@pytest.mark.parametrize(
    ("lead", "shown"), [("So:", "So: [1]"), ("**So**", "**So**")], ids=["lead", "none"]
)
def test_a_list_that_one_source_mostly_has_gets_one_mark_for_all(lead: str, shown: str) -> None:
    proved = [SENTENCES[0], "In other words", SENTENCES[0].replace("page", "Page")]
    listed = "\n".join(f"- {sentence}" for sentence in proved)

    text = cite(f"{lead}\n\n{listed}", SOURCES).text

    assert text == f"{shown}\n\n{listed}{'' if lead == 'So:' else ' [1]'}"


def test_a_list_of_all_sources_is_not_a_citation_if_there_are_others() -> None:
    everything = "".join(f"[{number}]" for number in SOURCES.numbers)

    cited = cite(f"The first rules. [2]\n\nThe second too.\n\nSources: {everything}", SOURCES)

    assert cited.order == (2,)


def test_marks_at_the_end_of_a_list_cover_its_items_and_not_those_of_a_line_above() -> None:
    blocks = read_blocks("Owners may. [1]\n\n1. Open.\n2. Enter. [2]\n3. Choose.\n4. Send. [3]")

    assert cover(blocks) == ((1,), (2,), (2,), (3,), (3,))


def test_a_line_that_introduces_a_list_covers_it_beside_the_marks_in_it() -> None:
    blocks = read_blocks("You need two: [1]\n\n- One.\n- Two. [2]")

    assert cover(blocks) == ((1,), (1, 2), (2,))


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("It is 5. [tool:calculator]", "It is 5. [1]"),
        ("It is 5. {tool:calculator}", "It is 5. [1]"),
        ("It is 5. 【tool: c-7】", "It is 5. [1]"),
        ("It is 5. [1] {tool:invented}", "It is 5. [1]"),
        ("Write {tool:NAME} there. [2]", "Write {tool:NAME} there. [1]"),
        ("`{tool:calculator}` is shown. [1]", "`{tool:calculator}` is shown. [1]"),
    ],
)
def test_a_tool_that_is_named_as_a_source_gets_its_number(written: str, shown: str) -> None:
    sources = SourceTexts(
        (
            ProofSource(1, "5", ("calculator", "c-7")),
            ProofSource(2, "Write {tool:NAME} there."),
        )
    )

    assert cite(written, sources).text == shown


PAGES = "https://docs.acme.test"
CONTEXT = f"Prices rise in May. Write to {PAGES}/help. Refunds take five days."
REFERENCES = tuple(
    SourceReference(number=number, chunk_id=name, title=name, url=f"{PAGES}/{name}", span=span)
    for number, name, span in ((1, "prices", (0, 19)), (2, "refunds", (20, len(CONTEXT))))
)
USED = tuple(
    SourceUsed(number=reference.number, chunk_id=reference.chunk_id, title=reference.title)
    for reference in REFERENCES
)
TEXT = f"Prices rise in May [1].\n\nRefunds take five days, see [prices]({PAGES}/prices) [2]."


def test_nothing_changes_when_no_block_is_removed() -> None:
    kept = without_blocks(SourcedText(TEXT, USED), (), REFERENCES, CONTEXT)

    assert (kept.text, kept.used) == (TEXT, USED)


def test_a_removed_block_takes_its_source_and_the_links_to_its_page_with_it() -> None:
    left = without_blocks(SourcedText(TEXT, USED), {0}, REFERENCES, CONTEXT)

    assert left.text == "Refunds take five days, see prices [1]."
    assert [(source.number, source.chunk_id) for source in left.used] == [(1, "refunds")]


def test_the_sources_left_name_the_addresses_that_the_text_left_shows() -> None:
    text = f"Prices rise in May [1].\n\nWrite to {PAGES}/help [2]."

    left = without_blocks(SourcedText(text, USED), {0}, REFERENCES, CONTEXT)

    assert [source.addresses for source in left.used] == [(f"{PAGES}/help",)]
