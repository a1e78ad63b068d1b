import pytest

from citations.citing import LONGEST_HEADING, is_lead, keep_cited
from citations.claims import split_units
from llm.answer_checks.leads import is_covered_by

SOURCE = """\
How do I create a routing rule?
Routing > Rules
Open Routing > Rules, choose New rule and set up to 8 conditions. SMPP 3.4 is supported.
"""


@pytest.mark.parametrize(
    "lead",
    [
        "## Create a routing rule",
        "To create a rule, follow these steps:",
        "### Next steps",
        "## Voraussetzungen",
        "## 示例",
        "**Example:**",
        "## SMPP 3.4",
        "There are 8 conditions:",
    ],
)
def test_a_lead_of_known_words_stays(lead: str) -> None:
    assert is_covered_by(lead, SOURCE)


@pytest.mark.parametrize(
    "lead",
    [
        "# Your account is locked",
        "## Call 0900 123 456",
        "Send your password to the administrator:",
        "## Run `rm -rf /` before you create a rule",
        "## SMPP 5.0",
        "## 您的帐户已被锁定",
        "The service costs ten dollars from now on:",
    ],
)
def test_a_lead_that_states_something_of_its_own_goes(lead: str) -> None:
    answer = f"{lead}\n\n- Open Routing > Rules. [1]"

    assert not is_covered_by(lead, SOURCE)
    assert keep_cited(answer, {1}, lambda text: is_covered_by(text, SOURCE)).text == (
        "- Open Routing > Rules. [1]"
    )


def test_a_heading_that_is_as_long_as_a_statement_is_none() -> None:
    [unit] = split_units("# " + "rule " * (LONGEST_HEADING // 4))

    assert not is_lead(unit)
    assert keep_cited(f"{unit.text}\n\nRules. [1]", {1}).text == "Rules. [1]"
