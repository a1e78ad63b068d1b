"""Defines the public format of a reply as an allow-list of attributes, so that no internal
attribute is sent.

All text is checked again, regardless of its author: links may lead only to the pages of the
answer's own sources, URLs in the text must occur in its sources, and hidden characters are removed.

Page URLs come from documents. Relative URLs, URLs with a scheme other than HTTP or HTTPS, and URLs
with a user name are rejected.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

import structlog
from pydantic import BaseModel, Field, JsonValue, computed_field

from broker.values import Fields
from citations.addresses import addresses_of, host_and_port, page_of
from citations.links import (
    Allowed,
    LinkedPage,
    allow,
    clean_text,
    keep_links,
    link_addresses,
    plain_line,
    plain_title,
)
from citations.verbatim import as_markdown
from envelope.conversation import BY_PERSON
from envelope.json_values import map_texts, read_list, read_objects, read_text
from envelope.outcome import Outcome
from envelope.place import Place
from envelope.specialists import ReviewedDocument

Opens = Callable[[Fields], str | None]
"""Returns the URL of a source of a reply, at its heading, or None."""
REPORT_OF = "report_of"
"""Attribute of a source that is a report: the id of the message whose report is shown."""
PICTURE = "picture"
"""Attribute of a source that is a picture: the id of the picture in its document."""
_ENDING = re.compile(r"\.[A-Za-z0-9]{1,8}\Z")
_IN_ANCHOR = "!$&'()*+,;=:@/?-._~"


def opens_in(documentation: str) -> Opens:
    """Return a function that returns the URL of a source.

    `documentation` is either a base URL, below which pages have the paths of their files, or a
    template with `{path}`, `{page}` (the path without its extension) and `{anchor}`. If it is
    empty, only sources with a page URL get one.
    """

    def opens(source: Fields) -> str | None:
        url, path, anchor = (read_text(source, name) for name in ("url", "path", "anchor"))
        if page_of(url) is not None:
            return at(url, anchor)
        if not documentation or not path:
            return None
        return _fill_template(documentation, path, anchor)

    return opens


def at(address: str, anchor: str) -> str:
    """Return a URL with the anchor of its heading, unless it already has one."""
    if not anchor or "#" in address:
        return address
    return f"{address}#{quote(anchor, safe=_IN_ANCHOR)}"


def _fill_template(documentation: str, path: str, anchor: str) -> str:
    path = quote(path, safe="/")
    if "{" not in documentation:
        return at(f"{documentation.rstrip('/')}/{path}", anchor)
    filled = (
        documentation.replace("{path}", path)
        .replace("{page}", _ENDING.sub("", path))
        .replace("{anchor}", quote(anchor, safe=_IN_ANCHOR))
    )
    return filled if "{anchor}" in documentation else at(filled, anchor)


CENTS = 100


class AgentUsage(BaseModel, frozen=True, extra="ignore"):
    """The usage of the model calls of one agent; see `ModelUsage`."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    cost_usd: float | None = None

    @computed_field  # type: ignore[prop-decorator] # see the documentation of pydantic
    @property
    def cost_cents(self) -> float | None:
        """`cost_usd` in cents."""
        return to_cents(self.cost_usd)


