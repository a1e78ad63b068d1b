"""An answer is assessed on four criteria, and the best one so far goes on."""

from typing import Any

import pytest

from agents.tool_loop.assess import AssessAgent, Reads, Writes
from envelope.conversation import ClarificationReason
from envelope.outcome import Wrote
from envelope.sources import SourceReference
from llm.errors import ModelUnavailable
from llm.tasks.tool_loop import AssessInputs, AssessOutput
from tests.support.scripted_model import ScriptedModel

FEE = "A carrier pays a fee of 150 euros a year."
SOURCE = SourceReference(number=1, chunk_id="fees#0", title="Fees", span=(0, len(FEE)))


def score(value: float, *missing: str) -> AssessOutput:
    return AssessOutput(
        completeness=value, accuracy=value, clarity=value, specificity=value, missing=missing
    )


async def assess(model: ScriptedModel, **reads: Any) -> Writes:
    known = {
        "canonical_question": "What is the fee?",
        "response": "150 euros a year. [1]",
        "search_context": FEE,
        "source_references": (SOURCE,),
        "plan_messages": ({},),
        "missing": "the form of payment",
    }
    outcome = await AssessAgent(model=model).work(Reads.model_validate({**known, **reads}))
    assert isinstance(outcome, Wrote)
    return outcome.writes


async def test_an_answer_at_the_threshold_is_enough() -> None:
    good = await assess(ScriptedModel([score(7.0)]))
    poor = await assess(ScriptedModel([score(6.9, "who pays it")]))

    assert good.assessment is not None
    assert good.assessment.is_enough
    assert poor.assessment is not None
    assert (poor.assessment.is_enough, poor.assessment.missing) == (False, ("who pays it",))


async def test_what_was_searched_for_in_vain_is_not_looked_for_again() -> None:
    first = await assess(ScriptedModel([score(4.0, "who pays it")]))
    model = ScriptedModel([score(4.0)])

    second = await assess(model, assessment=first.assessment)

    [call] = model.calls
    assert isinstance(call.inputs, AssessInputs)
    assert call.inputs.searched == ("who pays it",)
    assert second.assessment is not None
    assert second.assessment.is_enough, "nothing is left to search for"


async def test_a_source_is_assessed_with_its_place_and_version() -> None:
    model = ScriptedModel([score(7.0)])

    await assess(model, source_references=(SOURCE.model_copy(update={"version": "2024"}),))

    [call] = model.calls
    assert isinstance(call.inputs, AssessInputs)
    [source] = call.inputs.sources
    assert source.text == f"Fees (version 2024)\n{FEE}"


async def test_a_worse_answer_of_a_later_round_gives_way_to_the_kept_one() -> None:
    first = await assess(ScriptedModel([score(6.5)]))

    second = await assess(
        ScriptedModel([score(3.0)]),
        response="It depends. [1]",
        kept_answer=first.kept_answer,
        plan_messages=({}, {}),
    )

    assert second.response == "150 euros a year. [1]"
    assert second.source_references == (SOURCE,)
    assert second.assessment is not None
    assert (second.assessment.quality, second.assessment.round) == (3.0, 2)


async def test_of_two_answers_that_are_as_good_the_later_one_is_kept() -> None:
    first = await assess(ScriptedModel([score(6.5)]))

    second = await assess(
        ScriptedModel([score(6.5)]),
        response="150 euros a year, or 160. [1]",
        kept_answer=first.kept_answer,
        plan_messages=({}, {}),
    )

    assert second.response == "150 euros a year, or 160. [1]"


async def test_a_round_without_an_answer_restores_the_kept_one() -> None:
    first = await assess(ScriptedModel([score(6.5)]))

    writes = await assess(
        ScriptedModel([]), response="", generation_error="away", kept_answer=first.kept_answer
    )

    assert (writes.response, writes.assessment) == ("150 euros a year. [1]", None)


async def test_without_any_answer_the_true_reason_is_given() -> None:
    silent = await assess(ScriptedModel([]), response="", missing="the fee of 2026")
    broken = await assess(ScriptedModel([]), response="", generation_error="away")

    assert silent.clarification_reason is ClarificationReason.INSUFFICIENT_CONTEXT
    assert silent.clarification_message == "the fee of 2026"
    asking = await assess(
        ScriptedModel([]),
        response="",
        missing="",
        needs_clarification=True,
        clarification_reason="missing_details",
        clarification_message="the year",
    )

    assert asking.clarification_reason is ClarificationReason.MISSING_DETAILS
    assert asking.clarification_message == "the year"
    assert broken.clarification_reason is ClarificationReason.INTERNAL_FAULT


async def test_where_the_model_fails_the_answer_goes_on_without_an_assessment() -> None:
    writes = await assess(ScriptedModel([ModelUnavailable("away")]))

    assert writes.assessment_fallback == "ModelUnavailable: away"
    assert (writes.assessment, writes.response) == (None, "150 euros a year. [1]")


async def test_an_answer_that_lacks_nothing_is_left_to_the_judge_and_kept() -> None:
    writes = await assess(ScriptedModel([]), missing="")

    assert (writes.assessment, writes.response) == (None, "150 euros a year. [1]")
    assert writes.kept_answer is not None
    assert writes.kept_answer.response == writes.response


async def test_what_the_search_found_is_not_assessed() -> None:
    writes = await assess(ScriptedModel([]), answered_by="search")

    assert (writes.assessment, writes.answered_by) == (None, "search")


@pytest.mark.parametrize(
    ("scores", "missing", "is_enough"),
    [
        ((10, 4.9, 10, 10), (), False),
        ((4.9, 10, 10, 10), (), False),
        ((5, 9, 8, 6), ("the fine", "the date", "the form"), False),
        ((5, 9, 8, 6), (), True),
    ],
)
async def test_a_mean_hides_neither_a_wrong_answer_nor_a_missing_part(
    scores: tuple[float, ...], missing: tuple[str, ...], is_enough: bool
) -> None:
    names = ("completeness", "accuracy", "clarity", "specificity")
    output = AssessOutput.model_validate(
        {**dict(zip(names, scores, strict=True)), "missing": missing}
    )

    writes = await assess(ScriptedModel([output]))

    assert writes.assessment is not None
    assert writes.assessment.quality >= 7.0
    assert writes.assessment.is_enough is is_enough


async def test_a_wrong_answer_of_a_high_mean_is_not_kept_before_a_sound_one() -> None:
    wrong = AssessOutput(completeness=10, accuracy=2, clarity=10, specificity=10)
    first = await assess(ScriptedModel([wrong]))

    second = await assess(
        ScriptedModel([score(6.5)]), response="120 euros. [1]", kept_answer=first.kept_answer
    )

    assert second.response == "120 euros. [1]"
