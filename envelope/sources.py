"""The parts of found documents that the payload contains."""

from pydantic import BaseModel, Field

from envelope.place import Place

TOOL_SOURCE = "tool:"
"""Prefix of the `chunk_id` of a source that is the result of a tool instead of a passage."""
MOST_PICTURES = 4
"""The pictures of one source that are shown with an answer."""


class SourcePicture(BaseModel, frozen=True, extra="ignore"):
    """A picture that stands in a section; its bytes stay in the index, with its document."""

    id: str
    caption: str = Field(default="", description="its own; no claim of the document")


class FoundPart(BaseModel, frozen=True, extra="ignore"):
    """A chunk that the search compared with the question, inside the text of its section."""

    rank: int = Field(ge=0, description="among all chunks that the search found; 0 is the best")
    start: int = Field(ge=0, description="in the text that `span` delimits, in characters")
    end: int = Field(ge=0)


class SearchResult(Place, frozen=True, extra="ignore"):
    """A part of one section that a search gives; `search_context` contains its text.

    `chunk_id`, `score` and `levels` are those of its best chunk.
    """

    chunk_id: str
    document_id: str
    score: float
    levels: tuple[str, ...] = Field(description="the search levels that found it")
    span: tuple[int, int] | None = Field(
        default=None,
        description="start and end of its text in `search_context`, in characters; "
        "None when it did not fit",
    )
    is_cut: bool = Field(default=False, description="the text marks what its section has besides")
    is_release_notes: bool = Field(default=False, description="its page is a changelog")
    found: tuple[FoundPart, ...] = Field(default=(), description="best first")
    pictures: tuple[SourcePicture, ...] = Field(default=(), description="that stand in its text")


class SearchStats(BaseModel, frozen=True, extra="ignore"):
    """The statistics of a search."""

    total_results: int = Field(ge=0)
    used_results: int = Field(ge=0)
    left_out: int = Field(default=0, ge=0, description="that a repeated search found beyond these")
    context_length: int = Field(ge=0, description="tokens, estimated")
    average_score: float
    answerability: float = Field(ge=0, le=1)
    milliseconds: float = Field(ge=0)
    fallbacks: tuple[str, ...] = Field(
        default=(), description="levels that failed, `calibration`, `reranking`"
    )
    from_cache: bool = Field(default=False, description="whether an equal search found it before")


class SourceReference(Place, frozen=True, extra="ignore"):
    """A source that an answer may cite by its number, which starts at 1."""

    number: int = Field(ge=1)
    chunk_id: str
    span: tuple[int, int] = Field(description="its text in `search_context`, in characters")
    is_cut: bool = Field(default=False, description="the text marks what its section has besides")
    is_release_notes: bool = Field(default=False, description="its page is a changelog")
    found: tuple[FoundPart, ...] = Field(default=(), description="best first")
    pictures: tuple[SourcePicture, ...] = Field(default=(), description="that stand in its text")


class SourceUsed(Place, frozen=True, extra="ignore"):
    """A source that the answer cites; `number` is the number in the answer's text."""

    number: int = Field(ge=1)
    chunk_id: str
    addresses: tuple[str, ...] = Field(
        default=(),
        description="addresses that the answer shows and that its text contains exactly",
    )
    other_addresses: tuple[str, ...] = Field(
        default=(),
        description="of the first source: addresses that the answer shows and that the person "
        "typed, or that are composed of what a document states",
    )
    pictures: tuple[SourcePicture, ...] = Field(default=(), description="that stand in its text")


class WrittenAnswer(BaseModel, frozen=True, extra="ignore"):
    """An answer before something was removed from it; `refused` are the removed addresses."""

    text: str
    sources_used: tuple[SourceUsed, ...]
    refused: tuple[str, ...] = ()


class ShownPassage(BaseModel, frozen=True, extra="ignore"):
    """A part of a document that is shown unchanged; `number` is that of its source."""

    number: int = Field(ge=1)
    place: str = Field(description="title and headings, on one line")
    text: str = Field(description="Markdown; words of the question are bold")
    warning: str = Field(
        default="", description="if it gives orders to an assistant: a sentence that says so"
    )


class FoundPassages(BaseModel, frozen=True, extra="ignore"):
    """The passages that are shown if no model wrote an answer."""

    notice: str = Field(
        description="Markdown: what is assumed, why no model wrote an answer, what the passages are"
    )
    shown: tuple[ShownPassage, ...] = Field(description="the closest first")
    marked: tuple[str, ...] = Field(
        default=(), description="the words of the question that the passages hold, as they do"
    )


class ClaimCheck(BaseModel, frozen=True, extra="ignore"):
    """The judge's finding about one claim of an answer."""

    claim: str
    citations: tuple[int, ...]
    supported: bool
    support: float = Field(ge=0, le=1)
    reason: str = ""


class ValidationResult(BaseModel, frozen=True, extra="ignore"):
    """The judge's findings about a complete answer."""

    claims: tuple[ClaimCheck, ...]
    citations_valid: bool
    language_matches: bool
    completeness: float | None = Field(
        ge=0, le=1, description="how far it meets the question; None where nobody judged"
    )
    grounded: bool
    judge: str = Field(description="the model that judged, or why none could")
    approved: bool = Field(
        default=False,
        description="whether the judge approved all of it, though a search may follow for what "
        "the answer says is missing",
    )


class AnswerDraft(BaseModel, frozen=True):
    """The checked sentences of an answer while the rest is written, with the sources they cite.

    A draft with another `attempt` or `writing` is another text: it replaces the one before.
    """

    text: str = Field(description="Markdown, all of it so far")
    language: str = Field(description="of the text, ISO 639-1")
    attempt: int = Field(ge=0, description="the payload's `attempt`")
    writing: int = Field(ge=0, description="which writing of the model it is, within one attempt")
    is_quoted: bool = Field(
        default=False, description="passages as the search found them, which nobody withdraws"
    )
    sources: tuple[SourceUsed, ...] = ()
