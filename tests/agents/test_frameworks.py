"""The legal frameworks that a question names."""

import pytest

from agents.frameworks import identify_frameworks
from agents.named_documents import TitledDocument, find_scope


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
