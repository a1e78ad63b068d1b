import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.question.translation import Reads, TranslationAgent, Writes
from envelope.outcome import Wrote
from knowledge.language.protecting import PlaceholderLost, protect
from llm.errors import ModelUnavailable
from llm.port import Model
from llm.tasks.question import TranslateInputs, TranslateOutput
from tests.support.scripted_model import ScriptedModel

TECHNICAL = (
    "Warum gibt `send --now` in /etc/sms/gate.conf bei create_user() über "
    "https://example.org/v1/users?id=7 mit RatePlanId, $API_KEY und {message_id} den Fehler E4021?"
)


async def translate(
    model: Model | None, text: str, language: str, names: tuple[str, ...] = ()
) -> Writes:
    outcome = await TranslationAgent(model=model, product_names=names).work(
        Reads(text=text, language=language)
    )
    assert isinstance(outcome, Wrote)
    return outcome.writes


@pytest.mark.parametrize(
    ("text", "language", "confidence"),
    [(TECHNICAL, "de", 0.0), ("How do I add a user?", "en", 1.0)],
)
async def test_without_a_model_a_text_stays_as_it_came_and_only_english_is_certain(
    text: str, language: str, confidence: float
) -> None:
    translated = await translate(None, text, language)

    assert translated == Writes(
        text_eng=text, translation_confidence=confidence, decided_by="rules"
    )


async def test_protected_text_never_reaches_the_model_and_returns_unchanged() -> None:
    protected = protect(TECHNICAL, ["Übersicht"])
    places = " ".join(f"⟦{n}⟧" for n in range(len(protected.parts), 0, -1))
    model = ScriptedModel([TranslateOutput(text_eng=f"Why {places}?", confidence=0.9)])

    translated = await translate(model, TECHNICAL, "de")

    sent = model.calls[0].inputs
    assert isinstance(sent, TranslateInputs)
    for part in (
        "`send --now`",
        "/etc/sms/gate.conf",
        "create_user()",
        "https://example.org/v1/users?id=7",
        "RatePlanId",
        "$API_KEY",
        "{message_id}",
        "E4021",
    ):
        assert part not in sent.text
        assert part in translated.text_eng
    assert translated.translation_confidence == 0.9


async def test_product_names_are_protected_as_they_were_typed() -> None:
    model = ScriptedModel([TranslateOutput(text_eng="What does ⟦1⟧ cost?", confidence=1)])

    translated = await translate(model, "Was kostet blaue Post?", "de", ("Blaue Post",))

    assert translated.text_eng == "What does blaue Post cost?"


@pytest.mark.parametrize("altered", ["[1]", "⟦ 1 ⟧", "【1】", "[[1]]"])
async def test_a_place_whose_brackets_were_altered_is_repaired(altered: str) -> None:
    model = ScriptedModel([TranslateOutput(text_eng=f"What does {altered} do?", confidence=1)])

    translated = await translate(model, "Was macht `reset`?", "de")

    assert translated.text_eng == "What does `reset` do?"


@pytest.mark.parametrize("text_eng", ["What does reset do?", "What do ⟦1⟧ and ⟦2⟧ do?", ""])
async def test_a_lost_or_invented_place_leaves_the_text_as_it_came(text_eng: str) -> None:
    model = ScriptedModel([TranslateOutput(text_eng=text_eng, confidence=1)])

    translated = await translate(model, "Was macht `reset`?", "de")

    assert translated.text_eng == "Was macht `reset`?"
    assert translated.translation_confidence == 0
    assert translated.translation_error
    assert (translated.corrections_made, translated.corrections) == (False, ())


async def test_corrections_name_protected_parts_by_their_text() -> None:
    model = ScriptedModel(
        [
            TranslateOutput(
                text_eng="What does ⟦1⟧ do?", confidence=1, corrections=("waht -> what, ⟦1⟧",)
            )
        ]
    )

    translated = await translate(model, "waht does `reset` do?", "en")

    assert translated.corrections_made is True
    assert translated.corrections == ("waht -> what, `reset`",)


@given(st.text(alphabet="ab A_.()`⟦⟧1[]{}<>/:é問", max_size=60))
def test_protecting_and_restoring_gives_every_text_back(text: str) -> None:
    protected = protect(text, ["a b"])

    assert protected.restore(protected.text) == text


def test_a_missing_part_is_named() -> None:
    with pytest.raises(PlaceholderLost, match="'/etc/hosts' is missing"):
        protect("read /etc/hosts now").restore("read now")


async def test_a_text_goes_on_as_typed_when_no_model_answers() -> None:
    translated = await translate(
        ScriptedModel([ModelUnavailable("the vendor is away")]), "Wie zahle ich?", "de"
    )

    assert (translated.text_eng, translated.translation_confidence) == ("Wie zahle ich?", 0.0)
    assert translated.model_error == "ModelUnavailable: the vendor is away"
    assert translated.model_failure == "unavailable"
