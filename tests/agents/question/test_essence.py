import pytest
from llm.offline.essence_rules import answer

from agents.question.essence import EssenceAgent, Reads, Writes
from envelope.conversation import ClarificationReason, Pause, Turn
from envelope.outcome import GaveUp, Wrote
from llm.errors import ModelUnavailable
from llm.port import I, ModelAnswer, O, Task, Usage
from llm.scripted import ScriptedModel
from llm.tasks.essence import Inputs, Output


class Offline:
    """Answers by the offline rule, and counts how often it is asked."""

    name = "offline"

    def __init__(self, output: Output | None = None) -> None:
        self.asked = 0
        self._output = output

    async def ask(self, task: Task[I, O], inputs: I, *, skip: int = 0) -> ModelAnswer[O]:
        self.asked += 1
        assert isinstance(inputs, Inputs)
        output = self._output or answer(inputs)
        assert isinstance(output, task.output)
        return ModelAnswer(
            output=output, model=self.name, usage=Usage(), cost_usd=None, milliseconds=0.0
        )


def user(text: str) -> Turn:
    return Turn(speaker="user", text=text)


def desk(text: str) -> Turn:
    return Turn(speaker="assistant", text=text)


def pause(*options: str, question: str = "How do I set the limit?") -> Pause:
    return Pause(
        pause_id="p",
        original_question=question,
        original_text=question,
        reason=ClarificationReason.AMBIGUOUS_QUERY,
        asked="Which one do you mean?",
        options=options,
    )


async def essence(
    text: str,
    *history: Turn,
    open_pause: Pause | None = None,
    text_eng: str = "",
    model: Offline | None = None,
) -> Writes:
    agent = EssenceAgent(model=Offline() if model is None else model)
    outcome = await agent.work(
        Reads(text=text, text_eng=text_eng, history=history, open_pause=open_pause)
    )
    assert isinstance(outcome, Wrote)
    return outcome.writes


OPTIONS = ("Rate plans > Monthly limit", "Routing rules > Throughput", "User accounts > Sub-users")


async def test_a_first_question_is_a_new_topic_and_stays_as_it_is() -> None:
    writes = await essence("How do I add a routing rule?")

    assert writes.canonical_question == "How do I add a routing rule?"
    assert writes.context_type == "new_topic"
    assert writes.related_history == ()


async def test_the_english_text_is_the_question_when_there_is_one() -> None:
    writes = await essence("Wie lege ich eine Regel an?", text_eng="How do I add a rule?")

    assert writes.canonical_question == "How do I add a rule?"


@pytest.mark.parametrize(
    "turn",
    [
        "How do I delete it?",
        "and for resellers?",
        "Wie lösche ich diese wieder dauerhaft ganz und gar vollständig?",
        "Как мне её снова удалить из списка навсегда и полностью?",
        "Does the routing rule also apply to delivery reports of other operators?",
    ],
)
async def test_a_turn_that_leans_on_the_conversation_names_the_turns_it_leans_on(turn: str) -> None:
    writes = await essence(
        turn, user("What is a sender?"), desk("A name."), user("How do I add a routing rule?")
    )

    assert writes.context_type == "follow_up"
    assert writes.related_history == ("How do I add a routing rule?", "What is a sender?")


async def test_a_long_question_about_something_else_is_a_new_topic() -> None:
    writes = await essence(
        "Where can administrators download monthly invoices with value added tax?",
        user("How do I add a routing rule?"),
        desk("Open Routing and press Add."),
    )

    assert writes.context_type == "new_topic"
    assert writes.related_history == ()


async def test_a_turn_without_a_subject_takes_it_from_the_turn_before() -> None:
    writes = await essence("why?", user("Are routing rules ordered?"), desk("Yes."))

    assert "routing rules" in writes.canonical_question
    assert "why?" in writes.canonical_question


@pytest.mark.parametrize(
    ("reply", "chosen"),
    [
        ("Routing rules > Throughput", 1),
        ("routing rules throughput", 1),
        ("2", 1),
        ("2.", 1),
        ("option 3", 2),
        ("the second one", 1),
        ("the last one please", 2),
        ("die zweite", 1),
        ("второй вариант", 1),
        ("最初", 0),
        ("दूसरा वाला", 1),
        ("the monthly one", 0),
        ("sub-users", 2),
    ],
)
async def test_a_reply_that_names_an_option_is_merged_with_the_question(
    reply: str, chosen: int
) -> None:
    writes = await essence(reply, open_pause=pause(*OPTIONS))

    assert writes.canonical_question == f"How do I set the limit? ({OPTIONS[chosen]})"
    assert writes.context_type == "clarification"
    assert writes.clarification_result == "search_again"
    assert writes.related_history == ("How do I set the limit?",)
    assert writes.assumption == ""


async def test_a_short_reply_in_own_words_is_merged_with_the_question() -> None:
    writes = await essence("for trial customers", open_pause=pause(*OPTIONS))

    assert writes.canonical_question == "How do I set the limit? (for trial customers)"
    assert writes.clarification_result == "search_again"


