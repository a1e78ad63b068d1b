import pytest

from knowledge.documents.office.number_format import find_format, format_number, format_text


# What numfmt 4.0.1 writes for these formats.
@pytest.mark.parametrize(
    ("code", "value", "shown"),
    [
        ('0.0,,"M €"', 2500000, "2.5M €"),
        ('#,##0,"k"', 48200, "48k"),
        ("# ?/?", 0.5, "1/2"),
        ("# ?/?", 1.25, "1 1/4"),
        ("?/?", 2.5, "5/2"),
        ("# ?/8", 1.3, "1 2/8"),
        ("000-00-0000", 123456789, "123-45-6789"),
        ("(000) 000-0000", 5551234567, "(555) 123-4567"),
        ('[>=1000000]0.0,,"M";[>=1000]0.0,"k";0', 2300000, "2.3M"),
        ('[>=1000000]0.0,,"M";[>=1000]0.0,"k";0', 1500, "1.5k"),
        ('[>=1000000]0.0,,"M";[>=1000]0.0,"k";0', 12, "12"),
        ('"up "0%;"down "0%', -0.05, "down 5%"),
        ("[h]:mm", 1.25, "30:00"),
        ("[h]:mm;-[h]:mm", -0.0625, "-1:30"),
        ("[h]:mm:ss", 2.5, "60:00:00"),
        ("[mm]:ss", 0.05, "72:00"),
        ("hh:mm AM/PM", 0.75, "06:00 PM"),
        ("d. mmmm yyyy", 45000, "15. March 2023"),
        ("[$-407]d. mmmm yyyy", 45000, "15. März 2023"),
        ("yyyy-mm-dd hh:mm:ss.000", 45000.123456, "2023-03-15 02:57:46.598"),
        ("0.00E+00", 123456, "1.23E+05"),
        ("##0.0E+0", 123456, "123.5E+3"),
        ("00000", 42, "00042"),
        ("0.0#", 1.5, "1.5"),
        ("0.0#", 1.25, "1.25"),
        ("#.##", 0.5, ".5"),
        ("General", 1234.5, "1234.5"),
        ('General "x"', 3, "3 x"),
        ("@", 5, "5"),
        ('0;(0);"zero";@', 0, "zero"),
        ('0;(0);"zero";@', -5, "(5)"),
        ("#,##0.00_);[Red](#,##0.00)", -1234.5, "(1,234.50)"),
        ('"$"* #,##0.00', 12, "$12.00"),
        ("_-* #,##0.00 €_-;-* #,##0.00 €_-", -3.5, "-3.50 €"),
        ("0%", 0.125, "13%"),
        ("0.0%", 0.125, "12.5%"),
        ("mm:ss.0", 0.0012345, "01:46.7"),
        ("[<=9999999]###-####;(###) ###-####", 5551234567, "(555) 123-4567"),
        ('0 "units"', -0.4, "0 units"),
        ("#", 0, ""),
        ("0.00;;;", -5, ""),
        ("mmm-yy", 45000, "Mar-23"),
        ("mmmmm", 45000, "M"),
        ("m/d/yy h:mm", 45000.5, "3/15/23 12:00"),
        ("[$€-2] #,##0.00", 12.5, "€ 12.50"),
        ("[$$-409]#,##0", 1200, "$1,200"),
        ('yyyy"年"m"月"d"日"', 45000, "2023年3月15日"),
        ("[$-F800]dddd, mmmm dd, yyyy", 45000, "Wednesday, March 15, 2023"),
        ("0\\.0", 15, "1.5"),
        ("00\\:00", 1230, "12:30"),
        ('0.00" °C"', -12.345, "-12.35 °C"),
        ('[=1]"yes";[=0]"no";0', 1, "yes"),
        ('[=1]"yes";[=0]"no";0', 0, "no"),
        ('[=1]"yes";[=0]"no";0', 7, "7"),
        ("s.00", 1e-05, "0.86"),
        ("0.000,", 12345, "12.345"),
        ("#,##0.0,,", 1234567, "1.2"),
        ('h"h" mm"m"', 0.3, "7h 12m"),
        ("-0;+0", 5, "-5"),
        ("+0;-0;0", -5, "-5"),
        ("0/0", 0.3333, "1/3"),
        ("# #/#", -1.75, "-1 3/4"),
        ("b1dd/mm/yyyy", 45000, "15/03/2023"),
        ("[hh]:mm", -0.5, "-12:00"),
        ("0.0", -0.04, "0.0"),
        ("e", 45000, "2023"),
        ("ddd", 1, "Sun"),
    ],
)
def test_a_number_is_written_as_its_format_shows_it(code: str, value: float, shown: str) -> None:
    assert format_number(repr(value), code) == shown


