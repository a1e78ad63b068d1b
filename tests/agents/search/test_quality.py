import pytest

from agents.search.quality import JudgeWhen, QualityAgent, Reads, Writes
from citations.claims import parse_unsupported
from citations.marking import remove_marks
from envelope.conversation import ClarificationReason
from envelope.outcome import Wrote
from envelope.sources import SourceReference, SourceUsed
from llm.errors import UnreadableOutput
from llm.port import Model
from llm.tasks.search import JudgeInputs, JudgeOutput, Verdict
from tests.support.scripted_model import ScriptedModel

CHUNKS = (
    "A rule may have up to 8 conditions. All of them must match.",
    "Правило действует не позднее чем через 60 секунд.",
    "规则最多有八个条件。",
    "```bash\nrefresh --all\nrefresh --only A\n```",
    "| Plan | Rules | Price |\n|---|---|---|\n| Start | 5 | free |\n| Team | 50 | 20 EUR |",
)
LANGUAGES = ("en", "ru", "zh", "en", "en")
GOOD = "A rule may have up to 8 conditions. [1]"
FALSE = "A rule may have up to 9 conditions. [1]"
APPROVAL = JudgeOutput(
    claims_read=1,
    completeness=1.0,
    accuracy=1.0,
    language_matches=True,
    decision="approve",
)


class Frame:
    """Texts that show what they were asked for."""

    languages = ("en",)

    def text(self, key: str, language: str, **values: str) -> str:
        return f"<{key} in {language}> {', '.join(values.values())}".strip()


def reads(
    response: str,
    *,
    language: str = "en",
    attempt: int = 0,
    assumption: str = "",
    missing: str = "",
    question: str = "How many conditions may a rule have?",
    confidence: float = 1.0,
    answer_model: str = "model@vendor",
) -> Reads:
    context = "\n\n".join(CHUNKS)
    numbered = list(enumerate(zip(CHUNKS, LANGUAGES, strict=True), start=1))
    return Reads(
        response=response,
        search_context=context,
        canonical_question=question,
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
        generation_confidence=confidence,
        answer_model=answer_model,
    )


async def judge(model: Model, what: Reads, when: JudgeWhen = "always") -> Writes:
    outcome = await QualityAgent(model=model, texts=Frame(), judge=when).work(what)
    assert isinstance(outcome, Wrote)
    return outcome.writes


def reject(quote: str, *, passage: int = 0, reason: str = "no source says it") -> JudgeOutput:
    """Return a judgement that rejects one passage."""
    verdict = Verdict(passage=passage, quote=quote, reason=reason, supported=False)
    return APPROVAL.model_copy(update={"verdicts": (verdict,), "accuracy": 0.5})


def inputs_of(model: ScriptedModel) -> JudgeInputs:
    inputs = model.calls[0].inputs
    assert isinstance(inputs, JudgeInputs)
    return inputs


async def test_an_answer_that_the_judge_approves_leaves_as_it_was_written() -> None:
    answer = f"# Rules\n\n{GOOD}\n\n```bash\nrefresh --all\n```\n\n[4]"

    writes = await judge(ScriptedModel([APPROVAL]), reads(answer))

    assert (writes.quality_decision, writes.quality_score) == ("approve", 1.0)
    assert writes.response == answer.replace("[4]", "[2]")
    assert writes.validation_result.grounded


async def test_a_number_that_the_user_gave_in_a_pause_is_known_to_rules_and_judge() -> None:
    answer = f"{GOOD} With your 7019 rules, this matters. [1]"
    known = reads(answer).model_copy(update={"collected_info": {"rules": 7019}})
    model = ScriptedModel([APPROVAL])

    writes = await judge(model, known)

    assert writes.response == answer
    assert inputs_of(model).passages == ()
    assert inputs_of(model).facts == ("rules: 7019",)


async def test_an_answer_with_a_fault_is_written_once_more_and_then_loses_the_block() -> None:
    answer = f"{GOOD}\n\nRules are free, as everybody says. [1]"
    model = ScriptedModel([reject("Rules are free")] * 2)

    first = await judge(model, reads(answer))
    second = await judge(model, reads(answer, attempt=1))

    assert (first.quality_decision, second.quality_decision) == ("regenerate", "approve")
    assert parse_unsupported(first.quality_analysis) == ("Rules are free",)
    assert "because: no source says it" in first.quality_analysis
    assert first.response == second.response == f"{GOOD}\n\n<left_out in en>"
    assert first.judged_answer is not None
    assert first.judged_answer.text == answer


