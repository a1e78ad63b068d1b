"""The tasks of the specialists that review documents."""

from typing import Literal

from pydantic import BaseModel, Field

from llm.port import Task, keep_first_half


class SpecialistInputs(BaseModel, frozen=True):
    """The question with its context, and what the tools have returned for this specialist so
    far.
    """

    question: str
    language: str = Field(default="en", description="language of the user, ISO 639-1")
    original_query: str = Field(default="", description="the question in the words of the user")
    recent_turns: tuple[str, ...] = Field(default=(), description="the last turns, shortened")
    previous_outputs: str = Field(
        default="", description="results of other specialists as compact JSON, shortened"
    )
    retrieved: tuple[str, ...] = Field(
        default=(), description="documents and locations that the search found, one per line"
    )
    gathered: tuple[str, ...] = Field(default=(), description="results of tools, shortened")
    output_schema: str = Field(
        default="", description="JSON schema of the answer if tools may be called first; else empty"
    )


class TextUnit(BaseModel, frozen=True):
    """A piece of a document, identified by an ID."""

    id: str
    heading: str = ""
    text: str
    language: str = "en"


class KnownRequirement(BaseModel, frozen=True):
    """A requirement as shown to later specialists."""

    id: str
    statement: str
    kind: str = "duty"
    severity: str = "mandatory"
    addressee: str = ""
    condition: str = ""
    heading: str = Field(default="", description="heading of the requirement in the law")
    quotation: str = Field(default="", description="the wording of the law")


class KnownVerdict(BaseModel, frozen=True):
    """A verdict as shown to later specialists, in compressed form."""

    requirement_id: str
    status: str
    confidence: float | None = Field(default=None, ge=0, le=1)
    note: str = ""
    evidence: tuple[str, ...] = ()


class CandidateDocument(BaseModel, frozen=True):
    """A document that the question may refer to."""

    id: str
    title: str
    source: str = ""
    language: str = "en"
    is_attached: bool = Field(
        default=False, description="whether the user added the document to the conversation"
    )
    beginning: str = Field(default="", description="beginning of the document's text")


class ExtractorInputs(SpecialistInputs):
    """The documents that the question may refer to, and the passages found."""

    candidates: tuple[CandidateDocument, ...] = ()
    passages: tuple[TextUnit, ...] = ()
    most_results: int = Field(default=6, ge=1, description="maximum number of results of a search")


class ExtractorOutput(BaseModel, frozen=True):
    """The documents by role, and the passages worth reading; contains only IDs from the inputs."""

    analysis: str = Field(default="", description="the reason in one or two sentences")
    documents: tuple[str, ...] = Field(default=(), description="ids of the documents to review")
    against: tuple[str, ...] = Field(
        default=(), description="ids of the laws or rules against which they are reviewed"
    )
    offers: tuple[str, ...] = Field(
        default=(), description="ids of candidates that may be meant for a role without a document"
    )
    chunk_ids: tuple[str, ...] = Field(default=(), description="ids of useful passages")
    notes: tuple[str, ...] = Field(
        default=(), description="assumptions, and items that were not found"
    )


EXTRACTOR = Task(
    name="extractor",
    inputs=ExtractorInputs,
    output=ExtractorOutput,
    max_output_tokens=4096,
    shorten=keep_first_half("passages"),
)
"""Chooses the documents of a review, and the passages that a question needs."""


class ClassifierInputs(SpecialistInputs):
    """The documents with their IDs; a long document is split into several parts with the same
    ID.
    """

    documents: tuple[TextUnit, ...] = ()


class ClassifiedDocument(BaseModel, frozen=True):
    """The classes of one document."""

    document_id: str
    document_type: str = Field(description="law, contract, policy, report, manual or other")
    domain: str = Field(description="legal, data protection, financial, technical, ... or other")
    complexity: Literal["low", "medium", "high"]
    language: str = Field(description="ISO 639-1")
    sensitivity: str = Field(
        description="special categories, confidential, personal, internal or public"
    )


