import pytest

from envelope.question import LONGEST_GROUP, MOST_GROUPS, has_all, may_read, parse_groups


def test_names_of_groups_differ_by_case_and_are_in_order() -> None:
    assert parse_groups(["sales", " HR ", "hr", "sales"]) == ("HR", "hr", "sales")


@pytest.mark.parametrize(
    "name", ["", "  ", "a,b", "a\nb", "x" * (LONGEST_GROUP + 1), 7, None, ["a"]]
)
def test_what_is_no_name_of_a_group_is_refused(name: object) -> None:
    with pytest.raises(ValueError, match="expected the name of a group"):
        parse_groups(["hr", name])


def test_a_person_has_a_bounded_number_of_groups() -> None:
    with pytest.raises(ValueError, match=f"at most {MOST_GROUPS}"):
        parse_groups([f"g{number}" for number in range(MOST_GROUPS + 1)])


def test_a_document_without_groups_is_for_everybody_and_any_other_needs_one_of_its_groups() -> None:
    assert may_read((), ())
    assert may_read(("hr", "board"), ("board",))
    assert not may_read(("hr",), ())
    assert not may_read(("hr",), ("HR", "hrx"))


def test_what_was_answered_to_several_groups_needs_all_of_them() -> None:
    assert has_all((), ())
    assert has_all(("hr",), ("board", "hr"))
    assert not has_all(("board", "hr"), ("hr",))
