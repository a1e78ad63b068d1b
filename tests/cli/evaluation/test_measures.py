"""One answer is measured: statements, sentences, citations, pages, and how its question ended."""

import re
from pathlib import Path
from typing import Any

import pytest

from citations.statements import says
from cli.comparison_page import check_page_path, make_page, make_table_lines
from cli.evaluation.answer_changes import judge_change
from cli.evaluation.desk_run import AskedCase, CallTotals
from cli.evaluation.golden import GoldenCase
from cli.evaluation.measures import AnswerMeasure, measure_answer
from cli.evaluation.sentences import split_covered
from cli.evaluation.summaries import MeasuredVariant, summarize
from cli.printing import WIDTH, columns
from deploy.errors import CommandError
from knowledge.checks import CheckQuestion, is_page
from llm.errors import ModelUnavailable
from llm.tasks.search import JudgeInputs, JudgeOutput
from tests.support.scripted_model import ScriptedModel

LIMIT, KEYS = "An account may make 50 requests per second.", "All keys share the limit."


EVIDENCE = {1: f"API limits\n{LIMIT}", 2: f"API keys\n{KEYS}"}


CASE = GoldenCase(id="limit", question="How many requests?", must_say=(("50 requests",),))


def make_asked_case(text: str, case: GoldenCase = CASE, **changes: Any) -> AskedCase:
    sources = [
        {"number": n, "chunk_id": str(n), "title": "x", "path": f"docs/page-{n}.md"} for n in (1, 2)
    ]
    reply = {"outcome": "answered", "text": text, "language": "en", "sources": sources, **changes}
    return AskedCase(case, reply, EVIDENCE, CallTotals(), seconds=0.5)


def judgement(*supported: bool) -> JudgeOutput:
    return JudgeOutput.model_validate(
        {
            "verdicts": [
                {"passage": n, "quote": "x", "supported": found}
                for n, found in enumerate(supported, start=1)
            ],
            "claims_read": len(supported),
            "completeness": 1.0,
            "accuracy": 1.0,
            "language_matches": True,
            "decision": "approve",
        }
    )


async def test_a_sentence_that_cites_no_source_of_the_answer_cites_nothing() -> None:
    measure = await measure_answer(
        make_asked_case(f"{LIMIT} [1]\n\nMore requests cost 20 euros each.\n\n{KEYS} [7]")
    )

    assert [sentence.cites for sentence in measure.sentences] == [(1,), (), ()]
    assert measure.cited == pytest.approx(1 / 3)
    assert measure.support is None


@pytest.mark.parametrize(
    ("case", "changes", "verdict"),
    [
        ({}, {}, "useful"),
        ({"must_say": (("60 requests",),)}, {}, "incomplete"),
        ({"must_not_say": (("account",),)}, {}, "contains forbidden text"),
        ({"pages": ("page-2",)}, {}, "useful"),
        ({"pages": ("page-3",)}, {}, "wrong page"),
        ({"language": "de"}, {}, "wrong language"),
        ({}, {"outcome": "refused"}, "wrong refusal"),
        ({}, {"outcome": "clarification"}, "unexpected clarification"),
        ({}, {"outcome": "failed"}, "failed"),
        ({"expect": "refuse"}, {}, "should refuse"),
        ({"expect": "clarify"}, {}, "should ask"),
        ({"expect": "refuse", "must_say": ()}, {"outcome": "refused"}, "useful"),
        (
            {"expect": "refuse", "must_say": (), "reason": "out_of_scope"},
            {"outcome": "refused", "clarification_reason": "insufficient_context"},
            "wrong reason",
        ),
    ],
)
async def test_an_answer_gets_one_verdict(
    case: dict[str, Any], changes: dict[str, Any], verdict: str
) -> None:
    fields = {"id": "x", "question": "How many?", "must_say": (("50 requests",),), **case}

    measure = await measure_answer(make_asked_case(f"{LIMIT} [1]", GoldenCase(**fields), **changes))

    assert measure.verdict == verdict
    assert measure.useful is (verdict == "useful")


