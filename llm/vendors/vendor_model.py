"""Calls a vendor's model: renders, sends, parses, repairs once, and records usage and cost."""

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Generic, TypeVar, cast

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
    ModelTurn,
    Request,
    StepReply,
    StepRequest,
    reduce_capabilities,
    shorten,
)

CHARACTERS_PER_TOKEN = 4
"""An estimate for reserving quota; the cost is computed from the vendor's counts."""
MORE_TOKENS = 4
"""An answer that was cut off is requested once more with the token limit times this factor."""

R = TypeVar("R", ModelReply, StepReply)

log = structlog.get_logger("llm")
DROPPED = frozenset(
    {"title", "default", "minLength", "maxLength", "uniqueItems", "discriminator", "examples"}
)
"""Keywords that strict schemas lack; these constraints are checked when the answer is parsed."""

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")
"""An identifier that every vendor accepts, also one that another vendor has made."""
_LONGEST_NAME = 64

Node = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class _ReadReply(Generic[O]):
    """A reply with its output, or with the reason why it has none.

    `unknown` is the error of a reply that has no known form.
    """

    reply: ModelReply
    output: O | None = None
    problem: NotReadable | None = None
    unknown: UnknownReply | None = None


@dataclass(frozen=True, slots=True)
class _Asked:
    """What one question to the model belongs to: its meter, the run, and who listens."""

    account: UsageMeter
    run: Run
    listener: TextListener | None = None


