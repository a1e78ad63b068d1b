"""Asks the questions of the recordings of a real model, and checks what no model may break.

A small model writes much that is wrong. Whatever it writes, a person sees no source, link or number
that it invented, and has an outcome by the deadline. The checks here share no code with those of
the product. A number that is rightly computed is listed as well: look at it.
"""

import re
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from broker.values import JournalEntry
from deploy.assembly.knowledge import Knowledge
from gateway.answer import Answer, answer_of
from gateway.events import DraftFollower
from tests.recordings.plain_way import DOCUMENTS, DOMAIN, Conversation, load_conversations
from tests.support.app_harness import AppHarness, ConversationDriver, Fields, run_app, settings_of
from tests.support.empty_redis import play_redis

MODEL = "local@llamacpp"
HEAD = "| turn | outcome | by | seconds | agents | faults |\n|---|---|---|---|---|---|"
GRACE_SECONDS = 1.0
_MARK = re.compile(r"\[(\d{1,3}(?:, ?\d{1,3})*)\]")
_ADDRESS = re.compile(r"(?:https?://|www\.)[^\s)>\]\"'`|]+|(?<=\]\()[^)\s]+")
_ITEM = re.compile(r"^ *\d{1,3}[.)] ", re.MULTILINE)
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


@dataclass
class Asked:
    """What became of a turn: what the person saw at any time, how long it took, what is wrong."""

    name: str
    says: str
    answer: Answer
    seconds: float
    calls: str
    drafts: Sequence[str] = ()
    faults: list[str] = field(default_factory=list)

    @property
    def row(self) -> str:
        by = self.answer.answered_by or "-"
        reason = self.answer.fallback_reason or ""
        faults = "; ".join(self.faults) or "-"
        cells = (self.name, self.answer.outcome, f"{by} {reason}".strip(), f"{self.seconds:.1f}")
        return f"| {' | '.join(cells)} | {self.calls} | {faults} |"


def choose_conversations(ids: Sequence[str]) -> list[Conversation]:
    """Return the named recordings, or all of which no other begins with the same words."""
    known = load_conversations()
    if ids:
        return [conversation for conversation in known if conversation.id in ids]
    first: dict[str, Conversation] = {}
    for conversation in known:
        first.setdefault(conversation.turns[0].says, conversation)
    return [*first.values()]


async def ask_all(
    url: str, data: Path, knowledge: Knowledge, conversations: Iterable[Conversation]
) -> AsyncIterator[Asked]:
    """Yield each turn as the model at this address answered it."""
    settings = settings_of(
        data, **DOMAIN, gen_model=MODEL, compatible_servers={"llamacpp": {"base_url": url}}
    )
    for conversation in conversations:
        # Each has a desk of its own: a desk does not ask a model again soon that was too slow.
        async with run_app(settings, play_redis(), knowledge) as harness:
            driver = harness.driver(expects_faults=True)
            told: list[str] = []
            for number, turn in enumerate(conversation.turns, start=1):
                told.append(turn.says)
                name = f"{conversation.id}.{number}"
                asked = await _ask(harness, driver, name, turn.says, told)
                told.append(asked.answer.text)
                yield asked


async def _ask(
    harness: AppHarness, driver: ConversationDriver, name: str, says: str, told: Sequence[str]
) -> Asked:
    message = replace(driver.message(says), shows_drafts=True)
    began = time.monotonic()
    reply: Fields = dict(await harness.desk.ask(message))
    seconds = time.monotonic() - began
    answer = answer_of(reply, words=lambda key, _language: key)
    entries = await driver.journal(message)
    follower = DraftFollower(
        harness.desk.question(message),
        shows=lambda fields, _language: answer_of(fields, words=lambda key, _: key),
    )
    drafts: list[str] = []
    shown = ""
    for event in (event for entry in entries for event in follower.read(entry)):
        if event.name == "draft":
            offset, text = event.data["offset"], event.data["text"]
            assert isinstance(offset, int)
            assert isinstance(text, str)
            shown = shown[:offset] + text
            drafts.append(shown)
    asked = Asked(name, says, answer, seconds, _describe_calls(entries), drafts)
    asked.faults.extend(_find_faults(asked, harness, [*told, *_read_prompts(entries)]))
    return asked


def _describe_calls(entries: Iterable[JournalEntry]) -> str:
    runs = [entry.fields for entry in entries if entry.kind == "agent_run"]
    return " ".join(f"{run['role']}" for run in runs)


def _read_prompts(entries: Iterable[JournalEntry]) -> Iterator[str]:
    for entry in entries:
        writes = entry.fields.get("writes")
        if isinstance(writes, dict) and (text := writes.get("augmented_prompt")):
            yield str(text)


def _find_faults(asked: Asked, harness: AppHarness, given: Sequence[str]) -> Iterator[str]:
    deadline = harness.settings.deadline_seconds + GRACE_SECONDS
    if asked.seconds > deadline:
        yield f"waited {asked.seconds:.0f} s"
    if asked.answer.outcome == "failed" or not asked.answer.text.strip():
        yield f"no outcome: {asked.answer.termination_reason}"
    documents = _read_documents()
    known = [*given, *(() if len(given) > 1 else documents.values())]
    yield from find_foreign(asked.answer, asked.answer.text, documents, known)
    for draft in asked.drafts:
        yield from (f"draft: {item}" for item in find_foreign(None, draft, documents, known))


def find_foreign(
    answer: Answer | None, text: str, documents: dict[str, str], known: Sequence[str]
) -> Iterator[str]:
    """Yield each source, link and number that no document and nobody's words have."""
    links: set[str] = set()
    held = "\n".join([*known, *documents.values()])
    if answer is not None:
        cited = {int(word) for marks in _MARK.findall(text) for word in marks.split(",")}
        # A document may have numbers in brackets of its own.
        invented = cited - {source.number for source in answer.sources}
        yield from (f"source {item}" for item in sorted(invented) if f"[{item}]" not in held)
        for source in answer.sources:
            links |= {item for item in (source.link, source.url, source.path) if item}
            if not any((source.path or "") in path for path in documents):
                yield f"page {source.path}"
    for address in _ADDRESS.findall(text):
        if address not in links and address.rstrip(".,;:") not in held:
            yield f"link {address}"
    plain = _ITEM.sub("", _ADDRESS.sub("", _MARK.sub("", text)))
    numbers = {_fold(match) for match in _NUMBER.findall("\n".join(known))}
    parts = {part for number in numbers for part in re.split(r"[.,:]", number)}
    for number in _NUMBER.findall(plain):
        if _fold(number) not in numbers | parts:
            yield f"number {number}"


def _fold(number: str) -> str:
    """Return a number without separators of thousands, and with a point for decimals."""
    bare = re.sub(r"[.,](?=\d{3}(?!\d))", "", number)
    return bare.replace(",", ".").lstrip("0") or "0"


def _read_documents() -> dict[str, str]:
    return {
        str(path): path.read_text("utf-8")
        for folder in DOCUMENTS
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