async def test_the_mark_moves_to_the_source_that_the_judge_names() -> None:
    answer = f"All of them must match. {GOOD} Run refresh. [1]\n\nThe Team plan costs 20 EUR. [1]"
    verdicts = (
        # The judge names sources by the numbers that the writer knew.
        Verdict(passage=0, quote="Run refresh.", supported=True, source=14),
        Verdict(passage=1, quote="The Team plan costs 20 EUR.", supported=True, source=15),
        Verdict(passage=0, quote=GOOD, supported=True, source=99),
    )
    model = ScriptedModel([APPROVAL.model_copy(update={"verdicts": verdicts})])

    writes = await judge(model, reads(answer))

    assert inputs_of(model).passages[0].note == "the cited sources do not contain: 20"
    assert writes.quality_decision == "approve"
    assert writes.response == (
        f"All of them must match. {GOOD} Run refresh. [2]\n\nThe Team plan costs 20 EUR. [3]"
    )
    assert [(source_used.number, source_used.chunk_id) for source_used in writes.sources_used] == [
        (1, "page#1"),
        (2, "page#4"),
        (3, "page#5"),
    ]


async def test_the_judge_reads_answer_and_sources_under_the_numbers_of_the_writer() -> None:
    model = ScriptedModel([APPROVAL])

    await judge(model, reads("Run refresh. [4]"))

    inputs = inputs_of(model)
    assert inputs.answer == "Run refresh. [14]"
    assert [source.number for source in inputs.sources if source.is_cited] == [14]
    assert inputs.sources[0].text == CHUNKS[3]


async def test_sentences_that_shared_a_mark_that_moves_keep_it() -> None:
    answer = "All of them must match. Run refresh. Up to 8 conditions. [1]\n\n1. Open it. [1]"
    item = Verdict(passage=0, quote="Open it.", supported=True, source=14)
    moved = Verdict(passage=0, quote="Run refresh", supported=True, source=14)
    model = ScriptedModel([APPROVAL.model_copy(update={"verdicts": (moved, item)})])

    writes = await judge(model, reads(answer))

    assert writes.response == (
        "All of them must match. [1] Run refresh. [2] Up to 8 conditions. [1]\n\n1. Open it. [2]"
    )


async def test_a_wrong_mark_moves_although_its_paragraph_cites_the_right_source_elsewhere() -> None:
    moved = Verdict(passage=0, quote="Run refresh", supported=True, source=11)
    model = ScriptedModel([APPROVAL.model_copy(update={"verdicts": (moved,)})])

    writes = await judge(model, reads("Run refresh. [4] Up to 8 conditions. [1]"))

    assert writes.response == "Run refresh. [1] Up to 8 conditions. [1]"


async def test_the_judge_sees_which_version_a_source_is_of() -> None:
    what, model = reads(GOOD), ScriptedModel([APPROVAL])
    first, *others = what.source_references
    versions = (first.model_copy(update={"version": "2024"}), *others)

    await judge(model, what.model_copy(update={"source_references": versions}))

    assert "Rules (version 2024)" in [source.place for source in inputs_of(model).sources]


async def test_of_a_table_only_the_cell_goes_that_the_judge_names() -> None:
    table = "| Plan | Price |\n|---|---|\n| Start | costly |\n| Team | 20 EUR |"

    writes = await judge(ScriptedModel([reject("costly")]), reads(f"{table}\n\n[5]", attempt=1))

    kept = table.replace("costly", "…")
    assert writes.response == f"{kept}\n\n[1]\n\n<left_out in en>"


async def test_an_item_goes_with_what_hangs_under_it_and_the_others_keep_their_numbers() -> None:
    answer = "1. One. [1]\n2. Fly to the moon. [1]\n\n   - Now.\n\n3. Three. [1]"

    writes = await judge(ScriptedModel([reject("Fly to the moon.")]), reads(answer, attempt=1))

    assert writes.response.startswith("1. One. [1]\n\n3. Three. [1]\n\n<left_out")


async def test_sources_are_numbered_again_when_a_block_goes() -> None:
    answer = f"Run refresh. [4]\n\n{GOOD}"

    writes = await judge(ScriptedModel([reject("Run refresh.")]), reads(answer, attempt=1))

    assert writes.response.startswith(GOOD)
    assert [(source_used.number, source_used.chunk_id) for source_used in writes.sources_used] == [
        (1, "page#1")
    ]