@pytest.mark.parametrize(
    "reply",
    [
        "exit",
        "Cancel.",
        "never mind!",
        "no thanks",
        "abbrechen",
        "Olvídalo",
        "laisse tomber",
        "lascia stare",
        "deixa pra lá",
        "отмена",
        "скасувати",
        "算了",
        "キャンセル",
        "إلغاء",
        "रद्द करें",
    ],
)
async def test_a_stop_word_of_any_of_the_languages_ends_the_question(reply: str) -> None:
    writes = await essence(reply, open_pause=pause(*OPTIONS))

    assert writes.clarification_result == "exit"
    assert writes.context_type == "clarification"


@pytest.mark.parametrize(
    "reply",
    ["skip", "Just answer!", "weiß nicht", "no sé", "не знаю", "跳过", "छोड़ें", "je ne sais pas"],
)
async def test_a_skip_goes_on_with_a_stated_assumption(reply: str) -> None:
    writes = await essence(reply, open_pause=pause(*OPTIONS))

    assert writes.clarification_result == "search_again"
    assert writes.assumption == OPTIONS[0]
    assert writes.canonical_question == f"How do I set the limit? ({OPTIONS[0]})"


async def test_a_skip_without_options_assumes_the_question_as_it_was_asked() -> None:
    writes = await essence("skip", open_pause=pause())

    assert writes.canonical_question == "How do I set the limit?"
    assert writes.assumption == "How do I set the limit?"


async def test_a_new_question_closes_the_pause() -> None:
    writes = await essence(
        "Where do I download the invoices of last year?", open_pause=pause(*OPTIONS)
    )

    assert writes.context_type == "new_topic"
    assert writes.clarification_result is None
    assert writes.canonical_question == "Where do I download the invoices of last year?"


async def test_a_stop_word_without_an_open_question_is_an_ordinary_turn() -> None:
    writes = await essence("stop")

    assert writes.clarification_result is None
    assert "clarification_result" not in writes.model_fields_set


async def test_a_pressed_button_needs_no_model() -> None:
    model = Offline()

    await essence(OPTIONS[1], open_pause=pause(*OPTIONS), model=model)
    await essence("exit", open_pause=pause(*OPTIONS), model=model)

    assert model.asked == 0


async def test_turns_that_a_model_invents_are_left_out() -> None:
    invented = Output(
        canonical_question="q", context_type="follow_up", related_turns=(1, 7, 0, -1, 1)
    )

    writes = await essence("and then?", user("First?"), desk("Yes."), model=Offline(invented))

    assert writes.related_history == ("First?",)


async def test_an_empty_question_of_a_model_leaves_the_turn_as_it_is() -> None:
    empty = Output(canonical_question="  ", context_type="new_topic")

    writes = await essence("How do I pay?", model=Offline(empty))

    assert writes.canonical_question == "How do I pay?"


async def test_thanks_in_a_conversation_are_no_question_about_what_was_said() -> None:
    writes = await essence("thank you!", user("How do I add a rule?"), desk("Press Add."))

    assert writes.canonical_question == "thank you!"
    assert writes.context_type == "new_topic"


@pytest.mark.parametrize(
    ("before", "turn", "question"),
    [
        ("What does error 4029 mean?", "And 4009?", "What does error 4009 mean?"),
        ("Was bedeutet Fehler 4029?", "Und 4009?", "Was bedeutet Fehler 4009?"),
        (
            "What can the Analyst role do?",
            "And the Developer?",
            "And the Developer? (What can the Analyst role do?)",
        ),
        (
            "How long is an invitation valid?",
            "And how often can it be used?",
            "And how often can it be used? (How long is an invitation valid?)",
        ),
    ],
)
async def test_a_turn_that_only_goes_on_is_read_with_the_question_it_goes_on_from(
    before: str, turn: str, question: str
) -> None:
    found = await essence(turn, user(before), desk("An answer [1]."))

    assert found.canonical_question == question
    assert found.context_type == "follow_up"


@pytest.mark.parametrize(
    "turn",
    [
        "And how do I import rate plans from a file?",
        "And how do I delete users?",
        "und wie lösche ich einen Nutzer?",
        "а как удалить правило?",
    ],
)
async def test_a_turn_that_goes_on_and_asks_a_question_of_its_own_stays_as_it_is(
    turn: str,
) -> None:
    found = await essence(turn, user("What does error 4029 mean?"), desk("An answer [1]."))

    assert found.canonical_question == turn


async def test_several_questions_in_one_first_turn_are_read_by_a_model() -> None:
    both = "How do I create a rule? And how do I test it?"
    model = ScriptedModel([Output(canonical_question=both, context_type="new_topic")])
    agent = EssenceAgent(model=model, skips_certain=True)

    outcome = await agent.work(Reads(text=both, text_eng=both, translation_confidence=1.0))

    assert isinstance(outcome, Wrote)
    assert len(model.calls) == 1


async def test_a_third_turn_goes_on_from_the_question_and_not_from_how_the_second_went_on() -> None:
    before = Turn(
        speaker="user",
        text="And the Developer?",
        meant="And the Developer? (What can the Analyst role do?)",
    )

    found = await essence("And the Owner?", before, desk("An answer [1]."))

    assert found.canonical_question == "And the Owner? (What can the Analyst role do?)"


async def test_essence_gives_up_at_once_when_no_model_answers_it() -> None:
    agent = EssenceAgent(model=ScriptedModel([ModelUnavailable("the vendor is away")]))

    outcome = await agent.work(Reads(text="And then?", history=(user("First?"), desk("Yes."))))

    assert outcome == GaveUp("ModelUnavailable: the vendor is away")
