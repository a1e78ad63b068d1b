"""What the desk makes of the language of a text."""

import subprocess
import sys
from collections.abc import Mapping, Sequence

import pytest

from knowledge.language.detector import ScriptAndNgramDetector
from knowledge.language.langdetect import FencedLangdetect, SecondOpinion
from knowledge.language.port import PRIOR_SHARE, Detection, Detector
from knowledge.language.protecting import natural
from knowledge.language.scripts import CANDIDATES

DETECTOR = ScriptAndNgramDetector()
FENCED = FencedLangdetect(candidates=CANDIDATES)

QUESTIONS = {
    "en": "How do I change the rate plan of a user?",
    "de": "Wie ändere ich den Tarif eines Benutzers?",
    "es": "¿Cómo cambio el plan de tarifas de un usuario?",
    "fr": "Comment changer le forfait d'un utilisateur ?",
    "it": "Come posso cambiare il piano tariffario di un utente?",
    "pt": "Como altero o plano de tarifas de um usuário?",
    "ru": "Как изменить тарифный план пользователя?",
    "uk": "Як змінити тарифний план користувача?",
    "zh": "如何更改用户的资费方案？",
    "ja": "ユーザーの料金プランを変更するには？",
    "ar": "كيف أغير خطة أسعار المستخدم؟",
    "hi": "मैं उपयोगकर्ता का रेट प्लान कैसे बदलूँ?",
    "ko": "사용자의 요금제를 어떻게 변경하나요?",
    "th": "ฉันจะเปลี่ยนแผนราคาของผู้ใช้ได้อย่างไร",
    "el": "Πώς αλλάζω το πρόγραμμα χρεώσεων ενός χρήστη;",
    "fa": "چگونه طرح تعرفه یک کاربر را تغییر دهم؟",
}


@pytest.mark.parametrize("detector", [DETECTOR, FENCED], ids=["own", "langdetect"])
@pytest.mark.parametrize("language", QUESTIONS)
def test_a_whole_question_is_classified_without_context(detector: Detector, language: str) -> None:
    detected = detector.detect(QUESTIONS[language])

    assert detected.language == language
    assert detected.confidence >= 0.8


@pytest.mark.parametrize("detector", [DETECTOR, FENCED], ids=["own", "langdetect"])
def test_the_same_text_is_always_classified_alike(detector: Detector) -> None:
    texts = ["status", "limit per hour", "rate plan", "Import", "ok"]

    assert [[detector.detect(text) for text in texts] for _ in range(3)] == [
        [detector.detect(text) for text in texts]
    ] * 3


@pytest.mark.parametrize("detector", [DETECTOR, FENCED], ids=["own", "langdetect"])
@pytest.mark.parametrize(
    ("text", "spoken"),
    [("Status", "de"), ("Which one?", "en"), ("Webhook", "es"), ("Plan B", "fr"), ("да", "uk")],
)
def test_a_short_text_leans_on_what_is_expected(detector: Detector, text: str, spoken: str) -> None:
    assert detector.detect(text, prior={spoken: 1.0}).language == spoken


@pytest.mark.parametrize("language", [name for name in QUESTIONS if name != "en"])
def test_a_change_of_language_in_a_conversation_is_seen(language: str) -> None:
    assert DETECTOR.detect(QUESTIONS[language], prior={"en": 3.0}).language == language


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "🙂",
        "/etc/hosts",
        "https://example.org/a?b=c",
        "12:30",
        "`x = 1`",
        "\ud800",
        "...",
    ],
)
def test_a_text_without_words_has_no_language(text: str) -> None:
    assert DETECTOR.detect(text, prior={"fr": 1.0, "de": 0.5}) == ("fr", 0.0)
    assert DETECTOR.detect(text) == ("en", 0.0)


def test_code_addresses_and_identifiers_do_not_count() -> None:
    text = (
        "Was bedeutet `the user was not found` in send_message() unter "
        "https://example.org/this/is/the/page und in /var/log/the_messages.log"
    )

    assert natural(text) == "Was bedeutet in unter und in"
    assert DETECTOR.detect(text).language == "de"


def test_english_terms_in_another_script_do_not_count() -> None:
    text = "JSON API में webhook retry policy configure कैसे करें"

    assert DETECTOR.detect(text).language == "hi"


def test_chinese_characters_in_japanese_forms_are_japanese() -> None:
    assert DETECTOR.detect("送信設定変更").language == "ja"
    assert DETECTOR.detect("发送设置更改").language == "zh"


def test_only_candidates_are_returned() -> None:
    detected = DETECTOR.detect("Como altero o plano de tarifas?", candidates=["es", "en"])

    assert detected.language == "es"


def test_a_megabyte_is_classified_like_its_beginning() -> None:
    text = "Wie ändere ich den Tarif eines Benutzers? " * 25_000

    assert DETECTOR.detect(text).language == "de"


def test_the_model_is_not_loaded_before_a_text_needs_it() -> None:
    program = (
        "import sys\n"
        "from knowledge.language.detector import ScriptAndNgramDetector\n"
        "found = ScriptAndNgramDetector().detect('안녕하세요')\n"
        "sys.exit(0 if found.language == 'ko' and 'numpy' not in sys.modules else 1)"
    )

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


class Fixed:
    """A detector that always finds the same."""

    def __init__(self, language: str, confidence: float) -> None:
        self._found = Detection(language, confidence)

    def detect(
        self,
        text: str,
        *,
        prior: Mapping[str, float] | None = None,
        prior_share: float = PRIOR_SHARE,
        candidates: Sequence[str] | None = None,
    ) -> Detection:
        return self._found


@pytest.mark.parametrize(
    ("first", "second", "prior", "language"),
    [
        (("da", 0.4), ("no", 0.9), None, "no"),
        (("da", 0.4), ("no", 0.9), {"sv": 1.0}, "no"),
        (("da", 0.4), ("no", 0.9), {"da": 1.0}, "da"),
        (("da", 0.9), ("no", 0.9), None, "da"),
        (("da", 0.4), ("no", 0.0), None, "da"),
        (("en", 0.0), ("no", 0.9), None, "en"),
    ],
)
def test_a_second_detector_decides_where_the_first_is_unsure(
    first: tuple[str, float],
    second: tuple[str, float],
    prior: Mapping[str, float] | None,
    language: str,
) -> None:
    detector = SecondOpinion(Fixed(*first), Fixed(*second))

    assert detector.detect("hus og have og by", prior=prior).language == language


def test_a_second_detector_is_not_asked_about_a_few_words() -> None:
    detector = SecondOpinion(Fixed("en", 0.4), Fixed("tr", 1.0))

    assert detector.detect("API key").language == "en"


def test_both_detectors_together_give_the_same_result_every_time() -> None:
    together = SecondOpinion(DETECTOR, FENCED)
    texts = ("hus", "casa", "perro gato", "no")

    assert len({tuple(together.detect(text) for text in texts) for _ in range(5)}) == 1