@pytest.mark.parametrize("is_approved", [True, False])
async def test_a_number_that_stands_nowhere_goes_whatever_the_judge_says(
    is_approved: bool,
) -> None:
    verdict = Verdict(passage=1, quote=FALSE, supported=is_approved)
    model = ScriptedModel([APPROVAL.model_copy(update={"verdicts": (verdict,)})] * 2)
    answer = f"All of them must match. [1]\n\n{FALSE}"

    first = await judge(model, reads(answer))
    second = await judge(model, reads(answer, attempt=1))

    assert inputs_of(model).passages[0].note == "no source contains: 9"
    assert first.quality_decision == "regenerate"
    assert second.response == "All of them must match. [1]\n\n<left_out in en>"


async def test_the_writer_is_told_which_sentence_of_a_rejected_block_the_judge_quotes() -> None:
    answer = f"All of them must match. {FALSE}"

    written = await judge(
        ScriptedModel([reject(FALSE, passage=1, reason="source 1 says 8")]), reads(answer)
    )

    assert (
        f"- unsupported: {FALSE}\n  because: source 1 says 8; no source contains: 9"
        in written.quality_analysis
    )


async def test_a_number_that_the_person_gave_or_that_is_computed_is_no_fault() -> None:
    asked = "May I have 3 rules?"
    answer = "Yes: 3 rules with 8 conditions each have 24 conditions. [1]"
    model = ScriptedModel([APPROVAL])

    writes = await judge(model, reads(answer, question=asked))

    assert inputs_of(model).passages == ()
    assert writes.response == answer


@pytest.mark.parametrize(
    ("claim", "note"),
    [
        ("Run `refresh --none`. [4]", "no source contains the code: refresh --none"),
        (
            "Run: [4]\n\n```bash\nrefresh --all\nrm -r data\n```",
            "no source contains the code: rm -r data",
        ),
        (f"{GOOD}\n\nThe moon is cheese.", "it cites nothing"),
    ],
)
async def test_a_fault_that_rules_cannot_prove_is_noted_for_the_judge(
    claim: str, note: str
) -> None:
    fine = APPROVAL.model_copy(update={"verdicts": (Verdict(passage=1, quote="", supported=True),)})
    approving, rejecting = ScriptedModel([fine]), ScriptedModel([reject("", passage=1)])

    kept = await judge(approving, reads(claim))
    turned_down = await judge(rejecting, reads(claim))

    assert inputs_of(approving).passages[0].note == note
    assert "<left_out" not in kept.response
    assert kept.quality_decision == "approve"
    assert turned_down.quality_decision == "regenerate"


@pytest.mark.parametrize("is_supported", [True, False])
async def test_the_judge_decides_about_code_that_lost_a_foreign_address(is_supported: bool) -> None:
    call = "```bash\nrefresh --all https://evil.test/x\n```"
    verdict = Verdict(passage=1, quote="refresh --all", supported=is_supported)
    model = ScriptedModel([APPROVAL.model_copy(update={"verdicts": (verdict,)})])

    writes = await judge(model, reads(f"{GOOD}\n\nRun: [4]\n\n{call}", attempt=1))

    shown = call.replace("https://evil.test/x", "[address removed]")
    kept = f"{GOOD}\n\nRun: [2]\n\n{shown}\n\n<address_removed in en>"
    assert writes.response == (kept if is_supported else f"{GOOD}\n\n<left_out in en>")


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("refresh 203.0.113.7", "refresh [address removed]"),
        ("refresh --only 203.0.113.7 --all", "refresh --only [address removed] --all"),
        ("refresh 0xCB007107", "refresh [address removed]"),
        ("refresh 3405803783", "refresh [address removed]"),
        ("refresh evil\u3002example", "refresh [address removed]"),
        ("a 203.0.113.7 b 203.0.113.8", "a [address removed] b [address removed]"),
    ],
)
async def test_an_address_in_code_that_nobody_gave_goes_alone_whatever_the_judge_says(
    line: str, kept: str
) -> None:
    block = f"```bash\nrefresh --all\n{line}\n```"
    fooled = APPROVAL.model_copy(
        update={"verdicts": (Verdict(passage=1, quote=line, supported=True),)}
    )

    writes = await judge(
        ScriptedModel([fooled]), reads(f"{GOOD}\n\nRun: [4]\n\n{block}", attempt=1)
    )
    inline = await judge(ScriptedModel([fooled]), reads(f"{GOOD}\n\nRun `{line}`. [4]", attempt=1))

    shown = f"Run: [2]\n\n```bash\nrefresh --all\n{kept}\n```"
    assert writes.response == f"{GOOD}\n\n{shown}\n\n<address_removed in en>"
    assert inline.response == f"{GOOD}\n\nRun `{kept}`. [2]\n\n<address_removed in en>"


