"""Dialogues of scripted models with tools: corrections, limits, and what a model sees."""

import json
from dataclasses import replace

from llm.port import (
    ConversationModel,
    ModelMessage,
    Remark,
    ToolChoice,
    ToolConversation,
    ToolDescription,
    ToolMessage,
    ToolUse,
    UserMessage,
)
from tests.support.local_tools import CallLimit
from tests.support.scripted_model import ScriptedModel
from tools.calls import CitedPassage, ToolCall, ToolCaller, ToolErrorType, ToolResult
from tools.dialogue import (
    Dialogue,
    DialogueEnd,
    DialogueLimits,
    DialogueStep,
    list_passages,
    make_tool_message,
)
from tools.executor import ToolBudget, ToolExecutor

CALLER = ToolCaller(agent="reason")
SEARCH = ToolDescription(name="search", description="Search.", input_schema={"type": "object"})
FOUND = CitedPassage(chunk_id="d1#0", document_id="d1", title="D")


async def run_dialogue(
    model: ConversationModel,
    executor: ToolExecutor,
    dialogue: Dialogue,
    caller: ToolCaller,
    budget: ToolBudget | None = None,
) -> tuple[Dialogue, DialogueStep]:
    """Hold a whole dialogue in one process; return it with its last step.

    Raises what the model raises: results of tools never do.
    """
    while True:
        step = await dialogue.take_step(model, caller.run)
        if step.end is not None:
            return dialogue, step
        calls = [
            ToolCall(
                call_id=use.call_id,
                tool=use.name,
                arguments=use.arguments,
            )
            for use in step.message.calls
        ]
        results = [await executor.execute(call, caller, budget) for call in calls]
        dialogue = replace(
            dialogue,
            messages=(*dialogue.messages, step.message),
            results={
                **dialogue.results,
                **{tool_result.call_id: tool_result for tool_result in results},
            },
        )


def open_dialogue(limits: DialogueLimits | None = None, *messages: ModelMessage) -> Dialogue:
    opening = ToolConversation(
        task="reason", messages=(UserMessage(text="What is the fee?"),), tools=(SEARCH,)
    )
    return Dialogue(opening, messages, limits=DialogueLimits() if limits is None else limits)


def write_call(number: int, tool: str, **arguments: object) -> ModelMessage:
    given = json.loads(json.dumps(arguments))
    return ModelMessage(calls=(ToolUse(call_id=f"c{number}", name=tool, arguments=given),))


def answer(text: str) -> ModelMessage:
    return ModelMessage(text=text)


def make_result(
    call_id: str, *citations: CitedPassage, text: str = "", tool: str = "search"
) -> ToolResult:
    kind = ToolErrorType.SUCCESS
    return ToolResult(
        call_id=call_id, tool=tool, success=True, error_type=kind, text=text, citations=citations
    )


def read_inputs(model: ScriptedModel, number: int = -1) -> ToolConversation:
    asked = model.calls[number].inputs
    assert isinstance(asked, ToolConversation)
    return asked


async def test_a_tool_that_does_not_exist_never_runs_and_the_answer_still_comes(
    executor: ToolExecutor,
) -> None:
    """The model invents another name each turn: it is corrected three times."""
    invented = [write_call(number, f"invented_{number}") for number in range(9)]
    model = ScriptedModel([*invented[:4], answer("The fee is 150 euros.")])

    dialogue, step = await run_dialogue(model, executor, open_dialogue(), CALLER)

    assert (step.end, step.message.text) == (DialogueEnd.CORRECTIONS, "The fee is 150 euros.")
    assert read_inputs(model).tool_choice is ToolChoice.NONE
    kinds = [result.error_type for result in dialogue.ordered_results]
    assert kinds == [ToolErrorType.HALLUCINATION] * 4


async def test_a_wrong_name_is_corrected_and_the_dialogue_goes_on(executor: ToolExecutor) -> None:
    wrong, right = (
        write_call(1, "calculater", expression="2 + 2"),
        write_call(2, "calculator", expression="2 + 2"),
    )
    model = ScriptedModel([wrong, right, answer("4.")])

    _, step = await run_dialogue(model, executor, open_dialogue(), CALLER)

    [correction] = [
        message for message in read_inputs(model, 1).messages if isinstance(message, ToolMessage)
    ]
    assert "did you mean 'calculator'" in correction.text
    assert (step.end, step.message.text) == (DialogueEnd.ANSWERED, "4.")


async def test_results_of_parallel_calls_reach_the_model_and_are_cited(
    executor: ToolExecutor,
) -> None:
    both = ModelMessage(
        calls=(
            ToolUse(call_id="a", name="lookup", arguments={"name": "Article 83"}),
            ToolUse(call_id="b", name="calculator", arguments={"expression": "0.04 * 100"}),
        )
    )
    model = ScriptedModel([both, answer("4.")])

    dialogue, _ = await run_dialogue(model, executor, open_dialogue(), CALLER)

    texts = [
        message.text for message in read_inputs(model).messages if isinstance(message, ToolMessage)
    ]
    assert "a fine of up to 4 %" in texts[0]
    assert texts[1] == "0.04 * 100 = 4"
    passages = list_passages(dialogue.ordered_results)
    assert [passage.document_id for passage in passages] == ["penalties@2025"]


