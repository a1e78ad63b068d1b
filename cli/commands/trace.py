"""Shows the trace of a question: stages, rows of the flow, durations, model calls, and cost."""

import argparse
import asyncio
import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from decimal import Decimal

from pydantic import JsonValue

from broker.journal_events import JOURNAL_SCHEMA_VERSION, read_schema_version
from broker.maintenance.erasure import FORGOTTEN
from broker.values import Fields, JournalEntry
from cli.printing import WIDTH, print_line, say_json
from config.settings import load_settings
from deploy.assembly.runtime import connect_runtime
from deploy.errors import CommandError
from envelope.json_values import read_objects
from envelope.question import Question, names_conversation
from gateway.trajectory import (
    AgentTotals,
    StepKind,
    TrajectoryMetrics,
    TrajectoryStep,
    read_trajectory,
    sum_agents,
)
from manager.flow import StageEvent
from worker.model_usage import add_model_usage

_MARKS = {StepKind.THOUGHT: "?", StepKind.ACTION: ">", StepKind.OBSERVATION: "<"}
_WIDTH = 22
LONGEST_QUESTION = 200
_NAME_WIDTH = 24
SHOWN_CHARACTERS = 56
LEAST_CHARACTERS = 20
HEAD = 13
"""The width of the time at the beginning of a line, in characters."""
_ERROR_ID = re.compile(r"RD-[0-9]{4}-[0-9]{2}-[0-9]{2}-[0-9]{5}")
_LONG = frozenset(
    {"search_context", "search_results", "augmented_prompt", "source_references", "plan_rounds"}
)
_WRAPPED = "reasoning"
"""The attribute that agents write only for the readers of a trace."""
_MOST_LINES = 10


class _Tree:
    """The entries of a journal by branch; `""` is the trunk."""

    def __init__(self, entries: Sequence[JournalEntry]) -> None:
        self._began = entries[0].at if entries else 0.0
        self._by_branch: dict[str, list[JournalEntry]] = {"": []}
        begun = {path for entry in entries for path in _list_begun(entry)}
        for entry in entries:
            path = str(entry.fields.get("branch") or "")
            # Entries of a branch whose start is not in the journal are listed in the trunk.
            self._by_branch.setdefault(path if path in begun else "", []).append(entry)

    def list_lines(self, path: str) -> list[str]:
        """Return the lines of the trunk or of a branch, including those of nested branches."""
        lines, depth, wave = [], 0 if not path else path.count("/") + 1, 0
        for entry in self._by_branch.get(path, ()):
            entry_lines = _entry_lines(entry, self._count_milliseconds(entry))
            lines += [_indent(line, depth) for line in entry_lines]
            begun = _list_begun(entry)
            wave += bool(begun)
            plan = _list_plan(entry, len(begun))
            for branch, label in zip(begun, plan, strict=True):
                lines.append(_indent(self._describe_branch(branch, wave, entry), depth))
                if label:
                    lines.append(
                        _indent(f"{'':>11}  |    {_short(label, WIDTH - HEAD - 4)}", depth)
                    )
                lines += self.list_lines(branch)
        return lines

    def _describe_branch(self, path: str, wave: int, scatter: JournalEntry) -> str:
        """Return the line above a branch, with its wave, result, duration, and cost."""
        below = [
            entry
            for branch, entries in self._by_branch.items()
            if branch == path or branch.startswith(f"{path}/")
            for entry in entries
        ]
        returned = [entry for entry in self._by_branch.get(path, ()) if _has_returned(entry)]
        ending = "no result"
        if returned:
            failed = returned[0].fields.get("event") == StageEvent.FAILED.value
            ending = "failed" if failed else _describe_call(self._by_branch[path])
        seconds = max((entry.at for entry in below), default=scatter.at) - scatter.at
        head = f"{self._count_milliseconds(scatter):>8.0f} ms  "
        costs = _describe_costs(below)
        return f"{head}|  wave {wave}, {path}: {ending} in {seconds * 1000:.0f} ms{costs}"

    def _count_milliseconds(self, entry: JournalEntry) -> float:
        return (entry.at - self._began) * 1000


