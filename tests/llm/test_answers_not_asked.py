"""Without a model: what only shares words with a question is not quoted as its answer."""

import pytest

from llm.offline.respond import answer
from llm.tasks.respond import Inputs, Output, PromptSource


def make_source(number: int, place: str, text: str, language: str = "en") -> PromptSource:
    return PromptSource(
        number=number, chunk_id=f"doc-{number}#0", place=place, language=language, text=text
    )


def ask(question: str, *sources: PromptSource, language: str = "en") -> Output:
    return answer(Inputs(question=question, language=language, sources=sources))


OATS = make_source(1, "Launch of the oat line", "We launch the oat line in May.")
PRICES = make_source(
    1,
    "Prices",
    "| Model | Height | Day |\n|---|---|---|\n| SL-8 | 8 m | 85 |\n| SL-9 | 9 m | 98 |",
)


@pytest.mark.parametrize(
    ("question", "source"),
    [
        ("Which flavours does the oat line have?", OATS),
        ("Does the SL-8 have a diesel engine?", PRICES),
        (
            "Can I mount the filter outdoors?",
            make_source(1, "Filter", "Mount the filter with two screws."),
        ),
        (
            "How often do I have to replace the cartridge?",
            make_source(1, "Cartridge", "Replace the seal AP3-SEA of the cartridge."),
        ),
        (
            "How do I change the phone number of a rental?",
            make_source(1, "POST /rentals", "The phone number of a rental receives the code."),
        ),
    ],
)
def test_a_question_whose_point_no_source_has_is_not_answered(
    question: str, source: PromptSource
) -> None:
    assert ask(question, source).status == "insufficient_context"


@pytest.mark.parametrize(
    ("question", "text", "said"),
    [
        ("Which Python version do I need?", "Ferry needs Python 3.10 or later.", "3.10"),
        ("In which countries are the servers?", "The servers are in Malta and Fiji.", "Malta"),
        ("Which weekdays are excluded?", "Mondays are excluded.", "Mondays"),
        ("How do I get a badge?", "A badge is issued in room 4.", "room 4"),
    ],
)
def test_the_kind_of_thing_that_is_asked_for_need_not_be_named(
    question: str, text: str, said: str
) -> None:
    assert said in ask(question, make_source(1, "Notes", text)).answer


def test_how_many_of_a_compound_asks_for_its_last_word() -> None:
    text = "Full-time employees receive 28 days of leave."

    assert "28" in ask("How many vacation days do full-time employees get?",
                       make_source(1, "Leave", text)).answer  # fmt: skip


def test_what_only_dates_something_else_is_no_duration() -> None:
    said = ask(
        "How long is the probation period?",
        make_source(1, "Remote work", "Work from home is possible after the probation period."),
        make_source(
            2, "Notice", "During the probation period, which lasts six months, it is short."
        ),
    )

    assert "[2]" in said.answer
    assert "[1]" not in said.answer


def test_a_deadline_is_a_date_until_which_something_holds() -> None:
    said = ask(
        "Until when can carried over holidays be used?",
        make_source(
            1,
            "Leave",
            "There are 28 days of leave in addition to public holidays. "
            "Holidays that are carried over lapse on 31 March.",
        ),
    )

    assert said.answer.startswith("Holidays that are carried over lapse on 31 March.")


def test_the_head_of_a_table_says_until_when() -> None:
    rows = "| Name | Warranty until |\n|---|---|\n| Oven | 2027-05-02 |\n| Chiller | 2025-01-15 |"

    assert "2027-05-02" in ask("Until when is the oven under warranty?",
                               make_source(1, "Equipment", rows)).answer  # fmt: skip


def test_a_number_with_two_decimals_is_a_price_but_no_size_is() -> None:
    hall = make_source(
        1, "Warehouse", "Hall 3 has 600 places for a pallet, 4.10 per pallet and week."
    )
    size = make_source(1, "Warehouse", "A pallet has 1.20 m in each week.")

    assert "4.10" in ask("What does a pallet cost per week?", hall).answer
    assert ask("What does a pallet cost per week?", size).status == "insufficient_context"


CHANGES = make_source(1, "Changelog > 1.9.0", "- The timeout of the connector is 60 seconds.")
PAGE = make_source(2, "Connector > Network", "The connector waits 30 seconds (timeout).")


def test_an_entry_of_a_changelog_is_not_quoted_next_to_the_page_that_answers() -> None:
    said = ask("What is the timeout of the connector?", CHANGES, PAGE).answer

    assert said == "The connector waits 30 seconds (timeout). [2]"


def test_an_entry_of_a_changelog_is_quoted_for_its_version_or_if_nothing_else_answers() -> None:
    assert "[1]" in ask("What changed in version 1.9.0 of the connector?", CHANGES, PAGE).answer
    assert "[1]" in ask("What is the timeout of the connector?", CHANGES).answer


def test_an_ordinal_of_german_ends_no_sentence() -> None:
    text = "Ab vier Stunden Fahrzeit ist die 1. Klasse erlaubt."
    said = ask(
        "Ab welcher Fahrzeit ist die 1. Klasse erlaubt?",
        make_source(1, "Bahn", text, language="de"),
        language="de",
    )

    assert said.answer == f"{text} [1]"


