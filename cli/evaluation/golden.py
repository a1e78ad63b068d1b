"""Golden questions: required and forbidden content of an answer, and the files that define them.

A folder contains `golden*.toml` with a `[[question]]` table for each question, `golden*.yaml` or
`golden*.json` with a list `questions`, or `golden*.jsonl` with one JSON object per line. All errors
in a folder are reported together.
"""

import json
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic.dataclasses import dataclass

from cli.evaluation.questions import UnknownFormatError
from envelope.conversation import ClarificationReason
from gateway.errors import GatewayError
from gateway.text import clean_text

PATTERNS = ("golden*.toml", "golden*.yaml", "golden*.yml", "golden*.json", "golden*.jsonl")
MOST_FAULTS = 20
LONGEST_FILE = 4_000_000
"""The maximum size of a file in bytes, which is enough for thousands of questions."""


def _clean(text: str) -> str:
    try:
        return clean_text(text)
    except GatewayError as error:
        raise ValueError(str(error)) from error


def _check_reason(text: str) -> str:
    known = ("", *(reason.value for reason in ClarificationReason))
    if text not in known:
        raise ValueError(f"expected one of {', '.join(known[1:])}, found {text!r}")
    return text


def _list_one(value: object) -> object:
    return [value] if isinstance(value, str) else value


Text = Annotated[str, AfterValidator(_clean)]
Expectation = Literal["answer", "refuse", "clarify"]
Wordings = Annotated[tuple[Text, ...], BeforeValidator(_list_one), Field(min_length=1)]
Statements = Annotated[tuple[Wordings, ...], BeforeValidator(_list_one)]


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid"))
class GoldenCase:
    """A question with the behaviour that its owner expects from the desk.

    `turns` contains the user's earlier messages in the same conversation, which are sent before the
    question. `pages` are suffixes of a path or URL; citing any matching page is correct. `facts`
    are texts that the context of the answer must contain, for `refdesk check`. `reason` is a
    `ClarificationReason`, only for questions that must be refused or clarified.
    """

    id: Text
    question: Text
    expect: Expectation = "answer"
    reason: Annotated[str, AfterValidator(_check_reason)] = ""
    must_say: Statements = ()
    must_not_say: Statements = ()
    facts: Statements = ()
    pages: Annotated[tuple[Text, ...], BeforeValidator(_list_one)] = ()
    language: Annotated[str, Field(pattern=r"^([a-z]{2,3})?$")] = ""
    turns: tuple[Text, ...] = ()
    kind: str = ""

    @model_validator(mode="after")
    def _measures_something(self) -> "GoldenCase":
        if self.expect == "answer" and self.reason:
            raise ValueError("a refusal reason is not allowed if expect is 'answer'")
        if self.expect == "answer" and not (self.must_say or self.facts or self.pages):
            raise ValueError("must_say, facts or page is required, or expect = 'refuse'")
        if self.expect != "answer" and (self.pages or self.facts):
            raise ValueError(f"page and facts are not allowed if expect is {self.expect!r}")
        return self


_CASE = TypeAdapter(GoldenCase)
_FIELDS = [field.name for field in fields(GoldenCase)]
_PARSERS: dict[str, Callable[[str], object]] = {
    ".toml": tomllib.loads,
    ".json": json.loads,
    ".yaml": yaml.safe_load,
    ".yml": yaml.safe_load,
}


def load_golden_cases(data: Path, file: Path | None = None) -> tuple[GoldenCase, ...]:
    """Return the golden questions in a folder, or in one file.

    Raises `UnknownFormatError` with a line for each error.
    """
    files = [file] if file is not None else _find_files(data)
    faults: list[str] = []
    cases: dict[str, GoldenCase] = {}
    rows = [row for path in files for row in _read_rows(path, faults)]
    for number, (place, row) in enumerate(rows, start=1):
        try:
            named = {"pages" if name == "page" else name: value for name, value in row.items()}
            case = _CASE.validate_python({"id": f"q{number:02}", **named})
        except ValidationError as error:
            faults += _describe(place, error)
            continue
        if case.id in cases:
            faults.append(f"{place}: id: the id {case.id!r} is not unique")
        cases[case.id] = case
    if faults:
        left = len(faults) - MOST_FAULTS
        more = [f"and {left} more faults"] if left > 0 else []
        raise UnknownFormatError("\n".join([*faults[:MOST_FAULTS], *more]))
    if not cases:
        names = ", ".join(map(str, files))
        raise UnknownFormatError(f"{names} contains no questions")
    return tuple(cases.values())