class ModelUsage(BaseModel, frozen=True, extra="ignore"):
    """The use of vendor models for one message."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = Field(
        0,
        description="input tokens that the vendor read from its cache; included in `input_tokens`",
    )
    cost_usd: float | None = Field(None, description="omitted if a price is unknown")
    cache_hits: int = Field(
        0, description="number of model answers that were reused from an earlier message"
    )
    saved_usd: float | None = Field(None, description="original cost of the reused answers, in USD")
    by_agent: dict[str, AgentUsage] | None = Field(
        None, description="usage of each agent, by task, such as `compliance`"
    )

    @computed_field  # type: ignore[prop-decorator] # see the documentation of pydantic
    @property
    def cost_cents(self) -> float | None:
        """`cost_usd` in cents, or None if a price is unknown."""
        return to_cents(self.cost_usd)


def to_cents(usd: float | None) -> float | None:
    """Return an amount in USD as cents, or None if it is unknown. Cents are never stored."""
    return None if usd is None else round(usd * CENTS, 6)


class BudgetUse(BaseModel, frozen=True, extra="ignore"):
    """The calls of one message that counted against its budgets."""

    model_calls: int = 0
    tool_calls: int = Field(0, description="number of executed calls; refused calls do not count")
    exhausted: str | None = Field(
        None, description="name of the exhausted budget", examples=["tool_calls"]
    )


class ReportedCall(BaseModel, frozen=True, extra="ignore"):
    """A tool call that was made for a message."""

    tool_name: str = Field(examples=["search"])
    arguments: dict[str, JsonValue] | str | None = Field(
        None, description="arguments of the call, shortened"
    )
    success: bool
    error_type: str = Field(description="`success`, or the reason for a missing result")
    error: str | None = None
    duration_ms: float = 0.0
    attempts: int = 0


class PlannedRound(BaseModel, frozen=True, extra="ignore"):
    """The plan of one round of the tool loop, with the reasons for it."""

    round: int = Field(examples=[1])
    intent: str | None = Field(
        None,
        examples=["penalty"],
        description="purpose of the calls as stated by the model; `multi_tool`: several purposes",
    )
    is_multi_tool: bool = Field(False, description="whether the round calls different tools")
    strategy: str | None = Field(
        None,
        description="how the round differs from the previous one: `REFINE_QUERY`, `SWITCH_TOOL` or "
        "`MULTI_TOOL_ORCHESTRATION`",
    )
    reasoning: str = ""
    tools: tuple[str, ...] = Field((), description="names of the called tools")


class ChecklistSummary(BaseModel, frozen=True, extra="ignore"):
    """A summary of a checklist. The whole checklist is at
    `/v1/reviews/{conversation_id}~{message_id}/checklist`.
    """

    target_law: str
    requirements: int
    units_read: int = Field(0, description="units of the law, such as articles")
    units_unread: tuple[str, ...] = ()


class ReportedTask(BaseModel, frozen=True, extra="ignore"):
    """One part of a question that was divided among workers."""

    task_id: str = Field(examples=["worker_0_research"])
    title: str | None = Field(None, examples=["What does SMPP say about retries?"])
    state: str = Field(
        description="`pending`, `in_progress`, `awaiting_input`, `completed`, `failed`, "
        "`cancelled` or `skipped`"
    )
    attempts: int = 0
    error: str | None = None
    model_usage: AgentUsage | None = Field(
        None, description="usage of the worker's model calls; omitted if there were none"
    )


class ReportSummary(BaseModel, frozen=True, extra="ignore"):
    """A summary of a report. The whole report is at
    `/v1/reviews/{conversation_id}~{message_id}/report`.
    """

    title: str
    language: str
    requirements: int
    compliant: int
    violations: int
    gaps: int
    undecided: int | None = None
    confidence: float | None = None
    bytes: int


log = structlog.get_logger("gateway")

FORGOTTEN = "forgotten"
"""The `termination_reason` of a message if only its outcome is still stored."""
LOST = "lost"
"""The `termination_reason` of a message that Redis lost before it was saved."""
STOPPED = "stopped"
"""The `termination_reason` of a message whose sender cancelled it."""
DEADLINE = "deadline"
"""The `termination_reason` of a message whose deadline has passed."""
DEAD_LETTER = "dead_letter"
"""The `termination_reason` of a message that no process could handle."""
Words = Callable[[str, str], str]
"""Returns the fixed text for a key in a language."""
Shows = Callable[[Fields, str], "Answer"]
"""Returns the public format of a reply; the language is used if the reply does not state one."""
Named = Mapping[str, JsonValue]
_nowhere = opens_in("")
REPORT = "review_report"
"""The attribute of a reply that refers to the report of a review."""
_INTERNAL = frozenset(
    {
        "model_usage", "way", "way_fallback", "tool_calls", "triage", "budget",
        "plan_rounds",
        "agent_sequence", "sequence_notes", "further_round", "errors", "verdicts", "citation_check",
        "documents", "against", "checklist", "review_report", "routing", "tasks", "tasks_completed",
        "cancelled_tasks", "faults",
    }
)  # fmt: skip
"""The attributes of a reply that are sent only for secret keys."""
_WORDS_OF_MODELS = frozenset(
    {
        "plan_rounds", "triage", "sequence_notes", "further_round", "errors",
        "routing", "tasks", "cancelled_tasks", "faults", "tool_calls", "way_fallback",
    }
)  # fmt: skip
"""Attributes with text from models or external servers, which are shown without links."""


class ShownPicture(BaseModel, frozen=True, extra="ignore"):
    """A picture in a cited section, with its URL on this server."""

    link: str = Field(description="link to the picture on this server, valid for one day")
    caption: str = Field(
        "", description="caption or alternative text of the picture, as plain text"
    )


class Source(Place, frozen=True, extra="ignore"):
    """A location in the documents that the answer cites as `[number]`."""

    number: int = Field(description="number of the citation in the text, as in `[1]`", examples=[1])
    chunk_id: str | None = Field(
        None, description="id of the cited passage, which changes when its text changes"
    )
    link: str | None = Field(
        None,
        description="link to the cited heading: on the page's own URL, else in the published "
        "documentation, else in the document reader, where the link is valid for one day; null "
        "if there is no link",
    )
    pictures: tuple[ShownPicture, ...] = Field((), description="pictures in the cited section")
    links: tuple[str, ...] = Field(
        (),
        description="URLs on a host of `LINK_HOSTS` that occur verbatim in the cited section "
        "and to which the answer links",
    )

    @property
    def place(self) -> str:
        """The link of the location or, if there is none, its URL or path, with the anchor."""
        if self.link is not None:
            return self.link
        return at(self.url or self.path or "", self.anchor or "")


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line in a list of sources: a cited section, or a page with several cited sections, which
    are nested below it.

    `numbers` are those of the citations; a page has none, and the `source` of its first section.
    """

    numbers: str
    name: str
    source: Source
    is_nested: bool = False


