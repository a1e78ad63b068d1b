"""Calls a vendor's model: renders the prompt, sends it, parses the reply, repairs it once, and
records usage and cost.
"""

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Generic, cast

import structlog
from pydantic import BaseModel, JsonValue

from envelope.run import OUTSIDE, Run
from llm.errors import (
    ModelError,
    ModelUnavailable,
    Refused,
    RejectedRequest,
    UnknownReply,
    UnreadableOutput,
    UnusableSchema,
)
from llm.metering import CallBudget, UsageMeter, hold
from llm.output_parsing import (
    NotReadable,
    is_complete,
    read,
    read_complete_part,
    remove_thoughts,
)
from llm.port import (
    I,
    Message,
    ModelAnswer,
    ModelMessage,
    ModelStep,
    O,
    StopReason,
    Task,
    TextListener,
    ToolConversation,
    ToolMessage,
    Usage,
    UserMessage,
)
from llm.prices import PriceSource
from llm.prompts import (
    JSON_OBJECT,
    REMARK,
    REPAIR,
    JsonObjectInputs,
    Prompts,
    Rendered,
    RepairInputs,
)
from llm.stored_model import digest
from llm.vendors.model_transport import Transport
from llm.vendors.wire import (
    Capabilities,
    ChatClient,
    Delta,
    ModelReply,
    Request,
    reduce_capabilities,
    shorten,
)

CHARACTERS_PER_TOKEN = 4
"""The estimated number of characters per token, used to reserve quota. The cost is computed from
the vendor's counts.
"""
MORE_TOKENS = 4
"""If an answer is truncated, it is requested once more with this many times the token limit."""

log = structlog.get_logger("llm")
DROPPED = frozenset(
    {"title", "default", "minLength", "maxLength", "uniqueItems", "discriminator", "examples"}
)
"""Keywords that strict schemas do not support. Parsing checks these constraints."""

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")
"""Call IDs that every vendor accepts."""
_LONGEST_NAME = 64

Node = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class _ReadReply(Generic[O]):
    """A reply with its output, or with the reason why it has none.

    `unknown` is the error for a reply in an unknown format.
    """

    reply: ModelReply
    output: O | None = None
    problem: NotReadable | None = None
    unknown: UnknownReply | None = None


@dataclass(frozen=True, slots=True)
class _Asked(Generic[O]):
    """The context of one call: parser, usage meter, run and listener."""

    read: Callable[[ModelReply], O]
    account: UsageMeter
    run: Run
    listener: TextListener | None = None


