"""Whole conversations: what each reply is, acts of talk, and commands."""

import json
import math
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from broker.embedded_redis import Endpoint
from envelope.run import OUTSIDE, Run
from knowledge.embedding import Embedder
from tests.desk.conftest import OpenApp
from tests.desk.test_asking_back import make_model
from tests.llm.vendor_dialects import OpenAI
from tests.support.app_harness import (
    AppHarness,
    ConversationDriver,
    keys,
    open_knowledge_with,
    options,
    run_app,
    settings_of,
)
from tests.support.model_server import ModelServer, Response, running_server

pytestmark = pytest.mark.slow


DATA = tomllib.loads(Path(__file__).with_name("conversations.toml").read_text(encoding="utf-8"))


CONVERSATIONS = DATA["conversation"]


def find_differences(
    expected: dict[str, Any], reply: dict[str, Any], roles: list[str]
) -> list[str]:
    """Return what a reply is other than expected, each with what was found."""
    page = reply["sources"][0]["path"] if reply["sources"] else None
    results = {
        "outcome": reply["outcome"],
        "reason": reply.get("clarification_reason"),
        "question": reply["question"],
        "language": reply["language"],
        "options": options(reply),
        "page": page,
        "hops": reply.get("hops"),
    }
    wrong = [
        f"{name}: expected {expected[name]!r}, found {value!r}"
        for name, value in results.items()
        if name in expected and expected[name] != value
    ]
    text = reply["text"]
    wrong += [f"asked {role}" for role in expected.get("without", ()) if role in roles]
    wrong += [f"lacks {part!r}: {text}" for part in expected.get("says", ()) if part not in text]
    return wrong + [f"says {part!r}: {text}" for part in expected.get("never", ()) if part in text]


def script_of(turns: list[dict[str, Any]]) -> list[Any]:
    """Return what the model answers over a conversation, in order."""
    script: list[Any] = []
    for turn in turns:
        if understood := turn.get("understood"):
            fields = dict(understood)
            script.append(make_understanding(fields.pop("canonical_question"), **fields))
        if draft := turn.get("draft"):
            script.append(make_draft(draft))
    return script


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda item: str(item["name"]))
async def test_every_reply_of_a_conversation_is_what_the_person_needs(
    open_app: OpenApp, conversation: dict[str, Any]
) -> None:
    turns = conversation["turns"]
    script = script_of(turns)
    wrong: dict[str, list[str]] = {}
    async with running_server() as server:
        server.will_send(*script)
        settings = asks_for_essence(server) if script else {}
        async with open_app(**settings) as harness:
            driver = harness.driver()
            for turn in turns:
                reply = await driver.say(turn["say"])
                expected = {"outcome": "answered", **turn}
                roles = await driver.roles(reply)
                if differences := find_differences(expected, reply, roles):
                    wrong[turn["say"]] = differences

    assert wrong == {}
    assert len(server.received) == len(script)


VENDOR = OpenAI()


QUESTION = "How do I configure SMS routing rules?"


FIRST = "Open Routing > Rules and choose New rule."


def asks_for_essence(server: ModelServer) -> dict[str, object]:
    """Settings by which essence and the writer ask the server, and every other task the rules."""
    offline = ("guardrails_model", "translation_model", "quality_model", "clarification_model")
    return {
        "gen_model": "gpt-4o-mini@openai",
        "openai_api_key": "secret-key",
        "openai_base_url": VENDOR.base_url(server.url),
        "model_cache_seconds": 0,
        **dict.fromkeys(offline, "offline"),
    }


def make_understanding(question: str, **changes: Any) -> Response:
    """The essence of a turn as a model sends it."""
    plain: dict[str, Any] = {"canonical_question": question, "context_type": "follow_up"}
    return VENDOR.answer(json.dumps(plain | changes))


def make_draft(answer: str) -> Response:
    """A draft as the writer sends it."""
    draft = {"status": "answered", "answer": answer, "confidence": 0.9, "missing": ""}
    return VENDOR.answer(json.dumps(draft))


async def talk(driver: ConversationDriver, *turns: str) -> list[dict[str, Any]]:
    return [await driver.say(turn) for turn in turns]


FOUR = (
    "How do I test a routing rule?",
    "How do I create a webhook?",
    "What is error 4029?",
    "How do I rent a number?",
)


