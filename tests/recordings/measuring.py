"""Measures what the recordings cost, how long they take, and what a person sees wrongly.

A token is four characters, and a prompt is everything that is sent with it, its schema included.
The seconds are those of a vendor that begins after a second and writes 60 tokens a second.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Literal, get_args

from deploy.assembly.knowledge import Knowledge
from llm.port import Usage
from llm.registry import estimate_call_usd
from tests.recordings.plain_way import load_conversations
from tests.recordings.replaying import Played, play

Judging = Literal["always", "doubt", "never"]
PRICED = "gpt-4o-mini@openai"
CHARACTERS_PER_TOKEN = 4
FIRST_TOKEN_SECONDS = 1.0
TOKENS_PER_SECOND = 60.0


@dataclass(frozen=True)
class Effort:
    """What turns took, each value per turn, and those of which a person sees something wrong."""

    turns: int
    calls: float
    prompt_tokens: float
    answer_tokens: float
    seconds: float
    usd: Decimal
    wrong: Sequence[str]


async def measure_all(data: Path, knowledge: Knowledge) -> dict[str, Effort]:
    """Return the effort for each setting of `JUDGE`, of all turns and of plain questions alone."""
    found: dict[str, Effort] = {}
    for judging in get_args(Judging):
        changes = {"judge": judging}
        turns = play(load_conversations(), data, knowledge, changes=changes)
        played = [turn async for turn in turns]
        found[f"{judging}, all"] = add_up(played)
        plain = [item for item in played if item.conversation.id.startswith("plain-")]
        found[f"{judging}, plain questions"] = add_up(plain)
    return found


def add_up(played: Sequence[Played]) -> Effort:
    """Return what turns took on the average."""
    count = len(played)
    wrong = [f"{item.conversation.id}.{item.number}" for item in played if any(find_faults(item))]
    prompts = sum(len(prompt.text) for turn in played for prompt in turn.prompts)
    answers = sum(len(text) for turn in played for text in turn.written)
    calls = sum(len(turn.prompts) for turn in played)
    tokens = answers / CHARACTERS_PER_TOKEN
    usage = Usage(
        input_tokens=prompts // CHARACTERS_PER_TOKEN, output_tokens=answers // CHARACTERS_PER_TOKEN
    )
    return Effort(
        turns=count,
        calls=calls / count,
        prompt_tokens=prompts / CHARACTERS_PER_TOKEN / count,
        answer_tokens=tokens / count,
        seconds=(calls * FIRST_TOKEN_SECONDS + tokens / TOKENS_PER_SECOND) / count,
        usd=(estimate_call_usd(PRICED, usage, {}) or Decimal(0)) / count,
        wrong=wrong,
    )


def find_faults(played: Played) -> Iterator[str]:
    """Yield what the person should see and does not, or sees and should not."""
    expected, reply = played.turn.expected, played.reply
    assert expected is not None, "a recording says what is expected of each turn"
    text = str(reply["text"])
    if reply["outcome"] != expected.outcome:
        yield f"outcome: {reply['outcome']}"
    yield from (f"not shown: {words}" for words in expected.shown if words not in text)
    yield from (f"shown: {words}" for words in expected.hidden if words in text)
    for place in expected.cited:
        if not any(place in item for item in played.places):
            yield f"not cited: {place}"
    options = [action for action in reply["suggested_actions"] if action["kind"] == "option"]
    if expected.options is not None and len(options) != expected.options:
        yield f"options: {len(options)}"