def select_cases(cases: Sequence[GoldenCase], ids: Sequence[str]) -> tuple[GoldenCase, ...]:
    """Return the questions with these ids, or all questions if no ids are given; raises
    `UnknownFormatError`.
    """
    unknown = sorted(set(ids) - {case.id for case in cases})
    if unknown:
        known = ", ".join(case.id for case in cases[:MOST_FAULTS])
        raise UnknownFormatError(f"expected ids of golden questions ({known}), found {unknown}")
    return tuple(case for case in cases if not ids or case.id in ids)


def _find_files(data: Path) -> list[Path]:
    paths = sorted(path for pattern in PATTERNS for path in data.glob(pattern))
    if not paths:
        names = ", ".join(sorted(path.name for path in data.iterdir())[:10]) or "nothing"
        raise UnknownFormatError(f"expected {' or '.join(PATTERNS)} in {data}, found {names}")
    return paths


def _read_rows(path: Path, faults: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the location of each question, and its fields."""
    try:
        size = path.stat().st_size
        if size > LONGEST_FILE:
            raise UnknownFormatError(
                f"{path}: expected at most {LONGEST_FILE:,} bytes, found {size:,}"
            )
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".jsonl":
            yield from _read_json_lines(path, text, faults)
        elif path.suffix in _PARSERS:
            yield from _read_list(path, _PARSERS[path.suffix](text), faults)
        else:
            raise UnknownFormatError(f"{path}: expected a file .toml, .yaml, .json or .jsonl")
    except UnicodeDecodeError as error:
        faults.append(f"{path} is not valid UTF-8: {error}")
    except yaml.MarkedYAMLError as error:
        mark = error.context_mark or error.problem_mark
        place = f"line {mark.line + 1}: " if mark else ""
        problem = ": ".join(filter(None, (error.context, error.problem)))
        faults.append(f"{path} is not valid YAML: {place}{problem}")
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        form = path.suffix.removeprefix(".").upper().replace("YML", "YAML")
        faults.append(f"{path} is not valid {form}: {' '.join(str(error).split())}")
    except OSError as error:
        raise UnknownFormatError(f"{path} cannot be read: {error.strerror}") from error


def _read_json_lines(
    path: Path, text: str, faults: list[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    # Only line feeds end a line: JSON strings may contain other separators.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            faults.append(f"{path}:{number}: not valid JSON: {error}")
            continue
        if isinstance(row, dict):
            yield f"{path}:{number}", row
        else:
            faults.append(f"{path}:{number}: expected a JSON object, found {line[:60]}")


def _read_list(
    path: Path, document: object, faults: list[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    name = "question" if path.suffix == ".toml" else "questions"
    rows, others = document, list[str]()
    if isinstance(document, dict):
        rows, others = document.get(name, []), sorted(document.keys() - {name})
    if others or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        found = ", ".join(map(str, others)) or ("nothing" if document is None else "something else")
        expected = "[[question]] tables" if path.suffix == ".toml" else "a list of questions"
        faults.append(f"{path}: expected only {expected}, found {found}")
        return
    for number, row in enumerate(rows, start=1):
        yield f"{path}: question {number}", row


def _describe(place: str, error: ValidationError) -> Iterator[str]:
    for details in error.errors(include_url=False):
        field = ".".join(str(part) for part in details["loc"]).replace("pages", "page")
        found = "" if details["type"] == "value_error" else f", found {details['input']!r:.60}"
        problem = details["msg"].removeprefix("Value error, ").replace("a valid tuple", "a list")
        if details["type"] == "unexpected_keyword_argument":
            problem, found = f"unknown field; expected {', '.join(_FIELDS)}", ""
        yield f"{place}: {f'{field}: ' if field else ''}{problem}{found}"