class VendorModel:
    """One model of one vendor.

    `capabilities` are the initial ones: parameters that the server rejects are no longer sent.
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
        """What its server accepts, as far as requests have shown."""
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
        try:
            output = await self._ask(
                task, self._request(task, prompt), _Asked(account, run, listener)
            )
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
        try:
            try:
                reply = await self._step(conversation, run, account)
            except UnreadableOutput:
                reply = await self._step(conversation, run, account)
        except ModelError as error:
            account.charge(error)
            raise
        return ModelStep(
            reply.message,
            reply.stop,
            self.name,
            account.usage,
            account.cost_usd,
            account.milliseconds,
        )

    async def _step(
        self, conversation: ToolConversation, run: Run, account: UsageMeter
    ) -> StepReply:
        """Make one exchange; raises `UnreadableOutput` for a message without text and calls."""
        async with hold(self._budget, run, account, _estimate_step(conversation)) as entry:
            try:
                reply = await self._exchange(
                    # Conversations have no schema that a server could reject.
                    replace(self._capabilities, structure="text"),
                    lambda known: self._send_step(conversation, known, run),
                    keeps_structure=False,
                )
            except UnknownReply:
                entry.record_usage(None)
                raise
            entry.record_usage(reply.usage, reply.answered_by)
            if reply.refusal is not None:
                raise make_refusal(self.name, conversation.task, reply.refusal)
            text = remove_thoughts(reply.message.text).strip()
            if not text and not reply.message.calls:
                raise UnreadableOutput(
                    f"expected a text or tool calls of {self.name!r}, found neither"
                )
            return replace(reply, message=reply.message.model_copy(update={"text": text}))

    def _render_prompt(self, conversation: ToolConversation) -> ToolConversation:
        spoken = tuple(map(self._render_message, conversation.messages))
        if conversation.prompt is None:
            return conversation.model_copy(update={"messages": spoken})
        prompt = self._prompts.render(conversation.task, conversation.prompt)
        messages = (UserMessage(text=prompt.user), *spoken[1:])
        changes = {"system": prompt.system, "messages": messages, "prompt": None}
        return conversation.model_copy(update=changes)

    def _render_message(self, message: Message) -> Message:
        """Return a message as vendors accept it; a model may have written any name of a tool."""
        if isinstance(message, ModelMessage):
            calls = tuple(
                one.model_copy(
                    update={"name": _fit_name(one.name), "call_id": _fit_id(one.call_id)}
                )
                for one in message.calls
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

    async def _ask(self, task: Task[I, O], request: Request, asked: _Asked) -> O:
        first = await self._attempt(task, request, asked)
        if first.output is not None:
            return first.output
        if first.reply.truncated:
            return await self._ask_with_more_tokens(task, request, first, asked)
        return await self._repair(task, request, first, asked)

    async def _attempt(
        self,
        task: Task[I, O],
        request: Request,
        asked: _Asked,
        known: Capabilities | None = None,
    ) -> _ReadReply[O]:
        """Make one exchange; an unreadable reply is recorded as a failed call with its cost."""
        async with hold(self._budget, asked.run, asked.account, _estimate(request)) as entry:
            try:
                reply = await self._exchange(
                    known or self._capabilities,
                    lambda fitting: self._send(self._fit(request, fitting), asked),
                )
            except UnknownReply as error:
                # The vendor has probably worked for it; nobody knows how much.
                entry.record_usage(None)
                entry.problem = f"{UnknownReply.__name__}: {error}"
                return _ReadReply(ModelReply("", None), unknown=error)
            entry.record_usage(reply.usage, reply.answered_by)
            self._check_refusal(reply, task)
            try:
                return _ReadReply(reply, read(reply.text, task.output))
            except NotReadable as error:
                reason = "the answer was cut off" if reply.truncated else str(error)
                entry.problem = f"{UnreadableOutput.__name__}: {reason}"
                return _ReadReply(reply, problem=error)

    async def _ask_with_more_tokens(
        self, task: Task[I, O], request: Request, first: _ReadReply[O], asked: _Asked
    ) -> O:
        longer = replace(request, max_output_tokens=request.max_output_tokens * MORE_TOKENS)
        longest, failure = first, None
        try:
            longest = await self._attempt(task, longer, asked)
        except ModelError as error:
            failure = error
        if longest.output is not None:
            return longest.output
        try:
            return read_complete_part(longest.reply.text, task.output)
        except NotReadable as error:
            raise failure or self._make_cut_error(task, longer) from error

    async def _repair(
        self, task: Task[I, O], request: Request, bad: _ReadReply[O], asked: _Asked
    ) -> O:
        known = self._capabilities
        if bad.unknown is not None:
            # A server may send streams that nobody can read, and whole replies that anybody can.
            suspected = replace(known, streams=False)
        else:
            request, suspected = self._ask_for_repair(request, bad), self._suspect(bad)
        again = await self._attempt(task, request, asked, suspected)
        if again.output is not None:
            if self._capabilities == known:
                self._remember(suspected)
            return again.output
        if again.unknown is not None:
            raise again.unknown
        raise UnreadableOutput(
            f"expected {self.name!r} to answer task {task.name!r} in the required form, found "
            f"another form twice: {again.problem}"
        ) from again.problem

    def _ask_for_repair(self, request: Request, bad: _ReadReply[O]) -> Request:
        shown = self._prompts.render(REPAIR, RepairInputs(problem=str(bad.problem))).user
        # Vendors reject an empty turn.
        answered = (ModelTurn("model", bad.reply.text),) if bad.reply.text else ()
        return replace(request, turns=(*request.turns, *answered, ModelTurn("user", shown)))

    def _suspect(self, bad: _ReadReply[O]) -> Capabilities:
        """Return the capabilities of a server that may ignore the schema."""
        known, problem = self._capabilities, bad.problem
        if problem is not None and problem.ignores_schema and known.structure == "schema":
            return replace(known, structure="object")
        return known

    async def _exchange(
        self,
        known: Capabilities,
        send: Callable[[Capabilities], Awaitable[R]],
        *,
        keeps_structure: bool = True,
    ) -> R:
        """Return the reply; omit parameters that the server rejects, also from later requests."""
        tried = {known}
        first: RejectedRequest | None = None
        while True:
            try:
                reply = await send(known)
            except RejectedRequest as error:
                first = first or error
                reduced = reduce_capabilities(known, error)
                if reduced is None or reduced in tried:
                    raise first from error
                tried.add(reduced)
                known = reduced
            else:
                if first is not None:
                    self._remember(known if keeps_structure else self._keep_structure(known))
                return reply

    async def _send_step(
        self, conversation: ToolConversation, known: Capabilities, run: Run
    ) -> StepReply:
        return await self._transport.call(
            run,
            _count(_estimate_step(conversation)),
            lambda seconds: self._wire.converse(StepRequest(conversation, seconds, known)),
        )

    async def _send(self, request: Request, asked: _Asked) -> ModelReply:
        return await self._transport.call(
            asked.run,
            _count(_estimate(request)),
            lambda seconds: self._exchange_once(replace(request, timeout_seconds=seconds), asked),
            time_share=request.time_share,
        )

    async def _exchange_once(self, request: Request, asked: _Asked) -> ModelReply:
        """Return the reply to one request; pass its text to the listener, if any, as it arrives."""
        listener = asked.listener
        if listener is not None and request.capabilities.streams:
            reply = await self._read_stream(request, listener, asked.run)
        else:
            reply = await self._wire.complete(request)
            if listener is not None:
                listener.is_unstreamed = True
        if not reply.text.strip() and is_complete(reply.thoughts):
            reply = replace(reply, text=reply.thoughts)
        return reply

    async def _read_stream(self, request: Request, listener: TextListener, run: Run) -> ModelReply:
        reply: ModelReply | None = None
        with listener.attempt() as writing:
            async with aclosing(self._wire.stream(request)) as deltas:
                async for delta in self._begin_in_time(deltas, run):
                    writing.add(delta.text)
                    listener.note_life(len(delta.thoughts))
                    listener.is_unstreamed |= delta.is_unstreamed
                    reply = delta.reply or reply
            # A complete answer is complete, whether or not the server states why it ends.
            if reply is None or not (reply.has_end or is_complete(reply.text or reply.thoughts)):
                raise ModelUnavailable(
                    f"expected the end of the stream of {self.name!r}, found it cut off"
                )
        return reply

    async def _begin_in_time(self, deltas: AsyncGenerator[Delta], run: Run) -> AsyncIterator[Delta]:
        """Yield what arrives from the first words on, which have to come in time."""
        first = await self._transport.wait_for_first(run, _find_beginning(deltas))
        if first is None:
            return
        yield first
        async for delta in deltas:
            yield delta

    def _fit(self, request: Request, known: Capabilities) -> Request:
        """Return the request for a server of these capabilities."""
        system = request.system
        if known.structure != "schema":
            schema_text = json.dumps(request.schema)
            rendered = self._prompts.render(JSON_OBJECT, JsonObjectInputs(schema_text=schema_text))
            system = "\n\n".join(part for part in (system, rendered.system) if part)
        return replace(request, system=system, capabilities=known)

    def _keep_structure(self, known: Capabilities) -> Capabilities:
        return replace(known, structure=self._capabilities.structure)

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

    def _check_refusal(self, reply: ModelReply, task: Task[I, O]) -> None:
        if reply.refusal is not None:
            raise make_refusal(self.name, task.name, reply.refusal)

    def _make_cut_error(self, task: Task[I, O], request: Request) -> UnreadableOutput:
        return UnreadableOutput(
            f"expected {self.name!r} to answer task {task.name!r} within "
            f"{request.max_output_tokens} tokens, found an answer cut off there"
        )

    def _request(self, task: Task[I, O], prompt: Rendered) -> Request:
        return Request(
            system=prompt.system,
            turns=(ModelTurn("user", prompt.user),),
            task=task.name,
            schema=strict_schema(task.output),
            temperature=task.temperature,
            max_output_tokens=task.max_output_tokens,
            timeout_seconds=self._transport.timeout_seconds,
            time_share=task.time_share,
        )


def make_refusal(model: str, task_name: str, reason: str) -> Refused:
    """Return the error for a model that refused; its reason is shortened."""
    return Refused(f"{model!r} refused task {task_name!r}: {shorten(reason)}")


@lru_cache(maxsize=64)
def strict_schema(output: type[BaseModel]) -> Node:
    """Return the schema with closed objects and required fields, without unsupported keywords.

    Raises `UnusableSchema` for a mapping with free keys, which strict schemas cannot express.
    """
    schema = cast("Node", output.model_json_schema())
    if "$ref" in schema:
        # The schema of a recursive model is a reference; vendors require an object at the top.
        definitions = cast("dict[str, Node]", schema["$defs"])
        own = definitions[cast("str", schema["$ref"]).rpartition("/")[2]]
        schema = {**own, "$defs": cast("JsonValue", definitions)}
    return _strict(schema, output.__qualname__)


def _fit_name(name: str) -> str:
    """Return a tool's name in the form that every vendor accepts; names of tools have it."""
    fitting = _NOT_IN_NAMES.sub("_", name)
    is_start = fitting[:1].isalpha() or fitting[:1] == "_"
    return (fitting if is_start else f"_{fitting}")[:_LONGEST_NAME]