def list_trajectory_lines(entries: Sequence[JournalEntry]) -> Iterator[str]:
    """Yield the lines of a trajectory: its steps, its metrics, and the totals of each agent."""
    trajectory = read_trajectory(entries)
    for step in trajectory.steps:
        yield _describe_step(step)
    if not trajectory.steps:
        yield "no thoughts and no tool calls"
    yield ""
    yield from _describe_metrics(trajectory.compute_metrics())
    yield ""
    yield f"{'agent':<{_WIDTH}} {'runs':>5} {'ms':>9} {'calls':>6} {'USD':>10} {'errors':>7}"
    for agent in sum_agents(entries):
        yield _describe_agent(agent)


def list_error_lines(entries: Sequence[JournalEntry]) -> Iterator[str]:
    """Yield the shortened question, and the lines of each error in the journal: of specialists, of
    model calls, and of agents that ended without a result.
    """
    text = str(entries[0].fields.get("text") or "") if entries else ""
    yield " ".join(text.split())[:LONGEST_QUESTION]
    by_id = {str(error.get("error_id")): error for error in _list_errors(entries)}
    failures = list(dict.fromkeys(_list_failures(entries)))
    if not by_id and not failures:
        yield "no errors"
    for error_id, one in by_id.items():
        severity, phase = one.get("severity", "high"), one.get("phase") or "unknown phase"
        yield f"{error_id}  {severity}  {phase}  {one.get('specialist')}"
        yield f"    {one.get('text')}"
    for failure in failures:
        yield from textwrap.wrap(failure, WIDTH, subsequent_indent="    ")