class Passage(BaseModel, frozen=True, extra="ignore"):
    """An unchanged part of a document; `number` is the number of its source."""

    number: int = Field(examples=[1])
    place: str = Field(description="title and headings", examples=["Rate plans > Prices"])
    text: str = Field(
        description="Markdown; words of the question are bold",
        examples=["An account may hold 100 **rate** **plans**."],
    )
    warning: str = Field(
        "",
        description="warning if the passage contains instructions to an AI assistant",
    )


class Passages(BaseModel, frozen=True, extra="ignore"):
    """The results of the search if no model wrote an answer; the answer's `text` contains all of
    them.
    """

    notice: str = Field(
        description="Markdown: explanation for the user why no model wrote an answer"
    )
    shown: tuple[Passage, ...] = Field((), description="passages, the best match first")
    marked: tuple[str, ...] = Field(
        (), description="words of the question that occur in the passages"
    )


class Action(BaseModel, frozen=True, extra="ignore"):
    """An option to offer. When it is chosen, send `value` as the next message."""

    label: str = Field(examples=["Set up a webhook"])
    value: str = Field(examples=["Set up a webhook"])
    kind: Literal["option", "skip", "exit", "source"] = "option"
    url: str | None = Field(None, description="address of the page if `kind` is `source`")
    path: str | None = Field(None, description="path of the file if `kind` is `source`")
    crumbs: tuple[str, ...] = Field(
        (), description="path of the page: folders and pages above it, and its own title"
    )
    link: str | None = Field(None, description="link to the page, as in `sources`")


class AnswerField(BaseModel, frozen=True, extra="ignore"):
    """A typed value to enter; a date has the format 2026-01-31."""

    name: str
    type: Literal["text", "number", "date", "choice"] = "text"
    choices: tuple[str, ...] = ()
    required: bool = True


