import pytest

from agents.quality import QualityAgent, Reads, Writes
from citations.feedback import parse_unsupported
from envelope.conversation import ClarificationReason
from envelope.outcome import Wrote
from envelope.sources import SourceReference, SourceUsed
from llm.errors import UnreadableOutput
from llm.offline.model import OfflineModel
from llm.port import Model
from llm.scripted import ScriptedModel
from llm.tasks.judge import ClaimVerdict, Inputs, Output

CHUNKS = (
    "A rule may have up to 8 conditions. All of them must match.",
    "Правило действует не позднее чем через 60 секунд.",
    "规则最多有八个条件。",
    "```bash\nrefresh --all\n```",
)
LANGUAGES = ("en", "ru", "zh", "en")
GOOD = "A rule may have up to 8 conditions. [1]"
APPROVAL = Output(
    verdicts=(ClaimVerdict(number=1, supported=True, support=1.0),),
    completeness=1.0,
    language_matches=True,
    decision="approve",
)


class Frame:
    """Texts that show what they were asked for."""

    languages = ("en",)

    def text(self, key: str, language: str, **values: str) -> str:
        return f"<{key} in {language}> {', '.join(values.values())}".strip()


def verdicts_of(*supported: bool) -> tuple[ClaimVerdict, ...]:
    return tuple(
        ClaimVerdict(number=number, supported=one, support=float(one), reason="" if one else "no")
        for number, one in enumerate(supported, start=1)
    )


def reads(
    response: str,
    *,
    language: str = "en",
    attempt: int = 0,
    assumption: str = "",
    missing: str = "",
) -> Reads:
    context = "\n\n".join(CHUNKS)
    numbered = list(enumerate(zip(CHUNKS, LANGUAGES, strict=True), start=1))
    return Reads(
        response=response,
        search_context=context,
        canonical_question="How many conditions may a rule have?",
        source_references=tuple(
            # The numbers of the search are not those of the answer.
            SourceReference(
                number=number + 10,
                chunk_id=f"page#{number}",
                title="Rules",
                language=spoken,
                span=(context.index(chunk), context.index(chunk) + len(chunk)),
            )
            for number, (chunk, spoken) in numbered
        ),
        sources_used=tuple(
            SourceUsed(number=number, chunk_id=f"page#{number}", title="Rules", language=spoken)
            for number, (_, spoken) in numbered
            if f"[{number}]" in response
        ),
        language=language,
        attempt=attempt,
        assumption=assumption,
        missing=missing,
    )


async def judge(model: Model, what: Reads) -> Writes:
    outcome = await QualityAgent(model=model, texts=Frame()).work(what)
    assert isinstance(outcome, Wrote)
    return outcome.writes


async def test_an_answer_that_stands_in_its_sources_is_approved() -> None:
    writes = await judge(OfflineModel(), reads(GOOD))

    assert writes.quality_decision == "approve"
    assert writes.quality_score >= 0.7
    assert writes.validation_result.grounded
    assert writes.validation_result.judge == "offline"


async def test_a_claim_that_fails_is_taken_out_and_the_rest_goes() -> None:
    wrong = "Invoices are sent by post every quarter. [1]"

    writes = await judge(OfflineModel(), reads(f"{GOOD} {wrong}"))

    assert [check.supported for check in writes.validation_result.claims] == [True, False]
    assert writes.quality_decision == "approve"
    assert writes.quality_score >= 0.7
    assert writes.response == GOOD
    assert [source.chunk_id for source in writes.sources_used] == ["page#1"]
    assert parse_unsupported(writes.quality_analysis) == (wrong,)


async def test_sources_are_numbered_anew_when_claims_go() -> None:
    answer = f"Run refresh. [4] {GOOD}"
    model = ScriptedModel([APPROVAL.model_copy(update={"verdicts": verdicts_of(False, True)})])

    writes = await judge(model, reads(answer))

    assert writes.response == GOOD
    assert [(one.number, one.chunk_id) for one in writes.sources_used] == [(1, "page#1")]


