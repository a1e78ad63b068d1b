"""Inflected forms of a word are one word for a comparison."""

import pytest

from compliance.requirements.requirement import RuleUnit
from compliance.verdicts.matching import make_query
from compliance.verdicts.passages import PreparedDocument, split_passages
from compliance.verdicts.review import review_requirement
from compliance.wording.light_stems import cut_ending
from compliance.wording.thesaurus import find_features

CZECH_LAW = {
    "Skladovatel musí oznámit poškození zásilky vlastníkovi do 48 hodin.": "COMPLIANT",
    "Skladovatel nesmí předat zásilku třetí osobě bez písemného souhlasu vlastníka.": "VIOLATION",
    "Skladovatel je povinen uchovávat záznamy o teplotě po dobu nejméně dvou let.": "COMPLIANT",
    "Vlastník může kdykoli zkontrolovat prostory skladovatele.": "COMPLIANT",
    "Zaměstnanci skladovatele musí každý rok absolvovat školení o bezpečnosti.": "GAP",
}
CZECH_CONTRACT = """Každé poškození zásilek bude skladovatelem oznámeno vlastníkovi do 24 hodin.
Skladovatel může zásilky předávat třetím osobám bez písemných souhlasů vlastníka.
Záznamy o teplotách se u skladovatele uchovávají po dobu nejméně tří let.
Prostor skladovatele může vlastník zkontrolovat kdykoli. Ceny se platí měsíčně."""
GERMAN_LAW = {
    "Der Lagerhalter muss dem Eigentümer eine Beschädigung der Sendung binnen 48 Stunden melden.":
        "COMPLIANT",
    "Der Lagerhalter darf die Sendung nicht ohne Zustimmung des Eigentümers weitergeben.":
        "VIOLATION",
    "Der Lagerhalter muss Aufzeichnungen der Temperatur mindestens zwei Jahre aufbewahren.":
        "COMPLIANT",
    "Die Beschäftigten des Lagerhalters müssen an einer Schulung über Brandschutz teilnehmen.":
        "GAP",
}  # fmt: skip
GERMAN_CONTRACT = """Beschädigungen der Sendungen werden dem Eigentümer vom Lagerhalter binnen 24
Stunden gemeldet. Der Lagerhalter darf Sendungen ohne Zustimmungen des Eigentümers weitergeben. Die
Aufzeichnungen der Temperaturen werden vom Lagerhalter mindestens drei Jahre aufbewahrt. Die Preise
werden monatlich bezahlt."""
FORMS = [
    ("cs", "zásilka zásilky zásilku zásilek zásilkám zásilce"),
    ("cs", "oznámit oznámí oznámení oznámeno oznamovat"),
    ("cs", "smlouva smlouvy smlouvě smluv smlouvou"),
    ("cs", "záznam záznamy záznamů"),
    ("cs", "zaměstnanec zaměstnance zaměstnanci zaměstnanců"),
    ("cs", "zpracovat zpracování zpracovává zpracuje"),
    ("sk", "zmluva zmluvy zmlúv zmluve"),
    ("sk", "oznámiť oznámi oznámenie oznámenia"),
    ("pl", "umowa umowy umów umowie umową"),
    ("pl", "przekazać przekazuje przekazanie przekazania"),
    ("de", "melden meldet gemeldet"),
    ("de", "aufbewahren aufbewahrt"),
    ("de", "zurückgeben zurückgegeben"),
]


@pytest.mark.parametrize(("language", "forms"), FORMS)
def test_the_forms_of_a_word_have_one_stem(language: str, forms: str) -> None:
    stems = {find_features(form, language) for form in forms.split()}

    assert len(stems) == 1
    assert stems != {frozenset()}


def test_different_words_and_other_languages_are_kept_apart() -> None:
    czech = ("vlastnik", "zasilka", "smlouva", "osoba", "udaj", "teplota", "souhlas", "lhuta")

    assert len({cut_ending(word, "cs") for word in czech}) == len(czech)
    assert cut_ending("smlouvy", "en") == "smlouvy"
    assert find_features("Genehmigung", "de") == find_features("genehmigt", "de")


@pytest.mark.parametrize(
    ("language", "law", "contract"),
    [("cs", CZECH_LAW, CZECH_CONTRACT), ("de", GERMAN_LAW, GERMAN_CONTRACT)],
)
def test_a_contract_in_other_forms_than_its_law_is_judged(
    language: str, law: dict[str, str], contract: str
) -> None:
    unit = RuleUnit("contract", "1", " ".join(contract.split()), (), language)
    document = PreparedDocument(split_passages([unit]), language)

    found = {
        text: review_requirement("R", make_query(text, language), document, language=language)[0]
        for text in law
    }

    assert {text: str(verdict.status) for text, verdict in found.items()} == law