def list_agent_costs(usage: Mapping[str, JsonValue]) -> Iterator[str]:
    """Yield a line for each agent in `model_usage`, with the most expensive one first."""
    by_agent = usage.get("by_agent")
    agents = by_agent if isinstance(by_agent, dict) else {}
    known = [(name, agent) for name, agent in agents.items() if isinstance(agent, dict)]
    known.sort(key=lambda pair: (-_read_price(pair[1]), pair[0]))
    for name, own in known:
        price = own.get("cost_usd")
        cost = "cost unknown" if price is None else f"{Decimal(str(price)):.6f} USD"
        tokens = f"{own.get('input_tokens', 0)} + {own.get('output_tokens', 0)} tokens"
        yield f"  {name[:_NAME_WIDTH]:<{_NAME_WIDTH}} {own.get('calls', 0)} calls, {tokens}, {cost}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk trace`."""
    parser.add_argument("message_id", help="id of the message, as `ask` prints it")
    parser.add_argument(
        "--conversation", metavar="ID", help="the conversation, if several contain this message id"
    )
    parser.add_argument("--json", action="store_true", help="print the journal as JSON")
    parser.add_argument(
        "--errors",
        action="store_true",
        help="show the errors, those of a review with their ids, and the question",
    )
    parser.add_argument(
        "--trajectory",
        action="store_true",
        help="show thoughts, tool calls and observations, and the time and cost of each agent",
    )


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk trace`."""
    question, entries, outcome = asyncio.run(_journal(chosen.message_id, chosen.conversation))
    if not entries:
        line = _line_without_journal(question, outcome)
        if chosen.json:
            # An empty list alone would mean that nothing happened.
            raise CommandError(line)
        print_line(line)
        return 0
    if chosen.json:
        say_json([asdict(entry) for entry in entries])
        return 0
    for line in _choose_lines(chosen, question, entries):
        print_line(line)
    return 0


def choose_question(
    message_id: str, conversation_id: str | None, questions: Sequence[Question]
) -> Question:
    """Return the only question with this message id; raises `CommandError`."""
    meant = [
        question
        for question in questions
        if conversation_id is None or names_conversation(conversation_id, question.conversation_id)
    ]
    if not meant and _ERROR_ID.fullmatch(message_id):
        raise CommandError(
            f"{message_id} is the id of an error; find the log event specialist_failed with this "
            f"id, which names the message id"
        )
    if not meant:
        raise CommandError(
            f"there is no journal of a message {message_id!r}; the id is wrong, or the journal "
            "has expired"
        )
    if len(meant) > 1:
        names = ", ".join(sorted(question.conversation_id for question in meant))
        raise CommandError(
            f"{len(meant)} conversations have a message {message_id!r} ({names}): "
            "add --conversation ID"
        )
    return meant[0]


def trace_lines(question: Question, entries: Sequence[JournalEntry]) -> list[str]:
    """Return the journal of a question as a tree, with the branches below each scatter, by wave."""
    lines = [f"{question.conversation_id} / {question.message_id}", *_version_lines(entries)]
    return [*lines, *_Tree(entries).list_lines(""), *_agent_lines(entries), _sum_line(entries)]


def _describe_step(step: TrajectoryStep) -> str:
    head = f"{step.at_ms:>8.0f} ms {_MARKS[step.kind]} {step.agent} {step.iteration}: "
    match step.kind:
        case StepKind.ACTION:
            text = f"{step.tool_name} {json.dumps(step.tool_input, ensure_ascii=False)}"
        case StepKind.OBSERVATION:
            ending = "" if step.error_type is None else f" ({step.error_type})"
            text = f"{step.tool_name}{ending}: {step.content}"
        case _:
            text = step.content
    line = " ".join(f"{head}{text}".split())
    # The times are aligned.
    line = f"{'':>{len(head) - len(head.lstrip())}}{line}"
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"


def _describe_metrics(metrics: TrajectoryMetrics) -> Iterator[str]:
    cost = "cost unknown" if metrics.cost_usd is None else f"{metrics.cost_usd} USD"
    yield (
        f"{metrics.steps} steps, {metrics.tool_calls} calls to {metrics.unique_tools} tools, "
        f"{metrics.repeated_calls} repeated"
    )
    called = (
        "no calls"
        if metrics.success_rate is None or metrics.hallucination_rate is None
        else f"{metrics.success_rate:.0%} succeeded, {metrics.hallucination_rate:.0%} named a "
        "tool that does not exist"
    )
    yield f"{called}; {metrics.duration_ms:.0f} ms"
    yield f"{metrics.model_calls} model calls, {metrics.tokens} tokens, {cost}"


def _describe_agent(totals: AgentTotals) -> str:
    cost = "unknown" if totals.cost_usd is None else f"{float(totals.cost_usd):.6f}"
    return (
        f"{totals.agent[:_WIDTH]:<{_WIDTH}} {totals.runs:>5} {totals.total_time_ms:>9.1f} "
        f"{totals.model_calls:>6} {cost:>10} {totals.error_count:>7}"
    )


def _list_errors(entries: Sequence[JournalEntry]) -> Iterator[dict[str, JsonValue]]:
    """Yield the errors that agents wrote, and those in the reply, which include the manager's."""
    for entry in entries:
        source: JsonValue = None
        if entry.kind == "agent_run":
            source = entry.fields.get("writes")
        elif entry.kind == "finished":
            source = dict(entry.fields)
        if isinstance(source, dict):
            yield from read_objects(source.get("errors"))


def _list_failures(entries: Sequence[JournalEntry]) -> Iterator[str]:
    """Yield a line for each failed model call, and for each agent that ended without a result."""
    for entry in entries:
        fields = entry.fields
        if entry.kind == "model_call" and fields.get("error"):
            yield f"{fields.get('model')} for {fields.get('task')}: {fields.get('error')}"
        if entry.kind == "agent_run" and fields.get("reason"):
            yield f"{fields.get('role')} {fields.get('status')}: {fields.get('reason')}"


def _read_price(agent: Mapping[str, JsonValue]) -> Decimal:
    price = agent.get("cost_usd")
    return Decimal(0) if price is None else Decimal(str(price))


def _choose_lines(
    chosen: argparse.Namespace, question: Question, entries: Sequence[JournalEntry]
) -> Iterable[str]:
    if chosen.trajectory:
        return list_trajectory_lines(entries)
    return list_error_lines(entries) if chosen.errors else trace_lines(question, entries)


async def _journal(
    message_id: str, conversation_id: str | None
) -> tuple[Question, Sequence[JournalEntry], Fields | None]:
    """Return the question, its journal, and its final reply if the journal no longer exists."""
    async with connect_runtime(load_settings()) as runtime:
        broker = runtime.broker
        question = choose_question(
            message_id, conversation_id, await broker.admin.find_questions(message_id)
        )
        entries = await broker.replies.read_journal(question)
        ended = None if entries else await broker.replies.await_reply(question, block_seconds=0)
        return question, entries, ended


def _line_without_journal(question: Question, ended: Fields | None) -> str:
    """Return a line about a message without a journal: its ids and its outcome."""
    named = f"{question.conversation_id} / {question.message_id}"
    if ended is None or ended.get("termination_reason") != FORGOTTEN:
        return f"{named}: its journal has expired"
    return (
        f"{named} ended as {ended.get('outcome')}, and its text was erased. The id is kept "
        "for RESULT_TTL_HOURS, so that a repeated message is recognised."
    )


def _list_begun(entry: JournalEntry) -> list[str]:
    """Return the paths of the branches that an entry starts."""
    begun = entry.fields.get("branches") if entry.kind == "routed" else None
    return [str(path) for path in begun] if isinstance(begun, list) else []


def _list_plan(entry: JournalEntry, count: int) -> list[str]:
    """Return the purpose of each branch that an entry starts, or an empty list if there is none."""
    plan = entry.fields.get("plan")
    known = isinstance(plan, list) and len(plan) == count
    return [str(label) for label in plan] if known and isinstance(plan, list) else [""] * count


def _describe_call(entries: Sequence[JournalEntry]) -> str:
    """Return the status of a branch that returned a result, with the error of its tool call if the
    call failed.
    """
    writes = (entry.fields.get("writes") for entry in entries if entry.kind == "agent_run")
    executions = (write.get("tool_executions") for write in writes if isinstance(write, dict))
    calls = (call for calls in executions if isinstance(calls, list) for call in calls)
    for call in calls:
        if isinstance(call, dict) and call.get("success") is False:
            return f"completed, the call has an error ({call.get('error_type')}),"
    return "completed"


def _has_returned(entry: JournalEntry) -> bool:
    if entry.kind == "dead_lettered":
        return True
    return entry.kind == "routed" and entry.fields.get("target") == "return"


def _describe_costs(entries: Sequence[JournalEntry]) -> str:
    calls = [entry.fields for entry in entries if entry.kind == "model_call"]
    if not calls:
        return ""
    known = sum((Decimal(str(call["cost_usd"])) for call in calls if call["cost_usd"]), Decimal(0))
    unknown = any(call["cost_usd"] is None for call in calls)
    price = "cost unknown" if unknown and not known else f"{known:.6f} USD{' or more' * unknown}"
    return f", {len(calls)} calls, {price}"


def _indent(line: str, depth: int) -> str:
    """Return a line with the indentation of its branch, at most as wide as a terminal."""
    if not depth:
        return line
    moved = line[:HEAD] + "|  " * depth + line[HEAD:]
    return moved if len(moved) <= WIDTH else moved[: WIDTH - 1] + "…"


def _version_lines(entries: Sequence[JournalEntry]) -> list[str]:
    """Return a warning if a newer release wrote the journal."""
    first = entries[0] if entries else None
    version = read_schema_version(first.kind, first.fields) if first is not None else None
    if version is None or version <= JOURNAL_SCHEMA_VERSION:
        return []
    return [
        f"this journal has schema version {version}, newer than {JOURNAL_SCHEMA_VERSION}:",
        "update refdesk to see the complete journal",
    ]


def _entry_lines(entry: JournalEntry, since: float) -> list[str]:
    fields = entry.fields
    head = f"{since:>8.0f} ms  "
    match entry.kind:
        case "accepted":
            return [f"{head}accepted  {_short(fields.get('text'))}"]
        case "routed":
            reason = fields.get("termination_reason") or fields.get("reason")
            why = f"  ({_short(reason)})" if reason else ""
            return [
                f"{head}|- manager: {fields.get('stage')}, {_describe(fields.get('event'))} "
                f"-> {fields.get('target')}{why}"
            ]
        case "agent_run":
            return [
                f"{head}|  {fields.get('role')} {fields.get('status')} in "
                f"{fields.get('milliseconds')} ms",
                *_writes(fields.get("writes")),
            ]
        case "model_call":
            asked = f"{head}|     asked {fields.get('model')} for {fields.get('task')}:"
            took = f"{fields.get('milliseconds')} ms, {_cost(fields)}"
            if len(asked) + 1 + len(took) <= WIDTH:
                return [f"{asked} {took}"]
            return [asked, f"{'':>11}  |       {took}"]
        case "finished":
            return [f"{head}`- {fields.get('outcome')}"]
        case _:
            return [f"{head}|- {entry.kind}  {_short(fields.get('reason') or fields)}"]


