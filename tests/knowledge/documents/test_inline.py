"""Inline markup of Markdown: what is code comes out as it went in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.documents.markup.markdown import plain

CODE = st.text(
    st.characters(exclude_characters="`\n\r\x1a", exclude_categories=["Cs", "Cc"]), min_size=1
)


@pytest.mark.parametrize(
    "span",
    [
        "`DELETE /messages/{id}`",
        "`{name}`",
        "`List<int>`",
        "`<b>bold</b>`",
        "`a   b`",
        "`**kwargs` and `*args`",
        "`&amp;`",
        "`[text](link)`",
        r"`a\|b`",
        "``a`b``",
    ],
)
def test_a_code_span_keeps_every_character(span: str) -> None:
    assert plain(f"Send {span} first.") == f"Send {span} first."


@given(CODE)
def test_whatever_is_in_a_code_span_survives(code: str) -> None:
    assert plain(f"a `{code}` b") == f"a `{code}` b"


def test_a_code_span_survives_within_links_and_emphasis() -> None:
    assert plain("**[`GET /{id}`](https://x.test/a)** or *`a_b_c`*") == "`GET /{id}` or `a_b_c`"


def test_roles_of_documentation_generators_go_and_their_words_stay() -> None:
    text = "Use {py:func}`send` as in {ref}`Sending messages <send-target>` and {doc}`guide`."

    assert plain(text) == "Use `send` as in Sending messages and guide."


def test_backticks_that_open_nothing_stay() -> None:
    assert plain("a ` b *c*") == "a ` b c"
    assert plain(r"\`not *code*\`") == "`not code`"