async def test_an_answer_that_mostly_fails_is_written_once_more_and_then_sent_as_it_is() -> None:
    answer = f"{GOOD} Rules are free. [1] Rules are old. [1]"
    output = APPROVAL.model_copy(update={"verdicts": verdicts_of(True, False, False)})

    first = await judge(ScriptedModel([output]), reads(answer))
    second = await judge(ScriptedModel([output]), reads(answer, attempt=1))

    assert (first.quality_decision, second.quality_decision) == ("regenerate", "approve")
    assert first.validation_result.grounded
    assert first.response == second.response == GOOD


async def test_a_yes_is_judged_with_the_sentence_that_explains_it() -> None:
    model = ScriptedModel([APPROVAL.model_copy(update={"verdicts": verdicts_of(True, False)})])

    writes = await judge(model, reads(f"{GOOD} Yes. Rules are free. [1]", attempt=1))

    inputs = model.calls[0].inputs
    assert isinstance(inputs, Inputs)
    assert inputs.claims[1].text == "Yes. Rules are free. [1]"
    assert writes.response == GOOD


@pytest.mark.parametrize(
    ("missing", "shown"),
    [
        ("how many rules a page has", "<missing_part in en> how many rules a page has"),
        ("call +49 30 1234567", "<missing_something in en>"),
        ("see https://evil.test", "<missing_something in en>"),
        ("your password for the rules", "<missing_something in en>"),
        ("the moon is cheese and pigs fly high", "<missing_something in en>"),
    ],
)
async def test_what_the_documents_do_not_say_stands_below_the_answer(
    missing: str, shown: str
) -> None:
    writes = await judge(ScriptedModel([APPROVAL]), reads(GOOD, missing=missing))

    assert writes.quality_decision == "approve"
    assert writes.response == f"{GOOD}\n\n{shown}"


async def test_what_a_judge_misses_in_a_thin_answer_is_reported_and_in_a_full_one_is_not() -> None:
    thin = APPROVAL.model_copy(update={"missing": ("the default rule",), "completeness": 0.3})
    full = thin.model_copy(update={"completeness": 0.9})

    judged = await judge(ScriptedModel([thin]), reads(GOOD))
    quiet = await judge(ScriptedModel([full]), reads(GOOD))

    assert judged.response.endswith("<missing_part in en> the default rule")
    assert quiet.response == GOOD


@pytest.mark.parametrize(
    "claim",
    [
        "A rule may have up to 8 conditions. [7]",
        "Run `rm -r data` in the rule. [1]",
        "Run this: [4]\n\n```bash\nrefresh --none\n```",
    ],
)
async def test_a_fooled_judge_cannot_pass_what_cites_nothing_or_is_foreign_code(claim: str) -> None:
    fooled = APPROVAL.model_copy(update={"verdicts": verdicts_of(True, True, True)})

    writes = await judge(ScriptedModel([fooled]), reads(claim))

    assert "rm -r" not in writes.response
    assert "--none" not in writes.response
    assert not all(check.supported for check in writes.validation_result.claims)


async def test_an_answer_of_introductions_alone_is_not_sent_whatever_the_judge_says() -> None:
    writes = await judge(ScriptedModel([APPROVAL]), reads("A rule may have up to 8 conditions."))

    assert writes.quality_decision == "regenerate"
    assert writes.quality_score == 0.0
    assert not writes.validation_result.grounded