class ClassifierOutput(BaseModel, frozen=True):
    """The classes of all documents of the inputs."""

    documents: tuple[ClassifiedDocument, ...]


CLASSIFIER = Task(
    name="classifier", inputs=ClassifierInputs, output=ClassifierOutput, max_output_tokens=2048
)
"""Classifies documents in five dimensions."""


class RequirementExtractorInputs(SpecialistInputs):
    """A part of a law: its units in order."""

    target_law: str
    units: tuple[TextUnit, ...]
    document_language: str = Field(
        default="en",
        description="language of the reviewed document, for `fulfilled_by` and `broken_by`",
    )


class ListedRequirement(BaseModel, frozen=True):
    """An atomic rule that can be verified by itself."""

    source_section: str = Field(description="id of the unit that contains the requirement")
    quotation: str = Field(
        default="", description="the words of the unit that state the requirement, copied exactly"
    )
    requirement: str = Field(
        min_length=1, description="the rule in one sentence that can be checked independently"
    )
    severity: Literal["mandatory", "recommended", "optional"] = "mandatory"
    applicability: str = Field(
        default="", description="the condition under which the rule applies; empty: always"
    )
    kind: Literal["duty", "ban", "permission", "definition"] = "duty"
    addressee: str = Field(default="", description="who has to act")
    granularity: Literal["sentence", "item", "unit"] = Field(
        default="sentence", description="the part of the unit that states the requirement"
    )
    fulfilled_by: str = Field(
        default="", description="a clause of the document, in its language, that would fulfil it"
    )
    broken_by: str = Field(
        default="", description="a clause of the document, in its language, that would break it"
    )


class UnitWithout(BaseModel, frozen=True):
    """A unit that does not require anything of a document."""

    source_section: str = Field(description="id of the unit")
    reason: str = Field(
        description="the reason, such as: a heading, only states when the law takes effect"
    )


class RequirementExtractorOutput(BaseModel, frozen=True):
    """Every unit of the inputs: in `checklist` if it contains a requirement, otherwise in
    `without`.
    """

    checklist: tuple[ListedRequirement, ...]
    without: tuple[UnitWithout, ...] = ()
    target_law: str = ""


REQUIREMENT_EXTRACTOR = Task(
    name="requirement_extractor",
    inputs=RequirementExtractorInputs,
    output=RequirementExtractorOutput,
    max_output_tokens=8192,
)
"""Lists the obligations, prohibitions, permissions, and definitions in a part of a law."""


Effect = Literal["fulfils", "breaks", "unclear"]


class ClauseReading(BaseModel, frozen=True):
    """The effect of a passage of the document on a requirement."""

    passage: str = Field(description="id of the passage")
    requirement_id: str
    effect: Effect
    reason: str = Field(default="", description="the reason in one sentence")


class ComparedMeasures(BaseModel, frozen=True):
    """A number in a requirement and one in a passage with the same unit, compared without a
    model.
    """

    requirement_id: str
    passage: str
    lines: tuple[str, ...]


class ComplianceInputs(SpecialistInputs):
    """Requirements and passages of a document, and what is already known about them."""

    direction: Literal["clauses", "requirements"] = "requirements"
    document: str = Field(default="", description="title of the document")
    law: str = Field(default="", description="title of the law")
    requirements: tuple[KnownRequirement, ...]
    passages: tuple[TextUnit, ...]
    is_whole: bool = Field(
        default=False, description="whether these passages are the whole document"
    )
    comparisons: tuple[ComparedMeasures, ...] = ()
    readings: tuple[ClauseReading, ...] = Field(
        default=(), description="effects of the clauses that were examined first"
    )


class QuotedPassage(BaseModel, frozen=True):
    """A part of a passage as evidence."""

    passage: str = Field(description="id of the passage")
    quotation: str = Field(default="", description="the decisive words, copied exactly")


