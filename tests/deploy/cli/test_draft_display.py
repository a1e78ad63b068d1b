import io
from contextlib import redirect_stdout

import pytest

from broker.values import Fields
from deploy.cli.commands.ask import STRUCK, DraftDisplay
from gateway.events import Event


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
