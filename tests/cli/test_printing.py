"""What a person reads in a terminal of 80 columns."""

import io
import json
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from pydantic import JsonValue

from agents.agent import ProgressStep
from citations.verbatim import as_markdown
from cli.printing import columns, print_line, print_reply, reply_lines, say_json, wrap
from config.texts import load_texts
from deploy.generate.pods import find_step, list_steps
from tests.citations.shapes import IDS, SHAPES, SOURCE, Shape, leads_elsewhere


def source(number: int, heading: str, *, url: str | None = None) -> dict[str, JsonValue]:
    return {
        "number": number,
        "title": "Routing",
        "heading_path": [heading],
        "path": "routing.md",
        "anchor": heading.lower(),
        "url": url,
    }


def reply(**more: JsonValue) -> dict[str, JsonValue]:
    return {"outcome": "answered", "text": "Open it [1].", "language": "en", **more}


def test_sections_of_a_page_stand_below_it_each_once_with_all_its_numbers() -> None:
    sources: list[JsonValue] = [source(1, "Rules"), source(2, "Routes"), source(3, "Rules")]

    lines = reply_lines(reply(sources=sources))

    assert lines[2:7] == [
        "Sources:",
        "  Routing",
        "      routing.md",
        "    [1][3] Rules (#rules)",
        "    [2] Routes (#routes)",
    ]


def test_a_source_with_an_address_shows_it_instead_of_its_path() -> None:
    sources: list[JsonValue] = [source(1, "Rules", url="https://docs.example.org/routing#rules")]

    assert "      https://docs.example.org/routing#rules" in reply_lines(reply(sources=sources))


def test_prose_is_folded_and_code_is_not() -> None:
    code = "curl " + "x" * 90
    text = f"{'word ' * 30}\n\n```\n{code}\n```"

    lines = reply_lines(reply(text=text))

    assert code in lines
    assert max(len(line) for line in lines if line != code) <= 80


def test_brackets_of_a_document_stand_without_the_backslashes_of_markdown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "Within \\[14\\] days, see `a\\[1\\]` [1].\n\n```\nb\\[2\\]\n```"

    print_reply(reply(text=text))

    lines = capsys.readouterr().out.splitlines()
    assert lines[:5] == ["Within [14] days, see `a\\[1\\]` [1].", "", "```", "b\\[2\\]", "```"]


def test_an_answer_that_ended_early_says_why() -> None:
    foot = reply_lines(reply(termination_reason="regenerate_limit", message_id="m"))[-1]

    assert foot == "(answered, language en, ended early: regenerate_limit; message m)"


@pytest.mark.parametrize("shape", SHAPES, ids=IDS)
def test_no_shape_of_a_foreign_link_is_printed(shape: Shape) -> None:
    reply: dict[str, JsonValue] = {
        "outcome": "answered",
        "text": shape.text,
        "sources": [{**SOURCE, "title": shape.text, "url": "//evil.test/a"}],
        "suggested_actions": [
            {"label": shape.text, "value": "a", "kind": "option"},
            {"label": shape.text, "value": "b", "kind": "source", "url": "https://a@evil.test/"},
        ],
    }

    lines = reply_lines(reply)

    assert any("Open" in line for line in lines)
    # A title keeps the mail addresses of its document, as code, which leads nowhere.
    assert not leads_elsewhere("\n".join(lines).replace("`help@evil.test`", ""))


def test_no_control_sequence_reaches_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    hidden = "a\x1b]8;;https://evil.test\x1b\\b\x1b]8;;\x07\x1b[2J\x9b31mc\r\x08\u202ed\te"

    print_line(hidden)
    say_json({"text": hidden})
    for line in reply_lines(reply(text=hidden, sources=[{**SOURCE, "title": hidden}])):
        print_line(line)

    output = capsys.readouterr().out
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", output)
    assert "d\te\n" in output


def test_a_nearest_page_is_listed_once_with_its_place() -> None:
    pages: list[JsonValue] = [
        {"label": "Billing", "value": "Billing", "kind": "source", "path": "billing.md"},
        {"label": "Prices", "value": "Prices", "kind": "source", "url": "https://a.test/prices"},
    ]
    text = "The documents do not say it. These pages come nearest:\n- Billing"

    lines = reply_lines(reply(text=text, suggested_actions=pages))

    assert [line for line in lines if "Billing" in line] == ["- Billing  billing.md"]
    assert [line for line in lines if "Prices" in line] == ["- Prices  https://a.test/prices"]


