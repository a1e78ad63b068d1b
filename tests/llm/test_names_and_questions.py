"""The name of a party is not repeated in each clause, and a question in a source is no answer."""

import pytest

from llm.tasks.respond import PromptSource
from tests.llm.test_offline_respond import ask_offline

CONTRACT = (
    PromptSource(
        number=1,
        chunk_id="contract#0",
        place="Service Agreement",
        text="between Larkfield GmbH (Customer) and Blueoak AG (Provider)",
    ),
    PromptSource(
        number=2,
        chunk_id="contract#5",
        place="Service Agreement > 5. Termination",
        text="5.3 Notice to terminate must be given in writing; e-mail is not enough.",
    ),
    PromptSource(
        number=3,
        chunk_id="contract#6",
        place="Service Agreement > 6. Liability",
        text="6.1 The Provider's liability is limited to 250,000 euros a year.",
    ),
)


@pytest.mark.parametrize(
    ("question", "number"),
    [
        ("Is an e-mail enough to terminate the agreement with Blueoak?", 2),
        ("Up to which amount is Blueoak liable?", 3),
    ],
)
def test_the_parties_of_a_contract_are_named_once_for_all_of_its_clauses(
    question: str, number: int
) -> None:
    assert f"[{number}]" in ask_offline(question, *CONTRACT).answer
    assert "[1]" not in ask_offline(question, *CONTRACT).answer


def test_a_question_in_a_source_is_no_answer() -> None:
    asked = PromptSource(
        number=1,
        chunk_id="mail#1",
        place="Summer party, Ken",
        text="May we bring our children?\n\nKen",
    )
    answered = PromptSource(
        number=2, chunk_id="mail#2", place="Summer party, Ines", text="Children are welcome."
    )
    frequent = PromptSource(
        number=3,
        chunk_id="faq#1",
        place="Party",
        text="May we bring our children? Yes, all of the family may come.",
    )
    question = "May employees bring their children to the summer party?"

    assert (
        ask_offline(question, asked, answered).answer
        == "Summer party, Ines: Children are welcome. [2]"
    )
    assert "Yes, all" in ask_offline("May we bring our children to the party?", frequent).answer
    assert ask_offline(question, asked).status == "insufficient_context"
