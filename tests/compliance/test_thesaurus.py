"""Concepts: words of a text that name no act are not mistaken for one."""

import tomllib
from pathlib import Path

import pytest

from compliance.wording import thesaurus
from compliance.wording.thesaurus import find_features, list_concepts
from knowledge.index.terms import terms

TABLES: dict[str, dict[str, list[str]]] = tomllib.loads(
    Path(thesaurus.__file__).with_name("thesaurus.toml").read_text("utf-8")
)


@pytest.mark.parametrize("language", sorted(TABLES))
def test_no_phrase_is_reduced_to_one_word_by_its_function_words(language: str) -> None:
    phrases = [one for own in TABLES[language].values() for one in own]

    reduced = [one for one in phrases if len(terms(one, language)) < min(len(one.split()), 2)]

    assert reduced == []


def test_what_a_party_is_called_is_no_act_of_it() -> None:
    named = "The Receiving Party shall return drawings to the Disclosing Party."

    assert list_concepts(named) == list_concepts("One party shall return drawings to the other.")


def test_information_is_data_and_nobody_is_informed_by_it() -> None:
    assert find_features("personal information") == find_features("personal data")
    assert "@notify" not in list_concepts("The information is kept in an office.")
    assert "@notify" in list_concepts("The keeper informs the office.")


def test_a_proviso_discloses_nothing() -> None:
    assert "@disclose" not in list_concepts("Drawings may be copied, provided, however, that ...")
    assert "@disclose" in list_concepts("The supplier provides drawings.")
