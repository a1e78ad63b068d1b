"""Without a model: the latest message of a thread, or the latest minutes, are quoted first."""

import pytest

from llm.offline.quoting.dated_sources import read_date
from llm.offline.respond import answer
from llm.tasks.respond import Inputs, PromptSource


def make_source(number: int, place: str, text: str) -> PromptSource:
    return PromptSource(
        number=number, chunk_id=f"doc-{number}#0", place=place, language="en", text=text
    )


def make_message(number: int, sender: str, date: str, text: str) -> PromptSource:
    subject = "Move of the archive"
    heading = f"{'Re: ' * (number - 1)}{subject}, {sender}, {date}"
    return make_source(number, f"{subject} > {heading}", text)


THREAD = (
    make_message(
        1, "Ada Wren <ada@acme.test>", "2026-02-02 09:00", "We move the archive on 14 April."
    ),
    make_message(
        2, "Bo Lind <bo@acme.test>", "2026-02-03 10:00", "Can we move the archive on 2 April?"
    ),
    make_message(
        3, "Ada Wren <ada@acme.test>", "2026-02-04 11:00", "The move is now on 5 May. Bring boxes."
    ),
    make_message(
        4, "Cleo Ray <cleo@acme.test>", "2026-02-05 12:00", "The van is booked from 3 May."
    ),
)


def ask(question: str, *sources: PromptSource) -> str:
    return answer(Inputs(question=question, language="en", sources=sources)).answer


def test_the_latest_message_on_a_point_is_quoted_before_the_one_that_it_changes() -> None:
    said = ask("When do we move the archive?", *THREAD)

    assert said == (
        "Re: Re: Move of the archive, Ada Wren <ada@acme.test>, 2026-02-04 11:00: "
        "The move is now on 5 May. [3] Bring boxes. [3]\n\n"
        "Move of the archive, Ada Wren <ada@acme.test>, 2026-02-02 09:00: "
        "We move the archive on 14 April. [1]"
    )


def test_a_later_message_about_something_else_changes_nothing() -> None:
    assert "[4]" not in ask("When do we move the archive?", *THREAD)


def test_a_message_of_another_thread_changes_nothing() -> None:
    other = make_source(
        5, "Move of the lab > Move of the lab, Ada Wren <ada@acme.test>, 2026-03-01", "No move."
    )

    assert "[5]" not in ask("When do we move the archive?", *THREAD[:1], other)


def test_who_did_something_is_answered_with_the_sender_of_the_message() -> None:
    assert "Cleo Ray" in ask("Who booked the van?", *THREAD)


def test_the_latest_minutes_of_a_committee_are_quoted_first() -> None:
    said = ask(
        "Who repairs the roof?",
        make_source(
            1,
            "Minutes of the committee, 10 November 2025 > Resolutions",
            "The roof is repaired by Alder Ltd.",
        ),
        make_source(
            2,
            "Minutes of the committee, 9 February 2026 > Resolutions",
            "Alder withdrew; the roof is repaired by Birch Ltd.",
        ),
    )

    assert said.index("Birch Ltd") < said.index("10 November 2025")


@pytest.mark.parametrize(
    ("place", "date"),
    [
        ("Launch > Re: Launch, Ada <a@b.test>, 2026-02-04 08:05", (2026, 2, 4, 8, 5)),
        ("Minutes 2026-03-06 > Actions", (2026, 3, 6)),
        ("Minutes of 9 February 2026", (2026, 2, 9)),
        ("Meeting on March 4th, 2026", (2026, 3, 4)),
        ("Protokoll vom 20. Januar 2026", (2026, 1, 20)),
        ("Protokoll 20.1.2026", (2026, 1, 20)),
        ("Handbook 2026 > 4. Leave", ()),
        ("Route 8 of 2026", ()),
    ],
)
def test_the_date_of_a_place_is_read_as_people_write_it(place: str, date: tuple[int, ...]) -> None:
    assert read_date(place) == date


def make_lift_mail(number: int, date: str, text: str) -> PromptSource:
    heading = f"{'Re: ' * (number - 1)}Lift in building B, Omar Bashir <omar@lifts.test>, {date}"
    return make_source(number, f"Lift in building B > {heading}", text)


REPAIR = make_lift_mail(
    1, "2026-03-02 09:12", "The lift will be repaired on 12 March. The repair costs 4,350 euros."
)


def test_a_message_that_moves_the_day_supersedes_it_without_naming_what_is_moved() -> None:
    moved = make_lift_mail(3, "2026-03-11 08:05", "We will come on 19 March instead.")

    said = ask("When will the lift be repaired?", REPAIR, moved)

    assert said.index("19 March") < said.index("12 March")
    assert "2026-03-11" in said


def test_a_changed_sum_changes_no_day() -> None:
    dearer = make_lift_mail(3, "2026-03-11 08:05", "The price is 5,000 euros instead.")

    assert "5,000" not in ask("When will the lift be repaired?", REPAIR, dearer)


def test_a_day_that_changes_nothing_supersedes_nothing() -> None:
    other = make_lift_mail(3, "2026-03-11 08:05", "I am on holiday on 19 March.")

    assert "19 March" not in ask("When will the lift be repaired?", REPAIR, other)


def test_an_extended_deadline_supersedes_the_first() -> None:
    first = make_lift_mail(1, "2026-01-12 10:00", "Apply for a permit by 31 January.")
    extended = make_lift_mail(
        2, "2026-01-22 11:30", "We have extended the time for applications to 13 February."
    )

    said = ask("Until when can I apply for a permit?", first, extended)

    assert said.index("13 February") < said.index("31 January")


def test_a_message_that_moves_one_of_several_days_supersedes_the_one_that_it_names() -> None:
    first = make_lift_mail(
        1, "2026-01-05 08:00", "The new hoist is installed on 26 January. Training is on 2 March."
    )
    moved = make_lift_mail(
        2, "2026-01-19 08:30", "The delivery is late. The installation is now on 9 February."
    )

    said = ask("When is the new hoist installed?", first, moved)

    assert said.index("9 February") < said.index("26 January")
