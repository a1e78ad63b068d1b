"""What the specialists write to the payload, and the order in which they work."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from graphlib import TopologicalSorter

from pydantic import BaseModel, Field, JsonValue

LONGEST_ERROR = 500
"""Characters of the text of an error."""


class SpecialistName(StrEnum):
    """The nine specialists; each has a role of this name."""

    EXTRACTOR = "extractor"
    CLASSIFIER = "classifier"
    REQUIREMENT_EXTRACTOR = "requirement_extractor"
    COMPLIANCE = "compliance"
    RISK_VERIFIER = "risk_verifier"
    CITATION_AUDITOR = "citation_auditor"
    GAP_SYNTHESIZER = "gap_synthesizer"
    REPORT_GENERATOR = "report_generator"
    SYNTHESIS = "synthesis"


_S = SpecialistName
NEEDS: Mapping[SpecialistName, tuple[SpecialistName, ...]] = {
    _S.EXTRACTOR: (),
    _S.CLASSIFIER: (_S.EXTRACTOR,),
    _S.REQUIREMENT_EXTRACTOR: (_S.EXTRACTOR,),
    _S.COMPLIANCE: (_S.REQUIREMENT_EXTRACTOR,),
    _S.RISK_VERIFIER: (_S.COMPLIANCE,),
    _S.CITATION_AUDITOR: (_S.EXTRACTOR,),
    _S.GAP_SYNTHESIZER: (_S.COMPLIANCE,),
    _S.REPORT_GENERATOR: (_S.COMPLIANCE,),
    _S.SYNTHESIS: (_S.EXTRACTOR,),
}
"""The specialists whose output a specialist requires; they are added to a sequence that lacks them.
"""
USES: Mapping[SpecialistName, tuple[SpecialistName, ...]] = {
    _S.CITATION_AUDITOR: (_S.COMPLIANCE,),
    _S.GAP_SYNTHESIZER: (_S.CITATION_AUDITOR,),
    _S.REPORT_GENERATOR: (
        _S.CLASSIFIER,
        _S.RISK_VERIFIER,
        _S.CITATION_AUDITOR,
        _S.GAP_SYNTHESIZER,
    ),
}
"""The specialists whose output a specialist uses if they are in the sequence; it works after them.
"""
FULL_REVIEW = tuple(name for name in SpecialistName if name is not _S.SYNTHESIS)
"""The sequence of a review that was asked for by name; the synthesis always comes last."""


class ExecutionPhase(StrEnum):
    """In which phase of a review a specialist works."""

    EXTRACTION = "extraction"
    CLASSIFICATION = "classification"
    REQUIREMENT_EXTRACTION = "requirement_extraction"
    VERIFICATION = "verification"
    SYNTHESIS = "synthesis"
    REPORTING = "reporting"


PHASES: Mapping[SpecialistName, ExecutionPhase] = {
    _S.EXTRACTOR: ExecutionPhase.EXTRACTION,
    _S.CLASSIFIER: ExecutionPhase.CLASSIFICATION,
    _S.REQUIREMENT_EXTRACTOR: ExecutionPhase.REQUIREMENT_EXTRACTION,
    _S.COMPLIANCE: ExecutionPhase.VERIFICATION,
    _S.RISK_VERIFIER: ExecutionPhase.VERIFICATION,
    _S.CITATION_AUDITOR: ExecutionPhase.VERIFICATION,
    _S.GAP_SYNTHESIZER: ExecutionPhase.SYNTHESIS,
    _S.REPORT_GENERATOR: ExecutionPhase.REPORTING,
    _S.SYNTHESIS: ExecutionPhase.SYNTHESIS,
}


class CompletedSequence(BaseModel, frozen=True, extra="ignore"):
    """A sequence of valid names, ordered so that each specialist comes after those it depends on.

    `notes` are sentences about names that were left out and specialists that were added.
    """

    names: tuple[SpecialistName, ...]
    notes: tuple[str, ...] = ()


class ErrorSeverity(StrEnum):
    """The effect of an error: none on the result, a part that another step replaced, or a missing
    result.
    """

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class SpecialistError(BaseModel, frozen=True, extra="ignore"):
    """A failure of one specialist; the others continued. `error_id` is in the log, too."""

    error_id: str
    specialist: str
    text: str = Field(description="type and text of the error, at most 500 characters")
    severity: ErrorSeverity = ErrorSeverity.HIGH
    phase: str = Field(default="", description="in which it went wrong; see `ExecutionPhase`")

    def __str__(self) -> str:
        return f"[{self.error_id}] {self.specialist}: {self.text}"


class ReviewScope(BaseModel, frozen=True, extra="ignore"):
    """The documents to review and the rules to review them against, by ids of the index.
    `specialists` take part, with those that they depend on; empty: all. `language` is that of the
    answer and the report, ISO 639-1; empty: that of the text.
    """

    documents: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    specialists: tuple[SpecialistName, ...] = ()
    language: str = Field("", pattern="^([a-z]{2,3})?$")


class StoredPart(BaseModel, frozen=True, extra="ignore"):
    """The result of a part: how many items it has, and where it is stored; or why it failed."""

    reference: str = ""
    items: int = Field(default=0, ge=0)
    units: int = Field(default=0, ge=0, description="units that were read for it")
    decided_by: str = ""
    failure: str = Field(default="", description="why there is no result; another round may try")
    is_refused: bool = Field(
        default=False, description="the model refused, so that no other round asks it"
    )


class PartPlan(BaseModel, frozen=True, extra="ignore"):
    """A part of a specialist's work, which a separate branch does.

    `first` and `last` count units of the documents, or requirements of the checklist, from 0; the
    last one is included. `digest` is the content that was counted. A law of many files has several
    documents in a part: `document_id`, and those of `more_documents` after it.
    """

    key: str
    label: str = ""
    document_id: str = ""
    more_documents: tuple[str, ...] = ()
    reference: str = ""
    digest: str = ""
    first: int = Field(ge=0)
    last: int = Field(ge=0)

    @property
    def size(self) -> int:
        """How many units or requirements the part has."""
        return self.last - self.first + 1

    @property
    def documents(self) -> tuple[str, ...]:
        """The ids of its documents in order."""
        return (self.document_id, *self.more_documents)


class ExtractedPassage(BaseModel, frozen=True, extra="ignore"):
    """A passage that the extractor found for the question."""

    chunk_id: str
    document_id: str
    title: str
    heading_path: tuple[str, ...] = ()
    content: str
    score: float = 0.0


class ReviewedDocument(BaseModel, frozen=True, extra="ignore"):
    """A document of the review as the index lists it; `source` is its file."""

    document_id: str
    title: str
    language: str
    source: str = ""
    units: int = Field(default=0, ge=0)


class Extracted(BaseModel, frozen=True, extra="ignore"):
    """The output of the extractor: the documents of the review, and passages for the question."""

    analysis: str = ""
    documents: tuple[ReviewedDocument, ...] = ()
    against: tuple[ReviewedDocument, ...] = ()
    chunk_ids: tuple[str, ...] = ()
    chunks_data: tuple[ExtractedPassage, ...] = ()
    citations: tuple[str, ...] = Field(default=(), description='crumbs, such as "1 > 2 > 3"')
    retrieval_method: str = "autonomous_llm_driven"
    notes: tuple[str, ...] = ()
    decided_by: str = ""


class StoredChecklist(BaseModel, frozen=True, extra="ignore"):
    """The output of the requirement extractor; the requirements themselves are stored.

    Every unit of the law is in exactly one of `units_read` and `units_unread`.
    """

    reference: str
    target_law: str
    requirements: int = Field(ge=0)
    definitions: int = Field(default=0, ge=0)
    units_read: int = Field(ge=0)
    units_unread: tuple[str, ...] = ()
    units_without: int = Field(default=0, ge=0, description="read units without a requirement")
    notes: tuple[str, ...] = ()
    decided_by: tuple[str, ...] = ()


class StoredVerdicts(BaseModel, frozen=True, extra="ignore"):
    """The output of compliance: counts, and where the verdicts are stored."""

    reference: str
    requirements: int = Field(ge=0)
    compliant: int = Field(ge=0)
    violations: int = Field(ge=0)
    gaps: int = Field(ge=0)
    undecided: tuple[str, ...] = Field(default=(), description="requirements without a verdict")
    confidence: float | None = Field(
        default=None, ge=0, le=1, description="the mean of all verdicts; None: nobody judged"
    )
    notes: tuple[str, ...] = ()
    decided_by: tuple[str, ...] = ()


class FindingList(BaseModel, frozen=True, extra="ignore"):
    """The output of a specialist that lists findings: how many, and where they are stored."""

    reference: str = ""
    items: int = Field(ge=0)
    summary: tuple[str, ...] = Field(default=(), description="the first ones, for people")
    decided_by: str = ""


class ReportReference(BaseModel, frozen=True, extra="ignore"):
    """The final report: the report itself if it is small, else where it is stored.

    `report` is a `agents.review.review_report.ReviewReport` as JSON. `reference`
    names it in `RedisWorkStore`; it is set in any case.
    """

    title: str
    language: str
    requirements: int = Field(ge=0)
    compliant: int = Field(ge=0)
    violations: int = Field(ge=0)
    gaps: int = Field(ge=0)
    undecided: int | None = Field(
        default=None, ge=0, description="None: stored by an earlier version, which did not count"
    )
    confidence: float | None = Field(
        default=None, ge=0, le=1, description="the mean of all verdicts; None: not measured"
    )
    bytes: int = Field(ge=0)
    reference: str
    report: dict[str, JsonValue] | None = None


class CitationCheck(BaseModel, frozen=True, extra="ignore"):
    r"""The result of checking the `\cite{id}` of the synthesis: ids that exist, and ids that do
    not."""

    used_citations: tuple[str, ...] = ()
    invalid_citations: tuple[str, ...] = ()
    valid: bool = True


class FurtherRound(BaseModel, frozen=True, extra="ignore"):
    """A further round that the synthesis asked for: the specialists that work again, and the
    reason.
    """

    names: tuple[SpecialistName, ...]
    focus: str = Field(default="", max_length=500)


class SpecialistProfile(BaseModel, frozen=True, extra="ignore"):
    """How a specialist works: a file of `config/specialists`.

    `prompt` is the name of a file in the folder of the profile, else of the product. `model` is as
    `GEN_MODEL`; empty: that setting. `tools` are the only ones that it may call.
    """

    name: SpecialistName
    prompt: str = Field(default="", max_length=84, pattern=r"^([\w-]+\.txt)?$")
    model: str = ""
    temperature: float = Field(default=0.3, ge=0, le=2)
    max_tokens: int = Field(default=4096, ge=256, le=65_536)
    tools: tuple[str, ...] = ()
    max_iterations: int = Field(default=10, ge=1, le=20)
    timeout_seconds: float = Field(default=30.0, gt=0, description="of one call of a tool")
    retry_count: int = Field(
        default=2, ge=0, le=5, description="further attempts of a tool that failed"
    )
    expands_queries: bool = Field(
        default=False, description="whether a model adds wordings to the searches of the specialist"
    )


def complete_sequence(names: Iterable[str]) -> CompletedSequence:
    """Return a planned sequence without unknown and duplicate names, with all dependencies. It does
    not contain the synthesis, which always comes last.
    """
    known: dict[SpecialistName, None] = {}
    notes: list[str] = []
    for name in names:
        plain = str(name).strip().lower()
        if plain not in set(SpecialistName):
            notes.append(f"{str(name)[:60]!r} was left out: there is no such specialist")
        elif plain != _S.SYNTHESIS:
            known[SpecialistName(plain)] = None
    for name in tuple(known):
        _add_needed(name, known, notes)
    # The synthesis is not part of a plan, so adding its dependencies is not noted as a correction.
    _add_needed(_S.SYNTHESIS, known, [])
    wanted = set(known)
    order = [name for wave in list_waves(tuple(known)) for name in wave if name in wanted]
    return CompletedSequence(names=tuple(order), notes=tuple(notes))


def plan_further_round(name: SpecialistName, done: Sequence[str]) -> tuple[SpecialistName, ...]:
    """Return the specialists of a further round; `done` have worked before.

    Specialists whose output it needs and that have not run yet come first. Those that use its
    output run again.
    """
    needed = [
        specialist_name
        for specialist_name in complete_sequence([name]).names
        if specialist_name == name or specialist_name not in done
    ]
    again = set(needed)
    order = complete_sequence([*done, *needed]).names
    for specialist_name in order:
        if again & {*NEEDS[specialist_name], *USES.get(specialist_name, ())}:
            again.add(specialist_name)
    return tuple(specialist_name for specialist_name in order if specialist_name in again)


def list_waves(names: Sequence[str]) -> tuple[tuple[SpecialistName, ...], ...]:
    """Return the specialists in groups that can work at once; unknown names are left out."""
    own = [SpecialistName(name) for name in names if name in set(SpecialistName)]
    before = {
        name: [
            specialist_name
            for specialist_name in (*NEEDS[name], *USES.get(name, ()))
            if specialist_name in own
        ]
        for name in own
    }
    sorter = TopologicalSorter(before)
    sorter.prepare()
    waves = []
    while sorter.is_active():
        ready = sorter.get_ready()
        sorter.done(*ready)
        waves.append(tuple(name for name in SpecialistName if name in ready))
    return tuple(waves)


def _add_needed(name: SpecialistName, known: dict[SpecialistName, None], notes: list[str]) -> None:
    for needed in NEEDS[name]:
        if needed not in known:
            known[needed] = None
            notes.append(f"{needed} was added: {name} needs it")
        _add_needed(needed, known, notes)
