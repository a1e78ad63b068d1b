"""What a question asks for, and what of the documents therefore answers it without a model."""

from llm.offline.quoting.extracts import split_cells
from llm.offline.quoting.key_terms import extract_asked_terms, extract_key_terms
from llm.offline.quoting.question_kinds import classify_question
from llm.offline.respond import answer
from llm.tasks.respond import Inputs, Output, PromptSource


def make_source(number: int, place: str, text: str) -> PromptSource:
    return PromptSource(
        number=number, chunk_id=f"page#{number}", place=place, language="en", text=text
    )


def ask(question: str, *sources: PromptSource) -> Output:
    return answer(Inputs(question=question, language="en", sources=sources))


NEW = make_source(1, "Release notes > 3.2.0 (4 May 2026)", "- Dark mode for maps.\n- Faster start.")
OLD = make_source(2, "Release notes > 3.1.0 (2 March 2026)", "- Changed: maps need a licence.")
LEAVE = make_source(1, "Leave > Training", "Each nurse has six paid training days a year.")
SIZES = make_source(
    1,
    "Lockers > Sizes",
    "| Size | Weight |\n|---|---|\n| A | 3 kg |\n| B | 9 kg |\n| C | 20 kg |",
)
INSTALL = make_source(
    1,
    "Install Kestrel",
    "Install Kestrel and create its tables:\n\n```bash\npip install kestrel\n```\n\n"
    "Hints for large servers:\n\n- Set a cache.\n- Keep copies for a month.",
)
AUDIT = make_source(
    1,
    "Re: Audit",
    "The audit takes place on 14 October in the Linz office.\n\n"
    "Thanks, the asset list is ready.\n\n"
    "The audit now takes place on 21 October in the Linz office.",
)


def test_when_behind_another_question_word_asks_for_no_time() -> None:
    assert not classify_question("What happens when a client sends two headers?").time
    assert classify_question("When does the office open?").time


def test_in_which_version_is_answered_with_the_heading_of_the_version() -> None:
    said = ask("In which version came dark mode for maps?", NEW, OLD)

    assert "3.2.0" in said.answer
    assert "Dark mode" in said.answer


def test_what_changed_in_a_version_is_not_answered_by_another_version() -> None:
    said = ask("What changed in version 3.2.0?", OLD, NEW)

    assert "Faster start" in said.answer
    assert "licence" not in said.answer


def test_a_group_that_the_documents_do_not_name_is_not_answered_by_another() -> None:
    assert ask("How many training days do nurses have?", LEAVE).status == "answered"
    assert ask("How many training days do midwives have?", LEAVE).status == "insufficient_context"


def test_rows_named_by_one_letter_are_compared() -> None:
    said = ask("What is the difference between size A and size C?", SIZES)

    assert "3 kg" in said.answer
    assert "20 kg" in said.answer
    assert "9 kg" not in said.answer


def test_hints_of_a_page_are_not_mixed_into_the_commands_that_were_asked_for() -> None:
    said = ask("How do I install Kestrel?", INSTALL)

    assert "pip install kestrel" in said.answer
    assert "cache" not in said.answer


def test_two_dates_of_the_same_thing_in_a_thread_are_both_shown() -> None:
    said = ask("When does the audit take place?", AUDIT)

    assert "14 October" in said.answer
    assert "21 October" in said.answer


def test_a_bar_behind_a_backslash_belongs_to_its_cell() -> None:
    assert split_cells(r"| `a \| b` | either of them |") == [r"`a \| b`", "either of them"]


def test_the_pronoun_one_is_no_number_of_a_question() -> None:
    assert extract_asked_terms("How can I create one?") == {"creat"}
    assert "1" in extract_asked_terms("What does level 1 mean?")


def test_a_letter_that_names_is_a_term_and_an_article_is_none() -> None:
    assert "A" in extract_key_terms("What does plan A cost?")
    assert "A" not in extract_key_terms("A rule has conditions. A route has none.")


def test_to_turn_off_is_to_disable() -> None:
    assert extract_key_terms("turned off") == extract_key_terms("disable")


def test_a_message_of_several_sentences_is_answered_in_its_question() -> None:
    said = ask("Sorry, I was teasing you all along! How many training days do nurses have?", LEAVE)

    assert "six" in said.answer


def test_a_deadline_is_more_than_a_number_of_days() -> None:
    kinds = classify_question("Until when can leave be carried over?")

    assert kinds.fits("It can be carried over until 31 March.")
    assert not kinds.fits("Everybody has 29 days of leave.")
    assert classify_question("When does it begin?").fits("It begins on 3 May.")


def test_a_day_is_no_length_of_time_unless_something_lasts_until_it() -> None:
    kinds = classify_question("How long does the repair take?")

    assert kinds.rules_out("The lift is repaired on 12 March 2026.")
    assert kinds.rules_out("The repair costs 4,350 euros.")
    assert not kinds.rules_out("The work takes two days.")
    assert not kinds.rules_out("It is closed until 12 March.")


def test_a_length_of_something_else_needs_no_unit_of_time() -> None:
    assert not classify_question("How long is the pool?").rules_out("It has 25 metres.")
