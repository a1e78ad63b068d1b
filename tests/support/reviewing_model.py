"""A model that judges the contracts of the example and of the long law, as a person reads them."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from agents.named_documents import TitledDocument, find_scope
from llm.port import ModelMessage, ToolConversation
from llm.tasks.question import ScopeInputs, ScopeOutput, UnderstandInputs, UnderstandOutput
from llm.tasks.review import (
    CheckedStatement,
    CitationAuditorInputs,
    CitationAuditorOutput,
    ClassifiedDocument,
    ClassifierInputs,
    ClassifierOutput,
    ClauseReading,
    ComplianceInputs,
    ComplianceOutput,
    ExtractorInputs,
    ExtractorOutput,
    GapSynthesizerOutput,
    ListedRequirement,
    RankedRisk,
    Recommendation,
    ReportGeneratorInputs,
    ReportGeneratorOutput,
    RequirementExtractorInputs,
    RequirementExtractorOutput,
    RequirementVerdict,
    RiskVerifierInputs,
    RiskVerifierOutput,
    SynthesisInputs,
    SynthesisOutput,
    UnitWithout,
)
from llm.tasks.tool_loop import TriageInputs, TriageOutput
from tests.support.app_harness import PartlyScriptedModel

BREAKS = {
    "within 48 hours": "breach of register data within 14 days",
    "shall not engage a subcontractor": "may engage a subcontractor",
    "shall not sell": "may sell",
    "nesmí údaje registru prodávat": "smí údaje registru prodávat",
}
"""Words of a law, and the words of a contract that break them."""
FULFILS = {
    "shall encrypt": "shall encrypt all",
    "within 48 hours": "within 24 hours",
    "shall not engage": "shall not engage any",
    "within 30 days": "within 14 days after termination",
    "record of all disclosures": "record of all disclosures of register data for 5 years",
}
"""Words of a law, and the words of a contract that fulfil them."""
REPEATED = 1_000
"""More calls than any test makes."""
Answer = Callable[[Any], BaseModel]


class ReviewingModel(PartlyScriptedModel):
    """Answers the tasks of specialists; `script` replaces the answers of some of them."""

    def __init__(self, **script: Any) -> None:
        usual = {name: [answer] * REPEATED for name, answer in ANSWERS.items()}
        super().__init__(**{**usual, **script})


def write(answer: Answer) -> Answer:
    """Return an answer of a task, also as the message of a conversation."""

    def reply(given: Any) -> BaseModel:
        if isinstance(given, ToolConversation):
            return ModelMessage(text=answer(given.prompt).model_dump_json())
        return answer(given)

    return reply


def choose_documents(inputs: ExtractorInputs) -> ExtractorOutput:
    known = [
        TitledDocument(candidate.id, candidate.title, candidate.source, candidate.language)
        for candidate in inputs.candidates
    ]
    scope = find_scope(inputs.question, known, inputs.language)
    return ExtractorOutput(
        documents=tuple(document.id for document in scope.documents),
        against=tuple(document.id for document in scope.against),
        chunk_ids=tuple(passage.id for passage in inputs.passages),
        notes=scope.notes,
    )


def classify(inputs: ClassifierInputs) -> ClassifierOutput:
    return ClassifierOutput(
        documents=tuple(
            ClassifiedDocument(
                document_id=document.id,
                document_type="contract" if "ontract" in document.heading else "law",
                domain="data protection",
                complexity="low",
                language=document.language,
                sensitivity="internal",
            )
            for document in inputs.documents
        )
    )


def list_requirements(inputs: RequirementExtractorInputs) -> RequirementExtractorOutput:
    """List one requirement for each unit with a heading; definitions are told by theirs."""
    listed, without = [], []
    for unit in inputs.units:
        name = unit.heading.rpartition(" > ")[2]
        if not name or name == inputs.target_law:
            without.append(UnitWithout(source_section=unit.id, reason="an introduction"))
            continue
        kind = (
            "ban" if "shall not" in unit.text else "permission" if " may " in unit.text else "duty"
        )
        listed.append(
            ListedRequirement.model_validate(
                {
                    "source_section": unit.id,
                    "requirement": unit.text,
                    "quotation": unit.text,
                    "kind": "definition" if "Definitions" in name else kind,
                    "addressee": "The processor",
                    "broken_by": next(iter(find_breaking(unit.text)), ""),
                }
            )
        )
    return RequirementExtractorOutput(checklist=tuple(listed), without=tuple(without))


def find_breaking(quotation: str) -> Iterator[str]:
    yield from (broken for ruled, broken in BREAKS.items() if ruled in quotation)


def compare(inputs: ComplianceInputs) -> ComplianceOutput:
    if inputs.direction == "clauses":
        return ComplianceOutput(readings=tuple(read_clauses(inputs)))
    return ComplianceOutput(verdicts=tuple(map(make_judge(inputs), inputs.requirements)))


def read_clauses(inputs: ComplianceInputs) -> Iterator[ClauseReading]:
    for passage in inputs.passages:
        for rule in inputs.requirements:
            if any(item in passage.text for item in find_breaking(rule.quotation)):
                yield ClauseReading(
                    passage=passage.id, requirement_id=rule.id, effect="breaks", reason="against it"
                )


def make_judge(inputs: ComplianceInputs) -> Callable[[Any], RequirementVerdict]:
    def judge(rule: Any) -> RequirementVerdict:
        status: str = "GAP"
        evidence: tuple[tuple[str, str], ...] = ()
        for passage in inputs.passages:
            broken = next(
                (item for item in find_breaking(rule.quotation) if item in passage.text), ""
            )
            if broken:
                status, evidence = "VIOLATION", ((passage.id, passage.text),)
                break
            kept = rule.quotation.strip().rstrip(".")[:60] in passage.text or any(
                ruled in rule.quotation and done in passage.text for ruled, done in FULFILS.items()
            )
            if kept:
                status, evidence = "COMPLIANT", ((passage.id, passage.text),)
        return RequirementVerdict.model_validate(
            {
                "requirement_id": rule.id,
                "reason": f"{rule.heading.rpartition(' > ')[2]}: as the clause says",
                "evidence": [{"passage": name, "quotation": words} for name, words in evidence],
                "status": status,
                "confidence": 0.9,
            }
        )

    return judge


def rank(inputs: RiskVerifierInputs) -> RiskVerifierOutput:
    return RiskVerifierOutput(
        risks=tuple(
            RankedRisk(
                requirement_id=verdict.requirement_id,
                category="Legal",
                severity=4 if verdict.status == "VIOLATION" else 3,
                likelihood=3,
                reason="a fine",
                mitigation="change the clause",
            )
            for verdict in inputs.verdicts
        )
    )


def audit(inputs: CitationAuditorInputs) -> CitationAuditorOutput:
    return CitationAuditorOutput(
        statements=tuple(
            CheckedStatement(id=statement.id, says="yes") for statement in inputs.statements
        )
    )


def report(inputs: ReportGeneratorInputs) -> ReportGeneratorOutput:
    return ReportGeneratorOutput(
        summary=(f"{inputs.document} was read.",),
        recommendations=tuple(
            Recommendation(
                requirement_id=verdict.requirement_id, advice='Write "as the law says" there.'
            )
            for verdict in inputs.verdicts
        ),
    )


def synthesize(inputs: SynthesisInputs) -> SynthesisOutput:
    """List the findings, or quote the passages."""
    if not inputs.findings:
        quoted = "\n\n".join(
            f"{source.text} \\cite{{{source.id}}}" for source in inputs.sources[:3]
        )
        return SynthesisOutput(answer=quoted)
    lines = []
    for finding in inputs.findings:
        cited = "".join(f"\\cite{{{name}}}" for name in finding.sources)
        lines.append(f"- {finding.text} {cited}")
    lines += [f"- {note} \\cite{{review}}" for note in inputs.notes]
    return SynthesisOutput(answer="\n".join(lines))


def accept(inputs: ScopeInputs) -> ScopeOutput:
    """Take every question as the business of the desk."""
    return ScopeOutput(verdict="within", confidence=0.9, analysis="a review")


def read_turn(inputs: UnderstandInputs) -> UnderstandOutput:
    """Take every turn as a question that stands alone, and as the business of the desk."""
    context = "new_topic" if inputs.open_pause is None else "clarification"
    return UnderstandOutput.model_validate({"context_type": context, "verdict": "within"})


def plan(inputs: TriageInputs) -> TriageOutput:
    """Plan a review, with a report or risks if the question has the word; "it" alone is vague."""
    asked = inputs.question.lower()
    kind = "reporting" if "report" in asked else "risk" if "risk" in asked else "compliance"
    is_vague = asked.strip(" ?") == "is it compliant"
    return TriageOutput.model_validate(
        {
            "reasoning": "a document and a law",
            "query_type": kind,
            "complexity": 90,
            "vagueness": 0.7 if is_vague else 0.1,
            "needs_clarification": is_vague,
        }
    )


ANSWERS: Mapping[str, Answer] = {
    "understand": read_turn,
    "triage": plan,
    "scope": accept,
    "extractor": write(choose_documents),
    "classifier": write(classify),
    "requirement_extractor": write(list_requirements),
    "compliance": write(compare),
    "risk_verifier": write(rank),
    "citation_auditor": write(audit),
    "gap_synthesizer": write(lambda inputs: GapSynthesizerOutput(gaps=())),
    "report_generator": write(report),
    "synthesis": write(synthesize),
}
