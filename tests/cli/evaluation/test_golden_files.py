"""Golden questions are read as their owner wrote them, and faults name file and line."""

from pathlib import Path

import pytest

from cli.evaluation.golden import GoldenCase, load_golden_cases, select_cases
from cli.evaluation.questions import UnknownFormatError
from tests.support.app_harness import EXAMPLES

FASTAPI = Path(__file__).with_name("fastapi_golden.toml")

GOOD = """\
# A comment.
[[question]]
question = "How long is an invitation valid?"
must_say = ["7 days", ["once", "one time"]]
must_not_say = ["14 days"]
page = "accounts/invite-users.md"
kind = "fact"

[[question]]
id = "weather"
question = "What is the weather like?"
expect = "refuse"
reason = "out_of_scope"
language = "en"
turns = ["Hello"]
"""

BAD = """\
[[question]]
question = "How long is an invitation valid?"
must_say = 7

[[question]]
question = ""
page = "a.md"

[[question]]
id = "x"
question = "Which?"
expect = "decline"

[[question]]
question = "Nothing is expected of this?"

[[question]]
id = "refused"
question = "Is it to be refused?"
expect = "refuse"
page = "a.md"
reason = "weather"
speed = 3
"""


def write(folder: Path, text: str, name: str = "golden.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def faults_of(folder: Path) -> list[str]:
    with pytest.raises(UnknownFormatError) as raised:
        load_golden_cases(folder)
    return [line.removeprefix(f"{folder}/") for line in str(raised.value).splitlines()]


def test_every_field_of_a_question_is_read(tmp_path: Path) -> None:
    write(tmp_path, GOOD)

    first, second = load_golden_cases(tmp_path)

    assert first == GoldenCase(
        id="q01",
        question="How long is an invitation valid?",
        must_say=(("7 days",), ("once", "one time")),
        must_not_say=(("14 days",),),
        pages=("accounts/invite-users.md",),
        kind="fact",
    )
    assert second == GoldenCase(
        id="weather",
        question="What is the weather like?",
        expect="refuse",
        reason="out_of_scope",
        language="en",
        turns=("Hello",),
    )


def test_questions_may_be_lines_of_json_beside_tables(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    write(tmp_path, '{"question": "Who?", "must_say": ["Ann"]}\n\n', "golden_more.jsonl")

    assert [case.id for case in load_golden_cases(tmp_path)] == ["q01", "weather", "q03"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("golden.yaml", "questions:\n  - question: Who?\n    facts: ['Ann']\n    pages: a.md\n"),
        ("golden.yml", "- {question: 'Who?', facts: [[Ann]], page: [a.md]}\n"),
        ("golden.json", '{"questions": [{"question": "Who?", "facts": "Ann", "pages": "a.md"}]}'),
    ],
)
def test_questions_may_be_a_list_of_yaml_or_json(tmp_path: Path, name: str, text: str) -> None:
    write(tmp_path, text, name)

    (case,) = load_golden_cases(tmp_path)

    assert (case.question, case.facts, case.pages) == ("Who?", (("Ann",),), ("a.md",))


def test_every_fault_names_its_file_and_question_and_what_was_expected(tmp_path: Path) -> None:
    write(tmp_path, BAD)

    faults = faults_of(tmp_path)

    beginnings = [
        "golden.toml: question 1: must_say: Input should be a list, found 7",
        "golden.toml: question 2: question: the message is empty",
        "golden.toml: question 3: expect: Input should be 'answer', 'refuse' or 'clarify', "
        "found 'decline'",
        "golden.toml: question 4: must_say, facts or page is required, or expect = 'refuse'",
        "golden.toml: question 5: reason: expected one of ambiguous_query, ",
        "golden.toml: question 5: speed: unknown field; expected id, question, ",
    ]
    assert len(faults) == len(beginnings)
    for fault, beginning in zip(faults, beginnings, strict=True):
        assert fault.startswith(beginning)


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("[[question]\n", "golden.toml", "golden.toml is not valid TOML: "),
        ("title = 'x'\n", "golden.toml", "golden.toml: expected only [[question]] tables, found "),
        ('\n{"question": \n', "golden.jsonl", "golden.jsonl:2: not valid JSON: "),
        ("questions: [\n", "golden.yaml", "golden.yaml is not valid YAML: line 2: while "),
        ("", "golden.yaml", "golden.yaml: expected only a list of questions, found nothing"),
        ("{}x", "golden.json", "golden.json is not valid JSON: "),
        ("title: x\n", "golden.yaml", "golden.yaml: expected only a list of questions, found "),
        ("- 1\n", "golden.yaml", "golden.yaml: expected only a list of questions, found "),
        ("[1]\n", "golden.jsonl", "golden.jsonl:1: expected a JSON object, found [1]"),
        ("[" * 90_000, "golden.jsonl", "golden.jsonl:1: not valid JSON: "),
        ("# nothing\n", "golden.toml", "golden.toml contains no questions"),
    ],
)
def test_a_file_that_holds_something_else_is_refused(
    text: str, name: str, message: str, tmp_path: Path
) -> None:
    write(tmp_path, text, name)

    assert faults_of(tmp_path)[0].startswith(message)


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "golden.toml").write_bytes(GOOD.encode("utf-16"))

    assert faults_of(tmp_path)[0].startswith("golden.toml is not valid UTF-8: ")


def test_an_id_is_used_once(tmp_path: Path) -> None:
    row = '{"id": "a", "question": "Who?", "must_say": ["Ann"]}\n'
    write(tmp_path, row + row, "golden.jsonl")

    assert faults_of(tmp_path) == ["golden.jsonl:2: id: the id 'a' is not unique"]


def test_many_faults_are_counted_after_the_first_twenty(tmp_path: Path) -> None:
    write(tmp_path, "[]\n" * 30, "golden.jsonl")

    assert len(faults_of(tmp_path)) == 21
    assert faults_of(tmp_path)[-1] == "and 10 more faults"


def test_a_folder_without_golden_questions_is_named_with_what_it_holds(tmp_path: Path) -> None:
    write(tmp_path, "", "other.toml")

    [fault] = faults_of(tmp_path)
    assert fault.startswith("expected golden*.toml or golden*.yaml or ")
    assert fault.endswith("found other.toml")


def test_questions_are_selected_by_id(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    cases = load_golden_cases(tmp_path)

    assert [case.id for case in select_cases(cases, ["weather"])] == ["weather"]
    assert select_cases(cases, []) == cases
    with pytest.raises(UnknownFormatError, match=r"\(q01, weather\), found \['rain'\]"):
        select_cases(cases, ["rain"])


def test_the_example_questions_are_of_every_kind() -> None:
    cases = load_golden_cases(EXAMPLES / "golden")

    assert len(cases) >= 20
    assert {case.kind for case in cases} >= {
        "fact", "how-to", "difference", "out of scope", "not in the documents", "follow-up",
        "another language",
    }  # fmt: skip


def test_the_questions_about_a_foreign_documentation_can_be_read() -> None:
    assert len(load_golden_cases(FASTAPI.parent, FASTAPI)) == 40
