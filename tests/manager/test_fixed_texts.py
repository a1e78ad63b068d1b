"""The fixed texts for messages that ask nothing of the documents."""

import pytest

from config.texts import load_texts
from envelope.conversation import ClarificationReason, ConversationAct
from manager.replies import COURTESIES, act_text

TEXTS = load_texts()
DOMAIN = "Bluebird SMS"


def find_text(act: ConversationAct, language: str = "en", reason: str | None = None) -> str:
    last = {"speaker": "assistant", "text": "Sorry.", "reason": reason}
    payload = {"conversation_act": act.value, "history": [last] if reason else []}
    return act_text(payload, TEXTS, language, DOMAIN)  # type: ignore[arg-type] # plain JSON


@pytest.mark.parametrize("language", TEXTS.languages)
@pytest.mark.parametrize("act", sorted(COURTESIES))
def test_every_act_has_a_text_in_every_language(act: ConversationAct, language: str) -> None:
    assert find_text(act, language)
    assert (language == "en") == (find_text(act, language) == find_text(act))


def test_what_the_assistant_can_do_names_its_domain() -> None:
    assert DOMAIN in find_text(ConversationAct.CAPABILITIES)
    assert DOMAIN in find_text(ConversationAct.GREETING)


@pytest.mark.parametrize(
    ("reason", "key"),
    [
        (ClarificationReason.OUT_OF_SCOPE, "why_scope"),
        (ClarificationReason.INSUFFICIENT_CONTEXT, "why_missing"),
        (ClarificationReason.AMBIGUOUS_QUERY, "why_asked"),
        (ClarificationReason.INTERNAL_FAULT, "why_fault"),
    ],
)
def test_why_is_answered_by_the_reason_of_the_last_turn(
    reason: ClarificationReason, key: str
) -> None:
    expected = TEXTS.text(key, "en", topic=DOMAIN)

    assert find_text(ConversationAct.WHY, reason=reason.value) == expected