@pytest.mark.parametrize(
    "text",
    [
        "The boathouse key is handed out to members over 18 only.",
        "The membership fee rises to 205 pounds for members from 1 July.",
    ],
)
def test_a_number_of_something_else_does_not_count_what_is_asked(text: str) -> None:
    found = ask("How many members has the club?", make_source(1, "Club", text))

    assert found.status == "insufficient_context"


@pytest.mark.parametrize(
    "text",
    [
        "The club has 120 rowing members.",
        "Members of the club: 120.",
        "The number of members of the club is limited to 120.",
        "The club has twelve members.",
    ],
)
def test_a_number_that_counts_what_is_asked_answers(text: str) -> None:
    assert text in ask("How many members has the club?", make_source(1, "Club", text)).answer


def test_a_day_of_the_week_is_no_name() -> None:
    rota = "| Ward | Shift | Mon | Tue |\n|---|---|---|---|\n| Surgery | Night | Quist | Tanaka |"
    other = "Complaints are received by Mrs. Duarte, Tuesday and Thursday from 9 to 11."
    said = ask(
        "Who works the night shift in surgery on Tuesday?",
        make_source(1, "Rules", other),
        make_source(2, "Rota", rota),
    ).answer

    assert "Tanaka" in said
    assert "Duarte" not in said


def test_what_is_free_of_charge_is_the_asked_thing() -> None:
    source = make_source(1, "Can I recycle the cartridge?", "Send it back; postage is free.")

    assert ask("How much does a cartridge cost?", source).status == "insufficient_context"
    assert "free" in ask("How much does the postage cost?", source).answer
    route = make_source(
        1, "Failover", "You pay the route that delivered; others are free of charge."
    )
    assert "free" in ask("What does failover cost?", route).answer
    tried = make_source(1, "Failover > What it costs", "Attempts that failed are free of charge.")
    assert "free" in ask("And what does it cost?", tried).answer


def test_a_label_that_only_repeats_the_question_is_no_answer() -> None:
    tabs = make_source(1, "Authentication", "Header\n\nAuthorization: Quill carries it.")

    assert ask("Which header carries the token?", tabs).answer != "Header [1]"


def test_the_number_of_a_status_is_no_size() -> None:
    codes = make_source(1, "POST /render", "- Response `202`: The job was queued\n"
                        "- Response `413`: The drawing is too large")  # fmt: skip
    size = make_source(2, "Rendering", "A drawing may have at most 25 MB.")

    text = "Response `202`: It was queued Response `413`: The drawing is too large"
    line = make_source(1, "POST /render", text)

    assert ask("How large may a drawing be?", codes).status == "insufficient_context"
    assert ask("How large may a drawing be?", line).status == "insufficient_context"
    assert ask("How large may a drawing be?", codes, size).answer == (
        "A drawing may have at most 25 MB. [2]"
    )


def test_what_is_done_to_something_else_is_no_way_to_do_it() -> None:
    jobs = make_source(1, "POST /drawings/{id}", "Returns a job. A job is deleted after 48 hours.")
    own = make_source(1, "Drawings", "A drawing is deleted with the button Remove.")

    assert ask("How do I delete a drawing?", jobs).status == "insufficient_context"
    assert "Remove" in ask("How do I delete a drawing?", own).answer


def test_another_kind_of_the_asked_thing_is_no_answer() -> None:
    fees = make_source(1, "Registration", "Late registration costs a fee of 25 euros.")
    thesis = make_source(1, "Thesis", "The thesis is worth 30 credits.")

    assert ask("How high are the tuition fees?", fees).status == "insufficient_context"
    assert ask("How many credits is the bachelor's thesis worth?", thesis).status == (
        "insufficient_context"
    )
    assert "30" in ask("How many credits is the thesis worth?", thesis).answer


def test_the_price_for_one_thing_is_none_for_another_of_the_same_list() -> None:
    deposits = make_source(1, "Returns", "Deposit for a keg is 50 euros, for a jug 4 euros.")
    bottles = make_source(2, "Suppliers", "Cork & Crown delivers bottles on Monday.")

    asked = ask("How much is the deposit for a bottle?", deposits, bottles)

    assert asked.status == "insufficient_context"
    assert "50" in ask("How much is the deposit for a keg?", deposits, bottles).answer


def test_what_one_row_says_is_not_said_of_another() -> None:
    fields = "| Field | Description |\n|---|---|\n| service | economy or overnight |\n"
    table = make_source(
        1, "POST /labels", f"{fields}| insured_value | above 500 EUR somebody signs |"
    )

    asked = ask("How much does an overnight label cost?", table)

    assert asked.status == "insufficient_context"


def test_a_month_alone_is_not_what_a_question_is_about() -> None:
    beach = make_source(
        1,
        "Seasons",
        "High season is from 28 June to 31 August. The beach has a lifeguard in July only.",
    )

    assert "lifeguard" in ask("Is there a lifeguard in June?", beach).answer
