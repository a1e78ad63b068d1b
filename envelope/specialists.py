"""The payload values of the specialists, and the order in which they run."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from graphlib import TopologicalSorter

from pydantic import BaseModel, Field, JsonValue

LONGEST_ERROR = 500
"""Maximum number of characters of the text of an error."""


class SpecialistName(StrEnum):
    """The nine specialists, each of which has a role with this name."""

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
"""The specialists whose output a specialist requires; missing ones are added to a sequence."""
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
"""The specialists whose output a specialist uses if available; it runs after them."""
FULL_REVIEW = tuple(name for name in SpecialistName if name is not _S.SYNTHESIS)
"""The sequence of an explicitly requested review, without the synthesis, which always runs last."""


class ExecutionPhase(StrEnum):
    """The phases of a review."""

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
    """A sequence of valid names in which each specialist comes after its dependencies.

    `notes` contains sentences about names that were removed and specialists that were added.
    """

    names: tuple[SpecialistName, ...]
    notes: tuple[str, ...] = ()


class ErrorSeverity(StrEnum):
    """The effect of an error.

    LOW: no effect on the result. MEDIUM: another step replaced a part. HIGH: the result is missing.
    """

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class SpecialistError(BaseModel, frozen=True, extra="ignore"):
    """A failure of one specialist; the others continued. The log contains its `error_id`."""

    error_id: str
    specialist: str
    text: str = Field(description="type and text of the error, at most 500 characters")
    severity: ErrorSeverity = ErrorSeverity.HIGH
    phase: str = Field(default="", description="phase of the failure; see `ExecutionPhase`")

    def __str__(self) -> str:
        return f"[{self.error_id}] {self.specialist}: {self.text}"


class ReviewScope(BaseModel, frozen=True, extra="ignore"):
    """The documents to review and the rules to review them against, by ID in the index.
    `specialists` and their dependencies take part or, if it is empty, all specialists. `language`
    is the language of the answer and the report (ISO 639-1) or, if it is empty, the language of the
    user's message is used.
    """

    documents: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    specialists: tuple[SpecialistName, ...] = ()
    language: str = Field("", pattern="^([a-z]{2,3})?$")


class StoredPart(BaseModel, frozen=True, extra="ignore"):
    """The result of a part: the number of its items and its storage reference, or the reason for
    its failure.
    """

    reference: str = ""
    items: int = Field(default=0, ge=0)
    units: int = Field(default=0, ge=0, description="number of units that were read for this part")
    decided_by: str = ""
    failure: str = Field(
        default="", description="reason for a missing result; another round may retry"
    )
    is_refused: bool = Field(
        default=False, description="whether the model refused; no other round retries"
    )


class PartPlan(BaseModel, frozen=True, extra="ignore"):
    """A part of a specialist's work, which is processed by a separate branch.

    `first` and `last` (inclusive) are 0-based indexes of units of the documents or of requirements
    in the checklist; `digest` identifies the content to which the indexes refer. A part may span
    several documents: `document_id`, followed by `more_documents`.
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
        """The number of units or requirements in the part."""
        return self.last - self.first + 1

    @property
    def documents(self) -> tuple[str, ...]:
        """The ids of its documents, in order."""
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
    """A document of the review, as listed in the index; `source` is its file."""

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
    offers: tuple[str, ...] = Field(
        default=(), description="ids of documents that may be meant for a role without a document"
    )
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
    units_without: int = Field(
        default=0, ge=0, description="number of units that were read and contain no requirement"
    )
    notes: tuple[str, ...] = ()
    decided_by: tuple[str, ...] = ()


class StoredVerdicts(BaseModel, frozen=True, extra="ignore"):
    """The output of the compliance specialist: counts, and where the verdicts are stored."""

    reference: str
    requirements: int = Field(ge=0)
    compliant: int = Field(ge=0)
    violations: int = Field(ge=0)
    gaps: int = Field(ge=0)
    undecided: tuple[str, ...] = Field(
        default=(), description="number of requirements without a verdict"
    )
    confidence: float | None = Field(
        default=None, ge=0, le=1, description="mean confidence of all verdicts; None: not judged"
    )
    notes: tuple[str, ...] = ()
    decided_by: tuple[str, ...] = ()