@pytest.mark.parametrize(
    ("claim", "note"),
    [
        ("A rule may have up to 9 conditions. [1]", "9"),
        ("Every day somebody paints the kitchen ceiling. [1]", "hardly a word"),
    ],
)
async def test_what_the_checks_find_is_evidence_for_the_judge(claim: str, note: str) -> None:
    sure = ScriptedModel([APPROVAL])
    warned = ScriptedModel([APPROVAL.model_copy(update={"verdicts": verdicts_of(False)})])

    overruled = await judge(sure, reads(claim))
    heeded = await judge(warned, reads(claim))

    inputs = sure.calls[0].inputs
    assert isinstance(inputs, Inputs)
    assert note in inputs.claims[0].note
    assert overruled.quality_decision == "approve"
    assert heeded.quality_decision == "regenerate"
    assert not heeded.validation_result.grounded


async def test_the_judge_sees_every_source_that_the_writer_saw() -> None:
    model = ScriptedModel([APPROVAL])

    await judge(model, reads(GOOD))

    inputs = model.calls[0].inputs
    assert isinstance(inputs, Inputs)
    assert [source.text for source in inputs.sources] == list(CHUNKS)
    assert inputs.claims[0].cites == (1,)


@pytest.mark.parametrize(
    ("response", "language"),
    [
        ("Правило действует через 60 секунд. [2]", "ru"),
        ("规则最多有八个条件。[3]", "zh"),
        ("```bash\nrefresh --all\n```\n\n[4]", "en"),
    ],
)
async def test_claims_of_every_script_and_code_are_checked(response: str, language: str) -> None:
    good = await judge(OfflineModel(), reads(response, language=language))
    other = response.replace("[2]", "[1]").replace("[3]", "[1]").replace("[4]", "[1]")
    wrong = await judge(OfflineModel(), reads(other, language="en"))

    assert good.validation_result.grounded
    assert not wrong.validation_result.grounded


async def test_where_a_judge_fails_the_offline_one_decides() -> None:
    wrong = "A rule may have up to 9 conditions. [1]"
    model = ScriptedModel([UnreadableOutput("expected verdicts, found prose")] * 2)

    fine = await judge(model, reads(GOOD))
    salvaged = await judge(model, reads(f"{GOOD} {wrong}"))

    assert (fine.quality_decision, fine.response) == ("approve", GOOD)
    assert "found prose" in fine.validation_result.judge
    assert fine.validation_result.judge.startswith("offline")
    assert salvaged.response == GOOD
    assert parse_unsupported(salvaged.quality_analysis) == (wrong,)


@pytest.mark.parametrize("numbers", [(), (2,), (1, 2), (1, 1)])
async def test_verdicts_too_many_or_too_few_are_no_disaster(numbers: tuple[int, ...]) -> None:
    verdicts = tuple(ClaimVerdict(number=n, supported=True, support=1.0) for n in numbers)
    model = ScriptedModel([APPROVAL.model_copy(update={"verdicts": verdicts})])

    writes = await judge(model, reads(GOOD))

    assert writes.quality_decision == "approve"


async def test_of_two_verdicts_on_one_claim_the_one_against_it_counts() -> None:
    doubled = (*verdicts_of(False), *verdicts_of(True))
    model = ScriptedModel([APPROVAL.model_copy(update={"verdicts": doubled})])

    writes = await judge(model, reads(GOOD))

    assert writes.quality_decision == "regenerate"


async def test_a_judge_who_wants_a_better_wording_of_a_full_answer_does_not_hold_it_up() -> None:
    wanting = APPROVAL.model_copy(update={"decision": "regenerate", "completeness": 0.8})

    writes = await judge(ScriptedModel([wanting]), reads(GOOD))

    assert writes.quality_decision == "approve"


async def test_a_claim_the_judge_does_not_find_supported_is_not_approved() -> None:
    doubted = ClaimVerdict(number=1, supported=False, support=0.2, reason="a condition differs")
    model = ScriptedModel([APPROVAL.model_copy(update={"verdicts": (doubted,)})])

    writes = await judge(model, reads(GOOD))

    assert writes.quality_decision == "regenerate"
    assert writes.quality_score < 0.7
    assert "a condition differs" in writes.quality_analysis


