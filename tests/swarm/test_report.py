"""One report from what workers found."""

import pytest

from llm.offline.criteria.read_criteria import Criterion
from swarm.synthesis.contradictions import find_contradictions
from swarm.synthesis.council_report import write_council_report
from swarm.synthesis.merged_claims import merge_claims
from swarm.synthesis.report import write_note, write_report
from swarm.synthesis.report_wording import NO_DISSENT
from swarm.synthesis.shown_passages import choose_shown
from swarm.workers.output import DocumentVerdict, fail_worker
from tests.swarm.builders import (
    make_output,
    make_passage,
    make_swarm_plan,
    make_wording,
    make_worker,
)

FEE = make_worker("w1", objective="the fee of the Alfa licence")
DUTY = make_worker("w2", objective="the fee of the Alfa licence in the new list")
PLAN = make_swarm_plan(FEE, DUTY)


def test_each_claim_has_its_workers_and_its_source() -> None:
    passage = make_passage("a", "The fee of the Alfa licence is 100 euros a year.")
    outputs = {"w1": make_output("w1", passage), "w2": make_output("w2", passage)}

    report = write_report(PLAN, outputs, make_wording("Hermes"))

    assert [(one.worker_ids, one.source.chunk_id) for one in report.claims] == [
        (("w1", "w2"), "a#0")
    ]
    assert report.text == "Hermes:\n\n- The fee of the Alfa licence is 100 euros a year. [1]"
    assert report.sources == ("a#0",)


def test_different_numbers_from_two_sources_are_named_as_a_contradiction() -> None:
    outputs = {
        "w1": make_output("w1", make_passage("a", "The fee of the Alfa licence is 100 euros.")),
        "w2": make_output("w2", make_passage("b", "The fee of the Alfa licence is 150 euros.")),
    }

    report = write_report(PLAN, outputs, make_wording())

    assert [one.reason for one in report.contradictions] == ["different numbers: 100 and 150"]
    assert "[1], [2]: different numbers: 100 and 150" in report.text


def test_a_denial_contradicts_and_another_matter_does_not() -> None:
    outputs = {
        "w1": make_output(
            "w1",
            make_passage("a", "The fee of the Alfa licence is refunded."),
            make_passage("b", "The fee of the Alfa licence is not refunded."),
            make_passage("c", "The fee for parcels of Alfa to Norway is 4 euros."),
        )
    }

    found = find_contradictions(merge_claims(PLAN, outputs))

    assert [(one.one.source.document_id, one.other.source.document_id) for one in found] == [
        ("a", "b")
    ]


def test_numbers_of_two_different_things_are_no_contradiction() -> None:
    outputs = {
        "w1": make_output(
            "w1",
            make_passage("a", "The fee of the licence of Alfa is 100 euros."),
            make_passage("b", "The fee of the licence of Beta is 150 euros."),
        )
    }

    assert find_contradictions(merge_claims(PLAN, outputs)) == ()


def test_what_is_missing_is_named_and_makes_a_report_partial() -> None:
    outputs = {"w1": fail_worker(FEE, "killed")}

    report = write_report(PLAN, outputs, make_wording())

    assert report.is_partial
    assert report.missing == (
        "The search failed for: the fee of the Alfa licence.",
        "No result came in time for: the fee of the Alfa licence in the new list.",
    )
    assert write_note(PLAN, outputs) == "0 of 2 parts answered"


def test_compared_items_become_rows_and_a_bar_ends_no_cell() -> None:
    workers = [make_worker(name, subject=name, objective=f"fee of {name}") for name in ("A1", "B2")]
    plan = make_swarm_plan(*workers, compared=("A1", "B2"))
    outputs = {"A1": make_output("A1", make_passage("a", "The fee of A1 is 3 | 4 euros for all."))}

    report = write_report(plan, outputs, make_wording())

    assert "| A1 | The fee of A1 is 3 / 4 euros for all. [1] |" in report.text
    assert "| B2 | not found |" in report.text


