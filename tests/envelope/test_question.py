"""How conversations of several channels are distinguished."""

from itertools import product

import pytest

from envelope.question import Question, names_conversation, qualify_conversation

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


def test_conversations_of_two_channels_have_shards_and_questions_of_their_own() -> None:
    one, other = (
        Question(
            tenant="acme",
            assistant="docs",
            conversation_id=qualify_conversation(channel, "7:0"),
            message_id="1",
        )
        for channel in ("http", "telegram")
    )

    assert one != other
    assert one.conversation != other.conversation