class OpenQuestion(BaseModel, frozen=True, extra="ignore"):
    """A question of a pause. Without a field, it asks for an approval."""

    id: str
    text: str
    suggestions: tuple[str, ...] = ()
    field: AnswerField | None = None


class OpenPause(BaseModel, frozen=True, extra="ignore"):
    """An open request to the user, which the next message answers with `pause_reply`."""

    id: str = Field(description="id of the request; send it back as `pause_id`")
    kind: Literal["information", "approval"]
    expires: float = Field(
        description="time until which the request can be answered, in Unix seconds"
    )
    questions: tuple[OpenQuestion, ...] = ()


class Answer(BaseModel, frozen=True, extra="ignore"):
    """The outcome of a message; every message has exactly one."""

    conversation_id: str = Field(examples=["c-7f3a"])
    message_id: str = Field(examples=["m-1"])
    outcome: Outcome = Field(description="outcome of the message; each message has exactly one")
    text: str = Field(
        "", description="Markdown", examples=["Open Routing > Rules and choose New rule. [1]"]
    )
    language: str = Field("en", description="language of the text, BCP 47: ISO 639-1, or `zh-Hant`")
    sources: tuple[Source, ...] = ()
    suggested_actions: tuple[Action, ...] = Field((), description="options of a clarification")
    pause: OpenPause | None = Field(
        None,
        description="approval or values that the user is asked for, if the outcome is "
        "`clarification`",
    )
    clarification_type: str | None = None
    clarification_reason: str | None = None
    question: str | None = Field(None, description="the question as Refdesk understood it")
    model: str | None = Field(
        None, description="model that wrote the answer; null if no model wrote it"
    )
    answered_by: Literal["model", "search", "verified", "person"] | None = Field(
        None,
        description="origin of the answer: `model` if a model wrote it; `search` if it "
        "consists of passages, which are not judged (see `passages`); `verified` if it is a "
        "verified answer of the owner; `person` if a person wrote it in this conversation",
    )
    links: tuple[str, ...] = Field(
        (), description="URLs in the text of a person that can be opened"
    )
    fallback_reason: str | None = Field(
        None,
        description="why no model wrote an answer: `no_model`, `bad_key`, `quota_spent`, "
        "`model_gone`, `unavailable`, `too_busy`, `too_slow`, `budget_spent`, `misconfigured`, "
        "`rejected`, `too_long`, `refused`, `unreadable`",
    )
    passages: Passages | None = Field(
        None, description="passages that the search found; set if no model wrote an answer"
    )
    quality_score: float | None = Field(
        None, description="score of the judge, 0 to 1; null: the answer was not judged"
    )
    termination_reason: str | None = Field(
        None, description="limit that ended the processing early"
    )
    handover: Literal["offered", "possible", "requested"] | None = Field(
        None,
        description="whether `POST /v1/conversations/{id}/handover` can send the conversation to "
        "a person: `offered` after this answer, `possible` after a negative rating; `requested` if "
        "this message is such a request; omitted: not possible",
    )
    handover_address: bool | None = Field(
        None,
        description="true if the request can contain an e-mail address to which the answer is sent",
    )
    merged_into: str | None = Field(None, description="message into which this one was merged")
    processing_seconds: float | None = None
    model_usage: ModelUsage | None = Field(
        None, description="usage of models; only with a secret key, omitted if no vendor was called"
    )
    way: str | None = Field(
        None,
        description="way of answering, `search` or `tools`; only with a secret key, and if "
        "tools could have been called",
    )
    way_fallback: str | None = Field(
        None,
        description="only with a secret key: set if the tools failed and one search answered "
        "instead",
    )
    budget: BudgetUse | None = Field(
        None,
        description="only with a secret key, and if tools could have been called or a budget "
        "was exhausted",
    )
    tool_calls: tuple[ReportedCall, ...] | None = Field(
        None, description="calls of tools; only with a secret key"
    )
    plan_rounds: tuple[PlannedRound, ...] | None = Field(
        None,
        description="only with a secret key: intent and reasoning of each round of the tool loop",
    )
    triage: dict[str, JsonValue] | None = Field(
        None,
        description="only with a secret key: why the way of answering was chosen, with `WAY=auto`",
    )
    agent_sequence: tuple[str, ...] | None = Field(
        None,
        description="specialists that ran; only with a secret key, as are all following fields",
    )
    sequence_notes: tuple[str, ...] | None = Field(
        None, description="specialists that were removed from or added to the planned sequence"
    )
    further_round: dict[str, JsonValue] | None = Field(
        None, description="specialists that were run again at the request of the synthesis, and why"
    )
    errors: tuple[dict[str, JsonValue], ...] | None = Field(
        None, description="errors of specialists, with the id in the log"
    )
    checklist: ChecklistSummary | None = Field(
        None, description="summary of the requirements in the rules"
    )
    verdicts: dict[str, JsonValue] | None = Field(
        None, description="number of verdicts of a review, by status"
    )
    citation_check: dict[str, JsonValue] | None = Field(
        None, description="cited ids, and invented ids that were removed"
    )
    documents: tuple[ReviewedDocument, ...] | None = Field(
        None, description="documents that were reviewed"
    )
    against: tuple[ReviewedDocument, ...] | None = Field(
        None, description="rules against which the documents were reviewed"
    )
    review_report: ReportSummary | None = Field(
        None, description="summary of the report; null if no report was written"
    )
    routing: dict[str, JsonValue] | None = Field(
        None, description="only with a secret key: decision of a swarm's planner, and the reasons"
    )
    tasks: tuple[ReportedTask, ...] | None = Field(
        None, description="only with a secret key: parts into which a swarm divided the question"
    )
    tasks_completed: int | None = Field(None, description="number of completed tasks")
    cancelled_tasks: tuple[str, ...] | None = Field(
        None,
        description="only with a secret key: open parts of an earlier question that this "
        "message replaces",
    )
    faults: tuple[dict[str, JsonValue], ...] | None = Field(
        None, description="only with a secret key: faults found when the processing was checked"
    )


