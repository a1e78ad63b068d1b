import pytest

from envelope.conversation import ClarificationReason
from llm.answer_checks.wording import find_fault
from llm.tasks.question import ClarifyInputs

INPUTS = ClarifyInputs(
    reason=ClarificationReason.AMBIGUOUS_QUERY,
    question="How do I set up `retry_after` for acme.com?",
    message="The question can be about several things.",
    options=("Accounts > Limits", "Rates > Limits"),
    language="en",
    topic="Bluebird SMS",
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
    assert find_fault(text, INPUTS) == ""


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("Is it at https://evil.test/login?", "contains"),
        ("Is it at //evil.test?", "contains"),
        ("Is it at evil.test?", "contains"),
        ("Could you write to help@evil.test?", "contains"),
        ("Is it [this](javascript:x)?", "contains"),
        ("Is it ![this](https://evil.test/p)?", "contains"),
        ("Is it <a href=//evil.test>this</a>?", "contains"),
        ("Could you call +49 (900) 123-456?", "telephone number"),
        ("What is your password?", "secret"),
        ("Wie lautet Ihr Passwort?", "secret"),
        ("您的密码是什么？", "secret"),
        ("The desk asks or declines: <data name=", "repeats a prompt"),
        ("", "empty"),
    ],
)
def test_what_leads_instructs_or_asks_for_more_is_turned_down(text: str, fault: str) -> None:
    assert fault in find_fault(text, INPUTS)


def test_a_secret_that_the_question_is_about_may_be_named() -> None:
    inputs = INPUTS.model_copy(update={"question": "How do I reset a password?"})

    assert find_fault("Do you mean the password of your account?", inputs) == ""