@pytest.mark.parametrize(
    ("code", "value", "shown"),
    [
        ("[$-de-DE]dddd, d. mmmm yy", "45000", "Mittwoch, 15. März 23"),
        ('[$-411]ggge"年"m"月"d"日"', "46113", "令和8年4月1日"),
        ("[$-ja-JP]gee.m", "43585", "H31.4"),
        ("[$-415]d mmmm yyyy", "45000", "15 marca 2023"),
        ("[$-407]ddd", "45000", "Mi"),
        ('[$-407]ddd", "d/\\ mmmm\\ yyyy', "45721", "Mi, 5. März 2025"),
        ('[$-41D]yyyy/mm"/"dd', "45721", "2025-03/05"),
        ("[$-40C]ddd d mmm yyyy", "45000", "mer. 15 mars 2023"),
        ("[$-415]mmmm yyyy", "45000", "marzec 2023"),
        ('m"月"d"日"(aaa)', "45000", "3月15日(水)"),
        ("[$-454]d mmmm yyyy", "45000", "2023-03-15"),
        ("[>0]0;[=0]0", "-7", "-7"),
        ('[>=0]"A"0;[<=-100]"B"0;"C"0', "-6.3", "-C6"),
        ('"A-"0;[=-5]"B-"0;"C-"0', "-5", "B-5"),
        ('"A-"0;[=-5]"B-"0;"C-"0', "0", "C-0"),
        ("0.00", "1E+30", f"1{'0' * 30}.00"),
        ("General", "0.30000000000000004", "0.3"),
        ("", "0.00001", "0.00001"),
        ("", "-1.25E-10", "-1.25E-10"),
        ("0.00", "1e400", "1e400"),
        ("0.00", "text", "text"),
        ("", "1E+300", "1E+300"),
    ],
)
def test_a_value_that_its_format_cannot_show_stays_unchanged(
    code: str, value: str, shown: str
) -> None:
    assert format_number(value, code) == shown


def test_a_day_is_counted_from_the_beginning_that_the_workbook_states() -> None:
    assert format_number("0", "yyyy-mm-dd", since_1904=True) == "1904-01-01"
    assert format_number("60", "yyyy-mm-dd") == "1900-02-29"
    assert format_number("1", "yyyy-mm-dd") == "1900-01-01"
    for day in ("1900-01-01", "1900-02-28", "1900-03-01", "1904-01-01"):
        assert format_number(f"{day}T12:00:00", "yyyy-mm-dd") == day
    assert format_number("1899-12-31T12:30:00", "[h]:mm") == "12:30"
    assert format_number("1899-12-30", "dd.mm.yyyy") == "1899-12-30"


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("0;0;0;General", "Seal"),
        ("@", "Seal"),
        ('0;0;0;"Part "@', "Part Seal"),
        ("0.00", "Seal"),
        (";;;", ""),
    ],
)
def test_a_text_is_written_as_its_format_shows_it(code: str, shown: str) -> None:
    assert format_text("Seal", code) == shown


@pytest.mark.parametrize(
    ("number", "value", "shown"),
    [
        (14, "45000", "2023-03-15"),
        (31, "45000", "2023-03-15"),
        (37, "-5", "(5)"),
        (46, "1.25", "30:00:00"),
        (12, "1.5", "1 1/2"),
        (164, "0.5", "50%"),
    ],
)
def test_formats_that_files_only_number_are_known(number: int, value: str, shown: str) -> None:
    assert format_number(value, find_format(number, {164: "0%"})) == shown
