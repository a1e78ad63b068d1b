from llm.offline.planning.assess_rules import answer as answer_by_rules
from llm.offline.planning.assessment import Evidence, assess, measure_completeness
from llm.offline.planning.tool_choice import choose_tools, rank_naming
from llm.tasks.assess import AssessedSource, Inputs, Output

QUESTION = "Where was the licensor of the carriers born?"


def test_passages_with_all_words_of_the_question_are_more_complete() -> None:
    licensed = Evidence("The licensor of all carriers is Lorenzo Costa.", 9.0)
    born = Evidence("Lorenzo Costa was born in Mantua.", 7.0, is_linked=True)

    assert measure_completeness(QUESTION, [licensed, born]) > measure_completeness(
        QUESTION, [licensed]
    )
    assert measure_completeness(QUESTION, []) == 0.0


def test_what_is_missing_is_named_and_the_mean_is_of_four_criteria() -> None:
    found = assess(QUESTION, [Evidence("The licensor of all carriers.", 9.0)], "The licensor.")

    assert found.missing == ("born",)
    parts = (found.completeness, found.accuracy, found.clarity, found.specificity)
    assert all(1 <= part <= 10 for part in parts)
    assert found.quality == round(sum(parts) / 4, 2)


def rate(question: str, answer: str, place: str, unanswered: str = "") -> Output:
    source = AssessedSource(number=1, text=f"{place}\n{answer}")
    return answer_by_rules(
        Inputs(question=question, answer=answer, sources=(source,), unanswered=unanswered)
    )


def average(output: Output) -> float:
    parts = (output.completeness, output.accuracy, output.clarity, output.specificity)
    return sum(parts) / len(parts)


def test_an_answer_to_the_whole_question_is_enough_and_one_to_half_of_it_is_not() -> None:
    question = "How long must records be kept, and what is the fine for missing records?"
    both = "Records must be kept for 12 months. The fine for missing records is 3,000 marks."

    whole = rate(question, both, "Act > Article 4")
    half = rate(question, "Records must be kept for 12 months.", "Act > Article 4")
    said = rate(question, both, "Act > Article 4", "How long must records be kept?")

    assert average(whole) >= 7 > average(half)
    assert average(said) < 7
    assert whole.missing == ()
    assert half.missing == ("fine", "missing", "records")


def test_a_question_for_a_fine_is_not_answered_without_any() -> None:
    found = rate("What is the fine for 9 kilograms?", "A drone carries 8 kilograms.", "Article 6")

    assert found.completeness == 1.0
    assert found.missing[0] == "fine"


def test_without_passages_every_criterion_is_at_its_least() -> None:
    assert assess(QUESTION, []).quality == 1.0


def test_tools_are_chosen_by_the_task_and_the_pages_that_name_them() -> None:
    tools = {
        "close_card_17": "Close a debit card.",
        "open_account_3": "Open an account.",
        "ship_parcel": "Ship a parcel.",
    }

    ranks = rank_naming(tools, ["Cards are lost.", "Use close_card_17 to close it."])

    chosen = choose_tools("I lost my wallet. Please close my debit card.", tools, ranks)

    assert ranks == {"close_card_17": 1}

    assert chosen == ["close_card_17"]


def test_a_sentence_that_gives_the_inputs_of_a_tool_speaks_for_it() -> None:
    tools = {"record_check": "Record who it was.", "ship_parcel": "Ship a parcel."}
    tools |= {f"other_{number}": "" for number in range(30)}
    inputs = {"record_check": ("name", "phone_number", "email", "date_of_birth"), "ship_parcel": ()}
    task = "Give your name, email, phone number and date of birth for the record of the check."

    assert choose_tools(task, tools, {}, inputs) == ["record_check"]
    assert "record_check" not in choose_tools(task, tools, {})
