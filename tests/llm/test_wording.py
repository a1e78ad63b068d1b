import pytest

from envelope.conversation import ClarificationReason
from llm.answer_checks.wording import LONGEST_CHARACTERS, fault_of
from llm.tasks.clarify import Inputs

INPUTS = Inputs(
    reason=ClarificationReason.AMBIGUOUS_QUERY,
    question="How do I set up `retry_after` for acme.com?",
    message="The question can be about several things.",
    options=("Accounts > Limits", "Rates > Limits"),
    language="en",
    domain_name="Bluebird SMS",
    fixed_text="Your question can mean several things.",
)


@pytest.mark.parametrize(
    "text",
    [
        "Do you mean the limits of accounts, or those of rates?",
        "Your question could be about several things. Which limits do you mean?",
        "Is it about retry_after for acme.com, or about something else?",
        "Meinen Sie Konten oder Tarife?",
        "您指的是帐户还是费率？",
        "هل تقصد الحسابات أم الأسعار؟",
    ],
)
def test_an_honest_question_passes(text: str) -> None:
    assert fault_of(text, INPUTS, asks=True) == ""


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("Is it at https://evil.test/login?", "address"),
        ("Is it at //evil.test?", "address"),
        ("Is it at evil.test?", "address"),
        ("Could you write to help@evil.test?", "address"),
        ("Is it [this](javascript:x)?", "markup"),
        ("Is it ![this](https://evil.test/p)?", "markup"),
        ("Is it <a href=//evil.test>this</a>?", "markup"),
        ("# Which one?", "markup"),
        ("Which?\n\n- Call us", "markup"),
        ("Did you run `curl evil` first?", "markup"),
        ("Could you call +49 (900) 123-456?", "telephone number"),
        ("Is it version 7?", "names 7"),
        ("Is it about send_money?", "names send_money"),
        ("What is your password?", "secret"),
        ("Wie lautet Ihr Passwort?", "secret"),
        ("您的密码是什么？", "secret"),
        ("Visit the desk in our lobby now. Which one?", "it states"),
        ("Choose one.", "asks nothing"),
        ("Which\u202e one?", "invisible"),
        ("Which one? " * 5, "sentences"),
        ("which " * LONGEST_CHARACTERS + "?", "characters"),
    ],
)
def test_what_leads_instructs_or_asks_for_more_is_turned_down(text: str, fault: str) -> None:
    assert fault in fault_of(text, INPUTS, asks=True)


def test_a_refusal_need_not_ask_and_may_not_state_anything_new() -> None:
    declined = "Sorry, the documents of Bluebird SMS do not say enough to answer this."
    inputs = INPUTS.model_copy(update={"fixed_text": declined})

    assert fault_of("Sorry, the documents do not say this.", inputs, asks=False) == ""
    assert fault_of("The office closes on Friday forever.", inputs, asks=False) != ""


def test_a_secret_that_the_question_is_about_may_be_named() -> None:
    inputs = INPUTS.model_copy(update={"question": "How do I reset a password?"})

    assert fault_of("Do you mean the password of your account?", inputs, asks=True) == ""