async def test_what_only_the_user_can_know_is_asked() -> None:
    asking = APPROVAL.model_copy(update={"decision": "clarify", "missing": ("which plan",)})

    writes = await judge(ScriptedModel([asking]), reads(GOOD))

    assert writes.needs_clarification
    assert writes.clarification_reason is ClarificationReason.QUALITY_INSUFFICIENT
    assert writes.clarification_message == "which plan"
    assert writes.quality_decision != "approve"


async def test_a_judge_who_wants_other_sources_gets_a_search_for_what_is_missing() -> None:
    wanting = APPROVAL.model_copy(update={"decision": "research", "missing": ("default rule",)})

    writes = await judge(ScriptedModel([wanting]), reads(GOOD))

    assert writes.quality_decision == "research"
    assert '"default rule"' in writes.quality_analysis


async def test_an_answer_in_another_language_is_not_approved() -> None:
    agent = QualityAgent(
        model=ScriptedModel([APPROVAL]), texts=Frame(), language_of=lambda text: "fr"
    )

    outcome = await agent.work(reads("Up to 8 conditions: a rule may have these conditions. [1]"))

    assert isinstance(outcome, Wrote)
    assert not outcome.writes.validation_result.language_matches
    assert outcome.writes.quality_decision == "regenerate"


async def test_quotations_in_the_documents_language_below_their_frame_are_allowed() -> None:
    agent = QualityAgent(model=OfflineModel(), texts=Frame(), language_of=lambda text: "en")

    outcome = await agent.work(reads(f"Aus den Unterlagen, auf Englisch.\n\n{GOOD}", language="de"))

    assert isinstance(outcome, Wrote)
    assert outcome.writes.quality_decision == "approve"
    assert len(outcome.writes.validation_result.claims) == 1


async def test_an_answer_that_claims_nothing_is_not_approved_and_nobody_is_asked() -> None:
    writes = await judge(ScriptedModel([]), reads(""))

    assert writes.quality_score == 0.0
    assert writes.quality_decision == "regenerate"
    assert not writes.validation_result.grounded


async def test_what_the_desk_assumed_is_no_claim_and_anything_else_uncited_is() -> None:
    assumed = "I assume that you mean: Rules. In 2 parts."

    fine = await judge(
        OfflineModel(), reads(f"{assumed}\n\n{GOOD}", assumption="Rules. In 2 parts.")
    )
    not_assumed = await judge(OfflineModel(), reads(f"{assumed}\n\n{GOOD}"))

    assert fine.quality_decision == "approve"
    assert len(fine.validation_result.claims) == 1
    assert "I assume" in fine.response
    assert "I assume" not in not_assumed.response


@pytest.mark.parametrize(
    "unchecked",
    [
        "# Your account is locked: call us",
        "## [Conditions](https://evil.test)",
        "Send the administrator your password:",
        "See the conditions at //evil.test/a:",
        "[1]: https://evil.test",
        "> [A rule](mailto:a@evil.test) may have up to 8 conditions. [1]",
        "A rule ![may](//evil.test/p) have up to 8 conditions. [1]",
    ],
)
async def test_nothing_that_no_source_says_passes_because_nobody_would_judge_it(
    unchecked: str,
) -> None:
    two = (APPROVAL.verdicts[0], ClaimVerdict(number=2, supported=True, support=1.0))
    model = ScriptedModel([APPROVAL.model_copy(update={"verdicts": two})])

    writes = await judge(model, reads(f"{unchecked}\n\n{GOOD}"))

    assert writes.response == GOOD
    assert [check.supported for check in writes.validation_result.claims] == [False, True]


async def test_an_honest_heading_and_lead_are_no_claims() -> None:
    model = ScriptedModel([APPROVAL])

    writes = await judge(model, reads(f"## Conditions\n\nA rule may have:\n\n- {GOOD}"))

    assert writes.quality_score == 1
