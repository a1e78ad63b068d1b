import pytest

from knowledge.documents.decoding import clean_text, decode
from knowledge.documents.markup import html


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1252", "Store the resin at 10–20 °C. The operator’s fee is €50."),
        ("cp1250", "Dovolená je 25 dní ročně. Žádost podejte včas."),
        ("cp1251", "Отпуск составляет 28 календарных дней в году."),
        ("cp932", "有給休暇の申請は、開始日の二週間前までに提出する。"),
        ("gbk", "员工每年有十五天年假，申请须提前两周提交。"),
        ("cp1255", "המשרד נסגר בשעה שלוש"),
        ("cp437", "┌────────┬──────┐\n│ Leiter │ 8,5 m für Öl ± 1 │\n└────────┴──────┘"),
        ("cp866", "╔════════╦══════╗\n║ Лестница ║ 8,5 метра ║\n╚════════╩══════╝"),
        ("cp437", "╒════════╤══════╕\n│ Leiter │ 8,5  │\n╘════════╧══════╛"),
        ("cp850", "┌────────┬──────┐\n│ Käufe nach § 5 │ 8,5 │\n└────────┴──────┘"),
        ("cp850", "§ 5 Abs. 2"),
        ("cp850", "20 °C"),
        ("cp1252", "§ 5"),
        ("cp1252", "500 µg"),
        ("cp1252", "à la carte"),
        ("cp1251", "Цена 5"),
        ("utf-32-be", "première,second,troisième"),
        ("utf-16-le", "première,second,troisième 𐐀"),
        ("utf-16-le", "Store the resin at 10–20 °C, never above."),
    ],
)
def test_the_encoding_of_a_text_that_states_none_is_detected_and_named(
    encoding: str, text: str
) -> None:
    read, warnings = decode(text.encode(encoding))

    assert read == text
    assert len(warnings) == 1
    assert "most likely" in warnings[0]
    is_short = (
        not encoding.startswith("utf") and sum(byte > 127 for byte in text.encode(encoding)) < 10
    )
    assert ("uncertain" in warnings[0]) == is_short


@pytest.mark.parametrize(
    ("stated", "encoding", "text"),
    [
        ("iso-8859-1", "cp1252", "Groups of 10–20 people pay €50 each."),
        ("us-ascii", "cp1252", "Groups of 10–20 people pay €50 each."),
        ("iso-8859-8-i", "iso8859-8", "המשרד נסגר"),
        ("x-sjis", "cp932", "製品の温度は①です"),
        ("iso-2022-jp", "iso-2022-jp", "毎朝点検を行う"),
        ("ansi_x3.110-1983-unknown", "utf-8", "10–20"),
    ],
)
def test_a_stated_encoding_means_what_it_means_to_browsers(
    stated: str, encoding: str, text: str
) -> None:
    assert decode(text.encode(encoding), stated) == (text, ())


def test_single_bytes_of_windows_in_a_text_in_utf_8_keep_their_signs() -> None:
    data = "Öffnungszeiten für Gäste: Größe".encode() + "; 10–20 °C".encode("cp1252")

    text, warnings = decode(data)

    assert text == "Öffnungszeiten für Gäste: Größe; 10–20 °C"
    assert warnings == ("some bytes are not UTF-8, the first at 40; read as windows-1252",)


def test_characters_that_only_windows_has_at_their_numbers_are_no_control_characters() -> None:
    assert clean_text("10\x9620 \x8050 a\x07b\x8d") == "10–20 €50 ab"


def test_a_page_in_xml_states_its_encoding_in_its_first_line() -> None:
    page = '<?xml version="1.0" encoding="windows-1251"?><html><body><p>28 дней</p></body></html>'

    assert html.read(page.encode("cp1251"), "a.xhtml").content == "28 дней"
