"""Questions of which every stage was played by hand: replayed, and what the person sees of them.

`python -m tests.recordings` tells how they are made.
"""

import asyncio
from collections.abc import Iterable
from pathlib import Path

import pytest

from envelope.outcome import Outcome
from gateway.answer import Answer, Source
from knowledge.embedding import Embedder
from tests.recordings.local_model import find_foreign
from tests.recordings.measuring import find_faults
from tests.recordings.plain_way import STAGES, load_conversations
from tests.recordings.replaying import Played, ingest_documents, open_documents, play

# The first test waits for all recordings: by themselves they take longer than one test may.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

CONVERSATIONS = {conversation.id: conversation for conversation in load_conversations()}
TURNS = [
    (conversation.id, number)
    for conversation in CONVERSATIONS.values()
    for number in range(1, len(conversation.turns) + 1)
]
EVERYWHERE = ("plain-opt-out", "code-rate-limit", "german-routing")
"""Conversations of one turn that are replayed in the form of each vendor, streamed and not."""

Replayed = dict[tuple[str, int], Played]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the documents of the recordings."""
    folder = tmp_path_factory.mktemp("recordings")
    asyncio.run(ingest_documents(folder))
    return folder


@pytest.fixture(scope="module")
def replayed(data: Path, embedder: Embedder) -> Replayed:
    """Every recording, replayed in OpenAI's form."""
    return asyncio.run(replay(data, embedder, CONVERSATIONS))


async def replay(
    data: Path,
    embedder: Embedder,
    ids: Iterable[str],
    *,
    vendor: str = "openai",
    shows_drafts: bool = False,
) -> Replayed:
    wanted = [CONVERSATIONS[identifier] for identifier in ids]
    async with open_documents(data, embedder) as knowledge:
        played = play(wanted, data, knowledge, vendor=vendor, shows_drafts=shows_drafts)
        turns = [item async for item in played]
    return {(turn.conversation.id, turn.number): turn for turn in turns}


@pytest.mark.parametrize(("name", "number"), TURNS, ids=[f"{one}-{n}" for one, n in TURNS])
def test_a_person_sees_what_a_played_model_wrote_for_the_question(
    replayed: Replayed, name: str, number: int
) -> None:
    played = replayed[name, number]

    assert [prompt.stage for prompt in played.missing] == []
    assert played.unused == ()
    assert list(find_faults(played)) == []


@pytest.mark.parametrize("vendor", ["openai", "google", "anthropic"])
@pytest.mark.parametrize("shows_drafts", [False, True], ids=["whole", "streamed"])
def test_each_vendors_form_shows_the_same_answer(
    data: Path, embedder: Embedder, replayed: Replayed, vendor: str, shows_drafts: bool
) -> None:
    result = asyncio.run(
        replay(data, embedder, EVERYWHERE, vendor=vendor, shows_drafts=shows_drafts)
    )

    assert len(result) == len(EVERYWHERE)
    for key, played in result.items():
        assert played.reply["text"] == replayed[key].reply["text"]
        streamed = {prompt.stage for prompt in played.prompts if prompt.is_streamed}
        assert ("respond" in streamed) is shows_drafts


def test_every_stage_of_the_plain_way_has_a_recording_of_its_prompt() -> None:
    recorded = {
        call.stage
        for conversation in CONVERSATIONS.values()
        for turn in conversation.turns
        for call in turn.calls
    }

    assert recorded == set(STAGES)


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("An invitation is valid for 7 days. [1]", []),
        ("1. See `https://docs.acme.test/a`: 1,000 of 1000.", []),
        ("It is valid for 9 days. [2]", ["source 2", "number 9"]),
        ("See [here](https://evil.test).", ["link https://evil.test"]),
        ("See www.evil.test", ["link www.evil.test"]),
        ("Within [14] days, as it stands there.", []),
    ],
)
def test_the_inventions_of_a_real_model_are_found(text: str, faults: list[str]) -> None:
    given = ["valid for 7 days, 1000 times, within [14] days, https://docs.acme.test/a"]
    source = Source(number=1, title="Invitations")
    answer = Answer(
        conversation_id="c", message_id="m", outcome=Outcome.ANSWERED, text=text, sources=(source,)
    )

    assert [*find_foreign(answer, text, {"a.md": ""}, given)] == faults