def _fit_id(call_id: str) -> str:
    return call_id if _CALL_ID.fullmatch(call_id) else digest(call_id)


async def _find_beginning(deltas: AsyncIterator[Delta]) -> Delta | None:
    """Return the first part that has words or is the end; servers announce themselves before.

    Thoughts are words, too: a model that thinks has begun to work.
    """
    async for delta in deltas:
        if delta.text or delta.thoughts or delta.reply is not None:
            return delta
    return None


def _estimate(request: Request) -> Usage:
    """Return what a request takes at most, by the length of its text."""
    characters = len(request.system) + sum(len(turn.text) for turn in request.turns)
    return Usage(characters // CHARACTERS_PER_TOKEN, request.max_output_tokens)


def _estimate_step(conversation: ToolConversation) -> Usage:
    characters = len(conversation.model_dump_json())
    return Usage(characters // CHARACTERS_PER_TOKEN, conversation.max_output_tokens)


def _count(usage: Usage) -> int:
    return usage.input_tokens + usage.output_tokens


def _strict(node: Mapping[str, JsonValue], place: str) -> Node:
    if "$ref" in node:
        # Other keywords next to a reference (a description) are not allowed.
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
            f"expected fields with names at {place}, found a mapping with free keys: "
            "a strict schema cannot say that"
        )
    properties = cast("Node", strict["properties"])
    return {**strict, "required": list(properties), "additionalProperties": False}