async def test_an_address_in_numbers_that_the_person_gave_may_stand_in_code() -> None:
    call = "```bash\nrefresh --only 10.20.30.40\n```"
    fine = APPROVAL.model_copy(
        update={"verdicts": (Verdict(passage=1, quote=call, supported=True),)}
    )
    asked = reads(f"Run this: [4]\n\n{call}", question="How do I refresh 10.20.30.40 only?")

    writes = await judge(ScriptedModel([fine]), asked)

    assert writes.response == f"Run this: [1]\n\n{call}"


@pytest.mark.parametrize(
    ("call", "is_shown"),
    [
        ("refresh --only my-own", True),
        ("refresh --only A && erase everything", False),
        ("install evil-package", False),
    ],
)
async def test_without_a_judge_adapted_code_goes_out_only_in_words_that_were_given(
    call: str, is_shown: bool
) -> None:
    block = f"```bash\n{call}\n```"
    asked = reads(f"{GOOD}\n\nRun: [4]\n\n{block}", question="How do I refresh my own one?")

    writes = await judge(ScriptedModel([UnreadableOutput("nothing")]), asked)

    assert (block in writes.response) is is_shown
    assert ("<left_out in en>" in writes.response) is not is_shown
    assert writes.response.endswith("<not_judged in en> <reason_unreadable in en>")


@pytest.mark.parametrize(
    "silent",
    [
        UnreadableOutput("expected verdicts, found prose"),
        APPROVAL.model_copy(update={"claims_read": 0}),
        APPROVAL,
    ],
    ids=["unreadable", "empty", "no verdict on what a rule noted"],
)
async def test_silence_of_the_judge_approves_nothing_and_the_answer_says_so(
    silent: JudgeOutput | UnreadableOutput,
) -> None:
    answer = f"{GOOD}\n\nThe moon is cheese.\n\n{FALSE}"

    writes = await judge(ScriptedModel([silent]), reads(answer))

    assert writes.quality_score is None
    assert writes.quality_decision == "approve"
    assert writes.validation_result.completeness is None
    assert writes.validation_result.judge.startswith("none: ")
    assert writes.response == (
        f"{GOOD}\n\nThe moon is cheese.\n\n<left_out in en>\n\n"
        "<not_judged in en> <reason_unreadable in en>"
    )


async def test_the_judge_is_asked_as_the_setting_says() -> None:
    silent, asked = ScriptedModel([]), ScriptedModel([APPROVAL] * 3)

    never = await judge(silent, reads(FALSE + "\n\n" + GOOD), "never")
    certain = await judge(silent, reads(GOOD), "doubt")
    await judge(asked, reads(GOOD, confidence=0.2), "doubt")
    await judge(asked, reads(GOOD, missing="the price"), "doubt")
    await judge(asked, reads(FALSE + "\n\n" + GOOD), "doubt")

    assert never.response == f"{GOOD}\n\n<left_out in en>"
    assert certain.response == GOOD
    assert never.quality_score is certain.quality_score is None
    assert len(asked.calls) == 3


async def test_passages_of_the_search_go_out_and_nobody_judges_them() -> None:
    writes = await judge(
        ScriptedModel([]), reads(GOOD).model_copy(update={"answered_by": "search"})
    )

    assert (writes.quality_decision, writes.quality_score) == ("approve", None)
    assert "response" not in writes.model_fields_set


async def test_the_judge_decides_whether_what_the_writer_misses_is_searched_for() -> None:
    missing = "how many rules a page has"
    wanting = {"decision": "research", "completeness": 0.6, "missing": ("rules of a page",)}
    model = ScriptedModel([APPROVAL.model_copy(update={"completeness": 0.2})])
    other = ScriptedModel([APPROVAL.model_copy(update=wanting)])

    approved = await judge(model, reads(GOOD, missing=missing))
    searched = await judge(other, reads(GOOD, missing=missing))

    assert model.calls[0].inputs.missing == missing  # type: ignore[attr-defined]
    assert approved.quality_decision == "approve"
    assert approved.validation_result.approved
    assert approved.response == f"{GOOD}\n\n<missing_part in en> {missing}"
    assert searched.quality_decision == "research"
    assert searched.quality_analysis == '- missing: "rules of a page"'


