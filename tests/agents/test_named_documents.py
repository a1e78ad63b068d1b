"""The documents of a review are found by the words of a question."""

from typing import Any

import pytest

from agents.named_documents import (
    TitledDocument,
    find_scope,
    identify_frameworks,
    list_unknown_names,
    offer_documents,
)
from envelope.run import OUTSIDE
from envelope.specialists import Extracted
from knowledge.index.listing import ListedDocument

LAW = TitledDocument("law", "Register Data Protection Act", "law.md")
BRANDT = TitledDocument("brandt", "Contract of Brandt Datacentre", "contract.md")
LINDQVIST = TitledDocument("lindqvist", "Contract of Lindqvist Hosting", "other.md")
EVERY = (LAW, BRANDT, LINDQVIST)


def list_ids(question: str, *documents: TitledDocument) -> tuple[list[str], list[str]]:
    scope = find_scope(question, documents or EVERY)
    return [document.id for document in scope.documents], [item.id for item in scope.against]


def test_a_contract_and_a_law_are_found_by_a_part_of_their_names() -> None:
    asked = "Does the Brandt contract comply with the Register Data Protection Act?"

    assert list_ids(asked) == (["brandt"], ["law"])


def test_the_only_law_is_assumed_and_a_note_says_so() -> None:
    scope = find_scope("Does the Brandt contract comply with the law?", EVERY)

    assert [document.id for document in scope.against] == ["law"]
    assert "is the only one" in scope.notes[0]


def test_of_two_contracts_none_is_assumed() -> None:
    scope = find_scope("Does our contract comply with the Register Data Protection Act?", EVERY)

    assert scope.documents == ()
    assert "there are 2 of them" in scope.notes[0]


def test_a_name_that_no_document_has_is_replaced_by_no_other() -> None:
    scope = find_scope(
        "Does the Nygaard contract comply with the Register Data Protection Act?", (LAW, BRANDT)
    )

    assert scope.documents == ()
    assert scope.notes == ("no document is named Nygaard contract",)


def test_a_generic_file_name_names_nothing() -> None:
    assert list_ids("Does the Lindqvist contract meet the Act?") == (["lindqvist"], ["law"])


def test_a_law_of_many_files_is_named_by_its_folder() -> None:
    folder = "laws/register_data_protection_act"
    articles = [
        TitledDocument(f"a{number}", f"Article {number} Rule", f"{folder}/article_{number}.md")
        for number in (10, 9, 2)
    ]
    asked = "Does the Brandt contract comply with the Register Data Protection Act?"

    assert list_ids(asked, BRANDT, LINDQVIST, *articles) == (["brandt"], ["a2", "a9", "a10"])
    assumed = find_scope("Does the Brandt contract comply with the law?", (BRANDT, *articles))
    assert [document.id for document in assumed.against] == ["a2", "a9", "a10"]


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Entspricht der Vertrag den Anforderungen an die Sicherheit?", []),
        ("Verstößt der Vertrag Halvorsen gegen das Fährgesetz?", ["Vertrag Halvorsen"]),
        ("Ist der Vertrag „Foo Bar“ mit dem Gesetz konform?", ["Foo Bar"]),
        ("Entspricht der Brandt Vertrag der Verordnung Hafen?", ["Verordnung Hafen"]),
        ("Verstößt der Vertrag Brandt gegen das Gesetz Register?", []),
    ],
)
def test_a_german_noun_is_no_name_of_a_document(question: str, names: list[str]) -> None:
    assert list_unknown_names(question, EVERY, "de") == names


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Is the policy GDPR-compliant?", ("GDPR",)),
        ("Entspricht der Vertrag der Datenschutz-Grundverordnung?", ("GDPR",)),
        ("Regulation (EU) 2016/679", ("GDPR",)),
        ("Check it against HIPAA and the Sarbanes-Oxley Act", ("HIPAA", "SOX")),
        ("California Consumer Privacy Act", ("CCPA",)),
        ("A contract about socks and soxes", ()),
    ],
)
def test_a_framework_is_identified_by_any_of_its_names(text: str, found: tuple[str, ...]) -> None:
    assert identify_frameworks(text) == found


def test_a_law_is_found_by_another_name_of_its_framework() -> None:
    law = TitledDocument("law", "General Data Protection Regulation")
    other = TitledDocument("other", "Register Data Act")
    contract = TitledDocument("c", "Contract of Halvorsen")

    scope = find_scope("Does the Halvorsen contract comply with the GDPR?", [law, other, contract])

    assert (scope.documents, scope.against) == ((contract,), (law,))


def test_a_contract_is_not_named_by_its_folder_nor_by_a_function_word_in_a_title() -> None:
    folder = "data_protection_review"
    law = TitledDocument("law", "Register Data Protection Act", f"{folder}/law.md")
    meant = TitledDocument("a", "Contract of Harbour and Brandt", f"{folder}/faulty.md")
    others = (
        TitledDocument("b", "Contract of Harbour and Lindqvist", f"{folder}/clean.md"),
        TitledDocument("c", "Send a message with the API", "api/send.md"),
    )

    scope = find_scope(
        "Does the Brandt contract comply with the Register Data Protection Act?",
        (law, meant, *others),
    )

    assert (scope.documents, scope.against) == ((meant,), (law,))


class _Shelf:
    """The documents that a person may read."""

    def __init__(self, *titles: str) -> None:
        self._titles = titles

    async def list_attached(self, _groups: object, _run: object) -> list[ListedDocument]:
        return []

    async def list_documents(self, _groups: object) -> list[ListedDocument]:
        return [ListedDocument(title, title, f"{title}.md", "", "en", 1) for title in self._titles]


@pytest.mark.parametrize(
    ("chosen", "offered"),
    [
        (("Lease with Ostrom", "Waste Act"), ["Lease with Ostrom", "Waste Act"]),
        (("Lease with Ostrom", "unknown"), ["Lease with Ostrom"]),
        (("unknown",), ["Contract of Halvorsen", "Mixing rules for paint"]),
        ((), ["Contract of Halvorsen", "Mixing rules for paint"]),
    ],
)
async def test_the_documents_that_a_model_chose_are_offered_if_they_exist(
    chosen: tuple[str, ...], offered: list[str]
) -> None:
    shelf: Any = _Shelf(
        "Mixing rules for paint", "Lease with Ostrom", "Contract of Halvorsen", "Waste Act"
    )

    by_triage = await offer_documents(shelf, "Is it in order?", (), "en", OUTSIDE, offers=chosen)
    by_extractor = await offer_documents(
        shelf, "Is it in order?", (), "en", OUTSIDE, Extracted(offers=chosen)
    )

    assert by_triage == by_extractor
    options: Any = by_triage["clarification_options"]
    assert [option.label for option in options][: len(offered)] == offered
