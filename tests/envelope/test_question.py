"""How conversations of several channels are distinguished."""

from itertools import product

import pytest

from envelope.question import (
    LONGEST_GROUP,
    MOST_GROUPS,
    has_all,
    may_read,
    names_conversation,
    parse_groups,
    qualify_conversation,
)

IDS = ("7:0", "T1:C1:17.1", "c", "slack:7:0", "telegram", "slack%2F7:0", "..", "é", "a b", "~")
CHANNELS = ("http", "slack", "telegram", "cli", "evaluate")


def test_ids_of_two_channels_never_meet() -> None:
    named = {
        (channel, id_): qualify_conversation(channel, id_)
        for channel, id_ in product(CHANNELS, IDS)
    }

    assert len(set(named.values())) == len(named)
    assert [named["http", id_] for id_ in IDS] == list(IDS)


@pytest.mark.parametrize("id_", ["slack/7:0", "/", "http/c", "a/../slack/7:0"])
def test_http_cannot_name_a_conversation_of_another_channel(id_: str) -> None:
    with pytest.raises(ValueError, match="without '/'"):
        qualify_conversation("http", id_)


def test_no_channel_names_a_conversation_of_another() -> None:
    for channel, other in product(CHANNELS[1:], CHANNELS[1:]):
        foreign = qualify_conversation(other, "7:0")
        named = qualify_conversation(channel, foreign)

        assert (named == foreign) is (channel == other)
        assert named.startswith(f"{channel}/")


def test_a_stored_id_is_named_in_full_or_as_its_channel_calls_it() -> None:
    assert names_conversation("telegram/7:0", "telegram/7:0")
    assert names_conversation("7:0", "telegram/7:0")
    assert names_conversation("c1", "c1")
    assert not names_conversation("", "c1")
    assert not names_conversation("0", "telegram/7:0")


def test_names_of_groups_differ_by_case_and_are_in_order() -> None:
    assert parse_groups(["sales", " HR ", "hr", "sales"]) == ("HR", "hr", "sales")


@pytest.mark.parametrize(
    "name", ["", "  ", "a,b", "a\nb", "x" * (LONGEST_GROUP + 1), 7, None, ["a"]]
)
def test_an_invalid_group_name_is_rejected(name: object) -> None:
    with pytest.raises(ValueError, match="expected the name of a group"):
        parse_groups(["hr", name])


def test_a_person_has_a_bounded_number_of_groups() -> None:
    with pytest.raises(ValueError, match=f"at most {MOST_GROUPS}"):
        parse_groups([f"g{number}" for number in range(MOST_GROUPS + 1)])


def test_a_document_without_groups_is_for_everybody_and_any_other_needs_one_of_its_groups() -> None:
    assert may_read((), ())
    assert may_read(("hr", "board"), ("board",))
    assert not may_read(("hr",), ())
    assert not may_read(("hr",), ("HR", "hrx"))


def test_an_answer_for_several_groups_requires_all_of_them() -> None:
    assert has_all((), ())
    assert has_all(("hr",), ("board", "hr"))
    assert not has_all(("board", "hr"), ("hr",))