def test_documents_without_a_verdict_are_named_as_unchecked() -> None:
    workers = [make_worker(name, documents=(name,), criteria=("audit",)) for name in ("d1", "d2")]
    plan = make_swarm_plan(*workers, criteria=(Criterion("audit", is_wanted=False),))
    verdict = DocumentVerdict(
        document_id="d1", title="One", criterion="audit", is_met=False, kind="books_audited"
    )

    report = write_report(plan, {"d1": make_output("d1", verdicts=(verdict,))}, make_wording())

    assert report.documents is not None
    assert report.documents.unchecked == ("d2",)
    assert report.text.startswith("Documents that meet this: 1 of 1 that were checked.")
    assert "1 documents were not checked." in report.missing


def test_the_shown_passages_are_bounded_and_every_worker_has_its_turn() -> None:
    lister = make_worker("l")
    items = [make_worker(f"i{n}", depends_on=("l",)) for n in range(3)]
    plan = make_swarm_plan(lister, *items)
    outputs = {
        "l": make_output(
            "l", make_passage("x", "Other."), make_passage("list", "Amrum; Borkum"),
            items=("Amrum",),
        ),
        **{
            f"i{n}": make_output(
                f"i{n}", *(make_passage(f"i{n}-{rank}", "text") for rank in range(9))
            )
            for n in range(3)
        },
    }  # fmt: skip

    shown = [one.citation.document_id for one in choose_shown(plan, outputs, 5)]

    assert shown == ["list", "i0-0", "i1-0", "i2-0", "i0-1"]


@pytest.mark.parametrize(
    "language", ["de", "es", "fr", "it", "pt", "ru", "uk", "zh", "ja", "ar", "hi"]
)
def test_the_fixed_texts_of_a_report_are_in_the_language_of_the_answer(language: str) -> None:
    workers = [make_worker(name, subject=name) for name in ("A1", "B2")]
    plan = make_swarm_plan(*workers, compared=("A1", "B2"))
    fee, other = ("The fee of A1 is 3 euros for all.", "The fee of A1 is 4 euros for all.")
    found = {
        "A1": make_output("A1", make_passage("a#0", fee), make_passage("b#0", other)),
    }

    english = write_report(plan, found, make_wording()).text
    report = write_report(plan, found, make_wording(language=language)).text

    assert "| Item | Found |" in english
    assert "not found" in english
    assert not any(one in report for one in ("Found", "not found", "contradict each"))
    assert fee in report


def test_a_council_without_dissent_says_so_and_one_with_dissent_does_not() -> None:
    asked = "What is the fee of the Alfa licence?"
    names = ("advocate", "critic", "auditor")
    workers = [make_worker(name, specialization=name, objective=asked) for name in names]
    plan = make_swarm_plan(*workers, question=asked)
    same = {
        one.id: make_output(one.id, make_passage("a#0", "The fee of the Alfa licence is 3 euros."))
        for one in workers
    }
    another = make_passage("b#0", "The fee of the Alfa licence is 9 euros.")
    different = {**same, "critic": make_output("critic", another)}

    agreed = write_council_report(plan, same, make_wording(language="de"))
    dissent = write_council_report(plan, different, make_wording(language="de"))

    assert [note.key for note in agreed.notes] == [NO_DISSENT]
    assert "Übereinstimmung: Fürsprache, Kritik, Prüfung" in agreed.text
    assert dissent.notes == ()
    assert "verschiedene Zahlen: 3 und 9" in dissent.text


def test_a_long_quotation_in_a_table_ends_with_a_word() -> None:
    workers = [make_worker(name, subject=name) for name in ("A1", "B2")]
    plan = make_swarm_plan(*workers, compared=("A1", "B2"))
    long = "The fee of A1 is " + "considerable " * 20 + "every year."

    report = write_report(
        plan, {"A1": make_output("A1", make_passage("a#0", long))}, make_wording()
    )

    assert "considerable … [1] |" in report.text
