"""A prompt that is too long is sent once more with fewer sources, by each task that has some."""

from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from llm.chain import ChainLink, FallbackChain
from llm.errors import ChainExhausted, ModelUnavailable, PromptTooLong
from llm.port import (
    ModelMessage,
    Task,
    ToolConversation,
    ToolMessage,
    ToolUse,
    UserMessage,
)
from llm.tasks.question import (
    MATCH_VERIFIED,
    AnsweredQuestion,
    MatchVerifiedInputs,
    MatchVerifiedOutput,
)
from llm.tasks.review import (
    EXTRACTOR,
    SYNTHESIS,
    ExtractorInputs,
    ExtractorOutput,
    SynthesisInputs,
    SynthesisOutput,
    SynthesisSource,
    TextUnit,
)
from llm.tasks.search import (
    JUDGE,
    RESPOND,
    JudgedSource,
    JudgeInputs,
    JudgeOutput,
    PromptSource,
    RespondInputs,
    RespondOutput,
)
from llm.tasks.swarm import SYNTHESIZE_FINDINGS, SynthesizeFindingsInputs, SynthesizeFindingsOutput
from tests.support.scripted_model import ScriptedModel

LONG = PromptTooLong("9 tokens of 8")
NUMBERS = range(1, 5)
SOURCES = tuple(
    PromptSource(number=number, chunk_id=f"c{number}", place="", text="t") for number in NUMBERS
)
JUDGED = tuple(
    JudgedSource(number=number, place="", text="t", is_cited=number == 1) for number in NUMBERS
)
MARKS = {"completeness": 1.0, "accuracy": 1.0}
TASKS: Mapping[str, tuple[Task[Any, Any], BaseModel, BaseModel, str, list[int], int | None]] = {
    "respond": (
        RESPOND,
        RespondInputs(question="q", language="en", sources=SOURCES, augmented_prompt="all four"),
        RespondOutput(status="answered", answer="a"),
        "sources",
        [1, 2],
        None,
    ),
    "judge": (
        JUDGE,
        JudgeInputs(question="q", language="en", answer="a [1]", sources=JUDGED),
        JudgeOutput(claims_read=1, language_matches=True, decision="approve", **MARKS),
        "sources",
        [1],
        None,
    ),
    "swarm": (
        SYNTHESIZE_FINDINGS,
        SynthesizeFindingsInputs(
            question="q", language="en", sources=SOURCES, findings=(), left_out=1
        ),
        SynthesizeFindingsOutput(answer="a"),
        "sources",
        [1, 2],
        3,
    ),
    "synthesis": (
        SYNTHESIS,
        SynthesisInputs(
            question="q",
            sources=tuple(SynthesisSource(id=str(n), place="", text="t") for n in NUMBERS),
        ),
        SynthesisOutput(answer="a"),
        "sources",
        [1, 2],
        2,
    ),
    "extractor": (
        EXTRACTOR,
        ExtractorInputs(
            question="q", passages=tuple(TextUnit(id=str(n), text="t") for n in NUMBERS)
        ),
        ExtractorOutput(),
        "passages",
        [1, 2],
        None,
    ),
    "verified answers": (
        MATCH_VERIFIED,
        MatchVerifiedInputs(
            question="q",
            answered=tuple(AnsweredQuestion(number=n, question="q", answer="a") for n in NUMBERS),
        ),
        MatchVerifiedOutput(analysis="a", number=0),
        "answered",
        [1, 2],
        None,
    ),
}


def chain_of(*models: ScriptedModel) -> FallbackChain:
    return FallbackChain([ChainLink(model) for model in models])


@pytest.mark.parametrize(
    ("task", "inputs", "output", "name", "kept", "left_out"), TASKS.values(), ids=TASKS.keys()
)
async def test_a_prompt_that_is_too_long_is_sent_again_with_the_best_sources(
    task: Task[Any, Any],
    inputs: BaseModel,
    output: BaseModel,
    name: str,
    kept: list[int],
    left_out: int | None,
) -> None:
    model = ScriptedModel([LONG, output])

    answer = await chain_of(model).ask(task, inputs)

    first, second = (call.inputs for call in model.calls)
    numbers = [int(getattr(source, "number", 0) or source.id) for source in getattr(second, name)]
    assert (answer.output, first, numbers) == (output, inputs, kept)
    assert getattr(second, "left_out", None) == left_out
    assert getattr(second, "augmented_prompt", "") == ""


async def test_a_prompt_that_stays_too_long_or_cannot_be_shortened_fails_with_the_reason() -> None:
    task, inputs, *_ = TASKS["judge"]
    assert isinstance(inputs, JudgeInputs)
    all_cited = inputs.model_copy(update={"sources": inputs.sources[:1]})
    for sent, requests in ((inputs, 2), (all_cited, 1)):
        model = ScriptedModel([LONG] * 3)

        with pytest.raises(PromptTooLong):
            await chain_of(model).ask(task, sent)

        assert len(model.calls) == requests


async def test_the_next_model_gets_the_whole_prompt_before_sources_are_left_out() -> None:
    task, inputs, output, *_ = TASKS["respond"]
    small, large = ScriptedModel([LONG], name="small"), ScriptedModel([output], name="large")

    answer = await chain_of(small, large).ask(task, inputs)

    assert answer.model == "large"
    assert large.calls[0].inputs == inputs


async def test_a_model_that_is_down_beside_one_that_is_too_small_does_not_hide_the_length() -> None:
    task, inputs, *_ = TASKS["respond"]
    down = ScriptedModel([ModelUnavailable("down")] * 2, name="down")
    small = ScriptedModel([LONG] * 2, name="small")

    with pytest.raises(ChainExhausted):
        await chain_of(down, small).ask(task, inputs)

    assert len(small.calls) == 2


FEES, PAGE = "The fee is 5 euros.", "\n".join(f"line {number}" for number in range(200))
LOOKED_UP = ToolConversation(
    task="reason",
    messages=(
        UserMessage(text="What is the fee?"),
        ModelMessage(calls=(ToolUse(call_id="a", name="t"), ToolUse(call_id="b", name="t"))),
        ToolMessage(call_id="a", name="t", text=FEES),
        ToolMessage(call_id="b", name="t", text=PAGE),
    ),
)


async def test_a_conversation_that_is_too_long_is_sent_again_with_shorter_results() -> None:
    model = ScriptedModel([LONG, ModelMessage(text="5 euros")])

    step = await chain_of(model).converse(LOOKED_UP)

    first, second = (call.inputs for call in model.calls)
    assert isinstance(second, ToolConversation)
    question, calls, short, cut = second.messages
    assert (step.message.text, first) == ("5 euros", LOOKED_UP)
    assert (question, calls, short) == LOOKED_UP.messages[:3]
    kept, mark = cut.text.split("\n... ")
    assert f"{kept}\n" == PAGE[: len(kept) + 1]
    assert len(FEES) + len(kept) <= len(FEES + PAGE) / 2
    assert mark == f"[{len(PAGE) - len(kept)} characters left out]"


async def test_a_conversation_that_stays_too_long_or_has_no_results_fails_with_the_reason() -> None:
    without = LOOKED_UP.model_copy(update={"messages": LOOKED_UP.messages[:1]})
    for sent, requests in ((LOOKED_UP, 2), (without, 1)):
        model = ScriptedModel([LONG] * 3)

        with pytest.raises(PromptTooLong):
            await chain_of(model).converse(sent)

        assert len(model.calls) == requests
