"""Asks a vendor's model: renders, asks, reads, repairs once, and keeps the account."""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import replace

from llm.errors import ModelError, Refused, UnreadableOutput
from llm.metering import UsageMeter
from llm.output_parsing import NotReadable, read
from llm.port import I, ModelAnswer, O, Task
from llm.prompts import JSON_OBJECT, REPAIR, JsonObjectInputs, Prompts, Rendered, RepairInputs
from llm.vendors.http_status import TOLD_CHARACTERS
from llm.vendors.model_caller import ModelCaller
from llm.vendors.strict_schema import strict_schema
from llm.vendors.wire import Delta, ModelReply, ModelTurn, Request, Wire

CHARACTERS_PER_TOKEN = 4
"""A rough figure for reserving places within limits; the account uses the vendor's own counts."""


class VendorModel:
    """One model of one vendor, behind the port.

    `base_url` is that of a compatible server; `json_object` tells the schema in the prompt, for
    servers that cannot be given one.
    """

    def __init__(
        self,
        *,
        caller: ModelCaller,
        wire: Wire,
        prompts: Prompts,
        base_url: str | None = None,
        json_object: bool = False,
    ) -> None:
        self.name = caller.name
        self._caller = caller
        self._wire = wire
        self._prompts = prompts
        self._base_url = base_url
        self._json_object = json_object

    async def ask(self, task: Task[I, O], inputs: I, *, skip: int = 0) -> ModelAnswer[O]:
        prompt = self._prompts.render(task.name, inputs)
        account = UsageMeter(task.name, self.name, self._base_url, prompt.hash)
        try:
            output = await self._ask(task, self._request(task, prompt), account)
        except ModelError as error:
            account.charge(error)
            raise
        return ModelAnswer(output, self.name, account.usage, account.cost_usd, account.milliseconds)

    async def stream(self, task: Task[I, O], inputs: I) -> AsyncGenerator[str, None]:
        """Yield the pieces of the answer's text (JSON of the task's output) as they come.

        Nothing is asked twice here: who has shown a piece cannot take it back. Raises as `ask`
        does, also after some pieces.
        """
        prompt = self._prompts.render(task.name, inputs)
        account = UsageMeter(task.name, self.name, self._base_url, prompt.hash)
        request = self._request(task, prompt)
        with account.exchange() as entry:
            async with aclosing(self._wire.stream(request)) as deltas:
                while delta := await self._caller.within(lambda _: _following(deltas)):
                    if delta.text:
                        yield delta.text
                    if delta.reply is not None:
                        entry.record_usage(delta.reply.usage)
                        self._usable(delta.reply, task)

    async def close(self) -> None:
        """Close the connections to the vendor."""
        await self._wire.close()

    async def _ask(self, task: Task[I, O], request: Request, account: UsageMeter) -> O:
        with account.exchange() as entry:
            reply = await self._exchange(request)
            entry.record_usage(reply.usage)
            self._usable(reply, task)
            try:
                return read(reply.text, task.output)
            except NotReadable as error:
                problem = str(error)
                entry.problem = f"{UnreadableOutput.__name__}: {problem}"
        return await self._repair(task, request, reply, problem, account)

    async def _repair(
        self, task: Task[I, O], request: Request, bad: ModelReply, problem: str, account: UsageMeter
    ) -> O:
        told = self._prompts.render(REPAIR, RepairInputs(problem=problem)).user
        # Vendors reject an empty turn.
        answered = (ModelTurn("model", bad.text),) if bad.text else ()
        said = (*request.said, *answered, ModelTurn("user", told))
        with account.exchange() as entry:
            reply = await self._exchange(replace(request, said=said))
            entry.record_usage(reply.usage)
            self._usable(reply, task)
            try:
                return read(reply.text, task.output)
            except NotReadable as error:
                raise UnreadableOutput(
                    f"expected {self.name!r} to answer task {task.name!r} as its output is "
                    f"defined, found twice something else: {error}"
                ) from error

    async def _exchange(self, request: Request) -> ModelReply:
        characters = len(request.system) + sum(len(said.text) for said in request.said)
        tokens = characters // CHARACTERS_PER_TOKEN + request.max_output_tokens
        return await self._caller.call(
            tokens, lambda seconds: self._wire.complete(replace(request, timeout_seconds=seconds))
        )

    def _usable(self, reply: ModelReply, task: Task[I, O]) -> None:
        if reply.refusal is not None:
            said = " ".join(reply.refusal.split())[:TOLD_CHARACTERS]
            raise Refused(f"{self.name!r} refused task {task.name!r}: {said}")
        if reply.cut:
            raise UnreadableOutput(
                f"expected {self.name!r} to answer task {task.name!r} within "
                f"{task.max_output_tokens} tokens, found an answer cut off there"
            )

    def _request(self, task: Task[I, O], prompt: Rendered) -> Request:
        schema = strict_schema(task.output)
        system = prompt.system
        if self._json_object:
            told = self._prompts.render(
                JSON_OBJECT, JsonObjectInputs(schema_text=json.dumps(schema))
            )
            system = "\n\n".join(part for part in (system, told.system) if part)
        return Request(
            system=system,
            said=(ModelTurn("user", prompt.user),),
            form=task.name,
            schema=None if self._json_object else schema,
            temperature=task.temperature,
            max_output_tokens=task.max_output_tokens,
            timeout_seconds=self._caller.timeout_seconds,
        )


async def _following(deltas: AsyncIterator[Delta]) -> Delta | None:
    return await anext(deltas, None)
