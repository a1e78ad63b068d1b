"""From a document to the law: the sections that govern a case."""

from compliance.verdicts.conduct import judge_conduct
from compliance.verdicts.sections import SectionRanking, SectionUnit, find_naming_sections

UNITS = [
    SectionUnit("1a", "1", "Records are kept in a register of the Office."),
    SectionUnit("2a", "2", "A hospital may disclose records to the police under a warrant."),
    SectionUnit("2b", "2", "A court may order a hospital to disclose records of a patient."),
    SectionUnit("3a", "3", "Fees are set every year."),
]


def test_the_section_that_governs_a_case_is_first() -> None:
    ranking = SectionRanking(UNITS)

    found = ranking.rank_sections("The police came with a warrant for the records of a patient.")

    assert found[0] == "2"
    assert set(found) == {"1", "2", "3"}


def test_of_two_sections_alike_the_one_that_others_name_is_first() -> None:
    units = [
        SectionUnit("a", "Article 5", "A depot may deliver parcels to a neighbour."),
        SectionUnit("b", "Article 6", "A depot may deliver parcels to a neighbour."),
        SectionUnit("c", "Article 7", "Article 6 applies to letters, as Article 60 does."),
        SectionUnit("d", "Article 8", "Fees for what article 6 permits are set every year."),
    ]

    found = SectionRanking(units).rank_sections("A parcel was delivered to a neighbour.")

    assert found[0] == "Article 6"
    assert find_naming_sections(units)["Article 6"] == {"Article 7", "Article 8"}


def test_a_number_in_a_text_is_not_the_name_of_a_section() -> None:
    units = [SectionUnit("a", "3", "Records are kept."), SectionUnit("b", "4", "Wait 3 days.")]

    assert find_naming_sections(units) == {"3": set(), "4": set()}


def test_an_act_without_consent_is_judged_apart_from_one_under_a_warrant() -> None:
    without = "The clinic gave the file away without her consent. She did not consent to it."
    under = "The police had a warrant; law enforcement is required by law to hold the file."

    assert judge_conduct(without).label == "Forbid"
    assert judge_conduct(under).label == "Permit"
