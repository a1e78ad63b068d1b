"""`refdesk review`: files of this machine against files or documents of the index."""

import argparse
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from pydantic import JsonValue

from cli.commands.review import EXIT_FINDINGS, explain_no_report
from gateway.http.review_documents import MOST_FOUND
from knowledge.library.attachment_reading import MOST_CHARACTERS
from tests.knowledge.documents import layouts
from tests.support.app_harness import EXAMPLES
from tests.support.command_line import CommandResult, Run, one_line
from tests.support.long_law import write_article

pytestmark = pytest.mark.slow

EXAMPLE = EXAMPLES / "data_protection_review"
LAW, CLEAN, FAULTY = (
    str(EXAMPLE / name) for name in ("law.md", "clean_contract.md", "faulty_contract.md")
)
UNITS = 9
"""Of the law: its introduction, and nine articles. Without a model each is undecided."""


def read_marks(result: CommandResult) -> list[str]:
    """Return the mark of each unit of the law as the terminal shows it."""
    return [line[:4].strip() for line in result.out.splitlines() if re.match(r"\S+ +\d+  ", line)]


def test_without_a_model_each_unit_is_shown_with_links_to_the_places(
    run: Run, elsewhere: Path
) -> None:
    result = run("review", FAULTY, "--against", LAW, "--report", "report.md")

    assert result.status == EXIT_FINDINGS, result.err
    assert read_marks(result) == ["?"] * UNITS
    lines = (*result.out.partition("\nSources:\n")[0].splitlines(), *result.err.splitlines())
    assert [line for line in lines if len(line) > 80] == []
    report = (elsewhere / "report.md").read_text("utf-8")
    assert report.splitlines()[2].startswith("**No model is in use")
    assert report.count("\n## ") == 7
    assert f"{Path(LAW).as_uri()}#article-5-sale" in report
    assert f"{Path(FAULTY).as_uri()}#5-use-of-data" in report
    assert "VIOLATION" not in report


@pytest.mark.parametrize(
    ("name", "beginning"),
    [("r.html", b"<!doctype html>"), ("r.pdf", b"%PDF"), ("r.docx", b"PK"), ("r.json", b"{")],
)
def test_a_report_has_the_form_of_its_file(
    run: Run, elsewhere: Path, name: str, beginning: bytes
) -> None:
    chosen = ("--specialists", "extractor,classifier,compliance,report_generator")
    files = ("--report", name, "--checklist", "rules.json")
    result = run("review", CLEAN, "--against", LAW, *files, *chosen)

    assert result.status == EXIT_FINDINGS, result.err
    assert (elsewhere / name).read_bytes().startswith(beginning)
    rules = json.loads((elsewhere / "rules.json").read_text("utf-8"))
    assert rules["checklist"][1]["source_section"] == "Article 2 Security"
    assert "done: classifier" in result.err
    assert "risk verifier" not in result.err


def test_a_report_for_programs_has_the_words_and_the_places_of_both_sides(
    run: Run, elsewhere: Path
) -> None:
    run("review", FAULTY, "--against", LAW, "--report", "r.json")

    report = json.loads((elsewhere / "r.json").read_text("utf-8"))
    sale = report["requirements"][4]
    assert report["counts"]["undecided"] == UNITS
    assert [document["file"] for document in report["documents"]] == [
        "faulty_contract.md",
        "law.md",
    ]
    assert sale["law"]["words"] == "The processor shall not sell register data to third parties."
    assert sale["law"]["link"] == f"{Path(LAW).as_uri()}#article-5-sale"
    assert sale["closest"][0]["heading"] == "5 Use of data"


@pytest.mark.parametrize(
    ("language", "answer", "title"),
    [("de", "Es ist kein Modell im Einsatz", "Prüfung von"),
     ("cs", "Není použit žádný model", "kontrola podle")],
)  # fmt: skip
def test_answer_and_report_are_in_the_language_that_was_asked_for(
    run: Run, elsewhere: Path, language: str, answer: str, title: str
) -> None:
    result = run("review", FAULTY, "--against", LAW, "--report", "r.md", "--language", language)

    assert result.status == EXIT_FINDINGS, result.err
    assert answer in " ".join(result.out.split())
    assert title in (elsewhere / "r.md").read_text("utf-8").splitlines()[0]