def _describe(event: JsonValue) -> str:
    """Return the sentence for an event; an unknown event from a newer flow is shown as its slug."""
    if isinstance(event, str) and event in set(StageEvent):
        return StageEvent(event).description
    return str(event)


def _writes(writes: JsonValue) -> list[str]:
    if not isinstance(writes, dict):
        return []
    return [line for name, value in writes.items() for line in _write_lines(name, value)]


def _write_lines(name: str, value: JsonValue) -> list[str]:
    margin = f"{'':>11}  |     "
    if name != _WRAPPED or not isinstance(value, str):
        return [_write(f"{margin}{name} = ", name, value)]
    lines = textwrap.wrap(
        f"{name} = {' '.join(value.split())}",
        width=WIDTH,
        initial_indent=margin,
        subsequent_indent=f"{margin}  ",
        max_lines=_MOST_LINES,
        placeholder=" …",
    )
    return lines or [f"{margin}{name} = "]


def _write(head: str, name: str, value: JsonValue) -> str:
    if name in _LONG and isinstance(value, list | str):
        return f"{head}({len(value)} {'characters' if isinstance(value, str) else 'entries'})"
    return head + _short(value, max(LEAST_CHARACTERS, WIDTH - len(head)))


def _short(value: object, room: int = SHOWN_CHARACTERS) -> str:
    """Return a value on one line of at most `room` characters."""
    if isinstance(value, float):
        value = f"{value:.4g}"
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False, default=str)
    text = " ".join(value.split())
    return text if len(text) <= room else text[: room - 1] + "…"