class FindingList(BaseModel, frozen=True, extra="ignore"):
    """The output of a specialist that lists findings: how many there are, and where they are
    stored.
    """

    reference: str = ""
    items: int = Field(ge=0)
    summary: tuple[str, ...] = Field(default=(), description="first findings, for display")
    decided_by: str = ""


class ReportReference(BaseModel, frozen=True, extra="ignore"):
    """The final report, which is included if it is small and otherwise only referenced.

    `report` is an `agents.review.review_report.ReviewReport` as JSON. `reference`, its name in
    `RedisWorkStore`, is always set.
    """

    title: str
    language: str
    requirements: int = Field(ge=0)
    compliant: int = Field(ge=0)
    violations: int = Field(ge=0)
    gaps: int = Field(ge=0)
    undecided: int | None = Field(
        default=None,
        ge=0,
        description="number of undecided requirements; None: stored by an earlier version, "
        "which did not count them",
    )
    confidence: float | None = Field(
        default=None, ge=0, le=1, description="mean confidence of all verdicts; None: not measured"
    )
    bytes: int = Field(ge=0)
    reference: str
    report: dict[str, JsonValue] | None = None


class CitationCheck(BaseModel, frozen=True, extra="ignore"):
    r"""The result of checking the `\cite{id}` marks in the synthesis: existing and unknown IDs."""

    used_citations: tuple[str, ...] = ()
    invalid_citations: tuple[str, ...] = ()
    valid: bool = True


class FurtherRound(BaseModel, frozen=True, extra="ignore"):
    """A further round requested by the synthesis: the specialists to run again, and the reason."""

    names: tuple[SpecialistName, ...]
    focus: str = Field(default="", max_length=500)


class SpecialistProfile(BaseModel, frozen=True, extra="ignore"):
    """The configuration of a specialist, read from a file in `config/specialists`.

    `prompt` is the name of a file in the folder of the profile, or one of the built-in prompts.
    `model` has the format of `GEN_MODEL`; if it is empty, `GEN_MODEL` is used. `tools` are the only
    tools that the specialist may call.
    """

    name: SpecialistName
    prompt: str = Field(default="", max_length=84, pattern=r"^([\w-]+\.txt)?$")
    model: str = ""
    temperature: float = Field(default=0.3, ge=0, le=2)
    max_tokens: int = Field(default=4096, ge=256, le=65_536)
    tools: tuple[str, ...] = ()
    max_iterations: int = Field(default=10, ge=1, le=20)
    timeout_seconds: float = Field(default=30.0, gt=0, description="time limit of one tool call")
    retry_count: int = Field(default=2, ge=0, le=5, description="retries of a failed tool call")
    expands_queries: bool = Field(
        default=False,
        description="whether a model rewords the specialist's search queries for more results",
    )


def complete_sequence(names: Iterable[str]) -> CompletedSequence:
    """Return a planned sequence without unknown or duplicate names and with all dependencies.

    It does not contain the synthesis, which always runs last.
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
    # The synthesis is never planned, so adding its dependencies is not a correction.
    _add_needed(_S.SYNTHESIS, known, [])
    wanted = set(known)
    order = [name for wave in list_waves(tuple(known)) for name in wave if name in wanted]
    return CompletedSequence(names=tuple(order), notes=tuple(notes))


def plan_further_round(name: SpecialistName, done: Sequence[str]) -> tuple[SpecialistName, ...]:
    """Return the specialists of a further round for `name`; those in `done` have already run.

    Dependencies that have not run yet come first. Specialists that use its output run again.
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
    """Return the specialists in groups that can run concurrently; unknown names are skipped."""
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
