"""Results become numbered sources: each round has its room, and earlier numbers stay."""

from typing import Any

import pytest

from agents.tool_loop.reflect import Reads, ReflectAgent, Writes
from envelope.conversation import ClarificationReason
from envelope.outcome import Wrote
from envelope.sources import SourcePicture
from llm.port import ModelMessage, ToolUse
from tools.calls import CitedPassage, PassageText, ToolErrorType, ToolResult


def make_result(call_id: str, *texts: str, **fields: Any) -> ToolResult:
    quoted = tuple(
        PassageText(
            citation=CitedPassage(
                chunk_id=f"{call_id}#{n}",
                document_id=call_id,
                title="Fees",
                heading_path=(text[:9],),
            ),
            text=text,
        )
        for n, text in enumerate(texts)
    )
    known = {"success": True, "error_type": ToolErrorType.SUCCESS, "tool": "search", **fields}
    return ToolResult.model_validate({"call_id": call_id, "quoted": quoted, **known})


async def combine(*rounds: list[ToolResult], most_tokens: int = 3500, **written: Any) -> Writes:
    messages = [
        ModelMessage(
            calls=tuple(ToolUse(call_id=result.call_id, name=result.tool) for result in results)
        )
        for results in rounds
    ]
    reads = Reads(
        canonical_question="What is the fee?",
        plan_messages=tuple(message.model_dump(mode="json") for message in messages),
        multi_tool_results={
            result.call_id: result.model_dump(mode="json")
            for results in rounds
            for result in results
        },
        **written,
    )
    outcome = await ReflectAgent(max_context_length=most_tokens).work(reads)
    assert isinstance(outcome, Wrote)
    return outcome.writes


def read_texts(writes: Writes) -> list[str]:
    return [writes.search_context[slice(*reference.span)] for reference in writes.source_references]


async def test_the_results_of_parallel_calls_take_turns() -> None:
    writes = await combine([make_result("a", "a first", "a second"), make_result("b", "b first")])

    assert read_texts(writes) == ["a first", "b first", "a second"]
    assert [reference.number for reference in writes.source_references] == [1, 2, 3]


async def test_a_further_round_keeps_the_numbers_of_the_sources_before() -> None:
    first = [make_result("a", "a " * 400, "b " * 400)]
    alone = await combine(first, most_tokens=250)

    both = await combine(first, [make_result("c", "c " * 150)], most_tokens=250)

    assert read_texts(both)[: len(read_texts(alone))] == read_texts(alone)
    assert read_texts(both)[-1].startswith("c ")


async def test_a_passage_that_two_calls_found_is_one_source() -> None:
    writes = await combine([make_result("a", "the fee"), make_result("a", "the fee")])

    assert read_texts(writes) == ["the fee"]


async def test_the_passages_of_a_section_are_one_source_that_marks_what_is_left_out() -> None:
    def quote(*numbers: int) -> tuple[PassageText, ...]:
        return tuple(
            PassageText(
                citation=CitedPassage(
                    chunk_id=f"act#{n}", document_id="act", title="Act", heading_path=("Fees",)
                ),
                text=f"Sentence {n} of the section. Sentence {n + 1} of the section.",
            )
            for n in numbers
        )

    later, earlier = make_result("a"), make_result("b")

    writes = await combine(
        [later.model_copy(update={"quoted": quote(7)})],
        [earlier.model_copy(update={"quoted": quote(2, 3)})],
    )

    [source] = writes.source_references
    assert read_texts(writes) == [
        "Sentence 2 of the section. Sentence 3 of the section. Sentence 4 of the section.\n\n"
        "[... text left out]\n\n"
        "Sentence 7 of the section. Sentence 8 of the section."
    ]
    assert (source.chunk_id, source.is_cut) == ("act#7", True)
    text = writes.search_context
    assert [text[part.start : part.end][:10] for part in source.found] == [
        "Sentence 7", "Sentence 2", "Sentence 3"
    ]  # fmt: skip


async def test_a_calculation_is_a_source_with_the_name_of_its_tool() -> None:
    result = make_result("r1-1", tool="calculator", text="2 * 3 = 6", is_source=True)

    writes = await combine([result])

    [source] = writes.source_references
    assert (source.title, source.url, source.path) == ("calculator", None, None)
    assert read_texts(writes) == ["2 * 3 = 6"]


async def test_a_comparison_is_a_source_before_the_passages_that_it_quotes() -> None:
    text = "1 changes, 3 unchanged\nremoved: Article 9"

    writes = await combine([make_result("a", "Fees", "Scope", text=text, is_source=True)])

    assert read_texts(writes) == [text, "Fees", "Scope"]


async def test_a_failed_call_and_an_empty_result_are_no_sources() -> None:
    failed = make_result(
        "a", success=False, error_type=ToolErrorType.TIMEOUT, text="error", is_source=True
    )

    writes = await combine([failed, make_result("b", text="nothing was found")])

    assert writes.source_references == ()


async def test_a_source_has_the_pictures_of_its_passage() -> None:
    shown = SourcePicture(id="a" * 32, caption="The panel")
    cited = CitedPassage(chunk_id="a#0", document_id="a", title="Fees", pictures=(shown,))
    quoted = (PassageText(citation=cited, text="See the panel."),)

    writes = await combine([make_result("a").model_copy(update={"quoted": quoted})])

    assert writes.source_references[0].pictures == (shown,)


ASKED: dict[str, Any] = {
    "clarification_reason": ClarificationReason.MISSING_DETAILS,
    "clarification_message": "the plan of the account",
}


@pytest.mark.parametrize(
    ("text", "written", "is_over", "asks"),
    [
        ("the fee", {"response": "The fee is 3 EUR. [1]"}, True, False),
        ("the fee", ASKED, False, True),
        ("the price", {"response": "The fee is 3 EUR. [1]"}, False, False),
        ("the price", ASKED, False, False),
    ],
    ids=["same, answered", "same, asked", "new, answered", "new, asked"],
)
async def test_nothing_is_written_again_if_a_further_round_adds_nothing_to_the_sources(
    text: str, written: dict[str, Any], is_over: bool, asks: bool
) -> None:
    first = make_result("a", "the fee")
    before = await combine([first])

    after = await combine(
        [first], [make_result("a", text)], search_context=before.search_context, **written
    )

    assert (after.is_loop_over, after.needs_clarification) == (is_over, asks)
    assert after.clarification_message == (ASKED["clarification_message"] if asks else "")