class RequirementVerdict(BaseModel, frozen=True):
    """The verdict on one requirement; the reason comes before the fields that depend on it."""

    requirement_id: str
    reason: str = Field(default="", description="the reason in one or two sentences")
    evidence: tuple[QuotedPassage, ...] = Field(
        default=(), description="the deciding passages; empty for a gap"
    )
    status: Literal["COMPLIANT", "VIOLATION", "GAP", "UNDECIDED"]
    confidence: float = Field(ge=0, le=1, description="the probability that the status is right")


class ComplianceOutput(BaseModel, frozen=True):
    """The requested result: the effects of the clauses, or a verdict for each requirement."""

    readings: tuple[ClauseReading, ...] = ()
    verdicts: tuple[RequirementVerdict, ...] = ()
    notes: tuple[str, ...] = Field(
        default=(), description="requirements that could not be judged, by their headings, and why"
    )


COMPLIANCE = Task(
    name="compliance", inputs=ComplianceInputs, output=ComplianceOutput, max_output_tokens=8192
)
"""Compares a document with requirements: the effect of each clause, and a verdict on each.

All clauses are examined first (`direction` clauses), so that each verdict considers every relevant
clause.
"""


class RiskVerifierInputs(SpecialistInputs):
    """The violated and unmet requirements with their verdicts."""

    requirements: tuple[KnownRequirement, ...]
    verdicts: tuple[KnownVerdict, ...]


class RankedRisk(BaseModel, frozen=True):
    """The risk of one violation or gap."""

    requirement_id: str
    category: Literal["Legal", "Financial", "Operational", "Compliance", "Reputational"]
    severity: int = Field(ge=1, le=5)
    likelihood: int = Field(ge=1, le=5)
    reason: str
    mitigation: str = Field(description="a measure that would reduce the risk, in one sentence")


class RiskVerifierOutput(BaseModel, frozen=True):
    """The risks, with the greatest first."""

    risks: tuple[RankedRisk, ...]


RISK_VERIFIER = Task(
    name="risk_verifier",
    inputs=RiskVerifierInputs,
    output=RiskVerifierOutput,
    max_output_tokens=4096,
)
"""Ranks the risks of violations and gaps."""


class CitedStatement(BaseModel, frozen=True):
    """A statement with its citation, and the text of the passage, or an empty text if it was not
    found.
    """

    id: str
    statement: str
    citation: str
    passage: str = ""
    place: str = ""
    language: str = "en"
    known: tuple[str, ...] = Field(default=(), description="problems that rules have already found")


class CitationAuditorInputs(SpecialistInputs):
    """The statements to check."""

    statements: tuple[CitedStatement, ...]


class CheckedStatement(BaseModel, frozen=True):
    """The findings about one statement."""

    id: str
    exists: bool = True
    says: Literal["yes", "partly", "no", "contradicts"]
    omitted: tuple[str, ...] = Field(
        default=(), description="conditions of the source that the statement omits"
    )
    is_well_formatted: bool = True
    problems: tuple[str, ...] = Field(
        default=(), description="the problems in complete sentences; empty: none"
    )


class CitationAuditorOutput(BaseModel, frozen=True):
    """The findings about all statements of the inputs."""

    statements: tuple[CheckedStatement, ...]


CITATION_AUDITOR = Task(
    name="citation_auditor",
    inputs=CitationAuditorInputs,
    output=CitationAuditorOutput,
    max_output_tokens=2048,
)
"""Checks citations: whether the source exists, whether it supports the whole statement, and whether
the citation is well formatted.
"""


class GapSynthesizerInputs(SpecialistInputs):
    """All requirements with verdicts, some passages of the document, and invalid citations."""

    requirements: tuple[KnownRequirement, ...]
    verdicts: tuple[KnownVerdict, ...]
    passages: tuple[TextUnit, ...] = ()
    wrong_citations: tuple[str, ...] = ()
    today: str = Field(default="", description="the date in UTC, such as 2026-01-31")


