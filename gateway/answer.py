"""What a door shows of a reply: an allow-list, so that nothing internal leaves with it."""

from collections.abc import Callable
from typing import Literal

from pydantic import BaseModel, Field, JsonValue

from broker.port import Fields
from envelope.outcome import Outcome
from gateway.places import Opens, at, opens_in

FORGOTTEN = "forgotten"
"""The `termination_reason` of a message of which only the outcome is left."""
LOST = "lost"
"""That of a message of which nothing is left: Redis lost what it had not kept yet."""
STOPPED = "stopped"
"""That of a message whose sender did not want an answer any more."""
Words = Callable[[str, str], str]
"""Returns the fixed text of a key in a language."""
Shows = Callable[[Fields, str], "Answer"]
"""Returns what is shown of a reply; a reply without a language is in the one told."""
_nowhere = opens_in("")


class Source(BaseModel, frozen=True, extra="ignore"):
    """A place in the documents that the answer cites as `[number]`."""

    number: int = Field(description="as it stands in the text: `[1]`", examples=[1])
    title: str = Field(examples=["Configure SMS routing rules"])
    heading_path: tuple[str, ...] = Field((), description="headings above the place")
    crumbs: tuple[str, ...] = Field((), description="folders and pages above the page")
    url: str | None = Field(None, description="of the page, where it has one")
    path: str | None = Field(None, examples=["routing/configure-routing-rules.md"])
    anchor: str | None = Field(None, examples=["create-a-routing-rule"])
    language: str | None = Field(None, description="of the page, ISO 639-1", examples=["en"])
    link: str | None = Field(
        None,
        description="opens it at its heading: at the page's address, else in the documentation, "
        "else at this desk, where a link is good for a day; none: it can only be named",
    )

    @property
    def place(self) -> str:
        """Where it opens, else where it stands: URL or path, with its anchor."""
        if self.link is not None:
            return self.link
        return at(self.url or self.path or "", self.anchor or "")


class Action(BaseModel, frozen=True, extra="ignore"):
    """A choice to offer: send `value` as the next message when it is taken."""

    label: str = Field(examples=["Set up a webhook"])
    value: str = Field(examples=["Set up a webhook"])
    kind: Literal["option", "skip", "exit", "source"] = "option"
    url: str | None = Field(None, description="of a page, where `kind` is `source`")


class Answer(BaseModel, frozen=True, extra="ignore"):
    """The one outcome of a message."""

    conversation_id: str = Field(examples=["c-7f3a"])
    message_id: str = Field(examples=["m-1"])
    outcome: Outcome = Field(description="every message has exactly one")
    text: str = Field(
        "", description="Markdown", examples=["Open Routing > Rules and choose New rule. [1]"]
    )
    language: str = Field("en", description="of the text, ISO 639-1")
    sources: tuple[Source, ...] = ()
    suggested_actions: tuple[Action, ...] = Field((), description="options of a clarification")
    clarification_type: str | None = None
    clarification_reason: str | None = None
    question: str | None = Field(None, description="the message as it was understood")
    model: str | None = Field(None, description="who wrote it; `offline`: quoted by rules")
    quality_score: float | None = Field(None, description="0 to 1, by the judge")
    termination_reason: str | None = Field(None, description="the limit that ended it early")
    merged_into: str | None = Field(None, description="the message that this one joined")
    processing_seconds: float | None = None


def answer_of(
    reply: Fields,
    *,
    words: Words,
    language: str = "en",
    opens: Opens = _nowhere,
) -> Answer:
    """Return what is shown of a reply, and `opens` its sources; words are found for one without.

    A message that was forgotten while somebody waited for it counts as superseded.
    """
    shown = {name: value for name, value in reply.items() if value is not None}
    if shown.get("termination_reason") == FORGOTTEN:
        shown["outcome"] = Outcome.SUPERSEDED.value
    shown["sources"] = _linked(shown.get("sources"), opens)
    answer = Answer.model_validate(shown)
    if answer.outcome is not Outcome.SUPERSEDED or answer.text:
        return answer
    key = STOPPED if answer.termination_reason == STOPPED else Outcome.SUPERSEDED.value
    return answer.model_copy(update={"text": words(key, language), "language": language})


def _linked(sources: JsonValue, opens: Opens) -> list[JsonValue]:
    told = sources if isinstance(sources, list) else []
    return [{**one, "link": opens(one)} if isinstance(one, dict) else one for one in told]
