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
from llm.tasks.judge import ClaimVerdict, Output

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


def reads(response: str, *, language: str = "en", attempt: int = 0, assumption: str = "") -> Reads:
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
    )


async def judged(model: Model, what: Reads) -> Writes:
    outcome = await QualityAgent(model=model).work(what)
    assert isinstance(outcome, Wrote)
    return outcome.writes


async def test_an_answer_that_stands_in_its_sources_is_approved() -> None:
    writes = await judged(OfflineModel(), reads(GOOD))

    assert writes.quality_decision == "approve"
    assert writes.quality_score >= 0.7
    assert writes.validation_result.grounded
    assert writes.validation_result.judge == "offline"


async def test_each_claim_is_checked_and_the_failing_one_is_named_for_the_next_attempt() -> None:
    wrong = "Invoices are sent by post every quarter. [1]"

    writes = await judged(OfflineModel(), reads(f"{GOOD} {wrong}"))

    assert [check.supported for check in writes.validation_result.claims] == [True, False]
    assert not writes.validation_result.grounded
    assert writes.quality_score < 0.7
    assert writes.quality_decision == "regenerate"
    assert parse_unsupported(writes.quality_analysis) == (wrong,)


@pytest.mark.parametrize(
    "claim",
    [
        "A rule may have up to 9 conditions. [1]",
        "A rule may have up to 8 conditions, see `max_rules`. [1]",
        "A rule may have up to 8 conditions. [7]",
        "A rule may have up to 8 conditions.",
        "Every Friday somebody paints the kitchen ceiling. [1]",
        "Run this: [4]\n\n```bash\nrefresh --none\n```",
    ],
)
async def test_a_fooled_judge_cannot_pass_what_the_checks_without_a_model_fail(claim: str) -> None:
    count = 2 if "```" in claim else 1
    verdicts = tuple(ClaimVerdict(number=n + 1, supported=True, support=1.0) for n in range(count))
    fooled = APPROVAL.model_copy(update={"verdicts": verdicts})

    writes = await judged(ScriptedModel([fooled]), reads(claim))

    assert writes.quality_decision == "regenerate"
    assert writes.quality_score < 0.7
    assert not writes.validation_result.grounded


@pytest.mark.parametrize(
    ("response", "language"),
    [
        ("Правило действует через 60 секунд. [2]", "ru"),
        ("规则最多有八个条件。[3]", "zh"),
        ("```bash\nrefresh --all\n```\n\n[4]", "en"),
    ],
)
async def test_claims_of_every_script_and_code_are_checked(response: str, language: str) -> None:
    good = await judged(ScriptedModel([APPROVAL]), reads(response, language=language))
    other = response.replace("[2]", "[1]").replace("[3]", "[1]").replace("[4]", "[1]")
    wrong = await judged(ScriptedModel([APPROVAL]), reads(other, language="en"))

    assert good.validation_result.grounded
    assert not wrong.validation_result.grounded


async def test_a_judge_that_fails_approves_nothing() -> None:
    model = ScriptedModel([UnreadableOutput("expected verdicts, found prose")])

    writes = await judged(model, reads(GOOD))

    assert writes.quality_decision == "regenerate"
    assert writes.quality_score == 0.0
    assert "found prose" in writes.quality_analysis
    assert "found prose" in writes.validation_result.judge


async def test_without_a_judge_only_claims_that_are_known_to_be_wrong_are_to_be_avoided() -> None:
    wrong = "A rule may have up to 9 conditions. [1]"
    model = ScriptedModel([UnreadableOutput("expected verdicts, found prose")])

    writes = await judged(model, reads(f"{GOOD} {wrong}"))

    assert parse_unsupported(writes.quality_analysis) == (wrong,)