class FoundGap(BaseModel, frozen=True):
    """One gap."""

    kind: Literal["regulatory", "coverage", "consistency", "citation", "temporal"]
    summary: str
    requirement_ids: tuple[str, ...] = ()
    passages: tuple[str, ...] = Field(
        default=(), description="ids of the passages that the gap concerns"
    )


class GapSynthesizerOutput(BaseModel, frozen=True):
    """The gaps, in the order of their kinds."""

    gaps: tuple[FoundGap, ...]


GAP_SYNTHESIZER = Task(
    name="gap_synthesizer",
    inputs=GapSynthesizerInputs,
    output=GapSynthesizerOutput,
    max_output_tokens=4096,
)
"""Collects gaps of five kinds from the verdicts, the document, and the citation audit."""


class ReportGeneratorInputs(SpecialistInputs):
    """The results of the specialists, in compressed form."""

    document: str
    law: str
    counts: dict[str, int] = Field(default_factory=dict, description="number of verdicts by status")
    requirements: tuple[KnownRequirement, ...] = ()
    verdicts: tuple[KnownVerdict, ...] = ()
    risks: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    errors: tuple[str, ...] = Field(default=(), description="errors of specialists")


class Recommendation(BaseModel, frozen=True):
    """A change that is recommended because of one finding."""

    requirement_id: str
    advice: str = Field(description="the clause to change or add, with the proposed wording")


class ReportGeneratorOutput(BaseModel, frozen=True):
    """Sentences for the report."""

    summary: tuple[str, ...] = Field(
        default=(), description="the executive summary in at most five sentences"
    )
    recommendations: tuple[Recommendation, ...] = Field(
        default=(), description="one recommendation for each finding, the most urgent first"
    )


REPORT_GENERATOR = Task(
    name="report_generator",
    inputs=ReportGeneratorInputs,
    output=ReportGeneratorOutput,
    max_output_tokens=4096,
)
"""Writes the executive summary and the recommendations of a report. The rest is written without a
model.
"""


class FindingText(BaseModel, frozen=True):
    """A finding in one sentence, and the IDs of the sources that support it."""

    text: str
    sources: tuple[str, ...]


class SynthesisSource(BaseModel, frozen=True):
    """A passage that was actually read. Only such passages may be cited."""

    id: str
    place: str
    language: str | None = None
    text: str = Field(description="empty for the review itself, which says its findings and notes")


class SynthesisInputs(SpecialistInputs):
    """The findings in the user's language, and the sources."""

    findings: tuple[FindingText, ...] = ()
    sources: tuple[SynthesisSource, ...]
    left_out: int = Field(
        default=0, ge=0, description="number of sources that did not fit into the prompt"
    )
    notes: tuple[str, ...] = Field(
        default=(), description="omissions, additions, assumptions and errors"
    )
    analysis: str = Field(default="", description="the problems of the previous answer")
    attempt: int = 0
    may_ask_again: bool = Field(default=False, description="whether one more round is possible")


class FurtherWork(BaseModel, frozen=True):
    """A specialist that has to run again before an answer is possible."""

    specialist: str = Field(description="name of the specialist, such as extractor or compliance")
    focus: str = Field(description="the task of the specialist in one sentence")


class SynthesisOutput(BaseModel, frozen=True):
    """The answer, or the part that is missing."""

    status: Literal["answered", "insufficient_context"] = "answered"
    answer: str = Field(default="", description="Markdown; each claim ends with \\cite{id}")
    missing: str = Field(default="", description="information that the sources do not contain")
    further: FurtherWork | None = Field(
        default=None,
        description="null unless another round is possible and the answer would be wrong "
        "without it",
    )


SYNTHESIS = Task(
    name="synthesis",
    inputs=SynthesisInputs,
    output=SynthesisOutput,
    max_output_tokens=4096,
    shorten=keep_first_half("sources"),
)
r"""Writes the answer from the findings of the specialists, with `\cite{id}` for each claim."""