class VendorModel:
    """One model of one vendor.

    `capabilities` are the initial capabilities; parameters that the server rejects are not sent
    again.
    """

    def __init__(
        self,
        *,
        transport: Transport,
        wire: ChatClient,
        prompts: Prompts,
        prices: PriceSource,
        capabilities: Capabilities = Capabilities(),  # noqa: B008 - frozen
        budget: CallBudget | None = None,
    ) -> None:
        self.name = transport.name
        self._transport = transport
        self._wire = wire
        self._prompts = prompts
        self._prices = prices
        self._capabilities = capabilities
        self._budget = budget

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the server, as learned from the requests so far."""
        return self._capabilities

    async def ask(
        self,
        task: Task[I, O],
        inputs: I,
        run: Run = OUTSIDE,
        *,
        skip: int = 0,
        listener: TextListener | None = None,
    ) -> ModelAnswer[O]:
        prompt = self._prompts.render(task.name, inputs)
        account = UsageMeter(task.name, self.name, self._prices, prompt.hash)
        asked = _Asked(lambda reply: read(reply.text, task.output), account, run, listener)
        try:
            output = await self._ask(task, self._make_request(task, prompt), asked)
        except ModelError as error:
            account.charge(error)
            raise
        return ModelAnswer(output, self.name, account.usage, account.cost_usd, account.milliseconds)

    async def converse(
        self, conversation: ToolConversation, run: Run = OUTSIDE, *, skip: int = 0
    ) -> ModelStep:
        conversation = self._render_prompt(conversation)
        content_hash = digest(conversation.model_dump_json())
        account = UsageMeter(conversation.task, self.name, self._prices, content_hash)
        request = Request(conversation, self._transport.timeout_seconds)
        asked = _Asked(_read_message, account, run)
        try:
            step = await self._attempt(request, asked)
            if step.output is None:
                step = await self._attempt(request, asked)
            if step.output is None:
                raise step.unknown or UnreadableOutput(
                    f"{self.name!r} returned neither text nor tool calls"
                )
        except ModelError as error:
            account.charge(error)
            raise
        stop = StopReason.TOOL_USE if step.output.calls else StopReason.END_TURN
        return ModelStep(
            step.output,
            StopReason.MAX_TOKENS if step.reply.truncated else stop,
            self.name,
            account.usage,
            account.cost_usd,
            account.milliseconds,
        )

    def _render_prompt(self, conversation: ToolConversation) -> ToolConversation:
        spoken = tuple(map(self._render_message, conversation.messages))
        if conversation.prompt is None:
            return conversation.model_copy(update={"messages": spoken})
        prompt = self._prompts.render(conversation.task, conversation.prompt)
        messages = (UserMessage(text=prompt.user), *spoken[1:])
        changes = {"system": prompt.system, "messages": messages, "prompt": None}
        return conversation.model_copy(update=changes)

    def _render_message(self, message: Message) -> Message:
        """Return a message with valid tool names and call IDs, because models may write arbitrary
        ones.
        """
        if isinstance(message, ModelMessage):
            calls = tuple(
                call.model_copy(
                    update={"name": _fit_name(call.name), "call_id": _fit_id(call.call_id)}
                )
                for call in message.calls
            )
            return message.model_copy(update={"calls": calls})
        if isinstance(message, ToolMessage):
            fitting = {"name": _fit_name(message.name), "call_id": _fit_id(message.call_id)}
            return message.model_copy(update=fitting)
        if message.remark is None:
            return message
        return UserMessage(text=self._prompts.render(REMARK, message.remark).user)

    async def close(self) -> None:
        """Close the connections to the vendor."""
        await self._wire.close()

    async def _ask(self, task: Task[I, O], request: Request, asked: _Asked[O]) -> O:
        first = await self._attempt(request, asked)
        if first.output is not None:
            return first.output
        if first.reply.truncated:
            return await self._ask_with_more_tokens(task, request, first, asked)
        return await self._repair(request, first, asked)

    async def _attempt(
        self, request: Request, asked: _Asked[O], known: Capabilities | None = None
    ) -> _ReadReply[O]:
        """Make one exchange. An unreadable reply is recorded as a failed call with its cost."""
        most = _estimate(request.conversation)
        async with hold(self._budget, asked.run, asked.account, most) as entry:
            try:
                reply = await self._exchange(request, asked, known or self._capabilities)
            except UnknownReply as error:
                # The call probably has a cost, but it is unknown.
                entry.record_usage(None)
                entry.problem = f"{UnknownReply.__name__}: {error}"
                return _ReadReply(ModelReply("", None), unknown=error)
            entry.record_usage(reply.usage, reply.answered_by)
            if reply.refusal:
                raise make_refusal(self.name, request.conversation.task, reply.refusal)
            try:
                return _ReadReply(reply, asked.read(reply))
            except NotReadable as error:
                reason = "the answer was cut off" if reply.truncated else str(error)
                entry.problem = f"{UnreadableOutput.__name__}: {reason}"
                return _ReadReply(reply, problem=error)

    async def _ask_with_more_tokens(
        self, task: Task[I, O], request: Request, first: _ReadReply[O], asked: _Asked[O]
    ) -> O:
        limit = task.max_output_tokens * MORE_TOKENS
        longest, failure = first, None
        try:
            longest = await self._attempt(_change(request, max_output_tokens=limit), asked)
        except ModelError as error:
            failure = error
        if longest.output is not None:
            return longest.output
        try:
            return read_complete_part(longest.reply.text, task.output)
        except NotReadable as error:
            raise failure or UnreadableOutput(
                f"the output of {self.name!r} for task {task.name!r} was cut off at the limit "
                f"of {limit} tokens"
            ) from error

    async def _repair(self, request: Request, bad: _ReadReply[O], asked: _Asked[O]) -> O:
        known = self._capabilities
        if bad.unknown is not None:
            # Some servers send unreadable streams but valid complete replies.
            suspected = replace(known, streams=False)
        else:
            request, suspected = self._ask_for_repair(request, bad), self._suspect(bad)
        again = await self._attempt(request, asked, suspected)
        if again.output is not None:
            if self._capabilities == known:
                self._remember(suspected)
            return again.output
        if again.unknown is not None:
            raise again.unknown
        raise UnreadableOutput(
            f"{self.name!r} returned invalid output for task {request.conversation.task!r} "
            f"twice: {again.problem}"
        ) from again.problem

    def _ask_for_repair(self, request: Request, bad: _ReadReply[O]) -> Request:
        shown = self._prompts.render(REPAIR, RepairInputs(problem=str(bad.problem))).user
        # Vendors reject empty messages.
        answered = (ModelMessage(text=bad.reply.text),) if bad.reply.text else ()
        messages = (*request.conversation.messages, *answered, UserMessage(text=shown))
        return _change(request, messages=messages)

    def _suspect(self, bad: _ReadReply[O]) -> Capabilities:
        """Return reduced capabilities if the server seems to ignore the schema."""
        known, problem = self._capabilities, bad.problem
        if problem is not None and problem.ignores_schema and known.structure == "schema":
            return replace(known, structure="object")
        return known

    async def _exchange(
        self, request: Request, asked: _Asked[O], known: Capabilities
    ) -> ModelReply:
        """Return the reply; parameters that the server rejects are omitted from this and later
        requests.
        """
        if request.schema is None:
            # Without a schema, the server cannot reject it.
            known = replace(known, structure="text")
        tried = {known}
        first: RejectedRequest | None = None
        while True:
            try:
                reply = await self._send(self._fit(request, known, asked.listener), asked)
            except RejectedRequest as error:
                first = first or error
                reduced = reduce_capabilities(known, error)
                if reduced is None or reduced in tried:
                    raise first from error
                tried.add(reduced)
                known = reduced
            else:
                if first is not None:
                    own = self._capabilities.structure
                    structure = own if request.schema is None else known.structure
                    self._remember(replace(known, structure=structure))
                return reply

    async def _send(self, request: Request, asked: _Asked[O]) -> ModelReply:
        return await self._transport.call(
            asked.run,
            _count(_estimate(request.conversation)),
            lambda seconds: self._read_reply(replace(request, timeout_seconds=seconds), asked),
            time_share=request.time_share,
        )

    async def _read_reply(self, request: Request, asked: _Asked[O]) -> ModelReply:
        """Return the reply to one request; streams its text to the listener, if any."""
        listener = asked.listener or TextListener(request.conversation.task)
        reply: ModelReply | None = None
        with listener.attempt() as writing:
            async with aclosing(self._wire.send(request)) as deltas:
                pieces = self._begin_in_time(deltas, asked.run) if request.streams else deltas
                async for delta in pieces:
                    writing.add(delta.text)
                    listener.note_life(len(delta.thoughts))
                    listener.is_unstreamed |= delta.is_whole
                    reply = delta.reply or reply
        if reply is not None and not reply.text.strip() and is_complete(reply.thoughts):
            reply = replace(reply, text=reply.thoughts)
        # A complete answer is accepted even if the server states no finish reason.
        if reply is None or (request.streams and not (reply.has_end or is_complete(reply.text))):
            raise ModelUnavailable(f"the stream of {self.name!r} was cut off before its end")
        return reply

    async def _begin_in_time(self, deltas: AsyncGenerator[Delta], run: Run) -> AsyncIterator[Delta]:
        """Yield deltas, starting with the first text; raises an error if the first token arrives
        too late.
        """
        first = await self._transport.wait_for_first(run, _find_beginning(deltas))
        if first is None:
            return
        yield first
        async for delta in deltas:
            yield delta

    def _fit(self, request: Request, known: Capabilities, listener: TextListener | None) -> Request:
        """Return the request adapted to these capabilities; it streams only if there is a
        listener.
        """
        streams = listener is not None and known.streams
        if request.schema is not None and known.structure != "schema":
            schema_text = json.dumps(request.schema)
            rendered = self._prompts.render(JSON_OBJECT, JsonObjectInputs(schema_text=schema_text))
            parts = (request.conversation.system, rendered.system)
            request = _change(request, system="\n\n".join(filter(None, parts)))
        return replace(request, capabilities=known, streams=streams)

    def _remember(self, known: Capabilities) -> None:
        if known == self._capabilities:
            return
        self._capabilities = known
        log.info(
            "model_capabilities_reduced",
            model=self.name,
            structure=known.structure,
            token_parameter=known.token_parameter,
            omitted=sorted(known.omitted),
            streams=known.streams,
        )

    def _make_request(self, task: Task[I, O], prompt: Rendered) -> Request:
        conversation = ToolConversation(
            task=task.name,
            system=prompt.system,
            messages=(UserMessage(text=prompt.user),),
            temperature=task.temperature,
            max_output_tokens=task.max_output_tokens,
        )
        return Request(
            conversation,
            self._transport.timeout_seconds,
            strict_schema(task.output),
            time_share=task.time_share,
        )


def make_refusal(model: str, task_name: str, reason: str) -> Refused:
    """Return the error for a refusal, with a shortened reason."""
    return Refused(f"{model!r} refused task {task_name!r}: {shorten(reason)}")


@lru_cache(maxsize=64)
def strict_schema(output: type[BaseModel]) -> Node:
    """Return the schema with closed objects and all fields required, without unsupported keywords.

    Raises `UnusableSchema` for a mapping with arbitrary keys, which strict schemas cannot express.
    """
    schema = cast("Node", output.model_json_schema())
    if "$ref" in schema:
        # The schema of a recursive model is a reference; vendors require an object at the top
        # level.
        definitions = cast("dict[str, Node]", schema["$defs"])
        own = definitions[cast("str", schema["$ref"]).rpartition("/")[2]]
        schema = {**own, "$defs": cast("JsonValue", definitions)}
    return _strict(schema, output.__qualname__)


def _fit_name(name: str) -> str:
    """Convert a tool name that a model wrote to one that every vendor accepts."""
    fitting = _NOT_IN_NAMES.sub("_", name)
    is_start = fitting[:1].isalpha() or fitting[:1] == "_"
    return (fitting if is_start else f"_{fitting}")[:_LONGEST_NAME]


def _fit_id(call_id: str) -> str:
    return call_id if _CALL_ID.fullmatch(call_id) else digest(call_id)


async def _find_beginning(deltas: AsyncIterator[Delta]) -> Delta | None:
    """Return the first delta with text or thoughts, skipping empty ones, or the last delta if there
    is none.

    Thoughts count, because they show that the model is working.
    """
    async for delta in deltas:
        if delta.text or delta.thoughts or delta.reply is not None:
            return delta
    return None


def _read_message(reply: ModelReply) -> ModelMessage:
    """Return the message in a reply; raises `NotReadable` if it contains neither text nor tool
    calls.
    """
    message = ModelMessage(text=remove_thoughts(reply.text).strip(), calls=reply.calls)
    if not message.text and not message.calls:
        raise NotReadable("the response contains neither text nor tool calls")
    return message


def _change(request: Request, **changes: object) -> Request:
    """Return a copy of the request with changes to its conversation."""
    return replace(request, conversation=request.conversation.model_copy(update=changes))


def _estimate(conversation: ToolConversation) -> Usage:
    """Estimate the maximum usage of a request from the length of its text."""
    characters = len(conversation.model_dump_json())
    return Usage(characters // CHARACTERS_PER_TOKEN, conversation.max_output_tokens)


def _count(usage: Usage) -> int:
    return usage.input_tokens + usage.output_tokens


def _strict(node: Mapping[str, JsonValue], place: str) -> Node:
    if "$ref" in node:
        # Strict schemas allow no other keywords next to a reference.
        return {"$ref": node["$ref"]}
    strict: Node = {}
    for key, value in node.items():
        if key in DROPPED:
            continue
        strict["anyOf" if key == "oneOf" else key] = _value(key, value, place)
    _close_tuple(strict)
    return _close_object(strict, place) if strict.get("type") == "object" else strict


def _value(key: str, value: JsonValue, place: str) -> JsonValue:
    if key in {"properties", "$defs"} and isinstance(value, dict):
        return {
            name: _strict(cast("Node", part), f"{place}.{name}") for name, part in value.items()
        }
    if key in {"anyOf", "oneOf", "allOf", "prefixItems"} and isinstance(value, list):
        return [_strict(cast("Node", part), place) for part in value]
    if key == "items" and isinstance(value, dict):
        return _strict(value, f"{place}[]")
    return value


def _close_tuple(strict: Node) -> None:
    parts = strict.pop("prefixItems", None)
    if isinstance(parts, list):
        different = [part for n, part in enumerate(parts) if part not in parts[:n]]
        strict["items"] = different[0] if len(different) == 1 else {"anyOf": different}


def _close_object(strict: Node, place: str) -> Node:
    if strict.get("additionalProperties", False) is not False or "properties" not in strict:
        raise UnusableSchema(
            f"a mapping with free keys at {place} cannot be expressed in a strict schema; use "
            "named fields"
        )
    properties = cast("Node", strict["properties"])
    return {**strict, "required": list(properties), "additionalProperties": False}
