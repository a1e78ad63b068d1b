"""What the command shows of a running question, of an ingestion and of a review."""

import io
from contextlib import redirect_stdout

import pytest

from broker.values import Fields, JournalEntry
from cli.commands.ask import STRUCK, DraftDisplay
from cli.commands.ingest import BarReport
from cli.commands.review import ReviewProgress
from cli.printing import ERASE_LINE, columns
from gateway.events import Event
from knowledge.ingestion_report import estimate_rest


class Terminal(io.StringIO):
    """A text that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def make_event(name: str, **data: object) -> Event:
    fields: Fields = data  # type: ignore[assignment] # JSON
    return Event("1-1.0", name, fields)


def show(screen: io.StringIO) -> str:
    with redirect_stdout(screen):
        display = DraftDisplay()
        display.show_step({"target": "response"})
        display.show_event(make_event("draft", draft="a", offset=0, text="Open Rules."))
        display.show_event(make_event("draft", draft="a", offset=11, text=" Pay \x1b[31m40."))
        display.show_event(make_event("retracted", draft="a", sentences=["Pay 40."]))
        display.end()
    return screen.getvalue()


def test_a_draft_grows_and_what_is_taken_back_stays_struck_out() -> None:
    shown = show(Terminal())

    assert "Open Rules.\n" in shown
    assert f"{STRUCK}Pay 40." in shown
    assert shown.rindex(STRUCK) > shown.rindex("Open Rules.")


def test_a_draft_cannot_command_the_terminal() -> None:
    assert "\x1b[31m" not in show(Terminal())


def test_the_searches_of_a_plan_tick_off() -> None:
    screen = Terminal()
    with redirect_stdout(screen):
        display = DraftDisplay()
        display.show_step(
            {
                "target": "results",
                "branches": ["t1", "t2"],
                "plan": ["search: fee", "lookup: \x1b[1m"],
            }
        )
        display.show_step({"target": "return", "branch": "t1"})
        shown = screen.getvalue()
        display.end()

    assert "– search: fee\n" in shown
    last = shown[shown.rindex("search: fee") - 2 :]
    assert last.startswith("✓ search: fee\n  – lookup:")
    assert last.endswith("… Searching the documents: 1 of 2 parts finished")
    assert "\x1b[1m" not in shown


def test_parts_that_ended_before_stay_ticked_off_and_are_counted() -> None:
    screen = Terminal()
    with redirect_stdout(screen):
        display = DraftDisplay()
        display.show_step(
            {"target": "worked", "branches": ["w3"], "plan": ["Rust"], "completed": ["Python"]}
        )
        display.show_step({"target": "worker_results", "branch": "w3", "branches": ["w3/t1"]})
        shown = screen.getvalue()
        display.end()

    assert shown.endswith("  ✓ Python\n  – Rust\n… Searching the documents: 1 of 2 parts finished")


def test_steps_are_named_in_the_language_of_the_question() -> None:
    screen = Terminal()
    with redirect_stdout(screen):
        display = DraftDisplay()
        display.show_step({"target": "lang"})
        display.read_language({"role": "lang", "writes": {"language": "de"}})
        display.show_step({"target": "plan"})
        display.show_step({"target": "worked", "branches": ["w1"], "plan": ["Gebühren" * 20]})
        display.show_step({"target": "judge"})
        shown = screen.getvalue()

    assert "… Understanding the question" in shown
    assert "… Die Frage wird ausgewertet" in shown
    assert "… Die Dokumente werden durchsucht: 0 von 1 Teilen fertig" in shown
    assert shown.endswith("… Die Antwort wird geprüft")
    assert max(map(len, shown.splitlines())) <= 80 + len("\r\x1b[2K\x1b[1A\r\x1b[2K")


def test_nothing_is_shown_where_the_output_is_no_terminal() -> None:
    assert show(io.StringIO()) == ""


def test_a_draft_is_erased_with_all_rows_of_a_long_line_of_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    screen = Terminal()
    with redirect_stdout(screen):
        display = DraftDisplay()
        code = f"```\n{'x' * 200}\n```"
        display.show_event(make_event("draft", draft="a", offset=0, text=code))
        drawn = screen.getvalue()
        display.end()

    assert screen.getvalue().removeprefix(drawn).count("\x1b[1A") == 5


def test_the_bar_grows_with_the_files_without_a_line_for_each_of_them() -> None:
    written: list[str] = []
    bar = BarReport(written.append)

    bar.start("docs", 4)
    bar.advance(2, 2, 7)
    bar.advance(4, 4, 9)
    bar.close()

    shown = [text.removeprefix(ERASE_LINE) for text in written]
    assert [line.count("━") for line in shown] == [0, 12, 24, 0]
    assert shown[1].endswith("2/4 files")


@pytest.mark.parametrize(
    ("seconds", "done", "rest"),
    [
        (600.0, 200, ", about 20 min left"),
        (36_000.0, 200, ", about 20 h left"),
        (60.0, 500, ", less than a minute left"),
        (1.0, 1, ""),
        (60.0, 0, ""),
        (60.0, 600, ""),
    ],
)
def test_the_rest_of_an_ingestion_takes_as_long_as_the_part_before(
    seconds: float, done: int, rest: str
) -> None:
    assert estimate_rest(seconds, done, 600) == rest


def test_a_name_of_a_file_cannot_control_the_terminal() -> None:
    written: list[str] = []
    bar = BarReport(written.append)

    bar.start("a\x1b[2J\nb", 1)

    assert "\x1b" not in "".join(text.removeprefix(ERASE_LINE) for text in written)
    assert "\n" not in written[0]


def begin(*plan: tuple[str, str], branch: str = "") -> Fields:
    return {
        "target": "specialist",
        "branches": [name for name, _ in plan],
        "plan": [label for _, label in plan],
        **({"branch": branch} if branch else {}),
    }


def end(branch: str) -> Fields:
    return {"target": "return", "branch": branch}


STEPS = (
    begin(("w1", "compliance"), ("w2", "risk verifier")),
    begin(("w1/p1", "1-12: Article 2 - Article 6"), ("w1/p2", "13-13: Article 7"), branch="w1"),
    end("w1/p1"),
    end("w2"),
    end("w1/p2"),
    end("w1"),
)


def show_parts(*, is_terminal: bool, steps: tuple[Fields, ...] = STEPS) -> list[str]:
    written: list[str] = []
    progress = ReviewProgress(written.append, is_terminal=is_terminal)
    for fields in steps:
        progress.read(JournalEntry("routed", fields))
    progress.read(JournalEntry("finished", {}))
    progress.end()
    return written


def test_each_part_that_has_ended_is_a_line_elsewhere() -> None:
    assert show_parts(is_terminal=False) == [
        "judged 1-12: Article 2 - Article 6 (12 of 13 requirements)\n",
        "done: risk verifier\n",
        "judged 13-13: Article 7 (13 of 13 requirements)\n",
        "done: compliance\n",
    ]


def test_requirements_of_a_part_that_is_tried_once_more_are_counted_once() -> None:
    first, again = (
        begin((f"w1/{name}", "3-10: Article 2 - Article 5"), branch="w1") for name in "ab"
    )

    written = show_parts(is_terminal=False, steps=(first, end("w1/a"), again, end("w1/b")))

    assert written == ["judged 3-10: Article 2 - Article 5 (8 of 8 requirements)\n"] * 2


def test_one_line_changes_on_a_terminal_and_is_erased_at_the_end() -> None:
    written = show_parts(is_terminal=True)

    assert written[-1] == ERASE_LINE
    assert written[2] == f"{ERASE_LINE}… 12 of 13 requirements; compliance, risk verifier"
    assert all("\n" not in line for line in written)


def test_labels_of_documents_are_plain_and_fit_the_line() -> None:
    hostile = f"\x1b[31mArticle\x1b[0m\n{'long ' * 60}"
    steps = (begin(("w1", hostile)), end("w1"))

    for is_terminal in (True, False):
        for line in show_parts(is_terminal=is_terminal, steps=steps):
            plain = line.removeprefix(ERASE_LINE).removesuffix("\n")
            assert "\x1b" not in plain
            assert columns(plain) < 80
