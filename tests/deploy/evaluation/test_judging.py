"""A judge is measured against people, and believed when it agrees with them."""

import asyncio
import json
from pathlib import Path

import pytest

from deploy.cli.main import main
from deploy.evaluation.judging import (
    JudgedLabel,
    JudgeRecord,
    compute_agreement,
    find_doubt,
    load_judge_records,
    load_labelled_answers,
    measure_judge,
    prompt_version,
    store_judge_record,
)
from deploy.evaluation.questions import UnknownFormatError
from llm.errors import ModelUnavailable
from llm.tasks.search import JudgeOutput
from tests.llm.vendor_dialects import OpenAI
from tests.support.model_server import running_server
from tests.support.scripted_model import ScriptedModel

NAME = "gpt-5-mini@openai"
CONTEXT = "An invitation is valid for 7 days and can be used once."


def make_judgement(*supported: bool) -> JudgeOutput:
    verdicts = [
        {"passage": number, "quote": "x", "supported": found}
        for number, found in enumerate(supported, start=1)
    ]
    return JudgeOutput.model_validate(
        {
            "claims_read": len(supported), "verdicts": verdicts, "completeness": 1, "accuracy": 1,
            "language_matches": True, "decision": "approve",
        }
    )  # fmt: skip


def write(folder: Path, rows: list[dict[str, object]]) -> None:
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    (folder / "answers.jsonl").write_text(lines, encoding="utf-8")


def make_labelled_row(response: str, label: str) -> dict[str, object]:
    return {"context": CONTEXT, "response": response, "label": label, "question": "How long?"}


def record(**changes: object) -> JudgeRecord:
    fields: dict[str, object] = {
        "judge": NAME, "data": "grounding", "answers": 500, "agreement": 0.9,
        "precision": 0.9, "recall": 0.9, "measured_at": "2026-01-01T00:00:00+00:00",
        "prompt": prompt_version(),
    }  # fmt: skip
    return JudgeRecord(**{**fields, **changes})  # type: ignore[arg-type] # plain values


def test_precision_and_recall_are_those_of_finding_what_is_not_grounded() -> None:
    labels = [
        JudgedLabel("a", grounded=False, judged=False),
        JudgedLabel("a", grounded=False, judged=True),
        JudgedLabel("a", grounded=False, judged=None),
        JudgedLabel("a", grounded=True, judged=True),
        JudgedLabel("a", grounded=True, judged=False),
        JudgedLabel("a", grounded=True, judged=None),
    ]

    figures = compute_agreement(labels)

    assert (figures["agreement"], figures["precision"]) == (0.3333, 0.5)
    assert figures["recall"] == 0.3333
    assert figures["grounded_called_ungrounded"] == pytest.approx(1 / 3, abs=1e-4)
    assert figures["without_verdict"] == 2


async def test_a_judge_supports_an_answer_when_it_supports_every_sentence(tmp_path: Path) -> None:
    write(
        tmp_path,
        [
            make_labelled_row("An invitation is valid for 7 days.", "grounded"),
            make_labelled_row(
                "An invitation is valid for 7 days. It costs 30 euros.", "ungrounded"
            ),
            make_labelled_row("Whatever.", "generic"),
        ],
    )

    model = ScriptedModel([make_judgement(True), make_judgement(True, False)])

    figures = await measure_judge(model, tmp_path)

    assert (figures["answers"], figures["agreement"], figures["calls"]) == (2, 1.0, 2)


async def test_a_judge_that_fails_agrees_with_nobody(tmp_path: Path) -> None:
    write(tmp_path, [make_labelled_row("An invitation is valid for 7 days.", "grounded")])

    figures = await measure_judge(ScriptedModel({"judge": [ModelUnavailable("away")]}), tmp_path)

    assert (figures["agreement"], figures["without_verdict"]) == (0.0, 1)


async def test_a_sample_is_the_same_each_time(tmp_path: Path) -> None:
    answers = [
        make_labelled_row(f"An invitation is valid for {n} days.", "grounded") for n in range(20)
    ]
    write(tmp_path, answers)

    models = [ScriptedModel([make_judgement(True)] * 5) for _ in range(2)]
    first, second = [await measure_judge(model, tmp_path, limit=5) for model in models]

    assert first["answers"] == second["answers"] == 5
    assert [call.inputs for call in models[0].calls] == [call.inputs for call in models[1].calls]


def test_a_folder_without_labelled_answers_is_refused(tmp_path: Path) -> None:
    write(tmp_path, [{"context": "x", "label": "grounded"}])

    with pytest.raises(UnknownFormatError, match="with `context`, `response` and a `label`"):
        load_labelled_answers(tmp_path)


@pytest.mark.parametrize(
    ("changes", "doubt"),
    [
        ({}, ""),
        ({"agreement": 0.7}, "agrees with people on 0.70 of 500 answers, expected at least 0.8"),
        ({"answers": 9}, "was measured on 9 answers only, expected at least 100"),
        ({"prompt": "another"}, "has changed since it was measured"),
        ({"judge": "gpt-4o@openai"}, "has not been measured against people"),
    ],
)
def test_a_judge_is_doubted_for_a_reason(
    changes: dict[str, object], doubt: str, tmp_path: Path
) -> None:
    store_judge_record(tmp_path, record(**changes))

    assert doubt in find_doubt(tmp_path, NAME)
    assert bool(doubt) == bool(find_doubt(tmp_path, NAME))


def test_measurements_of_several_judges_are_kept(tmp_path: Path) -> None:
    store_judge_record(tmp_path, record())
    store_judge_record(tmp_path, record(judge="gpt-4o@openai"))
    store_judge_record(tmp_path, record(agreement=0.5))

    found = load_judge_records(tmp_path)

    assert sorted(found) == ["gpt-4o@openai", NAME]
    assert found[NAME].agreement == 0.5


def test_measurements_that_cannot_be_read_are_none(tmp_path: Path) -> None:
    file = store_judge_record(tmp_path, record())
    file.write_text("{")

    assert load_judge_records(tmp_path) == {}
    assert "has not been measured" in find_doubt(tmp_path, NAME)


@pytest.mark.slow
async def test_the_command_stores_what_it_measured_in_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REFDESK_DATA", str(tmp_path / "desk"))
    write(tmp_path, [make_labelled_row("An invitation is valid for 7 days.", "grounded")])
    dialect = OpenAI()
    judge = f"{dialect.model}@openai"
    asked = ("evaluate", "grounding", "--data", str(tmp_path), "--judge", judge, "--json")

    async with running_server() as server:
        server.will_send(dialect.answer(make_judgement(True).model_dump_json()))
        monkeypatch.setenv("OPENAI_API_KEY", "secret-key")
        monkeypatch.setenv("OPENAI_BASE_URL", dialect.base_url(server.url))
        status = await asyncio.to_thread(main, asked)

    figures = json.loads(capsys.readouterr().out)
    assert (status, figures["agreement"], figures["believed"]) == (0, 1.0, False)
    assert load_judge_records(tmp_path / "desk")[judge].answers == 1
    assert figures["doubt"] == (
        f"the judge {judge} was measured on 1 answers only, expected at least 100"
    )