def test_a_review_leaves_nothing_in_the_data_folder(run: Run, elsewhere: Path) -> None:
    word = "canary4711word"
    contract = elsewhere / "contract.md"
    contract.write_text(Path(FAULTY).read_text("utf-8") + f"\nThe {word} is void.\n", "utf-8")

    run("review", str(contract), "--against", LAW)

    contract.unlink()
    files = [path for path in elsewhere.rglob("*") if path.is_file()]
    assert [path for path in files if word.encode() in path.read_bytes()] == []


def test_the_law_is_found_in_the_index_by_its_title_id_and_file(run: Run, elsewhere: Path) -> None:
    laws = elsewhere / "laws"
    laws.mkdir()
    shutil.copy(LAW, laws / "privacy.md")
    assert run("ingest", str(laws)).status == 0
    (laws / "privacy.md").unlink()

    for name in ("Register Data Protection Act of Nordmark", "privacy.md"):
        result = run("review", FAULTY, "--against", name)
        assert (result.status, read_marks(result)) == (EXIT_FINDINGS, ["?"] * UNITS), result.err


def test_a_report_that_was_asked_for_in_words_is_written_by_the_command_that_is_named(
    run: Run, elsewhere: Path
) -> None:
    folder = elsewhere / "reviews"
    shutil.copytree(EXAMPLE, folder)
    assert run("ingest", str(folder)).status == 0
    question = "Write a report: does the Brandt contract comply with the Data Protection Act?"

    asked = run("ask", "--way", "specialists", question)
    result = run(*shlex.split(asked.err.splitlines()[-1])[1:])

    assert (result.status, read_marks(result)) == (EXIT_FINDINGS, ["?"] * UNITS), asked.err
    assert (elsewhere / "report.md").read_text("utf-8").count("\n## ") == 7


def write_articles(folder: Path, *, beginning: str = "") -> None:
    """Write the law of the example as people have it: a file for each article."""
    folder.mkdir(parents=True)
    articles = Path(LAW).read_text("utf-8").split("\n## ")[1:]
    for number, article in enumerate(articles, start=1):
        (folder / f"article_{number + 1}.md").write_text(f"# {beginning}{article}", "utf-8")


def list_places(report: str) -> list[str]:
    """Return the files of the rules that a report links to, each once, in the order of its rows."""
    rows = [line for line in report.splitlines() if re.match(r"\| \d", line)]
    names = [name for row in rows for name in re.findall(r"article_\d+\.md", row)]
    return list(dict.fromkeys(names))


def test_a_law_with_a_file_for_each_article_is_read_completely(run: Run, elsewhere: Path) -> None:
    write_articles(elsewhere / "act")
    (elsewhere / "act" / "picture.xyz").write_bytes(b"nothing")

    result = run("review", FAULTY, "--against", "act", "--report", "report.md", "--json")
    shown = run("review", FAULTY, "--against", "act")

    assert result.status == EXIT_FINDINGS, result.err
    assert read_marks(shown) == ["?"] * UNITS
    # The second file comes before the tenth.
    places = list_places((elsewhere / "report.md").read_text("utf-8"))
    assert places == [f"article_{number}.md" for number in range(2, 11)]
    assert result.json["verdicts"]["requirements"] == UNITS
    assert len(result.json["against"]) == 9
    assert "picture.xyz" in result.err


def test_no_file_of_a_long_law_is_missing_and_none_is_read_twice(run: Run, elsewhere: Path) -> None:
    folder = elsewhere / "act"
    folder.mkdir()
    for number in range(1, MOST_FOUND + 1):
        text = f"# Article {number}\n\n{write_article(number)}\n"
        (folder / f"article_{number}.md").write_text(text, "utf-8")
    (elsewhere / "contract.md").write_text(f"# Contract\n\n{write_article(7)}\n", "utf-8")

    result = run("review", "contract.md", "--against", "act", "--report", "report.md", "--json")

    assert result.status == EXIT_FINDINGS, result.err
    # Every file is checked; the classifier names those that it does not classify.
    assert [error["specialist"] for error in result.json["errors"]] == ["classifier"]
    assert result.json["verdicts"]["requirements"] == MOST_FOUND
    places = list_places((elsewhere / "report.md").read_text("utf-8"))
    assert places == [f"article_{number}.md" for number in range(1, MOST_FOUND + 1)]
    (folder / "one_more.md").write_text("# Article\n\nThe operator shall rest.\n", "utf-8")
    assert f"at most {MOST_FOUND} documents" in one_line(
        run("review", "contract.md", "--against", "act")
    )