def _cost(fields: dict[str, JsonValue]) -> str:
    counts = [fields.get("input_tokens") or 0, fields.get("output_tokens") or 0]
    tokens = f"{counts[0]} + {counts[1]} tokens" if any(counts) else "no tokens"
    cost = fields.get("cost_usd")
    price = "cost unknown" if cost is None else f"{Decimal(str(cost)):.6f} USD"
    error = f", failed: {fields['error']}" if fields.get("error") else ""
    stored = ", stored result" if fields.get("from_store") else ""
    if fields.get("from_cache"):
        stored = ", result of an identical earlier call reused"
    return f"{tokens}, {price}{stored}{error}"


def _agent_lines(entries: Sequence[JournalEntry]) -> list[str]:
    """Return a line for each agent that called a vendor's model, with the most expensive one
    first.
    """
    calls = [
        JournalEntry(entry.kind, {**entry.fields, "task": entry.fields.get("task") or "other"})
        for entry in entries
        if entry.kind == "model_call"
    ]
    usage = add_model_usage({}, calls).get("model_usage")
    return list(list_agent_costs(usage)) if isinstance(usage, dict) else []


def _sum_line(entries: Sequence[JournalEntry]) -> str:
    calls = [entry for entry in entries if entry.kind == "model_call"]
    costs = [c.fields["cost_usd"] for c in calls]
    known = sum((Decimal(str(cost)) for cost in costs if cost is not None), Decimal(0))
    unknown = costs.count(None)
    more = f" and {unknown} of unknown cost" if unknown else ""
    hops = sum(entry.kind == "agent_run" for entry in entries)
    seconds = entries[-1].at - entries[0].at if entries else 0.0
    return f"{hops} hops, {seconds * 1000:.0f} ms, {len(calls)} model calls, {known:.6f} USD{more}"
