"""The example of a review: an invented law, and two invented contracts."""

from pathlib import Path

import pytest

from agents.review.requirements import RuleUnit

EXAMPLE = Path(__file__).parents[3] / "examples" / "data_protection_review"


def read_units(name: str) -> list[RuleUnit]:
    """Return the sections of a document of the example as units."""
    text = (EXAMPLE / f"{name}.md").read_text("utf-8")
    units = []
    for number, part in enumerate(text.split("\n## ")):
        heading, _, body = part.partition("\n")
        if number:
            units.append(RuleUnit(name, f"{name}#{number}", body.strip(), (heading,)))
        else:
            units.append(RuleUnit(name, f"{name}#0", body.strip(), ()))
    return units


@pytest.fixture
def law() -> list[RuleUnit]:
    return read_units("law")


@pytest.fixture
def faulty() -> list[RuleUnit]:
    return read_units("faulty_contract")
