import pytest

from envelope.conversation import ClarificationReason as Reason
from envelope.outcome import Outcome
from manager.flow import Counter, Ending, Flow, Next, Return, Row, Stage
from manager.flows import stages
from manager.flows.search_flow import SEARCH_FLOW
from manager.machine import Context, Counters, Decision, End, Limits, Send, decide
from manager.stage_event import StageEvent

FLOW = SEARCH_FLOW


def decide_next(
    stage: Stage, did: StageEvent, counters: Counters | None = None, facts: Context | None = None
) -> Decision:
    return decide(
        FLOW,
        stage,
        did,
        counters if counters is not None else {},
        Limits(),
        facts if facts is not None else Context(),
    )


def test_an_approved_answer_goes_out() -> None:
    decision = decide_next(stages.QUALITY, StageEvent.APPROVED)

    assert decision.actions == (End(Ending.ANSWER, Outcome.ANSWERED),)


def test_research_is_counted_and_goes_back_to_search() -> None:
    decision = decide_next(stages.QUALITY, StageEvent.RESEARCH, {Counter.RESEARCH: 1})

    assert decision.actions == (Send(stages.SEARCH),)
    assert decision.counters == {Counter.RESEARCH: 2}


@pytest.mark.parametrize(
    ("did", "counter"),
    [(StageEvent.RESEARCH, Counter.RESEARCH), (StageEvent.LOW, Counter.REGENERATE)],
)
def test_a_loop_at_its_limit_ends_with_the_best_scored_answer(
    did: StageEvent, counter: Counter
) -> None:
    decision = decide_next(stages.QUALITY, did, {counter: 2}, Context(has_best_answer=True))

    assert decision.actions == (End(Ending.BEST, Outcome.ANSWERED),)
    assert decision.termination_reason == f"{counter}_limit"


@pytest.mark.parametrize(
    ("did", "counter", "reason"),
    [
        (StageEvent.REGENERATE, Counter.REGENERATE, Reason.INTERNAL_FAULT),
        (StageEvent.LOW, Counter.REGENERATE, Reason.INTERNAL_FAULT),
        (StageEvent.RESEARCH, Counter.RESEARCH, Reason.INSUFFICIENT_CONTEXT),
    ],
)
def test_a_loop_at_its_limit_without_a_scored_answer_ends_with_its_true_reason(
    did: StageEvent, counter: Counter, reason: Reason
) -> None:
    decision = decide_next(stages.QUALITY, did, {counter: 2})

    assert decision.actions == (Send(stages.CLARIFICATION),)
    assert decision.reason is reason


@pytest.mark.parametrize(
    ("stage", "did"),
    [(stages.SEARCH, StageEvent.NOTHING), (stages.RESPONSE, StageEvent.ASKS)],
)
@pytest.mark.parametrize("counter", [Counter.RESEARCH, Counter.REGENERATE])
def test_a_further_attempt_that_finds_nothing_leaves_the_answer_before_it(
    stage: Stage, did: StageEvent, counter: Counter
) -> None:
    facts = Context(has_best_answer=True, reason=Reason.INSUFFICIENT_CONTEXT)

    decision = decide_next(stage, did, {counter: 1}, facts)

    assert decision.actions == (End(Ending.BEST, Outcome.ANSWERED),)
    assert decision.termination_reason == "no_better_answer"


def test_an_answer_of_an_earlier_round_does_not_hide_a_refusal() -> None:
    facts = Context(has_best_answer=True, reason=Reason.INSUFFICIENT_CONTEXT)

    decision = decide_next(stages.SEARCH, StageEvent.NOTHING, {Counter.ROUND: 1}, facts)

    assert decision.actions == (Send(stages.CLARIFICATION),)


def test_a_fault_of_the_desk_ends_as_failed_and_not_as_refused() -> None:
    facts = Context(reason=Reason.INTERNAL_FAULT)

    decision = decide_next(stages.CLARIFICATION, StageEvent.DONE, {}, facts)

    assert decision.actions == (End(Ending.REPLY, Outcome.FAILED),)


def test_a_generation_error_tries_the_next_model_once() -> None:
    first = decide_next(stages.RESPONSE, StageEvent.GENERATION_ERROR)
    second = decide_next(stages.RESPONSE, StageEvent.GENERATION_ERROR, first.counters)

    assert first.actions == (Send(stages.RESPONSE),)
    assert second.actions == (End(Ending.BEST, None),)


def test_the_fourth_question_back_becomes_a_refusal() -> None:
    asked = Context(reason=Reason.AMBIGUOUS_QUERY)

    third = decide_next(stages.SEARCH, StageEvent.MANY, {Counter.ROUND: 2}, asked)
    fourth = decide_next(stages.SEARCH, StageEvent.MANY, {Counter.ROUND: 3}, asked)

    assert third.reason is Reason.AMBIGUOUS_QUERY
    assert fourth.actions == (Send(stages.CLARIFICATION),)
    assert fourth.reason is Reason.INSUFFICIENT_CONTEXT
    assert fourth.termination_reason == "round_limit"


def test_out_of_scope_is_a_refusal_and_no_round() -> None:
    sent = decide_next(stages.GUARDRAILS, StageEvent.OUTSIDE, {Counter.ROUND: 3})
    ended = decide_next(stages.CLARIFICATION, StageEvent.DONE, facts=Context(reason=sent.reason))

    assert sent.actions == (Send(stages.CLARIFICATION),)
    assert ended.actions == (End(Ending.REPLY, Outcome.REFUSED),)


def test_a_question_back_ends_the_message_as_a_clarification() -> None:
    ended = decide_next(
        stages.CLARIFICATION, StageEvent.DONE, facts=Context(reason=Reason.AMBIGUOUS_QUERY)
    )

    assert ended.actions == (End(Ending.REPLY, Outcome.CLARIFICATION),)


