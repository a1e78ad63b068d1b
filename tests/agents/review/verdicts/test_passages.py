"""Documents become passages, which are found by rare words and quoted word for word."""

from agents.review.passages import LONGEST, PassageSearch, cut_passages, find_words
from agents.review.requirements import RuleUnit


def test_the_clause_about_a_rule_is_found_first(
    law: list[RuleUnit], faulty: list[RuleUnit]
) -> None:
    search = PassageSearch(cut_passages(faulty))

    first = {
        unit.heading_path[0]: search.find(unit.text, "en", 3)[0].place.heading_path
        for unit in law
        if unit.heading_path
    }

    assert first["Article 3 Notice of a breach"] == ("3 Incidents",)
    assert first["Article 5 Sale"] == ("5 Use of data",)
    assert first["Article 7 Inspections"] == ("7 Inspections",)


def test_every_sentence_of_a_long_clause_is_in_one_passage() -> None:
    text = " ".join(f"The operator shall inspect berth {number}." for number in range(90))

    passages = cut_passages([RuleUnit("d", "d#u1", text)])

    assert " ".join(one.text for one in passages) == text
    assert max(len(one.text) for one in passages) <= LONGEST
    assert all(text[one.place.start : one.place.end] == one.text for one in passages)


def test_an_item_of_a_list_is_found_by_the_sentence_that_introduces_it() -> None:
    items = " ".join(f"({letter}) {letter * 400};" for letter in "abcdef")
    passages = cut_passages([RuleUnit("d", "d#u1", f"The carrier insures: {items}")])

    found = PassageSearch(passages).find("Which insurance has a carrier?", "en", 9)

    assert len(passages) > 2
    assert set(found) == set(passages)


def test_a_passage_that_shares_no_word_is_not_close() -> None:
    search = PassageSearch(cut_passages([RuleUnit("d", "d#u1", "Fees are due in June.")]))

    assert search.find("Der Betreiber prüft den Kran.", "de", 3) == ()


def test_passages_for_many_texts_have_the_best_of_each_in_their_order() -> None:
    units = [RuleUnit("d", f"d#u{at}", f"Clause on {word}.") for at, word in
             enumerate(("cranes", "ferries", "boats", "trains"))]  # fmt: skip
    search = PassageSearch(cut_passages(units))

    found = search.find_each(["trains and boats", "ferries"], "en", 2, 2)

    assert [one.id for one in found] == ["p2", "p4"] or [one.id for one in found] == ["p2", "p3"]


def test_a_quotation_is_proved_word_for_word() -> None:
    [passage] = cut_passages([RuleUnit("d", "d#u1", "The “driver”  rings\nthe desk, at once.")])

    found = passage.find_quotation('the "driver" rings the DESK')

    assert found is not None
    assert found.text == "The “driver”  rings\nthe desk"
    assert (found.place.start, found.place.end) == (0, len(found.text))
    assert passage.find_quotation("the driver calls the desk") is None
    assert passage.find_quotation(" ") is None


def test_a_letter_whose_lower_case_is_longer_moves_no_quotation() -> None:
    text = "İ İ İ the desk"

    span = find_words(text, "the desk")

    assert span is not None
    assert text[slice(*span)] == "the desk"
