import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.documents import front_matter, plain_text
from knowledge.documents.decoding import MAX_BYTES, decode
from knowledge.documents.errors import NotTextError, ReadingError, TooLargeError
from knowledge.documents.markup import html, markdown
from knowledge.documents.readers import Reader


def test_a_byte_order_mark_is_no_text() -> None:
    assert decode(b"\xef\xbb\xbfHello")[0] == "Hello"
    assert decode("Hello".encode("utf-16"))[0] == "Hello"


@pytest.mark.parametrize(
    "data", [b"\x7fELF\x02\x01\x00", b"\xff\xfe\x00", b"\xff\xd8\xff\xe0" + b"\x01\x02\x10" * 99]
)
def test_bytes_that_are_no_text_are_reported(data: bytes) -> None:
    with pytest.raises(NotTextError, match=r"expected text|UTF-16"):
        decode(data)


def test_more_bytes_than_a_document_may_have_are_reported() -> None:
    with pytest.raises(TooLargeError, match=f"{MAX_BYTES} bytes"):
        decode(b"a" * (MAX_BYTES + 1))


def test_control_characters_go_and_line_ends_are_one_kind() -> None:
    assert decode(b"a\x07b\x1b[0m\r\nc\rd\x0ce\tf")[0] == "ab[0m\nc\nd\ne\tf"


def test_right_to_left_marks_and_joined_emoji_stay() -> None:
    text = "\u2067\u0645\u0631\u062d\u0628\u0627\u2069\u200f \U0001f469\u200d\U0001f4bb"

    assert decode(text.encode())[0] == text


@pytest.mark.parametrize(
    ("front", "reason"),
    [
        ("- a\n- b", "expected a mapping, found list"),
        ("title: [", "front matter was ignored"),
        ("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]", "it uses aliases"),
        ("title: !!python/object/apply:os.getcwd []", "could not determine a constructor"),
        pytest.param("[" * 3000, "front matter was ignored", marks=pytest.mark.slow),
    ],
)
def test_front_matter_that_cannot_be_used_is_reported_and_the_page_is_read(
    front: str, reason: str
) -> None:
    page = markdown.read(f"---\n{front}\n---\n# Title\n\nText.\n".encode(), "a.md")

    assert reason in page.warnings[0]
    assert [block.text for block in page.blocks] == ["Title", "Text."]


def test_front_matter_takes_only_texts() -> None:
    said, rest = front_matter.take("---\ntitle: 3\nkeywords: [a, 4, {b: c}]\nlang: no\n---\nText")

    assert (said.title, said.keywords, said.language, rest) == ("", ("a",), None, "Text")


def test_front_matter_without_an_end_is_text() -> None:
    assert front_matter.take("---\ntitle: x\n")[1] == "---\ntitle: x\n"
    assert front_matter.take("---\n" + "a: b\n" * 9000 + "---\n")[0] == front_matter.FrontMatter()


@given(st.text(alphabet="ab \n#*_`[](){}<>!|-+>~:/'\"&;\\=.1", max_size=300))
def test_any_markup_is_read_or_reported(text: str) -> None:
    for reader in (markdown.read, html.read, plain_text.read):
        assert reader(text.encode(), "a").source == "a"


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_reported(data: bytes) -> None:
    for reader in (markdown.read, html.read, plain_text.read):
        try:
            content = reader(data, "a").content
        except ReadingError as error:
            content = str(error)
        assert content.encode() is not None
        assert "\x00" not in content


@pytest.mark.slow
@pytest.mark.parametrize("reader", [markdown.read, html.read, plain_text.read])
@pytest.mark.parametrize("piece", ["word ", "[x](", "*a **b ", "<a ", "`", "> ", "{/*"])
def test_a_line_of_a_million_characters_is_read(reader: Reader, piece: str) -> None:
    page = reader((piece * (1_100_000 // len(piece))).encode(), "a")

    assert "a line is longer than 1000000 characters" in page.warnings