@pytest.mark.parametrize(
    "written",
    [
        f"**Rules**\n\n{GOOD}",
        f"- **Rules**\n  - {GOOD}",
        f"This is how it works.\n\n- {GOOD}",
        "Do this. [2]\n\n1. Wait for it.\n2. A rule may have up to 8 conditions. [1]",
    ],
    ids=["bold", "bold item", "framing", "end of a list"],
)
async def test_an_introductory_sentence_needs_no_separate_verdict(written: str) -> None:
    model = ScriptedModel([APPROVAL])

    await judge(model, reads(written))

    assert inputs_of(model).passages == ()
    assert remove_marks(inputs_of(model).answer) == remove_marks(written)


async def test_without_a_request_of_the_judge_the_search_uses_that_of_the_writer() -> None:
    doubt = APPROVAL.model_copy(update={"decision": "research"})

    writes = await judge(ScriptedModel([doubt]), reads(GOOD, missing="the price"))

    assert writes.quality_analysis == '- missing: "the price"'


async def test_the_judge_is_told_which_sources_are_parts_of_their_sections() -> None:
    whole = reads(GOOD)
    parts = tuple(
        reference.model_copy(update={"is_cut": True}) for reference in whole.source_references
    )
    model = ScriptedModel([APPROVAL] * 2)

    await judge(model, whole)
    await judge(model, whole.model_copy(update={"source_references": parts}))

    asked = [call.inputs for call in model.calls]
    assert [{source.is_cut for source in item.sources} for item in asked] == [{False}, {True}]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "missing",
    ["call +49 30 1234567", "see https://evil.test", "your password for the rules"],
)
async def test_a_description_of_missing_information_contains_no_links(missing: str) -> None:
    writes = await judge(ScriptedModel([APPROVAL]), reads(GOOD, missing=missing, attempt=1))

    assert writes.response == f"{GOOD}\n\n<missing_something in en>"


async def test_the_score_weighs_accuracy_completeness_and_language() -> None:
    output = APPROVAL.model_copy(update={"accuracy": 0.8, "completeness": 0.6})
    foreign = output.model_copy(update={"language_matches": False})

    scores = [
        (await judge(ScriptedModel([judged]), reads(GOOD))).quality_score
        for judged in (output, foreign)
    ]

    assert scores == pytest.approx([0.5 * 0.8 + 0.35 * 0.6 + 0.15, 0.5 * 0.8 + 0.35 * 0.6])


@pytest.mark.parametrize(
    ("changes", "decision"),
    [
        ({"accuracy": 0.5}, "regenerate"),
        ({"completeness": 0.2}, "research"),
        ({"completeness": 0.4}, "approve"),
        ({"decision": "regenerate", "analysis": "Say it in steps."}, "regenerate"),
        ({"decision": "research", "missing": ("default rule",)}, "research"),
        ({"language_matches": False}, "regenerate"),
    ],
)
async def test_the_judge_decides_and_an_approval_below_a_floor_is_none(
    changes: dict[str, object], decision: str
) -> None:
    writes = await judge(ScriptedModel([APPROVAL.model_copy(update=changes)]), reads(GOOD))

    assert writes.quality_decision == decision
    assert writes.response == GOOD


async def test_information_that_only_the_user_has_is_requested() -> None:
    asking = APPROVAL.model_copy(update={"decision": "clarify", "missing": ("which plan",)})

    writes = await judge(ScriptedModel([asking]), reads(GOOD))

    assert writes.needs_clarification
    assert writes.clarification_reason is ClarificationReason.QUALITY_INSUFFICIENT
    assert writes.clarification_message == "which plan"
    assert writes.quality_decision != "approve"


async def test_the_judge_is_told_what_the_writer_misses() -> None:
    model = ScriptedModel([APPROVAL])

    await judge(model, reads(GOOD, missing="the price"))

    assert inputs_of(model).missing == "the price"