def test_guardrails_that_cannot_decide_ask_and_never_let_through() -> None:
    decision = decide_next(stages.GUARDRAILS, StageEvent.FAILED)

    assert decision.actions == (Send(stages.CLARIFICATION),)
    assert decision.reason is Reason.SCOPE_UNCLEAR


def test_a_judge_that_fails_is_no_approval() -> None:
    decision = decide_next(stages.QUALITY, StageEvent.FAILED)

    assert decision.actions == (Send(stages.RESPONSE),)


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (Context(process_count=60), "process_count_limit"),
        (Context(total_seconds=110), "total_time_limit"),
        (Context(remaining_seconds=0.5), "deadline"),
    ],
)
def test_a_limit_ends_the_question_with_the_best_there_is(facts: Context, reason: str) -> None:
    decision = decide_next(stages.SEARCH, StageEvent.FOUND, facts=facts)

    assert decision.actions == (End(Ending.BEST, None),)
    assert decision.termination_reason == reason


def test_a_finished_answer_is_not_thrown_away_at_a_limit() -> None:
    decision = decide_next(stages.QUALITY, StageEvent.APPROVED, facts=Context(process_count=99))

    assert decision.actions == (End(Ending.ANSWER, Outcome.ANSWERED),)


def test_an_exhausted_budget_takes_no_further_loop_and_ends_with_the_best_answer() -> None:
    facts = Context(has_best_answer=True, stop_reason="budget_model_calls")

    decision = decide_next(stages.QUALITY, StageEvent.RESEARCH, facts=facts)

    assert decision.actions == (End(Ending.BEST, None),)
    assert decision.termination_reason == "budget_model_calls"


def test_an_exhausted_budget_without_an_answer_does_not_blame_the_documents() -> None:
    facts = Context(stop_reason="budget_usd")

    decision = decide_next(stages.QUALITY, StageEvent.RESEARCH, facts=facts)

    assert decision.actions == (End(Ending.BEST, None),)
    assert decision.termination_reason == "budget_usd"


def test_an_exhausted_budget_goes_on_to_the_answer_and_is_named_at_its_end() -> None:
    facts = Context(stop_reason="budget_tokens")

    onwards = decide_next(stages.SEARCH, StageEvent.FOUND, facts=facts)
    ended = decide_next(stages.QUALITY, StageEvent.APPROVED, facts=facts)

    assert onwards.actions == (Send(stages.AUGMENTATION),)
    assert ended.actions == (End(Ending.ANSWER, Outcome.ANSWERED),)
    assert ended.termination_reason == "budget_tokens"


def test_an_exhausted_budget_still_asks_back() -> None:
    facts = Context(stop_reason="budget_tokens")

    decision = decide_next(stages.SEARCH, StageEvent.MANY, facts=facts)

    assert decision.actions == (Send(stages.CLARIFICATION),)


def test_an_exhausted_budget_returns_a_branch_with_what_it_has() -> None:
    again = Row(stages.RESPONSE, StageEvent.DONE, stages.RESPONSE, Counter.NEXT_MODEL)
    flow = Flow("loop", 1, (again, Row(stages.RESPONSE, StageEvent.FAILED, Return())))
    facts = Context(in_branch=True, stop_reason="budget_tool_calls")

    decision = decide(flow, stages.RESPONSE, StageEvent.DONE, {}, Limits(), facts)

    assert decision.actions == (Return(),)
    assert decision.termination_reason == "budget_tool_calls"


def make_sequence() -> Flow:
    """Return a flow in which search, response and quality follow in a planned order."""
    planned = Next((stages.SEARCH, stages.RESPONSE, stages.QUALITY), stages.CLARIFICATION)
    every = (stages.GUARDRAILS, stages.SEARCH, stages.RESPONSE, stages.QUALITY)
    return Flow(
        "sequence",
        1,
        [
            Row(stage, StageEvent.DONE, planned, Counter.SEQUENCE, stages.CLARIFICATION)
            for stage in every
        ],
    )


def take(sequence: tuple[str, ...], place: int, counters: Counters | None = None) -> Decision:
    facts = Context(sequence=sequence, sequence_place=place)
    known = counters if counters is not None else {}
    return decide(
        make_sequence(), stages.GUARDRAILS, StageEvent.DONE, known, Limits(sequence=3), facts
    )


def test_the_next_of_a_sequence_follows_and_is_counted() -> None:
    first = take(("search", "response"), 0)
    second = take(("search", "response"), 1, first.counters)
    done = take(("search", "response"), 2, second.counters)

    assert [first.actions, second.actions, done.actions] == [
        (Send(stages.SEARCH),),
        (Send(stages.RESPONSE),),
        (Send(stages.CLARIFICATION),),
    ]
    assert [first.sequence_place, second.sequence_place, done.sequence_place] == [1, 2, 2]
    assert done.counters == {Counter.SEQUENCE: 3}


def test_a_name_that_the_flow_does_not_allow_is_skipped_and_noted() -> None:
    decision = take(("lang", "delete_everything", "quality"), 0)

    assert decision.actions == (Send(stages.QUALITY),)
    assert decision.skipped == ("lang", "delete_everything")
    assert decision.sequence_place == 3


def test_a_sequence_that_never_ends_is_ended_by_its_counter() -> None:
    decision = take(("search",) * 50, 3, {Counter.SEQUENCE: 3})

    assert decision.actions == (Send(stages.CLARIFICATION),)
    assert decision.termination_reason == "sequence_limit"


def test_a_flow_without_a_planned_sequence_goes_beyond_its_end() -> None:
    assert take((), 0).actions == (Send(stages.CLARIFICATION),)
