"""Addresses on hosts that the owner trusts are links where a cited source states them exactly."""

import pytest
from pydantic import JsonValue

from citations.links import keep_links
from citations.sources import collect_allowed, with_addresses
from envelope.sources import SourceReference, SourceUsed
from gateway.answer import Source, safe_reply
from gateway.chat.marked_text import keep_source_links, parse_marked

HOSTS = {"shop.acme.test", "acme.github.test"}
PORTAL = "https://shop.acme.test/orders?view=open&tab=2#top"
REDIRECT = "https://shop.acme.test/go?to=https://shop.acme.test/orders"
ELSEWHERE = "https://elsewhere.test/orders"
TEXT = f"See {PORTAL}, {REDIRECT}, {ELSEWHERE} or https://other.github.test/orders now."


def show(answer: str, text: str = TEXT, typed: str = "") -> str:
    """Return what is shown of an answer that a model wrote from a source with this text."""
    reference = SourceReference(
        number=1, chunk_id="a#1", title="Orders", path="orders.md", span=(0, len(text))
    )
    used = [SourceUsed(number=1, chunk_id="a#1", title="Orders", path="orders.md")]
    safe = keep_links(answer, collect_allowed([reference], text, [typed]))
    sources = with_addresses(used, [reference], text, safe.text, [typed])
    reply: dict[str, JsonValue] = {
        "text": safe.text,
        "sources": [source.model_dump(mode="json") for source in sources],
    }
    shown, _ = safe_reply(reply, link_hosts=HOSTS)
    return str(shown["text"])


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (f"Open {PORTAL} [1].", f"Open <{PORTAL}> [1]."),
        (f"Open [your orders]({PORTAL}) [1].", f"Open your orders (<{PORTAL}>) [1]."),
        (f"Open [{PORTAL}]({PORTAL}) [1].", f"Open <{PORTAL}> [1]."),
        (f"Open `{PORTAL}` [1].", f"Open <{PORTAL}> [1]."),
    ],
)
def test_an_address_that_a_cited_source_states_on_a_trusted_host_is_a_link(
    answer: str, shown: str
) -> None:
    assert show(answer) == shown


@pytest.mark.parametrize(
    "address",
    [
        "https://shop.acme.test/orders?view=open&tab=2&user=ada%40acme.test",
        "https://shop.acme.test/orders?view=ada",
        "https://shop.acme.test/orders?view=open&tab=2#ada@acme.test",
        "https://shop.acme.test/go?to=https://evil.test/",
        "https://shop.acme.test@evil.test/orders",
        "https://shop.acme.test:8443/orders?view=open&tab=2",
        "https://shop.acme.test.evil.test/orders",
        "https://other.github.test/orders",
        ELSEWHERE,
    ],
)
@pytest.mark.parametrize("form", ["Open {} [1].", "Open [orders]({}) [1].", "Open <{}> [1]."])
@pytest.mark.parametrize("is_typed", [False, True])
def test_no_other_address_is_a_link_whoever_typed_it(
    address: str, form: str, is_typed: bool
) -> None:
    shown = show(form.format(address), typed=address if is_typed else "")

    assert "<http" not in shown
    assert "](" not in shown


def test_a_link_never_has_the_name_of_another_host_as_its_label() -> None:
    shown = show(f"Open [https://bank.test/login]({PORTAL}) or [shop.acme.test]({ELSEWHERE}) [1].")

    assert "bank.test" not in shown
    assert shown.count("<https") == 1


def test_code_blocks_keep_an_address_as_code() -> None:
    block = f"```\ncurl `{PORTAL}`\n```"

    assert show(f"{block}\n\nIt is {PORTAL} [1].") == f"{block}\n\nIt is <{PORTAL}> [1]."


def test_chats_show_such_a_link() -> None:
    source = Source(number=1, title="Orders", links=(PORTAL,))

    kept = keep_source_links(parse_marked(f"Open <{PORTAL}> or <{ELSEWHERE}>."), [source])

    assert [mark.detail for mark in kept.marks if mark.kind == "link"] == [PORTAL]


def test_addresses_that_a_person_wrote_stay_and_only_those_of_the_web_are_links() -> None:
    text = "See [the form](https://acme.test/form), write to me@acme.test or <javascript:go()>."

    by_person, _ = safe_reply({"text": text, "answered_by": "person"})
    by_model, _ = safe_reply({"text": text, "answered_by": "model"})

    assert "[the form](https://acme.test/form), write to `me@acme.test`" in str(by_person["text"])
    assert by_person["links"] == ["https://acme.test/form"]
    assert "https://acme.test/form" not in str(by_model["text"])
    assert "links" not in by_model