async def test_related_questions_in_one_message_are_both_answered_by_a_model(
    open_app: OpenApp, server: ModelServer
) -> None:
    turn = "How do I create a routing rule? And how many conditions may a rule have?"
    understood = make_understanding(turn, context_type="new_topic")
    judged = {
        "claims_read": 2, "analysis": "", "verdicts": [], "missing": [], "completeness": 1.0,
        "accuracy": 1.0, "language_matches": True, "decision": "approve",
    }  # fmt: skip
    draft = make_draft(f"{FIRST} [1]\n\nA rule may have up to 8 conditions. [1]")
    server.will_send(understood, draft, VENDOR.answer(json.dumps(judged)))
    settings = asks_for_essence(server) | {"quality_model": "gpt-4o-mini@openai"}

    async with open_app(**settings) as harness:
        reply = await harness.driver().say(turn)

    understands, writes, _ = (str(VENDOR.said(received)) for received in server.received)
    assert turn in understands
    assert turn in writes
    assert reply["outcome"] == "answered"
    assert "New rule" in reply["text"]
    assert "up to 8 conditions" in reply["text"]


async def test_thanks_leave_an_open_choice_open(open_app: OpenApp) -> None:
    async with open_app(make_model()) as harness:
        asked, _, chosen = await talk(harness.driver(), "How do I set it up?", "thanks", "2")

    assert chosen["question"] == f"How do I set it up? ({options(asked)[1]})"


async def test_a_rephrased_answer_repeats_the_question_whatever_the_model_makes_of_it(
    open_app: OpenApp, server: ModelServer
) -> None:
    server.will_send(
        make_understanding(QUESTION, context_type="new_topic"),
        make_draft(f"{FIRST} [1]"),
        make_understanding("Write a poem.", act="rephrase", style="simpler"),
        make_draft(f"{FIRST} [1]"),
    )

    async with open_app(**asks_for_essence(server)) as harness:
        driver = harness.driver()
        _, simpler = await talk(driver, QUESTION, "could you put this so that my boss gets it")

    assert (simpler["outcome"], simpler["question"]) == ("answered", QUESTION)
    assert "everyday words" in str(server.received[3].body)


CLEAR = "How do I configure SMS routing rules?"


VAGUE = "How do I set it up?"


async def find_written_about(harness: AppHarness, driver: ConversationDriver) -> dict[str, str]:
    """Every key of Redis that names the conversation, and all that is written there."""
    kinds = {
        "string": lambda key: harness.client.get(key),
        "hash": lambda key: harness.client.hgetall(key),
        "list": lambda key: harness.client.lrange(key, 0, -1),
        "stream": lambda key: harness.client.xrange(key),
        "zset": lambda key: harness.client.zrange(key, 0, -1),
    }
    found: dict[str, str] = {}
    for name in [key.decode() async for key in harness.client.scan_iter()]:
        if driver.conversation_id in name:
            found[name] = str(await kinds[(await harness.client.type(name)).decode()](name))
    return found


async def test_clear_all_leaves_nothing_of_a_conversation_and_all_of_another(
    open_app: OpenApp,
) -> None:
    async with open_app() as harness:
        mine, theirs = harness.driver(), harness.driver()
        for driver in (mine, theirs):
            await driver.say("/set_language de")
            await driver.say(CLEAR)
            await driver.say(VAGUE)
        before, written = (
            await find_written_about(harness, theirs),
            await find_written_about(harness, mine),
        )
        reply = await mine.say("/clear_all")
        left, after = (
            await find_written_about(harness, mine),
            await find_written_about(harness, theirs),
        )

    assert reply["outcome"] == "answered"
    assert CLEAR in str(written)
    assert CLEAR not in str(left)
    # Ids and times stay for a day: a message sent twice is still known to have been answered.
    own = f"{mine.conversation_id}-4"
    kinds = {key.split(":")[2] for key in left if own not in key}
    assert kinds <= {"record", "named", "asked", "tombstone"}
    assert "Routing" not in str(left)
    assert after == before


async def test_clear_history_forgets_what_was_said_and_keeps_the_language(
    open_app: OpenApp,
) -> None:
    async with open_app() as harness:
        driver = harness.driver()
        await driver.say("/set_language de")
        await driver.say(VAGUE)
        cleared = await driver.say("/clear_history")
        there = [await harness.client.exists(key) for key in keys(driver).values()]
        reply = await driver.say(CLEAR)

    assert cleared["language"] == "de"
    assert there == [0, 0]
    assert reply["language"] == "de"


