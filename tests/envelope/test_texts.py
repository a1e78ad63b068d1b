import pytest

from envelope.texts import choose_texts_language, join_sentences, read_tag


@pytest.mark.parametrize(
    ("tag", "language"),
    [
        ("de", "de"),
        ("de-AT", "de"),
        ("pt_BR", "pt"),
        ("zh-CN", "zh"),
        ("zh-Hans-HK", "zh"),
        ("zh-TW", "zh-Hant"),
        ("ZH-hant-MO", "zh-Hant"),
        ("*", ""),
        ("", ""),
        (";;=\\", ""),
    ],
)
def test_a_tag_names_the_language_of_texts(tag: str, language: str) -> None:
    assert read_tag(tag) == language


def test_a_script_holds_for_its_own_language_alone() -> None:
    assert choose_texts_language("zh", "zh-Hant") == "zh-Hant"
    assert choose_texts_language("de", "zh-Hant") == "de"


def test_sentences_are_joined_as_their_script_joins_them() -> None:
    assert (
        join_sentences("此處未設定任何模型。", "", "最接近的段落：")
        == "此處未設定任何模型。最接近的段落："
    )
    assert join_sentences("No model is in use.", "The closest ones:") == (
        "No model is in use. The closest ones:"
    )