def split_off_passages(answer: Answer) -> tuple[str, str]:
    """Return the text without the additional passages, and these passages.

    Channels that support it show the additional passages collapsed. Text below them, such as other
    questions of the message, stays with the first passage.
    """
    shown = () if answer.passages is None else answer.passages.shown
    if len(shown) < 2:
        return answer.text, ""
    start = answer.text.find(write_heading(shown[1]))
    end = answer.text.rfind(shown[-1].text) + len(shown[-1].text)
    if not 0 < start < end:
        return answer.text, ""
    below = answer.text[end:].strip()
    parts = (answer.text[:start].rstrip(), below)
    return "\n\n".join(part for part in parts if part), answer.text[start:end]


def write_heading(passage: Passage) -> str:
    """Return the line above a passage in the text of an answer."""
    return f"**{as_markdown(passage.place)}** [{passage.number}]"


def answer_of(
    reply: Fields,
    *,
    words: Words,
    language: str = "en",
    opens: Opens = _nowhere,
    link_hosts: Collection[str] = (),
    with_usage: bool = False,
) -> Answer:
    """Return the public format of a reply; `opens` returns the link of a source.

    URLs on `link_hosts` that occur verbatim in a cited source become links.

    `words` and `language` provide the text for a reply that has none. Text is made safe as
    described at the top of this module. Removals are logged, because agents should already have
    removed these parts. If a message was forgotten while a client waited for it, it counts as
    superseded.
    """
    hidden = frozenset() if with_usage else _INTERNAL
    shown = {
        name: value for name, value in reply.items() if value is not None and name not in hidden
    }
    if shown.get("termination_reason") == FORGOTTEN:
        shown["outcome"] = Outcome.SUPERSEDED.value
    safe, removed = safe_reply({REPORT: reply.get(REPORT), **shown}, opens, link_hosts)
    if REPORT in hidden:
        safe.pop(REPORT)
    answer = Answer.model_validate(safe)
    if removed:
        log.warning("links_removed", message_id=answer.message_id, removed=len(removed))
    if answer.outcome is not Outcome.SUPERSEDED or answer.text:
        return answer
    key = STOPPED if answer.termination_reason == STOPPED else Outcome.SUPERSEDED.value
    return answer.model_copy(update={"text": words(key, language), "language": language})


