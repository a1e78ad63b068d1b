import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import MessageError
from gateway.text import LONGEST_CHARACTERS, check_name, clean_text, parse_command


@pytest.mark.parametrize("text", ["", "   \n\t ", "\x00\x07", "\ud83d"])
def test_a_message_without_text_is_refused_in_one_clear_line(text: str) -> None:
    with pytest.raises(MessageError, match="the message is empty"):
        clean_text(text)


def test_a_megabyte_is_refused_with_its_size() -> None:
    with pytest.raises(MessageError, match=r"at most 8,000 characters, found 1,000,000"):
        clean_text("x" * 1_000_000)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("How\x00 do\x1b[31m I?", "How do I?"),
        ("half a surrogate \ud83d here", "half a surrogate  here"),
        ("one\r\ntwo\rthree", "one\ntwo\nthree"),
        ("  `rate_plan.csv`  ", "`rate_plan.csv`"),
        ("كيف أضبط \u202eالتوجيه", "كيف أضبط التوجيه"),
        ("🙂", "🙂"),
        ("/etc/passwd", "/etc/passwd"),
        ("https://example.org/a?b=c", "https://example.org/a?b=c"),
        ('{"a": {"b": [1, 2]}}', '{"a": {"b": [1, 2]}}'),
        ("Cafe\u0301", "Café"),
    ],
)
def test_only_what_no_text_has_is_removed(text: str, clean: str) -> None:
    assert clean_text(text) == clean


ASCII = st.text(st.characters(max_codepoint=127), min_size=1)


@given(ASCII)
def test_ascii_is_cleaned_like_any_other_text(text: str) -> None:
    with_others = f"é{text}é"

    assert f"é{clean_text(f'.{text}.')[1:-1]}é" == clean_text(with_others)


@given(st.text(max_size=LONGEST_CHARACTERS))
def test_accepted_text_can_always_be_encoded(text: str) -> None:
    try:
        clean = clean_text(text)
    except MessageError:
        return

    assert clean.encode()
    assert clean_text(clean) == clean


@pytest.mark.parametrize("name", ["", "x" * 129, "a\nb", "\x00"])
def test_an_id_that_cannot_be_printed_is_refused(name: str) -> None:
    with pytest.raises(MessageError, match="1 to 128 printable characters"):
        check_name(name, "message id")


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/help", ("help", ())),
        ("/set-language de", ("set_language", ("de",))),
        ("/nonsense now", ("nonsense", ("now",))),
        ("/etc/passwd", (None, ())),
        ("how do I /help", (None, ())),
        ("/", (None, ())),
    ],
)
def test_a_command_begins_with_a_slash_and_is_no_path(
    text: str, command: tuple[str | None, tuple[str, ...]]
) -> None:
    assert parse_command(text, ["help", "set_language"]) == command
