"""A whole desk answers by a swarm: with the rules, and with a scripted model that plans."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llm.errors import ModelUnavailable
from llm.port import ModelMessage, ToolUse
from llm.tasks.swarm import (
    FoundContradiction,
    GivenFact,
    MissingFact,
    PlannedWorker,
    PlanSwarmOutput,
    ReadFactsOutput,
    SynthesizeFindingsOutput,
    TableCell,
)
from llm.tasks.tool_loop import TriageOutput
from tests.desk.conftest import OpenApp
from tests.desk.test_tool_way import list_requests, write_tools
from tests.support.app_harness import Fields, PartlyScriptedModel, judge_all
from tests.support.ticket_server import run_ticket_server

pytestmark = pytest.mark.slow

SIMPLE = "How often is a failed webhook event sent again?"
LARGE = "Compare what the webhooks, the REST API and SMPP say about retries"
ANSWER = "A failed webhook event is sent again up to 8 times."
RETRIES = PlannedWorker(
    role="research", objective="How often is a failed webhook event sent again?"
)
ERRORS = PlannedWorker(role="research", objective="Which errors of the REST API should be retried?")


def decide(*workers: PlannedWorker, **changes: Any) -> PlanSwarmOutput:
    """The decision of a planning model."""
    fields = {"reasoning": "two parts", "action": "orchestrate", "complexity": 0.6, **changes}
    return PlanSwarmOutput.model_validate({**fields, "workers": workers})


def search(query: str) -> ModelMessage:
    use = ToolUse(call_id="a", name="search", arguments={"query": query, "limit": 3})
    return ModelMessage(calls=(use,))


def work_by_search(conversation: Any) -> ModelMessage:
    """Search for the brief once, then end."""
    [brief, *further] = conversation.messages
    return ModelMessage(text="Found.") if further else search(brief.text)


BY_SEARCH = [work_by_search] * 8


def cite(phrase: str, text: str = ANSWER, **fields: Any) -> Any:
    """Answer with the source that has `phrase`."""

    def answer(inputs: Any) -> SynthesizeFindingsOutput:
        number = next(source.number for source in inputs.sources if phrase in source.text)
        return SynthesizeFindingsOutput(answer=f"{text} [{number}]", **fields)

    return answer


def list_states(reply: Fields) -> list[str]:
    return [task["state"] for task in reply["tasks"]]


async def test_without_a_model_each_listed_item_has_its_closest_passage(open_app: OpenApp) -> None:
    async with open_app(way="swarm") as harness:
        driver = harness.driver()
        reply = await driver.say(LARGE)
        roles = await driver.roles(reply)

    assert (reply["outcome"], reply["way"]) == ("answered", "swarm")
    assert reply["routing"]["strategy"] == "listed"
    assert [task["title"] for task in reply["tasks"]] == ["webhooks", "REST API", "SMPP"]
    assert set(list_states(reply)) == {"completed"}
    assert reply["sources"]
    assert "**webhooks: " in reply["text"]
    for number, _ in enumerate(reply["sources"], start=1):
        assert reply["text"].count(f"[{number}]") == 1
    assert roles[roles.index("plan") :][:3] == ["plan", "gather", "ledger"]
    assert roles[-2:] == ["synthesize", "quality"]


async def test_without_a_model_code_is_shown_in_its_lines_and_what_is_missing_is_named(
    open_app: OpenApp,
) -> None:
    async with open_app(way="swarm") as harness:
        reply = await harness.driver().say(
            "Compare webhook signatures in Python, JavaScript and Rust"
        )

    assert "**Python: " in reply["text"]
    assert "```python\nimport hashlib\nimport hmac\n" in reply["text"]
    assert "**Rust**: not found in the passages" in reply["text"]
    assert reply["text"].count("Rust") == 1


async def test_without_a_model_the_points_of_a_list_stay_on_their_lines(open_app: OpenApp) -> None:
    async with open_app(way="swarm") as harness:
        reply = await harness.driver().say("Compare the roles Owner, Admin and Developer")

    assert "**Owner, Admin: " in reply["text"]
    assert "\n- [ ] At least two people can act as Admin" in reply["text"]


async def test_a_question_that_a_planner_finds_simple_is_left_to_one_search(
    open_app: OpenApp,
) -> None:
    model = PartlyScriptedModel(plan_swarm=[decide(action="simple_response")])

    async with open_app(model, way="swarm") as harness:
        reply = await harness.driver().say(SIMPLE)

    assert (reply["outcome"], reply["way"]) == ("answered", "search")
    assert reply["routing"]["action"] == "simple_response"
    assert "way_fallback" not in reply


async def test_the_texts_of_workers_reach_the_writer_and_a_table_reports_an_absence_once(
    open_app: OpenApp,
) -> None:
    def work(conversation: Any) -> ModelMessage:
        [brief, *further] = conversation.messages
        if not further:
            return search("webhook retries" if "webhook" in brief.text else "REST API errors")
        [result, *_] = [item for item in further if item.kind == "tool"]
        return ModelMessage(text=f"Sent again up to 8 times [{result.sources[0]}].")

    def write(inputs: Any) -> SynthesizeFindingsOutput:
        number = next(source.number for source in inputs.sources if "up to 8 times" in source.text)
        cell = TableCell(item="webhooks", criterion="retries", finding=f"up to 8 times [{number}]")
        return SynthesizeFindingsOutput(answer=f"{ANSWER} [{number}]", cells=(cell,))

    plan = decide(
        RETRIES.model_copy(update={"item": "webhooks"}),
        ERRORS.model_copy(update={"item": "REST API"}),
        items=("webhooks", "REST API"),
        criteria=("retries",),
    )
    model = PartlyScriptedModel(
        plan_swarm=[plan], work_on_task=[work] * 4, synthesize_findings=[write]
    )

    async with open_app(model, way="swarm") as harness:
        reply = await harness.driver().say(SIMPLE)

    [asked] = model.find_asked("synthesize_findings")
    brief = model.find_asked("work_on_task")[0].prompt
    assert [finding.text for finding in asked.findings] == [
        "Sent again up to 8 times [1]."
    ] * 2 or all("up to 8 times [" in finding.text for finding in asked.findings)
    assert (brief.criteria, brief.question) == (("retries",), SIMPLE)
    assert brief.documents
    assert "| webhooks | up to 8 times [1] |" in reply["text"]
    assert "| REST API | not found in the passages |" in reply["text"]
    assert reply["text"].count("not found") == 1
    assert "Answered parts" not in reply["text"]


async def test_a_contradiction_is_the_finding_of_the_model_with_both_sources(
    open_app: OpenApp,
) -> None:
    result = FoundContradiction(about="8 times, or 3 times", one=1, other=2)
    invented = result.model_copy(update={"other": 99})
    model = PartlyScriptedModel(
        plan_swarm=[decide(RETRIES, ERRORS)],
        work_on_task=BY_SEARCH,
        synthesize_findings=[cite("up to 8 times", contradictions=(result, invented))],
        judge=[judge_all("approve")],
    )

    async with open_app(model, way="swarm") as harness:
        reply = await harness.driver().say(SIMPLE)

    assert reply["text"].count("8 times, or 3 times") == 1
    assert "The sources contradict each other:" in reply["text"]


async def test_workers_of_a_model_run_their_own_tools_and_one_answer_is_written(
    open_app: OpenApp,
) -> None:
    model = PartlyScriptedModel(
        plan_swarm=[decide(RETRIES, ERRORS)],
        work_on_task=[work_by_search] * 4,
        synthesize_findings=[cite("up to 8 times")],
        judge=[judge_all("approve")],
    )

    async with open_app(model, way="swarm") as harness:
        reply = await harness.driver().say(SIMPLE)

    assert (reply["outcome"], reply["text"]) == ("answered", f"{ANSWER} [1]")
    assert reply["way"] == "swarm"
    assert list_states(reply) == ["completed", "completed"]
    assert [call["tool_name"] for call in reply["tool_calls"]] == ["search", "search"]
    model.script.assert_complete()


async def test_a_planner_that_fails_leaves_the_question_to_one_search(open_app: OpenApp) -> None:
    model = PartlyScriptedModel(plan_swarm=[ModelUnavailable("away")])

    async with open_app(model, way="swarm") as harness:
        reply = await harness.driver().say(SIMPLE)

    assert (reply["outcome"], reply["way_fallback"]) == ("answered", "plan.failed")


async def test_a_worker_that_fails_again_and_again_is_done_without_and_named(
    open_app: OpenApp,
) -> None:
    def work(conversation: Any) -> ModelMessage:
        if "errors" in conversation.messages[0].text:
            raise ModelUnavailable("away")
        return work_by_search(conversation)

    model = PartlyScriptedModel(
        plan_swarm=[decide(RETRIES, ERRORS)],
        work_on_task=[work] * 10,
        synthesize_findings=[cite("up to 8 times")],
    )

    async with open_app(model, way="swarm", swarm_retries=2) as harness:
        reply = await harness.driver().say(SIMPLE)

    assert reply["outcome"] == "answered"
    assert list_states(reply) == ["completed", "failed"]
    assert [task["attempts"] for task in reply["tasks"]] == [1, 3]
    assert reply["text"].startswith(f"{ANSWER} [1]")
    assert (
        f"Answered parts of the question: 1 of 2. Not answered: {ERRORS.objective[:-1]} "
        "(could not be looked up: the model was not available)." in reply["text"]
    )


async def test_auto_divides_only_what_triage_finds_very_complex(open_app: OpenApp) -> None:
    judged = TriageOutput(complexity=85, vagueness=0.1, reasoning="many documents")
    model = PartlyScriptedModel(
        triage=[judged],
        plan_swarm=[decide(RETRIES, ERRORS)],
        work_on_task=BY_SEARCH,
        synthesize_findings=[cite("up to 8 times")],
    )

    async with open_app(model, way="auto") as harness:
        reply = await harness.driver().say(SIMPLE)

    assert (reply["way"], reply["triage"]["way"]) == ("swarm", "swarm")
    assert reply["outcome"] == "answered"


async def test_the_caller_chooses_the_strategy_and_a_council_has_members_of_different_sides(
    open_app: OpenApp,
) -> None:
    sides = [
        PlannedWorker(role="analysis", specialization=name, objective=f"{name}: retries?")
        for name in ("advocate", "critic", "practitioner")
    ]
    model = PartlyScriptedModel(
        plan_swarm=[decide(*sides[:2]), decide(*sides)],
        work_on_task=BY_SEARCH,
        synthesize_findings=[cite("up to 8 times")],
    )

    async with open_app(model, way="swarm") as harness:
        driver = harness.driver()
        message = replace(driver.message(SIMPLE), strategy="council", persona="a patient tutor")
        reply: Any = await harness.desk.ask(message)

    assert (reply["outcome"], reply["way"]) == ("answered", "swarm")
    assert reply["routing"]["strategy"] == "council"
    assert [task["title"] for task in reply["tasks"]] == ["advocate", "critic", "practitioner"]
    assert "at least 3 members" in model.find_asked("plan_swarm")[1].problems[0]
    assert "No dissent was found" in reply["text"]


async def test_a_strategy_that_does_not_exist_costs_only_its_name_and_the_planner_chooses(
    open_app: OpenApp,
) -> None:
    model = PartlyScriptedModel(
        plan_swarm=[decide(RETRIES, ERRORS)],
        work_on_task=[work_by_search] * 4,
        synthesize_findings=[cite("up to 8 times")],
        judge=[judge_all("approve")],
    )

    async with open_app(model, way="swarm") as harness:
        driver = harness.driver()
        reply: Any = await harness.desk.ask(replace(driver.message(SIMPLE), strategy="debate"))

    assert (reply["outcome"], "way_fallback" in reply) == ("answered", False)
    assert reply["routing"]["strategy"] == "intelligent"
    assert reply["routing"]["strategy_reason"].startswith("the request names 'debate', which does")


async def test_a_judge_that_rejects_gets_another_text_then_another_plan(open_app: OpenApp) -> None:
    model = PartlyScriptedModel(
        plan_swarm=[decide(RETRIES), decide(ERRORS)],
        work_on_task=BY_SEARCH,
        synthesize_findings=[cite("up to 8 times")] * 3,
        judge=[judge_all("regenerate"), judge_all("research"), judge_all("approve")],
    )

    async with open_app(model, way="swarm") as harness:
        driver = harness.driver()
        reply = await driver.say(SIMPLE)
        roles = await driver.roles(reply)

    assert [role for role in roles if role in {"plan", "synthesize", "quality"}] == [
        "plan", "synthesize", "quality", "synthesize", "quality", "plan", "synthesize", "quality",
    ]  # fmt: skip
    assert reply["text"] == f"{ANSWER} [1]"


def ask_for_aspect(*workers: PlannedWorker) -> PlanSwarmOutput:
    needed = MissingFact(
        name="aspect", question="Which aspect?", type="choice", choices=("history", "cost")
    )
    return decide(*workers, needed=(needed,))


def make_asking_model() -> PartlyScriptedModel:
    return PartlyScriptedModel(
        plan_swarm=[ask_for_aspect(RETRIES)] * 2,
        work_on_task=BY_SEARCH,
        synthesize_findings=[cite("up to 8 times")] * 2,
    )


async def test_facts_that_only_the_user_knows_are_asked_once_and_the_work_goes_on(
    open_app: OpenApp,
) -> None:
    model = make_asking_model()

    async with open_app(model, way="swarm") as harness:
        driver = harness.driver()
        asked = await driver.say("Research delivery reports")
        answered = await driver.say("history")
        [collected] = await driver.read_writes(answered, "gather")
        roles = await driver.roles(answered)

    [question] = asked["pause"]["questions"]
    [written] = model.find_asked("synthesize_findings")
    assert (asked["outcome"], asked["pause"]["kind"]) == ("clarification", "information")
    assert (question["field"]["name"], question["field"]["choices"]) == (
        "aspect", ["history", "cost"],
    )  # fmt: skip
    assert collected["collected_info"] == {"aspect": "history"}
    assert written.facts == ("aspect: history",)
    assert (answered["outcome"], answered["way"]) == ("answered", "swarm")
    assert roles[0] == "gather", "nothing before the pause is done again"


SEATS = MissingFact(name="seats", question="How many seats?", type="number")
COUNTRY = MissingFact(
    name="country", question="Which country?", type="choice", choices=("Austria", "Germany")
)
START = MissingFact(name="start_day", question="When do you begin?", type="date")


def read_as(is_reply: bool = True, **values: str) -> Any:
    """Return what a model reads in a reply: these values."""
    facts = tuple(GivenFact(name=name, value=value) for name, value in values.items())
    return ReadFactsOutput(is_reply=is_reply, facts=facts)


def make_model_that_needs(*needed: MissingFact, **script: Any) -> PartlyScriptedModel:
    return PartlyScriptedModel(
        plan_swarm=[decide(RETRIES, needed=needed)],
        work_on_task=BY_SEARCH,
        synthesize_findings=[cite("up to 8 times")],
        **script,
    )


@pytest.mark.parametrize(
    "reply",
    [
        "1. 12 / 2. Austria / 3. 01.12.2026",
        "12 seats, Austria, from the first of December",
        "twelve, in Vienna, starting 1 December 2026",
        "Zwölf Plätze in Österreich ab 1. Dezember 2026",
        "we begin on 2026-12-01 with a dozen; Austria",
        "12\nAustria\n1 Dec 2026",
    ],
)
async def test_facts_in_the_words_of_the_user_are_read_by_the_model_and_the_plan_is_paid_once(
    open_app: OpenApp, reply: str
) -> None:
    read = read_as(seats="12", country="Austria", start_day="2026-12-01")
    model = make_model_that_needs(SEATS, COUNTRY, START, read_facts=[read])

    async with open_app(model, way="swarm") as harness:
        driver = harness.driver()
        await driver.say("Research delivery reports")
        answered = await driver.say(reply)
        [collected] = [
            write
            for write in await driver.read_writes(answered, "gather")
            if "collected_info" in write
        ]

    [asked] = model.find_asked("read_facts")
    assert asked.reply == reply
    assert collected["collected_info"] == {
        "seats": 12.0, "country": "Austria", "start_day": "2026-12-01",
    }  # fmt: skip
    assert (answered["outcome"], answered["way"]) == ("answered", "swarm")
    assert answered["model_usage"]["by_agent"]["read_facts"]["calls"] == 1
    assert len(model.find_asked("plan_swarm")) == 1


async def test_only_the_facts_that_a_reply_leaves_open_are_asked_again(open_app: OpenApp) -> None:
    model = make_model_that_needs(
        SEATS, COUNTRY, read_facts=[read_as(seats="12"), read_as(country="Austria")]
    )

    async with open_app(model, way="swarm") as harness:
        driver = harness.driver()
        await driver.say("Research delivery reports")
        asked = await driver.say("a dozen")
        answered = await driver.say("the one with Vienna in it")

    assert asked["outcome"] == "clarification"
    assert [question["field"]["name"] for question in asked["pause"]["questions"]] == ["country"]
    assert answered["outcome"] == "answered"
    assert len(model.find_asked("plan_swarm")) == 1


async def test_a_fact_that_the_user_does_not_tell_is_not_asked_again(open_app: OpenApp) -> None:
    read = ReadFactsOutput(
        is_reply=True, facts=(GivenFact(name="country", value="Austria"),), declined=("seats",)
    )
    model = make_model_that_needs(SEATS, COUNTRY, read_facts=[read])

    async with open_app(model, way="swarm") as harness:
        driver = harness.driver()
        await driver.say("Research delivery reports")
        answered = await driver.say("We are in Austria, the number of seats is confidential.")

    assert (answered["outcome"], answered["way"]) == ("answered", "swarm")
    [brief, *_] = model.find_asked("work_on_task")
    assert brief.prompt.known == {"country": "Austria", "seats": None}


async def test_a_message_that_the_model_reads_as_something_else_is_a_question_of_its_own(
    open_app: OpenApp,
) -> None:
    model = make_model_that_needs(SEATS, COUNTRY, read_facts=[read_as(is_reply=False)])

    async with open_app(model, way="swarm") as harness:
        driver = harness.driver()
        await driver.say("Research delivery reports")
        roles = await driver.roles(await driver.say("Tell me about the errors of the REST API"))

    assert roles[:2] == ["gather", "lang"]


async def test_without_a_model_that_reads_them_facts_are_asked_one_by_one(
    open_app: OpenApp,
) -> None:
    model = make_model_that_needs(
        SEATS, COUNTRY, read_facts=[ModelUnavailable("away"), ModelUnavailable("away")]
    )

    async with open_app(model, way="swarm") as harness:
        driver = harness.driver()
        await driver.say("Research delivery reports")
        first = await driver.say("twelve, Austria")
        second = await driver.say("12")
        answered = await driver.say("Austria")

    assert "How many seats?" in first["text"]
    assert "Which country?" not in first["text"]
    assert "Which country?" in second["text"]
    assert answered["outcome"] == "answered"


async def test_a_new_question_instead_of_the_facts_is_answered_as_one(open_app: OpenApp) -> None:
    async with open_app(make_asking_model(), way="swarm") as harness:
        driver = harness.driver()
        await driver.say("Research delivery reports")
        answered = await driver.say(SIMPLE)

    assert (answered["outcome"], answered["pause"]["kind"]) == ("clarification", "information")


async def plan_risky(open_app: OpenApp, folder: Path, *replies: str) -> tuple[list[Fields], Any]:
    """Ask with a plan whose worker may delete a ticket; return the replies and the requests."""
    worker = PlannedWorker(
        role="research",
        objective="deleteTicket 7: delete the ticket about webhook retries",
        tools=("deleteTicket", "search"),
    )

    def work(conversation: Any) -> ModelMessage:
        if len(conversation.messages) > 1:
            return ModelMessage(text="Deleted.")
        use = ToolUse(call_id="b", name="deleteTicket", arguments={"id": "7"})
        return ModelMessage(calls=(*search("webhook retries").calls, use))

    model = PartlyScriptedModel(
        plan_swarm=[decide(worker, RETRIES)],
        work_on_task=[lambda inputs: work(inputs)] * 8,
        synthesize_findings=[cite("up to 8 times")] * 2,
    )
    async with run_ticket_server() as server:
        outside = write_tools(folder, server)
        async with open_app(model, way="swarm", outside_tools=outside) as harness:
            driver = harness.driver()
            said = [await driver.say(SIMPLE)]
            said += [await driver.say(reply) for reply in replies]
        return said, (list_requests(server), len(model.find_asked("work_on_task")))


async def test_a_risky_plan_begins_after_its_approval_and_each_dangerous_call_after_its_own(
    open_app: OpenApp, tmp_path: Path
) -> None:
    said, (requests, steps) = await plan_risky(open_app, tmp_path, "yes", "Approve")

    plan, call, answered = said
    assert (plan["outcome"], plan["pause"]["kind"]) == ("clarification", "approval")
    assert "2 workers that may use deleteTicket: at most 13 calls of models" in plan["text"]
    assert "(models: price unknown)" in plan["text"]
    assert (call["outcome"], call["pause"]["kind"]) == ("clarification", "approval")
    assert 'Shall I run “deleteTicket”? With: `{"id": "7"}`' in call["text"]
    assert requests == ["DELETE /v2/tickets/7 HTTP/1.1"]
    assert answered["outcome"] == "answered"
    assert list_states(answered) == ["completed", "completed"]
    assert answered["text"].endswith("Carried out: deleteTicket.")
    assert steps == 4, "no message of a worker is paid twice"


async def test_a_plan_that_is_denied_ends_with_one_search_and_says_so(
    open_app: OpenApp, tmp_path: Path
) -> None:
    said, (requests, steps) = await plan_risky(open_app, tmp_path, "No")

    assert (said[1]["outcome"], said[1]["way_fallback"]) == (
        "answered", "synthesize.insufficient_results",
    )  # fmt: skip
    assert (requests, steps) == ([], 0)


async def test_a_call_that_is_denied_ends_with_what_is_there(
    open_app: OpenApp, tmp_path: Path
) -> None:
    said, (requests, _) = await plan_risky(open_app, tmp_path, "Approve", "Deny")

    assert said[2]["outcome"] == "answered"
    assert "Answered parts of the question: 1 of 2" in said[2]["text"]
    assert requests == []
    assert list_states(said[1]) == ["awaiting_input", "completed"]
    assert list_states(said[2]) == ["cancelled", "completed"]


async def test_a_new_topic_cancels_the_tasks_that_wait_for_the_user(
    open_app: OpenApp, tmp_path: Path
) -> None:
    said, _ = await plan_risky(open_app, tmp_path, "Approve", "Which errors does SMPP have?")

    assert list_states(said[1]) == ["awaiting_input", "completed"]
    assert said[2]["cancelled_tasks"] == [said[1]["tasks"][0]["title"]]
    assert said[2]["message_id"] != said[1]["message_id"]


async def test_thanks_while_tasks_wait_cancel_nothing(open_app: OpenApp, tmp_path: Path) -> None:
    said, (requests, _) = await plan_risky(open_app, tmp_path, "Approve", "Thanks!", "Approve")

    assert "cancelled_tasks" not in said[2]
    assert list_states(said[3]) == ["completed", "completed"]
    assert len(requests) == 1


async def test_a_worker_that_needs_the_user_goes_on_with_the_answer_and_pays_nothing_twice(
    open_app: OpenApp,
) -> None:
    def work(conversation: Any) -> ModelMessage:
        [brief, *further] = conversation.messages
        if "errors" in brief.text:
            return work_by_search(conversation)
        if not further:
            use = ToolUse(call_id="q", name="ask_user", arguments={"question": "Which event?"})
            return ModelMessage(calls=(use,))
        return search("webhook retries") if len(further) <= 2 else ModelMessage(text="Found.")

    model = PartlyScriptedModel(
        plan_swarm=[decide(RETRIES, ERRORS)],
        work_on_task=[work] * 8,
        synthesize_findings=[cite("up to 8 times")],
    )

    async with open_app(model, way="swarm") as harness:
        driver = harness.driver()
        asked = await driver.say(SIMPLE)
        answered = await driver.say("message.delivered")

    steps = model.find_asked("work_on_task")
    results = [message.text for message in steps[3].messages if message.kind == "tool"]
    assert (asked["outcome"], asked["pause"]["kind"]) == ("clarification", "information")
    assert "Which event?" in asked["text"]
    assert results == ["message.delivered"]
    assert (answered["outcome"], list_states(answered)) == ("answered", ["completed", "completed"])
    assert len(steps) == 5


async def test_without_a_model_a_persona_has_no_effect_and_the_answer_says_so(
    open_app: OpenApp,
) -> None:
    async with open_app(way="swarm") as harness:
        driver = harness.driver()
        reply: Any = await harness.desk.ask(replace(driver.message(SIMPLE), persona="a tutor"))
        plain: Any = await harness.desk.ask(driver.message(SIMPLE))

    assert "The requested persona has no effect without a model" in reply["text"]
    assert "persona" not in plain["text"]


async def test_a_model_has_the_voice_and_says_whether_anything_disagrees(open_app: OpenApp) -> None:
    sides = [
        PlannedWorker(role="analysis", specialization=name, objective=f"{name}: retries?")
        for name in ("advocate", "critic", "practitioner")
    ]
    model = PartlyScriptedModel(
        plan_swarm=[decide(*sides)] * 2,
        work_on_task=[work_by_search] * 16,
        synthesize_findings=[cite("up to 8 times", dissents=True), cite("up to 8 times")],
    )

    async with open_app(model, way="swarm") as harness:
        driver = harness.driver()
        message = driver.message(SIMPLE)
        first: Any = await harness.desk.ask(replace(message, strategy="council", persona="a tutor"))
        second: Any = await harness.desk.ask(replace(driver.message(SIMPLE), strategy="council"))

    assert model.find_asked("synthesize_findings")[0].persona == "a tutor"
    assert first["routing"]["strategy_reason"] == "the request specifies the strategy"
    assert "persona" not in first["text"]
    assert "dissent" not in first["text"]
    assert "No dissent was found" in second["text"]


def fail_on(phrase: str, error: str) -> Any:
    """Work by a search; the vendor refuses every call about `phrase`."""

    def work(conversation: Any) -> ModelMessage:
        if phrase in conversation.messages[0].text:
            raise ModelUnavailable(error)
        return work_by_search(conversation)

    return work


async def test_a_round_in_which_the_same_workers_fail_again_pays_no_further_answer(
    open_app: OpenApp,
) -> None:
    model = PartlyScriptedModel(
        plan_swarm=[decide(RETRIES, ERRORS)],
        work_on_task=[fail_on("errors", "no such model")] * 20,
        synthesize_findings=[cite("up to 8 times")] * 4,
        judge=[judge_all("research")] * 4,
    )

    async with open_app(model, way="swarm", swarm_retries=0) as harness:
        reply = await harness.driver().say(SIMPLE)

    paid = {name: len(model.find_asked(name)) for name in ("synthesize_findings", "judge")}
    assert paid == {"synthesize_findings": 1, "judge": 1}
    assert (reply["outcome"], reply["termination_reason"]) == ("answered", "no_better_answer")
    assert f"{ANSWER} [1]" in reply["text"]
    assert reply["text"].endswith(
        f"Not answered: {ERRORS.objective[:-1]} "
        "(could not be looked up: the model was not available)."
    )


async def test_a_round_in_which_a_failed_worker_succeeds_is_written_and_judged(
    open_app: OpenApp,
) -> None:
    failed = fail_on("errors", "busy")
    model = PartlyScriptedModel(
        plan_swarm=[decide(RETRIES, ERRORS)],
        work_on_task=[failed] * 3 + BY_SEARCH,
        synthesize_findings=[cite("up to 8 times")] * 2,
        judge=[judge_all("research"), judge_all("approve")],
    )

    async with open_app(model, way="swarm", swarm_retries=0) as harness:
        reply = await harness.driver().say(SIMPLE)

    assert (reply["outcome"], reply["text"]) == ("answered", f"{ANSWER} [1]")
    assert len(model.find_asked("synthesize_findings")) == 2