WIDE = f"| Topic | One | Other |\n|---|---|---|\n| fees | {'crown ' * 12}[1] | not found |"


@pytest.mark.parametrize("word", ["word ", "漢字漢字"])
@pytest.mark.parametrize("before", range(60, 80, 3))
@pytest.mark.parametrize("code", ["`git push  --force`", "``a `b` c``", f"`{'long ' * 30}`"])
def test_inline_code_is_on_one_line(word: str, before: int, code: str) -> None:
    text = f"{(word * 40)[:before]} {code}, {word * 30}"

    lines = wrap(text)

    assert sum(code in line for line in lines) == 1
    assert [line for line in lines if columns(line) > 81 and code not in line] == []
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_a_table_that_is_too_wide_for_a_terminal_is_a_list_of_its_cells() -> None:
    lines = wrap(f"Before.\n\n{WIDE}\n| end | a | b |\n\nAfter.")

    assert lines[:3] == ["Before.", "", "Topic: fees"]
    assert lines[3].startswith("- One: crown")
    assert "- Other: not found" in lines
    assert lines[-6:] == ["", "Topic: end", "- One: a", "- Other: b", "", "After."]
    assert all(len(line) <= 80 for line in lines)


def test_no_cell_of_a_wide_table_is_lost_and_a_bar_in_a_cell_has_no_backslash() -> None:
    names = " | ".join(f"name {number}" for number in range(12))
    cells = " | ".join(f"cell {number}" for number in range(12))
    table = f"| {names} |\n|{'---|' * 12}\n| {cells} |\n| {cells} | more | `a\\|b` |"

    listed = [f"name {number}: cell {number}" for number in range(12)]
    row = [listed[0], *(f"- {cell}" for cell in listed[1:])]
    assert wrap(table) == [*row, "", *row, "- more", "- `a|b`"]


def test_the_columns_of_a_narrow_table_are_aligned_and_tables_in_code_stay_as_they_are() -> None:
    narrow = "| a | **b** |\n|---|:-:|\n| one | 2 |\n| 漢 |"

    assert wrap(narrow) == ["| a   | **b** |", "| --- | - |", "| one | 2 |", "| 漢  |   |"]
    assert wrap(f"```\n{WIDE}\n```") == ["```", *WIDE.splitlines(), "```"]


def test_marks_of_bold_words_take_no_room_in_a_line() -> None:
    words = " ".join(["**four**"] * 16)

    assert [len(line.replace("**", "")) for line in wrap(f"- {words}")] == [76, 6]


def test_an_open_request_says_until_when_it_can_be_answered() -> None:
    lines = reply_lines(reply(outcome="clarification", pause={"id": "p", "expires": 1.8e9}))

    assert re.fullmatch(r"\(open until 2027-01-1\d \d\d:\d\d .+\)", lines[-2])
    assert all(len(line) <= 80 for line in lines)