def test_a_folder_with_a_file_that_cannot_be_read_is_refused(run: Run, elsewhere: Path) -> None:
    write_articles(elsewhere / "act")
    (elsewhere / "act" / "article_99.pdf").write_bytes(layouts.scan(1))

    assert "article_99.pdf" in one_line(run("review", FAULTY, "--against", "act"))
    (elsewhere / "empty").mkdir()
    assert "the folder 'empty' contains no documents" in one_line(
        run("review", FAULTY, "--against", "empty")
    )


def test_a_law_of_several_files_is_a_folder_of_the_index(run: Run, elsewhere: Path) -> None:
    laws = elsewhere / "laws"
    write_articles(laws / "register_act", beginning="Register Act: ")
    assert run("ingest", str(laws)).status == 0
    shutil.rmtree(laws)

    result = run("review", FAULTY, "--against", "register_act")

    assert (result.status, read_marks(result)) == (EXIT_FINDINGS, ["?"] * UNITS), result.err


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("empty.md", b"", "the file is empty"),
        ("blank.txt", b"\n \n", "the file is empty"),
        ("contract.exe", b"MZ", "expected one of"),
        ("scan.pdf", layouts.scan(2), "pictures"),
        ("broken.docx", b"no archive", "expected"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_line(
    run: Run, elsewhere: Path, name: str, data: bytes, words: str
) -> None:
    (elsewhere / name).write_bytes(data)

    assert words in one_line(run("review", name, "--against", LAW))
    assert words in one_line(run("review", CLEAN, "--against", name))


def test_a_law_beyond_the_limit_is_refused_by_its_name_and_never_cut(
    run: Run, elsewhere: Path
) -> None:
    sentence = "The operator shall inspect the harbour. "
    text = "# Act\n" + f"\n{sentence * 250}\n" * (MOST_CHARACTERS // (250 * len(sentence)) + 1)
    (elsewhere / "act.md").write_text(text, "utf-8")

    refused = one_line(run("review", CLEAN, "--against", "act.md"))

    assert "act.md: expected at most 4,000,000 characters, found " in refused


def test_a_missing_file_is_reported_in_one_line(run: Run) -> None:
    assert "no document has the id, file name or title 'nothing.md'" in one_line(
        run("review", "nothing.md", "--against", LAW)
    )
    assert "no document has the id, file name or title 'No Such Law'" in one_line(
        run("review", CLEAN, "--against", "No Such Law")
    )


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--report", "report.txt", "expected a report named"),
        ("--report", "none/report.md", "the folder for the report does not exist"),
        ("--specialists", "lawyer", "found lawyer"),
    ],
)
def test_a_wrong_report_file_or_specialist_is_refused_before_any_work(
    run: Run, option: str, value: str, words: str
) -> None:
    assert words in one_line(run("review", CLEAN, "--against", LAW, option, value))


def test_wrong_arguments_are_status_2(run: Run) -> None:
    assert run("review", CLEAN).status == 2


@pytest.mark.parametrize(
    ("specialists", "errors", "reason"),
    [
        ("extractor,compliance", [], "because --specialists leaves out report_generator"),
        ("", [], "because report_generator failed: it had no result in time"),
        (
            "",
            [{"specialist": "report_generator", "text": "status 500"}],
            "because report_generator failed: status 500",
        ),
    ],
)
def test_a_report_that_was_not_written_is_missing_for_its_true_reason(
    specialists: str, errors: list[JsonValue], reason: str
) -> None:
    chosen = argparse.Namespace(specialists=specialists)

    assert explain_no_report(chosen, {"errors": errors}) == reason
