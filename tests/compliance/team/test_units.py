"""Laws are divided into parts that have every unit exactly once."""

import pytest

from compliance.requirements.requirement import RuleUnit
from compliance.team.units import (
    LONGEST_UNIT,
    MOST_PARTS,
    DocumentUnits,
    cut_text_at_sentences,
    divide_sizes,
    plan_parts,
)


def make_units(*sizes: int) -> DocumentUnits:
    units = tuple(
        RuleUnit("law", f"law#u{number}", "x" * size) for number, size in enumerate(sizes, start=1)
    )
    return DocumentUnits("law", "Law", "en", "digest", units, {})


@pytest.mark.parametrize(
    "sizes", [(10,), (10,) * 300, (5_000,) * 40, (1, 90_000, 1), (700,) * 5_000]
)
def test_every_unit_is_in_exactly_one_part(sizes: tuple[int, ...]) -> None:
    parts = plan_parts([make_units(*sizes)])

    assert [at for one in parts for at in range(one.first, one.last + 1)] == list(range(len(sizes)))
    assert len(parts) <= MOST_PARTS
    assert len({one.key for one in parts}) == len(parts)


def test_a_group_is_bounded_by_size_and_number() -> None:
    assert list(divide_sizes([4, 4, 4, 20, 1, 1, 1], 10, 2)) == [
        (0, 1),
        (2, 2),
        (3, 3),
        (4, 5),
        (6, 6),
    ]
    assert list(divide_sizes([], 10, 2)) == []


def test_a_long_text_is_cut_between_sentences_and_loses_nothing() -> None:
    text = " ".join(f"The operator shall inspect berth {number}." for number in range(600))

    pieces = list(cut_text_at_sentences(text))

    assert max(map(len, pieces)) <= LONGEST_UNIT
    assert " ".join(pieces) == text
