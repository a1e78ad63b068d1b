"""Without a model: what a question calls by another name, and what no source says."""

import pytest

from llm.offline.quoting.counting import lacks_unit, states_measure
from llm.offline.respond import answer
from llm.tasks.respond import Inputs, Output, PromptSource


def make_source(number: int, place: str, text: str, version: str = "") -> PromptSource:
    return PromptSource(
        number=number,
        chunk_id=f"s{version}-{number}#0",
        place=f"{place} (version {version})" if version else place,
        language="en",
        version=version,
        text=text,
    )


VAN = make_source(1, "Vans", "A van must not carry more than 750 kilograms on its roof rack.")
LOG = make_source(2, "Log book", "The driver writes the weight of every load into the log book.")
ROADS = make_source(
    3, "Roads", "In the yard a van moves at most 10 kilometres an hour. Stop at 3 m."
)
FINES = make_source(
    4,
    "Fines",
    "| Breach | Fine |\n|---|---|\n| Late return of a van | 80 euros |\n"
    "| Missing log book | 40 euros |",
)
HIRE = make_source(5, "Hire", "The hire of vans is run by the office in the yard of Dorne.")


def ask(question: str, *sources: PromptSource) -> Output:
    return answer(Inputs(question=question, language="en", sources=sources))


@pytest.mark.parametrize(
    "question",
    ["What is the maximum weight for vans?", "What is the weight limit of a van?"],
)
def test_a_number_with_a_unit_answers_a_question_for_a_measure(question: str) -> None:
    said = ask(question, VAN, LOG, ROADS).answer

    assert "750 kilograms" in said
    assert "log book" not in said


def test_a_number_of_another_kind_is_no_speed() -> None:
    said = ask("How fast may a van move in the yard?", ROADS, FINES, VAN).answer

    assert "10 kilometres an hour" in said
    assert "euros" not in said
    assert "750" not in said


def test_a_unit_without_a_number_and_a_number_without_a_unit_state_no_measure() -> None:
    assert states_measure("mass", "at most 8 kg")
    assert not states_measure("mass", "measured in kilograms")
    assert not states_measure("mass", "at most 8 parcels")
    assert not states_measure(None, "at most 8 kg")
    assert lacks_unit("How heavy is it?", "It costs 8 euros.")
    assert not lacks_unit("How much is it?", "It costs 8 euros.")


def test_a_limit_of_another_measure_is_no_answer() -> None:
    assert ask("What is the height limit for vans?", VAN, LOG).status == "insufficient_context"
    assert ask("How far may a van go?", VAN, LOG).status == "insufficient_context"


def test_provisions_need_not_call_themselves_rules() -> None:
    said = ask("What are the rules for vans?", VAN, LOG, ROADS).answer

    assert "750 kilograms" in said


def test_a_word_for_provisions_that_a_source_has_is_looked_for() -> None:
    rules = make_source(6, "Routing", "Routing rules choose a van. Rules for vans have a priority.")

    assert "priority" in ask("What are the rules for vans?", VAN, rules).answer


@pytest.mark.parametrize(
    "question",
    [
        "Who is the founder of the company that hires out the vans?",
        "Who is the president of the yard of Dorne?",
    ],
)
def test_a_person_whose_role_no_source_knows_is_not_found(question: str) -> None:
    assert ask(question, HIRE, VAN, ROADS).status == "insufficient_context"


def test_the_verb_of_a_role_names_it_too() -> None:
    founded = make_source(6, "History", "The hire of vans in Dorne was founded by Ada Brill.")

    assert "Ada Brill" in ask("Who is the founder of the hire of vans?", founded, VAN).answer


def test_a_row_about_something_else_is_no_answer() -> None:
    asked = "What is the fine for a missing spare wheel or jack?"

    assert ask(asked, FINES, VAN).status == "insufficient_context"
    assert "40 euros" in ask("What is the fine for a missing log book?", FINES, VAN).answer


OLD = make_source(7, "Scooters", "A scooter stays within the yard for 6 months.", "2024")
PRAMS = make_source(8, "Returns", "Bikes stay with the delivery office for 24 months.", "2024")


def test_a_named_version_selects_sources_and_is_no_evidence() -> None:
    asked = ask("Are delivery robots allowed in 2024?", OLD, PRAMS)

    assert asked.status == "insufficient_context"


def test_a_past_year_without_a_version_is_not_answered_from_another_one() -> None:
    known = ask("How long did a scooter stay within the yard in 2024?", OLD, PRAMS)
    unknown = ask("How long did a scooter stay within the yard in 2021?", OLD, PRAMS)

    assert "6 months" in known.answer
    assert unknown.status == "insufficient_context"