def list_source_lines(sources: Iterable[Source], separator: str = " › ") -> Iterator[SourceLine]:
    """Yield the pages of sources with their sections, without duplicates, in the order of their
    first citations.
    """
    pages: dict[tuple[object, ...], dict[tuple[object, ...], list[Source]]] = {}
    for source in sources:
        page = ((source.url or "").partition("#")[0], source.path, source.title, source.version)
        section = (source.heading_path, source.place)
        pages.setdefault(page, {}).setdefault(section, []).append(source)
    for sections in pages.values():
        first = next(iter(sections.values()))[0]
        title = f"{first.title} ({first.version})" if first.version else first.title
        is_nested = len(sections) > 1
        if is_nested:
            yield SourceLine("", title, first)
        for own, *others in sections.values():
            headings = [part for part in own.heading_path if part != own.title]
            name = separator.join(headings if is_nested else (title, *headings)) or own.title
            numbers = "".join(f"[{source.number}]" for source in (own, *others))
            yield SourceLine(numbers, name, own, is_nested)


def safe_reply(
    reply: Named, opens: Opens = _nowhere, link_hosts: Collection[str] = ()
) -> tuple[dict[str, JsonValue], tuple[str, ...]]:
    """Return a reply with safe text, and the parts that were removed from its text."""
    sources = [_source(source, opens, link_hosts) for source in read_objects(reply.get("sources"))]
    linked = {str(address) for source in sources for address in read_list(source.get("links"))}
    written = _list_written(reply)
    opened = sorted(source for source in written if _web(source))
    linked.update(opened)
    actions = [_action(source, opens) for source in read_objects(reply.get("suggested_actions"))]
    actions += _list_reports(reply, opens)
    allowed = _collect_allowed(sources, actions, reply, written)
    kept = keep_links(str(reply.get("text") or ""), allowed)
    safe: dict[str, JsonValue] = {
        **reply,
        "text": link_addresses(kept.text, linked),
        "sources": [*sources],
        "suggested_actions": [*actions],
    }
    if opened:
        safe["links"] = [*opened]
    if isinstance(passages := reply.get("passages"), dict):
        safe["passages"] = _passages(passages, allowed, linked)
    safe |= {name: _unlink(reply[name]) for name in _WORDS_OF_MODELS if name in reply}
    if isinstance(pause := reply.get("pause"), dict):
        safe["pause"] = {
            **pause,
            "questions": [*map(_question, read_objects(pause.get("questions")))],
        }
    if isinstance(question := reply.get("question"), str):
        safe["question"] = clean_text(question)
    return safe, kept.removed


def _list_written(reply: Named) -> set[str]:
    """Return the URLs in an answer if a person wrote it; such URLs are trusted."""
    is_by_person = reply.get("answered_by") == BY_PERSON
    return set(addresses_of(str(reply.get("text") or ""))) if is_by_person else set()


def _source(source: Named, opens: Opens, link_hosts: Collection[str]) -> dict[str, JsonValue]:
    """Return a source with its link; its title and headings become plain text, and an invalid page
    URL becomes None.
    """
    shown: dict[str, JsonValue] = {
        **source,
        "title": plain_title(str(source.get("title") or "")),
        "url": _web(source.get("url")),
        "heading_path": [plain_title(str(part)) for part in read_list(source.get("heading_path"))],
        "crumbs": [plain_title(str(part)) for part in read_list(source.get("crumbs"))],
    }
    addresses = map(str, read_list(source.get("addresses")))
    shown["links"] = [address for address in addresses if host_and_port(address) in link_hosts]
    for name in ("path", "anchor"):
        value = source.get(name)
        shown[name] = clean_text(value) if isinstance(value, str) else None
    if "pictures" in shown:
        shown["pictures"] = [*_pictures(source, opens)]
    link = opens(shown)
    return shown if link is None else {**shown, "link": link}


