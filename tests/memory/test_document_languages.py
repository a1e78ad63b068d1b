"""The languages of the documents, stored for the processes that cannot reach the index."""

from typing import Any

from memory.document_languages import FRESH_SECONDS, RedisDocumentLanguages


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


async def test_a_person_of_a_group_gets_the_languages_of_its_documents_too(client: Any) -> None:
    languages = RedisDocumentLanguages(client, "acme", "desk")
    await languages.publish({"": {"en": 3.0}, "board": {"en": 3.0, "de": 2.0}})

    assert await languages.read() == {"en": 3.0}
    assert await languages.read(("board", "guests")) == {"en": 3.0, "de": 2.0}


async def test_assistants_have_languages_of_their_own_and_unknown_ones_are_empty(
    client: Any,
) -> None:
    await RedisDocumentLanguages(client, "acme", "desk").publish({"": {"en": 3.0}})

    assert await RedisDocumentLanguages(client, "acme", "other").read() == {}


async def test_changed_languages_are_read_after_a_minute(client: Any) -> None:
    clock = Clock()
    languages = RedisDocumentLanguages(client, "acme", "desk", clock=clock)
    assert await languages.read() == {}

    await languages.publish({"": {"en": 1.0}})
    assert await languages.read() == {"en": 1.0}
    await languages.publish({"": {"de": 1.0}})
    assert await languages.read() == {"en": 1.0}
    clock.seconds += FRESH_SECONDS
    assert await languages.read() == {"de": 1.0}


async def test_values_of_another_version_count_as_absent(client: Any) -> None:
    await client.set("rd:languages:acme/desk", b'["en"]')

    assert await RedisDocumentLanguages(client, "acme", "desk").read() == {}