class Terminal(io.StringIO):
    """A standard output that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("output", "shown"), [(Terminal(), "\x1b[1mrule\x1b[0m"), (io.StringIO(), "rule")]
)
def test_bold_words_are_bold_in_a_terminal_plain_elsewhere_and_nothing_else_controls_it(
    output: io.StringIO, shown: str
) -> None:
    text = "A **rule** \x1b[31mred\n\n```\n**kwargs**\n```"

    with redirect_stdout(output):
        print_reply(reply(text=text, answered_by="search"))

    assert f"A {shown} [31mred" in output.getvalue()
    assert "**kwargs**" in output.getvalue()
    assert output.getvalue().count("\x1b") == shown.count("\x1b")


def test_text_has_no_marks_of_bold_words_even_of_those_on_two_lines_and_keeps_code(
    capsys: pytest.CaptureFixture[str],
) -> None:
    bold = "**a phrase of words that fills more than one line of eighty columns**"

    print_reply(reply(text=f"Before it {bold}; **the option `--all`**; `2 ** 3 ** 4`, 2 ** 3."))

    lines = capsys.readouterr().out.splitlines()
    assert " ".join(lines[:2]) == (
        f"Before it {bold.strip('*')}; the option `--all`; `2 ** 3 ** 4`, 2 ** 3."
    )
    assert len(lines[0]) > 70


def test_emphasis_has_no_marks_and_signs_of_documents_remain(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = r"It is *not* 2\*3\*4, _really_. \*x\* a_b_c 2*3*4 5 * 6 * 7 /_static_/a `*y*` [1]"

    print_reply(reply(text=text, sources=[source(1, "Nord *A* _b_")]))

    shown = capsys.readouterr().out
    assert shown.startswith("It is not 2*3*4, really. *x* a_b_c 2*3*4 5 * 6 * 7 /_static_/a `*y*`")
    assert "Nord *A* _b_" in shown


def test_markdown_is_the_text_as_written_with_lists_of_its_options_and_sources(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = f"The **rule** {'word ' * 30}[1].\n\n{WIDE}"
    sources: list[JsonValue] = [source(1, "Rules"), source(2, "Routes"), source(3, "Rules")]
    options: list[JsonValue] = [{"label": "Open it", "value": "Open it", "kind": "option"}]

    print_reply(reply(text=text, sources=sources, suggested_actions=options), as_markdown=True)

    assert capsys.readouterr().out.startswith(
        f"{text}\n\n1. Open it\n\nSources:\n"
        "- Routing: routing.md\n  - [1][3] Rules (#rules)\n  - [2] Routes (#routes)\n\n(answered"
    )


def test_the_text_around_an_answer_is_in_its_language() -> None:
    sources: list[JsonValue] = [source(1, "Regeln"), {**source(2, "Preis"), "path": "tool:c1"}]
    around = {"answered_by": "search", "termination_reason": "regenerate_limit", "message_id": "m"}

    lines = reply_lines(reply(sources=sources, language="de", **around))

    assert lines[2] == "Quellen:"
    assert "      Ergebnis eines Werkzeugs" in lines
    assert lines[-1] == (
        "(beantwortet, Sprache de, von der Suche gefunden, kein Modell, "
        "vorzeitig beendet: regenerate_limit; Nachricht m)"
    )


PARTS = Path(__file__).parents[2] / "gateway" / "widget" / "parts"


@pytest.mark.parametrize("step", ProgressStep)
def test_the_terminal_and_the_widget_name_a_step_in_the_same_words(step: ProgressStep) -> None:
    texts = load_texts()
    script = "".join((PARTS / f"{name}_words.js").read_text() for name in ("latin", "further"))
    matches = re.findall(rf"^ +{step.value}: (\".*\"),$", script, re.MULTILINE)

    named = [texts.text(f"step_{step.value}", language) for language in texts.languages]

    assert sorted(map(json.loads, matches)) == sorted(named)


def test_every_stage_that_people_wait_for_has_a_step() -> None:
    assert find_step("worked") is ProgressStep.SEARCH
    assert find_step("synthesize") is ProgressStep.WRITE
    assert find_step("a stage of a later release") is ProgressStep.UNDERSTAND
    assert {"plan", "gather", "ledger", "judge"} <= list_steps().keys()


def test_no_line_begins_with_the_sign_of_a_menu_path() -> None:
    path = "Open Settings > Billing > Invoices - the page of the account - and choose Export."

    lines = [line for width in range(8, 80) for line in wrap(path, width)]

    assert [line for line in lines if line.startswith((">", "-"))] == []


VALUES = r"""2*3*4, _private_, **/*.py, C:\temp\new, \\server\share, <serial>, ~5, 1 | 2, $5 and $6

m[2]

> 3 kW

+ 5 V

| Code | Pattern |
|---|---|
| 2**3**4 | a\|b |
| _x_ | \\server |"""


def test_values_of_a_document_are_printed_as_they_stand_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_reply(reply(text=as_markdown(VALUES)))

    printed = capsys.readouterr().out
    words = " ".join(printed.split())
    assert words.startswith(" ".join(VALUES.partition("\n\n|")[0].split()))
    assert "| 2**3**4 | a|b      |\n| _x_     | \\\\server |\n" in printed


def test_columns_count_marks_of_thai_and_joined_signs_as_no_column() -> None:
    assert columns("\u0e17\u0e35\u0e48\u0e19\u0e31\u0e48\u0e19") == 3
    assert columns("a\u200db") == 2


def test_numbers_and_names_in_japanese_text_stay_on_one_line() -> None:
    value = "\uff11\uff12\uff0c\uff13\uff10\uff10\u5186\u3001A-100/3\u3001"

    lines = wrap(f"\u4fa1\u683c{value}" * 20)

    assert len(lines) > 3
    assert sum(line.count("A-100/3") for line in lines) == 20
    assert sum(line.count("\uff11\uff12\uff0c\uff13\uff10\uff10") for line in lines) == 20