async def test_a_budget_that_is_used_up_ends_with_an_answer(executor: ToolExecutor) -> None:
    calls = [write_call(n, "calculator", expression=f"1 + {n}") for n in range(3)]
    model = ScriptedModel([*calls, answer("Two.")])

    _, step = await run_dialogue(model, executor, open_dialogue(), CALLER, CallLimit(2))

    assert (step.end, step.message.text) == (DialogueEnd.BUDGET, "Two.")


async def test_at_the_last_step_the_text_next_to_the_calls_is_the_answer(
    executor: ToolExecutor,
) -> None:
    first = write_call(1, "calculator", expression="1 + 1").model_copy(
        update={"text": "So far: two."}
    )
    model = ScriptedModel([first, write_call(9, "calculator", expression="2")])

    dialogue, step = await run_dialogue(
        model, executor, open_dialogue(DialogueLimits(most_steps=1)), CALLER
    )

    assert (step.end, step.message.text) == (DialogueEnd.STEPS, "So far: two.")
    assert len(dialogue.results) == 1


async def test_a_call_that_was_made_before_is_not_made_again(executor: ToolExecutor) -> None:
    call = write_call(1, "calculator", expression="1 + 1")
    model = ScriptedModel([call, call, answer("Two.")])

    dialogue, step = await run_dialogue(model, executor, open_dialogue(), CALLER)

    assert (step.end, step.message.text) == (DialogueEnd.REPEATS, "Two.")
    assert list(dialogue.results) == ["s1-1"]


async def test_nothing_is_written_before_one_result_was_seen(executor: ToolExecutor) -> None:
    call = write_call(1, "lookup", name="Article 83")
    model = ScriptedModel([answer("I know it: 4 %."), call, answer("4 %.")])

    _, step = await run_dialogue(
        model, executor, open_dialogue(DialogueLimits(must_look=True)), CALLER
    )

    assert read_inputs(model, 1).tool_choice is ToolChoice.REQUIRED
    [*_, remark] = read_inputs(model, 1).messages
    assert remark == UserMessage(remark=Remark(has_read_nothing=True))
    assert step.message.text == "4 %."


def test_a_further_message_whose_searches_add_no_passage_ends_the_search() -> None:
    """The first search may find nothing, and a wrong name is no search."""
    first = ModelMessage(
        calls=(ToolUse(call_id="s1-1", name="search"), ToolUse(call_id="s1-2", name="search"))
    )
    once = replace(
        open_dialogue(DialogueLimits(stops_early=True), first),
        results={"s1-1": make_result("s1-1"), "s1-2": make_result("s1-2", FOUND)},
    )
    further = ModelMessage(calls=(ToolUse(call_id="s2-1", name="search"),))

    def go_on(result: ToolResult) -> Dialogue:
        return replace(once, messages=(first, further), results={**once.results, "s2-1": result})

    other = FOUND.model_copy(update={"chunk_id": "other#1"})
    unknown = ToolResult(
        call_id="s2-1", tool="serch", success=False, error_type=ToolErrorType.HALLUCINATION
    )

    assert once.find_end() is None
    assert go_on(make_result("s2-1")).find_end() is DialogueEnd.NOTHING_NEW
    assert go_on(make_result("s2-1", FOUND)).find_end() is DialogueEnd.NOTHING_NEW
    assert go_on(make_result("s2-1", other)).find_end() is None
    assert go_on(unknown).find_end() is None


def test_results_share_the_window_of_the_model() -> None:
    calls = tuple(ToolUse(call_id=f"s1-{n}", name="search") for n in range(3))
    long = "word " * 2_000
    dialogue = replace(
        open_dialogue(None, ModelMessage(calls=calls)),
        results={
            "s1-0": make_result("s1-0", text=long),
            "s1-1": make_result("s1-1", text=long),
            "s1-2": make_result("s1-2", text="short"),
        },
    )

    def read_lengths(room: int) -> list[int]:
        shown = dialogue.converse(room).messages
        return [len(message.text) for message in shown if isinstance(message, ToolMessage)]

    assert read_lengths(30_000) == [10_000, 10_000, 5]
    assert sum(read_lengths(8_000)) < 8_200
    assert max(read_lengths(0)) < 1_600


def test_a_call_whose_result_was_lost_is_left_out_of_the_conversation() -> None:
    calls = (ToolUse(call_id="s1-1", name="search"), ToolUse(call_id="s1-2", name="search"))
    dialogue = replace(
        open_dialogue(None, ModelMessage(calls=calls)), results={"s1-2": make_result("s1-2")}
    )

    shown = dialogue.converse().messages[1]

    assert isinstance(shown, ModelMessage)
    assert [use.call_id for use in shown.calls] == ["s1-2"]
    assert [use.call_id for use in dialogue.pending] == ["s1-1"]


def test_citations_that_the_text_lost_are_given_after_it() -> None:
    cited = [CitedPassage(chunk_id=f"d{n}#0", document_id=f"d{n}", title="D") for n in range(2)]
    result = make_result("1", *cited, text="[d0#0] D\nA text.")

    message = make_tool_message(result)

    assert message.text.endswith("\nfurther sources: [d1#0]")
    assert message.sources == ("d0#0", "d1#0")
