"""Stores in the data folder how well each judge agrees with people."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

from pydantic import TypeAdapter, ValidationError

from deploy.assembly.assistant_prompts import load_prompts
from deploy.assembly.data_folder import protect_data_folder

FOLDER = "evaluation"
FILE = "judges.json"
LEAST_AGREEMENT = 0.8
"""Below this share of agreement with people, a judge is not trusted."""
LEAST_ANSWERS = 100
"""A measurement on fewer answers than this is not sufficient."""


@dataclass(frozen=True, slots=True)
class JudgeRecord:
    """One measurement of a judge; `prompt` is the hash of the prompt that it was asked with."""

    judge: str
    data: str
    answers: int
    agreement: float
    precision: float
    recall: float
    measured_at: str
    prompt: str


_RECORDS = TypeAdapter(dict[str, JudgeRecord])


def prompt_version() -> str:
    """Return the hash of the judge's prompt file."""
    return load_prompts().content_hash("judge")


def load_judge_records(data_folder: Path) -> Mapping[str, JudgeRecord]:
    """Return the last measurement of each judge; a file that cannot be read counts as none."""
    try:
        text = (data_folder / FOLDER / FILE).read_bytes()
        return _RECORDS.validate_json(text)
    except (OSError, ValidationError):
        return {}


def store_judge_record(data_folder: Path, record: JudgeRecord) -> Path:
    """Store a measurement instead of an earlier one of the same judge; return the file."""
    protect_data_folder(data_folder)
    folder = data_folder / FOLDER
    folder.mkdir(exist_ok=True, mode=0o700)
    known = {**load_judge_records(data_folder), record.judge: record}
    written = {name: asdict(one) for name, one in sorted(known.items())}
    with NamedTemporaryFile("w", dir=folder, delete=False, encoding="utf-8") as file:
        json.dump(written, file, ensure_ascii=False, indent=2)
    # Replaced atomically: a concurrent reader sees the old file or the new one.
    os.replace(file.name, folder / FILE)
    return folder / FILE


def find_doubt(data_folder: Path, judge: str) -> str:
    """Return why a judge is not to be trusted; empty for a trusted one."""
    record = load_judge_records(data_folder).get(judge)
    if record is None:
        return f"the judge {judge} was never measured against people"
    if record.prompt != prompt_version():
        return f"the prompt of the judge {judge} has changed since it was measured"
    if record.answers < LEAST_ANSWERS:
        return (
            f"the judge {judge} was measured on {record.answers} answers only, "
            f"expected at least {LEAST_ANSWERS}"
        )
    if record.agreement < LEAST_AGREEMENT:
        return (
            f"the judge {judge} agrees with people on {record.agreement:.2f} of "
            f"{record.answers} answers, expected at least {LEAST_AGREEMENT}"
        )
    return ""
