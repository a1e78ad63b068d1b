"""Search results, sources, and passages in the payload."""

from pydantic import BaseModel, Field

from envelope.place import Place

TOOL_SOURCE = "tool:"
"""Prefix of the `chunk_id` of a source that is the result of a tool instead of a passage."""
MOST_PICTURES = 4
"""Maximum number of pictures per source that are shown with an answer."""


class SourcePicture(BaseModel, frozen=True, extra="ignore"):
    """A picture in a section; its bytes are stored in the index, with its document."""

    id: str
    caption: str = Field(
        default="", description="caption of the picture, which is not a claim of the document"
    )


class FoundPart(BaseModel, frozen=True, extra="ignore"):
    """The position of a chunk that was found within the text of its section."""

    rank: int = Field(
        ge=0, description="rank among all chunks that the search found; 0 is the best"
    )
    start: int = Field(ge=0, description="start in the text of `span`, in characters")
    end: int = Field(ge=0)


class SearchResult(Place, frozen=True, extra="ignore"):
    """A part of a section that was returned by a search; `search_context` contains its text.

    `chunk_id`, `score` and `levels` refer to its best chunk.
    """

    chunk_id: str
    document_id: str
    score: float
    levels: tuple[str, ...] = Field(description="search levels that found the chunk")
    span: tuple[int, int] | None = Field(
        default=None,
        description="start and end of the text in `search_context`, in characters; None if the "
        "text did not fit",
    )
    is_cut: bool = Field(
        default=False,
        description="whether the text is only a part of its section; marks show omissions",
    )
    is_release_notes: bool = Field(default=False, description="whether the page is a changelog")
    found: tuple[FoundPart, ...] = Field(default=(), description="best first")
    pictures: tuple[SourcePicture, ...] = Field(default=(), description="pictures in the text")


class SearchStats(BaseModel, frozen=True, extra="ignore"):
    """The statistics of a search."""

    total_results: int = Field(default=0, ge=0)
    used_results: int = Field(default=0, ge=0)
    left_out: int = Field(
        default=0,
        ge=0,
        description="number of further results of a repeated search that were not used",
    )
    context_length: int = Field(default=0, ge=0, description="tokens, estimated")
    average_score: float = 0
    answerability: float = Field(default=0, ge=0, le=1)
    milliseconds: float = Field(default=0, ge=0)
    fallbacks: tuple[str, ...] = Field(
        default=(), description="failed parts of the search: levels, `calibration`, `reranking`"
    )
    from_cache: bool = Field(default=False, description="whether the result comes from the cache")
    matches_nothing: bool = Field(
        default=False, description="whether nothing in the documents resembles the question"
    )


class SourceReference(Place, frozen=True, extra="ignore"):
    """A source that an answer may cite by its number, which starts at 1."""

    number: int = Field(ge=1)
    chunk_id: str
    span: tuple[int, int] = Field(
        description="position of the text in `search_context`, in characters"
    )
    is_cut: bool = Field(
        default=False,
        description="whether the text is only a part of its section; marks show omissions",
    )
    is_release_notes: bool = Field(default=False, description="whether the page is a changelog")
    found: tuple[FoundPart, ...] = Field(default=(), description="best first")
    pictures: tuple[SourcePicture, ...] = Field(default=(), description="pictures in the text")


class SourceUsed(Place, frozen=True, extra="ignore"):
    """A source that the answer cites; `number` is the number in the answer's text."""

    number: int = Field(ge=1)
    chunk_id: str
    addresses: tuple[str, ...] = Field(
        default=(),
        description="URLs in the answer that occur verbatim in the source",
    )
    other_addresses: tuple[str, ...] = Field(
        default=(),
        description="only on the first source: addresses in the answer that the user typed, or "
        "that are composed of parts of a document",
    )
    pictures: tuple[SourcePicture, ...] = Field(default=(), description="pictures in the text")


class WrittenAnswer(BaseModel, frozen=True, extra="ignore"):
    """An answer as it was written, before addresses were removed; `refused` contains the removed
    addresses.
    """

    text: str
    sources_used: tuple[SourceUsed, ...]
    refused: tuple[str, ...] = ()


class ShownPassage(BaseModel, frozen=True, extra="ignore"):
    """A part of a document that is shown unchanged; `number` is the number of its source."""

    number: int = Field(ge=1)
    place: str = Field(description="title and headings on one line")
    text: str = Field(description="Markdown; words of the question are bold")
    warning: str = Field(
        default="", description="a warning if the passage contains instructions to an assistant"
    )


class FoundPassages(BaseModel, frozen=True, extra="ignore"):
    """The passages that are shown if no model wrote an answer."""

    notice: str = Field(
        description="Markdown: assumptions, why no model wrote an answer, what the passages are"
    )
    shown: tuple[ShownPassage, ...] = Field(description="passages, best match first")
    marked: tuple[str, ...] = Field(
        default=(),
        description="words of the question that occur in the passages, in the spelling of the "
        "passages",
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
        ge=0, le=1, description="how completely the answer addresses the question; None: not judged"
    )
    grounded: bool
    judge: str = Field(
        description="name of the model that judged, or the reason for a missing judgement"
    )
    approved: bool = Field(
        default=False,
        description="whether the judge approved the whole answer; a search for missing parts may "
        "still follow",
    )


class AnswerDraft(BaseModel, frozen=True):
    """The checked sentences of an answer that is still being written, with the sources that they
    cite.

    A draft with a different `attempt` or `writing` is a new text that replaces the previous one.
    """

    text: str = Field(description="complete text so far, in Markdown")
    language: str = Field(description="language of the text, ISO 639-1")
    attempt: int = Field(ge=0, description="value of `attempt` in the payload")
    writing: int = Field(
        ge=0, description="number of texts that the model has begun within one attempt"
    )
    is_quoted: bool = Field(
        default=False, description="unchanged passages from the search, which are never withdrawn"
    )
    sources: tuple[SourceUsed, ...] = ()