@pytest.mark.parametrize(
    ("place", "page", "found"),
    [
        ("docs/api/limits.md", "api/limits.md", True),
        ("docs/api/limits.md", "limits", True),
        ("docs/api/limits.md#top", "api/limits.md", True),
        ("https://a.example/api/limits/", "api/limits", True),
        ("https://a.example/api/limits.html?x=1", "api/limits", True),
        ("docs/api/rate-limits.md", "limits.md", False),
        ("docs/api/limits.md", "", False),
        ("", "limits.md", False),
    ],
)
def test_a_page_is_named_by_the_last_parts_of_its_path(place: str, page: str, found: bool) -> None:
    assert is_page(place, page) is found


async def test_a_judge_finds_a_statement_in_other_words() -> None:
    case = GoldenCase("x", "How many?", must_say=(("fifty calls may be made",),))
    asked = make_asked_case(f"{LIMIT} [1]", case)

    alone = await measure_answer(asked)
    judged = await measure_answer(asked, ScriptedModel([judgement(True), judgement(True)]))

    assert (alone.verdict, judged.verdict) == ("incomplete", "useful")


async def test_a_sentence_that_cites_nothing_is_not_supported_whatever_the_judge_says() -> None:
    judge = ScriptedModel([judgement(True, True, False)])

    measure = await measure_answer(
        make_asked_case(f"{LIMIT} [1]\n\nIt is free of charge.\n\n{KEYS} [2]"), judge
    )

    assert [sentence.supported for sentence in measure.sentences] == [True, False, False]
    assert measure.sentences[1].reason == "it cites nothing"


async def test_a_judge_that_fails_or_forgets_a_sentence_has_no_opinion() -> None:
    failed = ScriptedModel([ModelUnavailable("away")])
    forgetful = ScriptedModel([judgement(True)])

    first = await measure_answer(make_asked_case(f"{LIMIT} [1]"), failed)
    second = await measure_answer(make_asked_case(f"{LIMIT} [1] {KEYS} [2]"), forgetful)

    assert first.support is None
    assert [sentence.supported for sentence in second.sentences] == [True, None]


async def measures() -> tuple[AnswerMeasure, ...]:
    wide = GoldenCase("wide", "条件" * 60, must_say=(("あ" * 90,),), kind="種" * 80)
    long = GoldenCase("i" * 60, "How many? " * 30, must_say=(("nothing " * 30,),))
    return (
        await measure_answer(make_asked_case(f"{LIMIT} [1]")),
        await measure_answer(make_asked_case(f"{LIMIT} [1]", wide)),
        await measure_answer(make_asked_case("Sorry.", long, outcome="refused")),
    )


async def test_tables_fit_into_80_columns_whatever_is_in_them() -> None:
    variants = [MeasuredVariant(name, await measures()) for name in ("a" * 90, "模型" * 50)]

    lines = make_table_lines(variants)

    assert max(columns(line) for line in lines) <= WIDTH
    assert all(line == line.rstrip() for line in lines)


async def test_the_worst_answers_come_first() -> None:
    variant = MeasuredVariant("a", await measures())

    assert [measure.verdict for measure in variant.worst_first] == [
        "wrong refusal",
        "incomplete",
        "useful",
    ]
    assert summarize(variant)["verdicts"] == {"useful": 1, "incomplete": 1, "wrong refusal": 1}


async def test_a_page_shows_what_others_wrote_as_text() -> None:
    hostile = "</pre><script>alert(1)</script> ![x](http://evil.example)\u202e"
    case = GoldenCase(id="x", question=hostile, must_say=((hostile,),), turns=(hostile,))
    evidence = {1: f"{hostile}\n{LIMIT}"}
    asked = AskedCase(
        case, make_asked_case(f"{hostile} [1]").reply, evidence, CallTotals(), seconds=0.1
    )
    variant = MeasuredVariant(hostile, (await measure_answer(asked),))

    page = make_page([variant])

    assert "\u202e" not in page
    assert re.findall(r"<(?:script|img|a|link|iframe)\b", page) == []
    assert "default-src &#x27;none&#x27;" in page


