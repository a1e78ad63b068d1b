"""The beginning of an answer, as it is shown while the rest is written."""

from pydantic import BaseModel, Field

from envelope.sources import SourceUsed


class AnswerDraft(BaseModel, frozen=True):
    """The checked sentences of an answer so far, with the sources that they cite.

    A draft with another `attempt` or `writing` is another text: it replaces the one before.
    """

    text: str = Field(description="Markdown, all of it so far")
    language: str = Field(description="of the text, ISO 639-1")
    attempt: int = Field(ge=0, description="the payload's `attempt`")
    writing: int = Field(ge=0, description="which writing of the model it is, within one attempt")
    sources: tuple[SourceUsed, ...] = ()
