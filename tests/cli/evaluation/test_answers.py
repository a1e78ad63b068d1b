"""Golden questions go through the whole desk, and every answer is measured."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cli.evaluation.answers import AnswersPlan, run_answers
from cli.evaluation.desk_run import Variant
from cli.evaluation.golden import GoldenCase
from cli.evaluation.summaries import MeasuredVariant, summarize
from cli.main import main
from cli.printing import WIDTH, columns
from config.settings import Settings
from deploy.assembly.knowledge import open_knowledge
from deploy.errors import CommandError
from llm.tasks.search import JudgeOutput, RespondOutput
from tests.llm.vendor_dialects import OpenAI
from tests.support.app_harness import settings_of
from tests.support.model_server import ModelServer, running_server

pytestmark = pytest.mark.slow

PAGES = {
    "limits.md": "# API limits\n\nAn account may make 50 requests per second to the API. All keys "
    "of the account share the limit.\n",
    "invitations.md": "# Invite users\n\nAn invitation is valid for 7 days and can be used once. "
    "Owners and Admins invite users by e-mail.\n\nTo invite a user, open **Settings > Users** "
    "and choose **Invite**.\n",
    "webhooks.md": "# Webhook retries\n\nA failed webhook event is sent again up to 8 times, over "
    "almost 23 hours.\n",
}
GOLDEN = """\
[[question]]
id = "limit"
question = "How many requests per second may an account make to the API?"
must_say = ["50 requests per second"]
page = "limits.md"

[[question]]
id = "missed"
question = "How many times is a failed webhook event sent again?"
must_say = ["9 times"]
page = "webhooks.md"

[[question]]
id = "forbidden"
question = "How long is an invitation valid?"
must_say = ["7 days"]
must_not_say = ["once"]

[[question]]
id = "elsewhere"
question = "How many requests per second may an account make to the API?"
page = "webhooks.md"

[[question]]
id = "weather"
question = "What will the weather be like in Berlin tomorrow?"
expect = "refuse"
reason = "insufficient_context"

[[question]]
id = "refused-by-mistake"
question = "How do I bake bread without yeast?"
must_say = ["yeast"]

[[question]]
id = "follow-up"
turns = ["How long is an invitation valid?"]
question = "Who invites users by e-mail?"
must_say = ["Owners and Admins"]
page = "invitations.md"
"""
LIMIT = GoldenCase(
    id="limit",
    question="How many requests per second may an account make to the API?",
    must_say=(("50 requests per second",), ("every key of an account counts towards it",)),
    pages=("limits.md",),
)
MODEL = f"{OpenAI.model}@openai"
WIRE = OpenAI()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with golden questions and the documents that they are about."""
    folder = tmp_path / "golden"
    documents = folder / "documents"
    documents.mkdir(parents=True)
    for name, text in PAGES.items():
        (documents / name).write_text(text, encoding="utf-8")
    (folder / "golden.toml").write_text(GOLDEN, encoding="utf-8")
    return folder


@pytest.fixture
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REFDESK_DATA", str(tmp_path / "desk"))
    monkeypatch.setenv("DOMAIN_NAME", "SMS platform documentation")