async def test_of_two_verdicts_on_one_passage_the_one_against_it_counts() -> None:
    both = (
        Verdict(passage=0, quote=GOOD, supported=False),
        Verdict(passage=0, quote=GOOD, supported=True),
    )
    model = ScriptedModel([APPROVAL.model_copy(update={"verdicts": both})])

    writes = await judge(model, reads(f"{GOOD}\n\nAll of them must match. [1]"))

    assert writes.quality_decision == "regenerate"


async def test_a_doubt_about_words_that_the_answer_does_not_have_removes_nothing() -> None:
    model = ScriptedModel([reject("pigs fly over the moon")])

    writes = await judge(model, reads(GOOD, attempt=1))

    assert writes.response == GOOD


async def test_an_answer_of_which_nothing_is_left_is_not_sent() -> None:
    writes = await judge(ScriptedModel([reject(GOOD)]), reads(GOOD, attempt=1))

    assert (writes.response, writes.quality_score) == ("", 0.0)
    assert writes.quality_decision == "regenerate"
    assert not writes.validation_result.grounded


@pytest.mark.parametrize("text", ["", "A rule may have up to 8 conditions.", "# Rules"])
async def test_an_answer_that_cites_nothing_is_not_approved_and_nobody_is_asked(
    text: str,
) -> None:
    writes = await judge(ScriptedModel([]), reads(text))

    assert writes.quality_score == 0.0
    assert writes.quality_decision == "regenerate"
    assert not writes.validation_result.grounded


async def test_an_answer_in_another_language_is_not_approved() -> None:
    agent = QualityAgent(
        model=ScriptedModel([APPROVAL]), texts=Frame(), language_of=lambda text: "fr"
    )

    outcome = await agent.work(reads("Jusqu'à 8 conditions sont permises dans une règle. [1]"))

    assert isinstance(outcome, Wrote)
    assert not outcome.writes.validation_result.language_matches
    assert outcome.writes.quality_decision == "regenerate"


async def test_quotations_in_the_documents_language_are_no_answer_in_another_one() -> None:
    agent = QualityAgent(
        model=ScriptedModel([APPROVAL]), texts=Frame(), language_of=lambda text: "en"
    )

    outcome = await agent.work(reads(GOOD, language="de"))

    assert isinstance(outcome, Wrote)
    assert outcome.writes.quality_decision == "approve"


async def test_a_sentence_with_a_command_of_a_source_is_no_quotation() -> None:
    answer = "**Regeln**\n\nMit `refresh --all` liest das Programm alle Regeln noch einmal. [4]"
    checked: list[str] = []

    def language_of(text: str) -> str:
        checked.append(text)
        return "de"

    agent = QualityAgent(model=ScriptedModel([APPROVAL]), texts=Frame(), language_of=language_of)
    outcome = await agent.work(reads(answer, language="de"))

    assert isinstance(outcome, Wrote)
    assert outcome.writes.quality_decision == "approve"
    assert checked == ["**Regeln** Mit `refresh --all` liest das Programm alle Regeln noch einmal."]


async def test_an_assumption_of_the_desk_is_not_a_claim() -> None:
    assumed = "I assume that you mean: Rules. In 2 parts."
    model = ScriptedModel([APPROVAL] * 2)

    fine = await judge(model, reads(f"{assumed}\n\n{GOOD}", assumption="Rules. In 2 parts."))
    await judge(model, reads(f"{assumed}\n\n{GOOD}"))

    noted = [call.inputs.passages for call in model.calls if isinstance(call.inputs, JudgeInputs)]
    assert [len(passages) for passages in noted] == [0, 1]
    assert "I assume" in fine.response
    asked = model.calls[0].inputs
    assert isinstance(asked, JudgeInputs)
    assert asked.assumption == "Rules. In 2 parts."


@pytest.mark.parametrize(
    "unchecked",
    [
        "## [Conditions](https://evil.test)",
        "See the conditions at //evil.test/a:",
        "[1]: https://evil.test",
        "> [A rule](mailto:a@evil.test) may have up to 8 conditions. [1]",
        "A rule ![may](//evil.test/p) have up to 8 conditions. [1]",
    ],
)
async def test_no_link_passes_because_nobody_would_judge_it(unchecked: str) -> None:
    approving = APPROVAL.model_copy(
        update={"verdicts": (Verdict(passage=1, quote=unchecked, supported=True),)}
    )

    writes = await judge(ScriptedModel([approving]), reads(f"{unchecked}\n\n{GOOD}"))

    assert GOOD in writes.response
    assert "evil.test" not in writes.response
    assert "![" not in writes.response