async def test_a_chosen_language_wins_over_the_language_of_a_question(open_app: OpenApp) -> None:
    async with open_app() as harness:
        driver = harness.driver()
        chosen = await driver.say("/set_language Russian")
        reply = await driver.say("What's the weather like today?")

    assert "русском" in chosen["text"].lower() or "русский" in chosen["text"].lower()
    assert reply["language"] == "ru"
    assert re.search("[а-я]{4}", reply["text"])


async def test_statistics_count_what_happened_in_this_conversation(open_app: OpenApp) -> None:
    async with open_app() as harness:
        driver, other = harness.driver(), harness.driver()
        await other.say(CLEAR)
        await driver.say(CLEAR)
        await driver.say("What's the weather like today?")
        reply = await driver.say("/get_stats")

    assert "- questions: 2" in reply["text"]
    assert "- answered: 1" in reply["text"]
    assert "- declined: 1" in reply["text"]


async def test_help_and_an_unknown_command_list_the_commands(open_app: OpenApp) -> None:
    async with open_app() as harness:
        driver = harness.driver()
        replies = [await driver.say("/help"), await driver.say("/frobnicate now")]

    for reply in replies:
        assert reply["outcome"] == "answered"
        for command in ("clear_history", "clear_all", "set_language", "get_stats", "help"):
            assert command in reply["text"]
    assert "frobnicate" in replies[1]["text"]


async def test_a_language_that_a_person_chose_holds_in_their_other_conversations(
    open_app: OpenApp,
) -> None:
    async with open_app() as harness:
        first, second = harness.driver(people=("ada",)), harness.driver(people=("ada",))
        others = [
            harness.driver(people=("bob",)),
            harness.driver(),
            harness.driver(people=("ada", "bob")),
        ]
        await first.say("/set_language de")
        followed = await second.say(CLEAR)
        unaffected = [await other.say(CLEAR) for other in others]
        await second.say("/set_language fr")
        newer = await first.say(CLEAR)
        kept = [key async for key in harness.client.scan_iter("rd:person:*")]
        lives = [await harness.client.ttl(key) for key in kept]
        await second.say("/clear_all")
        left = [key async for key in harness.client.scan_iter("rd:person:*")]

    assert followed["language"] == "de"
    assert [reply["language"] for reply in unaffected] == ["en", "en", "en"]
    assert newer["language"] == "fr"
    assert len(kept) == 1
    assert lives[0] > 0
    assert left == []


class NoisyEmbedder:
    """An embedder whose vectors of questions are as far off as those of another processor."""

    COSINE = 0.98

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self._random = np.random.default_rng(1)
        self.name, self.dimensions, self.forms = inner.name, inner.dimensions, inner.forms

    async def embed_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return await self._inner.embed_documents(texts)

    async def embed_questions(
        self, texts: Sequence[str], run: Run = OUTSIDE
    ) -> Sequence[Sequence[float]]:
        vectors = np.asarray(await self._inner.embed_questions(texts, run))
        noise = self._random.normal(size=vectors.shape)
        noise -= (noise * vectors).sum(axis=1, keepdims=True) * vectors
        noise /= np.linalg.norm(noise, axis=1, keepdims=True)
        moved = self.COSINE * vectors + math.sqrt(1 - self.COSINE**2) * noise
        return [[float(item) for item in vector] for vector in moved]


async def test_a_vague_question_is_asked_back_and_a_clear_one_answered_with_slightly_other_vectors(
    library: Path, endpoint: Endpoint, embedder: Embedder
) -> None:
    settings = settings_of(library)
    async with (
        open_knowledge_with(settings, NoisyEmbedder(embedder)) as knowledge,
        run_app(settings, endpoint, knowledge) as harness,
    ):
        # Each has other marks at its end, so that its vector is computed anew.
        vague = [await harness.driver().say(VAGUE + "?" * at) for at in range(8)]
        clear = [await harness.driver().say(CLEAR + "?" * at) for at in range(8)]

    assert [item["outcome"] for item in vague] == ["clarification"] * 8
    assert [item["outcome"] for item in clear] == ["answered"] * 8