def _pictures(source: Named, opens: Opens) -> Iterator[dict[str, JsonValue]]:
    """Yield the pictures of a source for which a link can be created, with their links."""
    for picture in read_objects(source.get("pictures")):
        link = opens({"chunk_id": source.get("chunk_id"), PICTURE: picture.get("id")})
        if link is not None:
            yield {"link": link, "caption": plain_title(str(picture.get("caption") or ""))}


def _action(action: Named, opens: Opens) -> dict[str, JsonValue]:
    """Return an option as plain text. An option that opens a page has a link, like a source."""
    label, value, path = (str(action.get(name) or "") for name in ("label", "value", "path"))
    shown: dict[str, JsonValue] = {
        **action,
        "label": plain_line(label),
        "value": plain_line(value),
        "url": _web(action.get("url")),
        "path": clean_text(path) if path else None,
        "crumbs": [plain_line(str(part)) for part in read_list(action.get("crumbs"))],
    }
    return {**shown, "link": opens(shown) if action.get("kind") == "source" else None}


def _list_reports(reply: Named, opens: Opens) -> list[dict[str, JsonValue]]:
    """Return the page of the report that a review created, if a link to it can be created."""
    report = reply.get(REPORT)
    if not isinstance(report, dict):
        return []
    label = plain_line(str(report.get("title") or ""))
    link = opens({REPORT_OF: reply.get("message_id")})
    return [{"label": label, "value": label, "kind": "source", "link": link}] if link else []


def _question(question: Named) -> dict[str, JsonValue]:
    """Return a question of a pause as plain text."""
    shown: dict[str, JsonValue] = {
        **question,
        "text": plain_line(str(question.get("text") or "")),
        "suggestions": [plain_line(str(text)) for text in read_list(question.get("suggestions"))],
    }
    if isinstance(field := question.get("field"), dict):
        choices = [plain_line(str(text)) for text in read_list(field.get("choices"))]
        shown["field"] = {**field, "choices": [*choices]}
    return shown


def _unlink(value: JsonValue) -> JsonValue:
    """Return a value with links and URLs removed from all of its strings."""
    return map_texts(value, lambda text: keep_links(text, Allowed(any_host=True)).text)


def _passages(passages: Named, allowed: Allowed, linked: Collection[str]) -> dict[str, JsonValue]:
    """Return passages in which links may lead only to the allowed targets, as in the whole text."""
    shown: list[JsonValue] = [
        {
            **passage,
            "place": plain_title(str(passage.get("place") or "")),
            "warning": plain_line(str(passage.get("warning") or "")),
            "text": link_addresses(
                keep_links(str(passage.get("text") or ""), allowed).text, linked
            ),
        }
        for passage in read_objects(passages.get("shown"))
    ]
    return {
        "notice": keep_links(str(passages.get("notice") or ""), allowed).text,
        "shown": shown,
        "marked": [clean_text(str(word)) for word in read_list(passages.get("marked"))],
    }


def _web(url: JsonValue) -> str | None:
    return url if isinstance(url, str) and page_of(url) is not None else None


def _collect_allowed(
    sources: Sequence[Named], actions: Sequence[Named], reply: Named, written: Iterable[str]
) -> Allowed:
    """Return the allowed link targets: the pages of the sources and of the options, and the URLs
    that occur in the sources, in the contact text, or in `written`.
    """
    pages = [
        LinkedPage(address, str(target.get("title") or target.get("label") or ""))
        for target in (*sources, *actions)
        for name in ("url", "link")
        if isinstance(address := target.get(name), str)
    ]
    held = frozenset(
        str(address)
        for source in read_objects(reply.get("sources"))
        for name in ("addresses", "other_addresses")
        for address in read_list(source.get(name))
    )
    held |= addresses_of(str(reply.get("contact") or "")) | set(written)
    pages += [LinkedPage(address) for address in written if _web(address)]
    return allow(pages, held=held, any_host=True)
