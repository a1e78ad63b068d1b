"""Golden questions: what an answer must and must not say, and the files in which they are written.

A folder holds `golden*.toml`, in which each question is a `[[question]]` table, or `golden*.jsonl`,
in which it is a line with a JSON object. Every fault is reported with its file and line, all faults
of a folder at once.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from deploy.evaluation.questions import UnknownFormatError
from envelope.conversation import ClarificationReason
from gateway.errors import GatewayError
from gateway.text import clean_text

PATTERNS = ("golden*.toml", "golden*.jsonl")
FIELDS = (
    "question", "id", "expect", "reason", "must_say", "must_not_say", "page", "language", "turns",
    "kind",
)  # fmt: skip
MOST_FAULTS = 20
LONGEST_FILE = 4_000_000
"""In bytes; thousands of questions fit."""
_HEADER = re.compile(r"\s*\[\[\s*question\s*\]\]")
_ERROR_LINE = re.compile(r"\(at line (\d+), column \d+\)")
_LANGUAGE = re.compile(r"[a-z]{2,3}")
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class _WrittenQuestion:
    """One question as it is written, and where: the line of each field, and of the question."""

    file: Path
    line: int
    value: object
    lines: Mapping[str, int]


class _FieldError(Exception):
    """A field does not contain the expected value."""

    def __init__(self, field: str, expected: str, found: object) -> None:
        super().__init__(f"{field}: expected {expected}, found {_show(found)}")
        self.field = field


Expectation = Literal["answer", "refuse", "clarify"]
Statement = tuple[str, ...]
"""Alternative wordings of one statement."""


@dataclass(frozen=True, slots=True)
class GoldenCase:
    """One question with the behaviour that its owner expects of the desk.

    `turns` are the user's earlier messages in the same conversation, which are sent before the
    question. `pages` are ends of a path or URL; citing any of them is correct. `reason` is a
    `ClarificationReason`, only for questions that the desk must refuse or ask back about.
    """

    id: str
    question: str
    expect: Expectation = "answer"
    reason: str = ""
    must_say: tuple[Statement, ...] = ()
    must_not_say: tuple[Statement, ...] = ()
    pages: tuple[str, ...] = ()
    language: str = ""
    turns: tuple[str, ...] = ()
    kind: str = ""


def load_golden_cases(data: Path, file: Path | None = None) -> tuple[GoldenCase, ...]:
    """Return the golden questions of a folder, or of one file.

    Raises `UnknownFormatError` with a line for each fault.
    """
    files = [file] if file is not None else _find_files(data)
    faults: list[str] = []
    cases: list[GoldenCase] = []
    for path in files:
        for row in _read_rows(path, faults):
            case = _parse_row(row, len(cases) + 1, faults)
            if case is not None:
                cases.append(case)
                _check_id(case, cases, row, faults)
    if faults:
        left = len(faults) - MOST_FAULTS
        more = [f"and {left} more faults"] if left > 0 else []
        raise UnknownFormatError("\n".join([*faults[:MOST_FAULTS], *more]))
    if not cases:
        raise UnknownFormatError(f"expected at least one question in {_names(files)}, found none")
    return tuple(cases)


def select_cases(cases: Sequence[GoldenCase], ids: Sequence[str]) -> tuple[GoldenCase, ...]:
    """Return the questions with these ids, all without ids; raises `UnknownFormatError`."""
    unknown = sorted(set(ids) - {case.id for case in cases})
    if unknown:
        known = ", ".join(case.id for case in cases[:MOST_FAULTS])
        raise UnknownFormatError(f"expected ids of golden questions ({known}), found {unknown}")
    return tuple(case for case in cases if not ids or case.id in ids)


def _find_files(data: Path) -> list[Path]:
    found = sorted(path for pattern in PATTERNS for path in data.glob(pattern))
    if not found:
        names = ", ".join(sorted(path.name for path in data.iterdir())[:10]) or "nothing"
        raise UnknownFormatError(f"expected {' or '.join(PATTERNS)} in {data}, found {names}")
    return found


def _read_rows(path: Path, faults: list[str]) -> list[_WrittenQuestion]:
    try:
        if path.stat().st_size > LONGEST_FILE:
            raise UnknownFormatError(
                f"{path}: expected at most {LONGEST_FILE:,} bytes, found {path.stat().st_size:,}"
            )
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        faults.append(f"{path}: expected UTF-8, found {error}")
        return []
    except OSError as error:
        raise UnknownFormatError(f"{path}: expected a file, found: {error.strerror}") from error
    if path.suffix == ".toml":
        return _read_toml(path, text, faults)
    if path.suffix == ".jsonl":
        return list(_read_json_lines(path, text, faults))
    raise UnknownFormatError(f"{path}: expected a file .toml or .jsonl, found {path.suffix!r}")


def _read_json_lines(path: Path, text: str, faults: list[str]) -> Iterator[_WrittenQuestion]:
    # Only line feeds end a line: JSON may hold other separators inside a text.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            yield _WrittenQuestion(path, number, json.loads(line), {})
        except (ValueError, RecursionError) as error:
            faults.append(f"{path}:{number}: expected a JSON object, found {_show(line)} ({error})")


def _read_toml(path: Path, text: str, faults: list[str]) -> list[_WrittenQuestion]:
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        place = _ERROR_LINE.search(str(error))
        line = f":{place[1]}" if place else ""
        faults.append(f"{path}{line}: expected TOML, found: {error}")
        return []
    unknown = sorted(set(document) - {"question"})
    tables = document.get("question", [])
    if unknown or not isinstance(tables, list):
        found = ", ".join(unknown) or _show(tables)
        faults.append(f"{path}: expected only [[question]] tables, found {found}")
        return []
    starts = [n for n, line in enumerate(text.split("\n"), start=1) if _HEADER.match(line)]
    if len(starts) != len(tables):  # a text of several lines holds a line that looks like a header
        starts = [1] * len(tables)
    lines = text.split("\n")
    ends = [*starts[1:], len(lines) + 1][: len(tables)]
    return [
        _WrittenQuestion(path, start, table, _find_field_lines(lines, start, max(start, end)))
        for start, end, table in zip(starts, ends, tables, strict=True)
    ]


def _find_field_lines(lines: Sequence[str], start: int, end: int) -> dict[str, int]:
    """Return the line of each field of a table: the first line that begins with its name."""
    found: dict[str, int] = {}
    for number in range(start, end):
        name, sign, _ = lines[number - 1].partition("=")
        if sign:
            found.setdefault(name.strip().strip('"'), number)
    return found


def _parse_row(row: _WrittenQuestion, number: int, faults: list[str]) -> GoldenCase | None:
    if not isinstance(row.value, dict):
        faults.append(f"{row.file}:{row.line}: expected a JSON object, found {_show(row.value)}")
        return None
    before = len(faults)
    case = GoldenCase(id=f"q{number:02}", question="")
    for field, value in row.value.items():
        try:
            case = replace(case, **_parse_field(str(field), value))
        except _FieldError as error:
            faults.append(f"{row.file}:{row.lines.get(error.field, row.line)}: {error}")
    if len(faults) > before:
        return None
    try:
        _check_whole(case)
    except _FieldError as error:
        faults.append(f"{row.file}:{row.lines.get(error.field, row.line)}: {error}")
        return None
    return case


def _parse_field(field: str, value: object) -> dict[str, Any]:
    match field:
        case "question":
            return {"question": _parse_text(field, value)}
        case "id" | "kind":
            return {field: _parse_name(field, value)}
        case "language":
            return {"language": _parse_language(value)}
        case "expect":
            return {"expect": _parse_choice(field, value, get_args(Expectation))}
        case "reason":
            return {
                "reason": _parse_choice(field, value, [one.value for one in ClarificationReason])
            }
        case _:
            return _parse_list_field(field, value)


def _parse_list_field(field: str, value: object) -> dict[str, Any]:
    match field:
        case "must_say" | "must_not_say":
            return {field: _parse_statements(field, value)}
        case "page":
            return {"pages": _parse_texts(field, [value] if isinstance(value, str) else value)}
        case "turns":
            return {"turns": _parse_texts(field, value)}
        case _:
            raise _FieldError(field, f"one of the fields {', '.join(FIELDS)}", field)


def _parse_text(field: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _FieldError(field, "a text that is not empty", value)
    try:
        return clean_text(value)
    except GatewayError as error:
        raise _FieldError(field, f"a text that can be sent ({error})", value) from error


def _parse_texts(field: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise _FieldError(field, "a list of texts", value)
    return tuple(_parse_text(field, one) for one in value)


def _parse_name(field: str, value: object) -> str:
    name = _parse_text(field, value)
    if len(name) > _SHOWN or not name.isprintable():
        raise _FieldError(field, f"one line of at most {_SHOWN} characters", value)
    return name


def _parse_language(value: object) -> str:
    if not isinstance(value, str) or not _LANGUAGE.fullmatch(value):
        raise _FieldError("language", "a code of ISO 639-1 such as 'de'", value)
    return value


def _parse_choice(field: str, value: object, choices: Sequence[str]) -> str:
    if value not in choices:
        raise _FieldError(field, f"one of {', '.join(choices)}", value)
    return str(value)


def _parse_statements(field: str, value: object) -> tuple[Statement, ...]:
    if not isinstance(value, list) or not value:
        raise _FieldError(field, "a list of texts, or of lists of wordings of one text", value)
    return tuple(
        _parse_texts(field, one) if isinstance(one, list) else (_parse_text(field, one),)
        for one in value
    )


def _check_whole(case: GoldenCase) -> None:
    """Raise `_FieldError` for a question that measures nothing, or contradicts itself."""
    if not case.question:
        raise _FieldError("question", "the text that is asked", "none")
    if case.expect == "answer" and case.reason:
        raise _FieldError(
            "reason",
            "no refusal reason, because the question is expected to be answered",
            case.reason,
        )
    if case.expect == "answer" and not (case.must_say or case.pages):
        raise _FieldError(
            "question", "must_say or page with it, or expect = 'refuse'", "neither of them"
        )
    if case.expect != "answer" and case.pages:
        raise _FieldError("page", f"none where expect is {case.expect!r}", case.pages[0])


def _check_id(
    case: GoldenCase, cases: Sequence[GoldenCase], row: _WrittenQuestion, faults: list[str]
) -> None:
    if any(other.id == case.id for other in cases[:-1]):
        line = row.lines.get("id", row.line)
        faults.append(f"{row.file}:{line}: id: expected each id once, found {case.id!r} again")


def _names(files: Sequence[Path]) -> str:
    return ", ".join(str(path) for path in files)


def _show(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    line = " ".join(text.split())
    cut = line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"
    return repr(cut) if isinstance(value, str) else cut