@pytest.mark.parametrize("numbers", [(), (2,), (1, 2)])
async def test_verdicts_that_do_not_fit_the_claims_approve_nothing(
    numbers: tuple[int, ...],
) -> None:
    verdicts = tuple(ClaimVerdict(number=n, supported=True, support=1.0) for n in numbers)
    model = ScriptedModel([APPROVAL.model_copy(update={"verdicts": verdicts})])

    writes = await judged(model, reads(GOOD))

    assert writes.quality_decision == "regenerate"
    assert writes.quality_score == 0.0


async def test_a_claim_the_judge_does_not_find_supported_is_not_approved() -> None:
    doubted = ClaimVerdict(number=1, supported=False, support=0.2, reason="a condition differs")
    model = ScriptedModel([APPROVAL.model_copy(update={"verdicts": (doubted,)})])

    writes = await judged(model, reads(GOOD))

    assert writes.quality_decision == "regenerate"
    assert writes.quality_score < 0.7
    assert "a condition differs" in writes.quality_analysis


async def test_what_only_the_user_can_tell_is_asked() -> None:
    asking = APPROVAL.model_copy(update={"decision": "clarify", "missing": ("which plan",)})

    writes = await judged(ScriptedModel([asking]), reads(GOOD))

    assert writes.needs_clarification
    assert writes.clarification_reason is ClarificationReason.QUALITY_INSUFFICIENT
    assert writes.clarification_message == "which plan"
    assert writes.quality_decision != "approve"


async def test_a_judge_who_wants_other_sources_gets_a_search_for_what_is_missing() -> None:
    wanting = APPROVAL.model_copy(update={"decision": "research", "missing": ("default rule",)})

    writes = await judged(ScriptedModel([wanting]), reads(GOOD))

    assert writes.quality_decision == "research"
    assert '"default rule"' in writes.quality_analysis


async def test_an_answer_in_another_language_is_not_approved() -> None:
    agent = QualityAgent(model=ScriptedModel([APPROVAL]), language_of=lambda text: "fr")

    outcome = await agent.work(reads("Up to 8 conditions: a rule may have these conditions. [1]"))

    assert isinstance(outcome, Wrote)
    assert not outcome.writes.validation_result.language_matches
    assert outcome.writes.quality_decision == "regenerate"


async def test_quotations_in_the_documents_language_below_their_frame_are_allowed() -> None:
    agent = QualityAgent(model=OfflineModel(), language_of=lambda text: "en")

    outcome = await agent.work(reads(f"Aus den Unterlagen, auf Englisch.\n\n{GOOD}", language="de"))

    assert isinstance(outcome, Wrote)
    assert outcome.writes.quality_decision == "approve"
    assert len(outcome.writes.validation_result.claims) == 1


async def test_an_answer_that_claims_nothing_is_not_approved_and_nobody_is_asked() -> None:
    writes = await judged(ScriptedModel([]), reads(""))

    assert writes.quality_score == 0.0
    assert writes.quality_decision == "regenerate"
    assert not writes.validation_result.grounded


async def test_what_the_desk_assumed_is_no_claim_and_anything_else_uncited_is() -> None:
    assumed = "I assume that you mean: Rules. In 2 parts."

    fine = await judged(
        OfflineModel(), reads(f"{assumed}\n\n{GOOD}", assumption="Rules. In 2 parts.")
    )
    not_assumed = await judged(OfflineModel(), reads(f"{assumed}\n\n{GOOD}"))

    assert fine.quality_decision == "approve"
    assert len(fine.validation_result.claims) == 1
    assert not not_assumed.validation_result.grounded


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

    writes = await judged(model, reads(f"{unchecked}\n\n{GOOD}"))

    assert writes.quality_score < 0.7
    assert writes.quality_decision == "regenerate"
    assert [check.supported for check in writes.validation_result.claims] == [False, True]


async def test_an_honest_heading_and_lead_are_no_claims() -> None:
    model = ScriptedModel([APPROVAL])

    writes = await judged(model, reads(f"## Conditions\n\nA rule may have:\n\n- {GOOD}"))

    assert writes.quality_score == 1