@pytest.mark.usefixtures("_elsewhere")
def test_every_answer_gets_its_verdict_on_a_page_and_in_80_columns(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"

    status = main(("evaluate", "answers", "--data", str(data), "--page", str(page)))

    said = capsys.readouterr()
    assert status == 0
    assert max(columns(line) for line in said.out.splitlines()) <= WIDTH
    assert "3/7" in said.out
    assert "as configured: question 7 of 7" in said.err
    html = page.read_text("utf-8")
    assert html.index("refused-by-mistake: ") < html.index("missed: ") < html.index("limit: ")
    assert "<script" not in html
    verdicts = dict(
        re.findall(r"<h2>([a-z-]+): .*?class=\"verdict\">([a-z ]+?)(?: \(|;|<)", html, re.DOTALL)
    )
    assert verdicts == {
        "limit": "useful",
        "missed": "incomplete",
        "forbidden": "contains forbidden text",
        "elsewhere": "wrong page",
        "weather": "useful",
        "refused-by-mistake": "wrong refusal",
        "follow-up": "useful",
    }


@pytest.mark.usefixtures("_elsewhere")
def test_one_question_can_be_run_again_alone(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(("evaluate", "answers", "--data", str(data), "--only", "limit", "--json"))

    [figures] = json.loads(capsys.readouterr().out)
    [answer] = figures["answers"]
    assert (figures["questions"], answer["id"], answer["verdict"]) == (1, "limit", "useful")
    assert (answer["sentences"], answer["cited"]) == ([], None)  # passages claim nothing
    assert not (tmp_path / "desk").exists()  # the desk's own data is not touched


@pytest.mark.usefixtures("_elsewhere")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--page", "page.pdf"), "the file of --page must have the suffix .html, found 'page.pdf'"),
        (("--prompts", "."), "--prompts requires a model"),
        (("--only", "nobody"), "expected ids of golden questions (limit, missed"),
        (("--model", "offline", "--model", "gpt-5@nowhere"), "found 'gpt-5@nowhere'"),
        (("--judge", "gpt-5@openai"), "OPENAI_API_KEY"),
        (
            ("--model", "gpt-5@openai", "--prompts", "golden"),
            "expected some of citation_auditor.txt, clarify.txt, ",
        ),
        (("--questions", "none.toml"), "none.toml cannot be read: No such file"),
    ],
)
def test_a_run_that_cannot_end_well_is_refused_before_anything_is_asked(
    words: tuple[str, ...], message: str, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(("evaluate", "answers", "--data", str(data), *words))

    said = capsys.readouterr()
    assert status == 1
    assert message in said.err
    assert "question 1" not in said.err


def respond(text: str) -> RespondOutput:
    return RespondOutput(status="answered", answer=text, confidence=0.9)


def judgement(*supported: bool) -> JudgeOutput:
    return JudgeOutput.model_validate(
        {
            "verdicts": [
                {"passage": n, "quote": "x", "supported": found, "reason": "as the judge says"}
                for n, found in enumerate(supported, start=1)
            ],
            "claims_read": len(supported),
            "completeness": 1.0,
            "accuracy": 1.0,
            "language_matches": True,
            "decision": "approve",
        }
    )


def server_settings(server: ModelServer, folder: Path) -> Settings:
    """Settings in which only the answers are written by the vendor's model."""
    offline = ("guardrails", "quality", "translation", "essence", "clarification")
    return settings_of(
        folder,
        gen_model=MODEL,
        openai_api_key="secret-key",
        openai_base_url=WIRE.base_url(server.url),
        **{f"{task}_model": "offline" for task in offline},
    )


async def run(settings: Settings, data: Path, **changes: Any) -> tuple[MeasuredVariant, ...]:
    plan = AnswersPlan(
        **{
            "cases": (LIMIT,),
            "variants": (Variant(),),
            "documents": (data / "documents",),
            **changes,
        }
    )
    return await run_answers(settings, plan, lambda _line: None)


async def test_folders_of_prompts_are_compared(data: Path, tmp_path: Path) -> None:
    own = tmp_path / "short"
    own.mkdir()
    (own / "respond.txt").write_text("Be short.\n---\n{{ question | data('question') }}\n")
    async with running_server() as server:
        for text in ("The API takes 50 requests per second. [1]", "It is 50 per second. [1]"):
            server.will_send(WIRE.answer(respond(text).model_dump_json()))
        usual, short = await run(
            server_settings(server, tmp_path / "desk"),
            data,
            variants=(Variant(), Variant(prompts=own)),
        )

    sent = [WIRE.said(request) for request in server.received]
    assert (usual.name, short.name) == ("as configured", "as configured + short")
    assert sent[1][0] == ("system", "Be short.")
    assert [measure.missing[0] for measure in short.measures] == ["50 requests per second"]
    figures = summarize(usual)
    assert (figures["calls"], figures["input_tokens"], figures["output_tokens"]) == (1, 100, 20)
    assert figures["unknown_costs"] == 1  # nobody knows the prices of a server of one's own


async def test_a_judge_says_which_sentences_and_statements_the_answer_supports(
    data: Path, tmp_path: Path
) -> None:
    async with running_server() as server:
        text = "An account may make 50 requests per second to the API. [1]"
        server.will_send(
            WIRE.answer(respond(text).model_dump_json()),
            WIRE.answer(judgement(False).model_dump_json()),
            WIRE.answer(judgement(True).model_dump_json()),
        )
        [variant] = await run(server_settings(server, tmp_path / "desk"), data, judge=MODEL)

    [measure] = variant.measures
    [sentence] = measure.sentences
    assert (sentence.supported, sentence.reason) == (False, "as the judge says")
    assert (measure.cited, measure.support) == (1.0, 0.0)
    assert measure.missing == ()


async def test_without_other_documents_the_desks_own_are_asked(library: Path, data: Path) -> None:
    case = GoldenCase("rules", "How do I configure SMS routing rules?", must_say=(("New rule",),))

    [variant] = await run(settings_of(library), data, cases=(case,), documents=())

    [measure] = variant.measures
    assert (measure.verdict, measure.support) == ("useful", None)


async def test_documents_that_another_process_owns_are_not_asked(library: Path, data: Path) -> None:
    async with open_knowledge(settings_of(library)):
        with pytest.raises(CommandError, match="specify the documents with --documents"):
            await run(settings_of(library), data, documents=())


async def test_a_desk_without_documents_is_not_asked(data: Path, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="there are no documents: specify them with --documents"):
        await run(settings_of(tmp_path / "desk"), data, documents=())
