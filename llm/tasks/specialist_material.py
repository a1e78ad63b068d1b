"""The inputs that all specialists share."""

from pydantic import BaseModel, Field


class SpecialistInputs(BaseModel, frozen=True):
    """The question with its context, and what the tools have found for this specialist so far."""

    question: str
    language: str = Field(default="en", description="of the user, ISO 639-1")
    original_query: str = Field(default="", description="as the user wrote it")
    recent_turns: tuple[str, ...] = Field(default=(), description="the last ones, shortened")
    previous_outputs: str = Field(
        default="", description="what other specialists left, as compact JSON, shortened"
    )
    retrieved: tuple[str, ...] = Field(default=(), description="documents and places, a line each")
    gathered: tuple[str, ...] = Field(default=(), description="results of tools, shortened")
    output_schema: str = Field(
        default="", description="JSON schema of the answer, where tools may be called first"
    )


class TextUnit(BaseModel, frozen=True):
    """A piece of a document under its id."""

    id: str
    heading: str = ""
    text: str
    language: str = "en"


class KnownRequirement(BaseModel, frozen=True):
    """A requirement as later specialists read it."""

    id: str
    statement: str
    kind: str = "duty"
    severity: str = "mandatory"
    addressee: str = ""
    condition: str = ""
    heading: str = Field(default="", description="where the law says it")
    quotation: str = Field(default="", description="the words of the law")


class KnownVerdict(BaseModel, frozen=True):
    """A verdict as later specialists read it: compressed."""

    requirement_id: str
    status: str
    confidence: float | None = Field(default=None, ge=0, le=1)
    note: str = ""
    evidence: tuple[str, ...] = ()
