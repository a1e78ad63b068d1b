import pytest

from llm.offline.judge import answer
from llm.offline.support import foreign_facts, support
from llm.tasks.judge import Claim, Inputs, Output

PASSAGE = "A rule may have up to 8 conditions. Set `max_retries` to 3; see route-7 for Germany."


def judge(text: str, *, evidence: str = PASSAGE, foreign: bool = False) -> Output:
    claim = Claim(number=1, text=text, evidence=evidence)
    return answer(
        Inputs(
            question="How many conditions may a rule have?",
            language="en",
            answer=text,
            claims=(claim,),
            foreign=foreign,
        )
    )


def test_a_claim_that_stands_in_its_source_is_supported() -> None:
    output = judge("A rule has up to 8 conditions. [1]")

    assert output.verdicts[0].supported
    assert output.decision == "approve"


def test_a_claim_of_other_words_is_not_supported() -> None:
    output = judge("Invoices are sent by post every quarter. [1]")

    assert not output.verdicts[0].supported
    assert output.decision == "regenerate"


@pytest.mark.parametrize(
    "text",
    [
        "A rule may have up to 9 conditions. [1]",
        "Set `max_attempts` to 3. [1]",
        "A rule may have up to 8 conditions; see route-9 for Germany. [1]",
    ],
)
def test_one_wrong_number_or_name_fails_a_claim(text: str) -> None:
    assert not judge(text).verdicts[0].supported


def test_across_languages_numbers_are_compared_and_words_are_not() -> None:
    assert judge("Eine Regel hat höchstens 8 Bedingungen. [1]", foreign=True).verdicts[0].supported
    assert not judge("Eine Regel hat höchstens 9 Bedingungen.", foreign=True).verdicts[0].supported


def test_a_number_may_be_spelled_out_in_the_source_or_grouped_otherwise() -> None:
    assert foreign_facts("up to 3 of 10,000", "up to three of 10000") == ()


@pytest.mark.parametrize(
    ("passage", "near", "far"),
    [
        ("Правило действует через минуту.", "Правила действуют через минуту.", "Счёт приходит."),
        ("规则最多有八个条件。", "规则有八个条件。", "发票每月发送。"),
        ("ルールには条件があります。", "ルールに条件がある。", "請求書は毎月届きます。"),
        ("يمكن أن تحتوي القاعدة على شروط.", "القاعدة على شروط", "تصل الفاتورة شهريا"),
        ("กฎหนึ่งมีเงื่อนไขได้แปดข้อ", "กฎมีเงื่อนไขแปดข้อ", "ใบแจ้งหนี้ถูกส่งทุกเดือน"),
    ],
)
def test_support_is_measured_in_every_script(passage: str, near: str, far: str) -> None:
    assert support(passage, passage) == 1.0
    assert support(near, passage) > 0.6
    assert support(far, passage) < 0.4


def test_an_answer_without_claims_is_never_approved() -> None:
    output = answer(Inputs(question="Why?", language="en", answer="", claims=()))

    assert output.decision == "regenerate"
