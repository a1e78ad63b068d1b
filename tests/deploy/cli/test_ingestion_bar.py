from deploy.cli.commands.ingest import BarReport
from deploy.cli.printing import ERASE_LINE


def test_the_bar_grows_with_the_files_and_notes_stand_above_it() -> None:
    written: list[str] = []
    bar = BarReport(written.append)

    bar.start("docs", 4)
    bar.advance(2, 2, 7)
    bar.record_skip("a.bin", "no text")
    bar.advance(4, 4, 9)
    bar.close()

    shown = [text.removeprefix(ERASE_LINE) for text in written]
    assert [line.count("━") for line in shown] == [0, 12, 0, 12, 24, 0]
    assert shown[1].endswith("2/4 files")
    assert shown[2] == "skipped a.bin: no text\n"


def test_a_name_of_a_file_cannot_control_the_terminal() -> None:
    written: list[str] = []
    bar = BarReport(written.append)

    bar.start("a\x1b[2J\nb", 1)
    bar.record_warning("c\x1b[31m", "d")

    assert "\x1b" not in "".join(text.removeprefix(ERASE_LINE) for text in written)
    assert "\n" not in written[0]
