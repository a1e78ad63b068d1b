import pytest

from knowledge.language.certainty import is_certainly_english
from knowledge.language.detector import ScriptAndNgramDetector

DETECTOR = ScriptAndNgramDetector()


@pytest.mark.parametrize(
    "text",
    ["How do I reset my password?", "what is the limit of an export", "Can I delete a rule?"],
)
def test_a_plain_question_is_english_without_doubt(text: str) -> None:
    assert is_certainly_english(text, DETECTOR)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "API keys",
        "Flask REST Frameworks",
        "Wie lösche ich eine Regel?",
        "Was ist das Limit in der API?",
        "Come si fa a creare una regola?",
        "Hoe maak ik een regel in de API?",
        "Как удалить правило?",
        "How do I löschen the rule?",
        "the rule " * 40,
    ],
)
def test_what_is_short_mixed_foreign_or_long_is_not_certain(text: str) -> None:
    assert not is_certainly_english(text, DETECTOR)