def test_a_page_is_html_in_a_folder_that_exists(tmp_path: Path) -> None:
    check_page_path(tmp_path / "page.html")
    for path in (tmp_path / "page.txt", tmp_path / "nowhere" / "page.html"):
        with pytest.raises(CommandError, match="--page"):
            check_page_path(path)


async def test_passages_of_the_search_claim_nothing_and_are_measured_by_what_they_hold() -> None:
    case = GoldenCase("x", "How many?", must_say=(("50 requests",),))

    measure = await measure_answer(make_asked_case(LIMIT, case, answered_by="search"))

    assert (measure.verdict, measure.sentences, measure.cited) == ("useful", (), None)


def covers(answer: str, language: str = "en") -> list[tuple[int, ...]]:
    return [sentence.cites for sentence in split_covered(answer, language)]


@pytest.mark.parametrize(
    ("answer", "cites"),
    [
        ("It is fast. It is small. [2]", [(2,), (2,)]),
        ("It is fast. [1] It is small.", [(1,), ()]),
        ("It is fast.\n\nIt is small. [1]", [(), (1,)]),
        ("Do this:\n\n1. Open it.\n2. Close it. [3]", [(3,), (3,)]),
        ("Run this. [1]\n\n```\nmake it\n```", [(1,), (1,)]),
        ("```\nmake it\n```\n\n[2]", [(2,)]),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n\n[1][2]", [(1, 2)]),
        ("Yes.\n\nIt is so. [1]", [(1,)]),
        ("# A heading\n\nIt is so. [1]", [(1,)]),
    ],
)
def test_a_citation_covers_what_it_stands_under(answer: str, cites: list[tuple[int, ...]]) -> None:
    assert covers(answer) == cites


def test_notices_of_the_desk_about_an_answer_need_no_source() -> None:
    assert covers("I assume that you mean: the console\n\nIt is so. [1]") == [(1,)]
    assert covers("Ich nehme an, dass es so ist.\n\nSo ist es. [1]", "de") == [(), (1,)]


@pytest.mark.parametrize(
    ("answer", "statement"),
    [
        ("An account may make **50 requests**\nper second. [1]", ("50 requests per second",)),
        ("It is valid for seven days.", ("7 days", "seven days")),
        ("Set `must_say` to *True*.", ("must_say to true",)),
        ("Up to 1,000 rows.", ("1000 rows",)),
        ("It costs 0.004 EUR.", ("0.004 EUR",)),
        ("From 21:00\u201308:00 it waits.", ("21:00-08:00",)),
        ("条件は8個までです。", ("8個",)),
        ("It is 7[1] days.", ("7 days",)),
    ],
)
def test_a_statement_is_found(answer: str, statement: tuple[str, ...]) -> None:
    assert says(answer, statement)


@pytest.mark.parametrize(
    ("answer", "statement"),
    [
        ("150 requests", ("50",)),
        ("50.5 requests", ("50",)),
        ("3.50 EUR", ("50",)),
        ("Nothing is known.", ("no", "not")),
        ("extra_forbidden", ("forbid",)),
        ("my_alias", ("alias",)),
        ("It is in source [7].", ("7",)),
        ("", ("anything",)),
        ("anything", ("**",)),
    ],
)
def test_a_part_of_a_word_or_a_number_is_no_statement(
    answer: str, statement: tuple[str, ...]
) -> None:
    assert not says(answer, statement)


async def test_a_sentence_that_the_answer_after_a_change_does_not_support_is_lost() -> None:
    question = CheckQuestion("q", "How long?", "golden")
    before = make_asked_case("It is valid for 7 days [1]. It can be used once [1].")
    after = make_asked_case("It can be used once [1].")
    judge = ScriptedModel([judgement(False, True)])

    change = await judge_change(question, before, after, judge)

    assert [sentence for sentence, _ in change.lost] == ["It is valid for 7 days."]
    inputs = judge.calls[0].inputs
    assert isinstance(inputs, JudgeInputs)
    assert inputs.answer == change.before == "It is valid for 7 days. It can be used once."
    assert [source.text for source in inputs.sources] == [change.after] == ["It can be used once."]
    assert (change.error, inputs.language_name) == ("", "en")
