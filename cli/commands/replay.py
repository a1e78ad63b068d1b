"""Runs an ended question again from its journal, with the current models and documents."""

import argparse
import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from uuid import uuid4

from pydantic import JsonValue

from broker.journal_reader import RecentMessage, Transcripts
from broker.values import JournalEntry
from cli.arguments import add_groups_argument, read_groups
from cli.commands.trace import choose_question
from cli.printing import say_json, wrap, write_lines
from config.settings import load_settings
from deploy.assembly.runtime import Runtime, desk, run_desk
from deploy.errors import CommandError
from envelope.conversation import Turn
from envelope.payload import MERGE_RULES, merge_writes
from envelope.question import REPLAY, Question, copy_question
from envelope.tool_loop import WayName
from gateway.desk import Fork, Message
from manager.flow import FlowError, find_flow
from manager.flows import FLOWS, NEWEST
from records.record import Record, make_record

MOST_TURNS = 50
WIDTH = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk replay`."""
    parser.add_argument("message_id", help="id of a finished message")
    parser.add_argument(
        "--conversation", metavar="ID", help="the conversation, if several contain this message id"
    )
    parser.add_argument(
        "--from",
        dest="step",
        metavar="STEP",
        help="begin at this step, such as response, with the stored results of the steps before "
        "it; `refdesk trace` shows the steps (default: run the whole question)",
    )
    add_groups_argument(parser)
    parser.add_argument("--json", action="store_true", help="print both runs as JSON")
    parser.epilog = (
        "The original question, its conversation and its records do not change. The replay has "
        "its own conversation and journal, which are erased together with the original. Its model "
        "calls cost what the vendor charges for them."
    )


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk replay`."""
    groups = read_groups(chosen.groups)
    before, after = asyncio.run(
        replay(chosen.message_id, chosen.conversation, step=chosen.step, groups=groups)
    )
    if chosen.json:
        say_json({"original": _as_fields(before), "replay": _as_fields(after)})
    else:
        write_lines(_compare(before, after))
    return 0


async def replay(
    message_id: str, conversation_id: str | None, *, step: str | None, groups: tuple[str, ...]
) -> tuple[Record, Record]:
    """Return the original record and the record of its replay; raises `CommandError`."""
    async with run_desk(load_settings(), empty=True) as runtime:
        questions = await runtime.broker.admin.find_questions(message_id)
        question = choose_question(message_id, conversation_id, questions)
        entries = await runtime.broker.replies.read_journal(question)
        before = make_record(question, entries)
        if before is None:
            raise CommandError(
                f"message {message_id!r} has not finished, or its journal has expired"
            )
        message = Message(
            text=before.question,
            conversation_id=copy_question(question, REPLAY).conversation_id,
            message_id=f"{message_id[:40]}-{uuid4().hex[:8]}",
            language=before.language or "en",
            history=await _find_history(runtime, question, before),
            groups=groups,
            repeated_person=before.person,
        )
        fork = make_fork(entries, step)
        settings = runtime.settings.model_copy(
            update={"tenant": question.tenant, "assistant": question.assistant}
        )
        way = str(entries[0].fields.get("flow") or "").partition("@")[0]
        if way in NEWEST:
            settings = settings.model_copy(update={"way": WayName(way)})
        own = desk(replace(runtime, settings=settings), REPLAY)
        await own.submit(message, fork=fork)
        repeated = own.question(message)
        await own.outcome(repeated, language=message.language)
        after = make_record(repeated, await runtime.broker.replies.read_journal(repeated))
    if after is None:
        raise CommandError(
            f"the replay has not ended before its deadline; see: refdesk trace {message.message_id}"
        )
    return before, after


def make_fork(entries: Sequence[JournalEntry], step: str | None) -> Fork | None:
    """Return the last hop that the manager sent to `step`, or None without a step, so that the
    replay starts at the manager.

    The payload of the hop contains everything written until then. Raises `CommandError` if the
    question did not pass the step outside of a branch.
    """
    flow = str(entries[0].fields.get("flow") or "")
    if step is None:
        # The payload as it was at the start; the manager decides everything after it again.
        return None
    payload: dict[str, JsonValue] = {}
    fork: Fork | None = None
    steps: dict[str, None] = {}
    for entry in entries:
        fields = entry.fields
        if fields.get("branch"):
            continue
        writes = fields.get("writes")
        if entry.kind == "agent_run" and isinstance(writes, dict):
            payload = {**merge_writes(payload, writes, MERGE_RULES)}
        if entry.kind == "routed":
            flow = str(fields.get("flow") or flow)
            target = str(fields.get("target"))
            steps[target] = None
            if target == step:
                counters = fields.get("counters") or {}
                role = _find_role(flow, step)
                fork = Fork(flow, step, role, {**payload, "counters": counters, "attempt": 0})
    if fork is None:
        raise CommandError(f"the question has no step {step!r}; its steps are {', '.join(steps)}")
    return fork


async def _find_history(runtime: Runtime, question: Question, before: Record) -> tuple[Turn, ...]:
    """Return the turns before the message, without those whose journals are no longer stored."""
    client = runtime.endpoint.client()
    try:
        transcripts = Transcripts(client, shards=runtime.settings.shards)
        messages = await transcripts.of(question, limit=MOST_TURNS)
    finally:
        await client.aclose()
    return tuple(
        turn
        for message in messages
        if message.first.at < before.accepted_at
        for turn in _turns(message)
    )


def _turns(message: RecentMessage) -> Iterator[Turn]:
    yield Turn(speaker="user", text=str(message.first.fields.get("text") or ""))
    if message.last.kind == "finished":
        reply = message.last.fields
        outcome = str(reply.get("outcome") or "")
        yield Turn(speaker="assistant", text=str(reply.get("text") or ""), outcome=outcome)


def _find_role(flow: str, step: str) -> str:
    try:
        role = find_flow(FLOWS, flow).stage(step).role
    except FlowError as error:
        raise CommandError(f"the replay cannot begin at {step!r}: {error}") from error
    return str(role.value)


def _compare(before: Record, after: Record) -> Iterator[str]:
    yield f"question    {before.question}"
    yield f"{'':<{WIDTH}}{'original':<24}replay"
    rows: Sequence[tuple[str, Callable[[Record], str]]] = (
        ("outcome", lambda item: item.outcome),
        ("reason", lambda item: item.reason or "-"),
        ("written by", lambda item: item.answered_by or "-"),
        ("quality", lambda item: "-" if item.quality is None else f"{item.quality:.2f}"),
        ("sources", lambda item: str(len(item.sources))),
        ("seconds", lambda item: f"{item.seconds:.1f}"),
        ("cost", lambda item: "unknown" if item.cost_usd is None else f"{item.cost_usd:.6f} USD"),
    )
    for name, value in rows:
        yield f"{name:<{WIDTH}}{value(before):<24}{value(after)}"
    if before.answer == after.answer:
        yield from ("", "the answers are the same")
    else:
        yield from ("", "original", *wrap(before.answer), "", "replay", *wrap(after.answer))
    yield f"\nrefdesk trace {after.message_id}"


def _as_fields(record: Record) -> dict[str, JsonValue]:
    cost = None if record.cost_usd is None else str(record.cost_usd)
    return {
        "conversation_id": record.conversation_id,
        "message_id": record.message_id,
        "outcome": record.outcome,
        "reason": record.reason,
        "answered_by": record.answered_by,
        "quality": record.quality,
        "seconds": record.seconds,
        "cost_usd": cost,
        "answer": record.answer,
        "sources": list(record.sources),
    }
