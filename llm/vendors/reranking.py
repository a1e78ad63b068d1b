"""Scores texts against a question with a vendor's reranker over HTTP.

Cohere, Jina, Voyage, vLLM and Infinity share one request format; Text Embeddings Inference has a
different one, which is detected for servers in `COMPATIBLE_SERVERS`. The replies have similar
formats: a list of indexes and scores, in a field with one of two names or at the top level.
"""

import asyncio
from collections.abc import Sequence

from httpx2 import AsyncClient, Response
from pydantic import AliasChoices, BaseModel, Field, FiniteFloat, TypeAdapter, ValidationError

from envelope.run import OUTSIDE, Run
from llm.errors import ModelError, RejectedRequest, UnreadableOutput
from llm.metering import UsageMeter
from llm.port import Usage
from llm.prices import PriceSource
from llm.vendors.catalogue import Vendor, VendorAccess
from llm.vendors.guard import AddressGuard
from llm.vendors.model_transport import CircuitBreaker, Transport
from llm.vendors.vendor_model import CHARACTERS_PER_TOKEN
from llm.vendors.wire import RerankForm, choose_other_form

TASK_NAME = "rerank"
LARGEST_REPLY = 1 << 20
"""Maximum size of a reply in bytes. A reply contains an index and a score for each text."""


class _Scored(BaseModel):
    index: int
    score: FiniteFloat = Field(validation_alias=AliasChoices("relevance_score", "score"))


class _Tokens(BaseModel):
    """The usage as reported by Jina, Voyage, and newer Cohere models."""

    tokens: int = Field(validation_alias=AliasChoices("total_tokens", "input_tokens"), ge=0)


class _Meta(BaseModel):
    tokens: _Tokens | None = None


class RerankReply(BaseModel):
    """The reply of a server: scores by index, and the usage if it was reported."""

    scored: list[_Scored] = Field(validation_alias=AliasChoices("results", "data"))
    usage: _Tokens | None = None
    meta: _Meta | None = None

    def read_usage(self) -> Usage | None:
        """Return the usage, or None if the server does not report it or counts searches instead."""
        usage = self.usage or (self.meta.tokens if self.meta is not None else None)
        return None if usage is None else Usage(usage.tokens)


_REPLY: TypeAdapter[RerankReply | list[_Scored]] = TypeAdapter(RerankReply | list[_Scored])


class RerankClient:
    """The client of one reranking model, without retries."""

    def __init__(self, model: str, vendor: Vendor, access: VendorAccess) -> None:
        key = access.api_key or "none"
        self._model = model
        self._guard = AddressGuard.of(model, vendor, access)
        self._url = f"{self._guard.address.rstrip('/')}/rerank"
        self._form = vendor.reranking or RerankForm()
        headers = {name: value.format(key=key) for name, value in vendor.key_headers.items()}
        self._client = AsyncClient(headers=headers)

    async def rerank(self, question: str, texts: Sequence[str], seconds: float) -> RerankReply:
        """Return the reply of the server; raises errors from `llm.errors`."""
        try:
            return await self._send(question, texts, seconds)
        except RejectedRequest as error:
            other = choose_other_form(self._form, error.explanation)
            if other is None:
                raise
            self._form = other
            return await self._send(question, texts, seconds)

    async def close(self) -> None:
        await self._client.aclose()

    async def _send(self, question: str, texts: Sequence[str], seconds: float) -> RerankReply:
        body = self._form.make_body(self._model, question, texts)
        with self._guard.watching():
            async with self._client.stream("POST", self._url, json=body, timeout=seconds) as reply:
                content = await _read(reply, self._model)
            if not reply.is_success:
                text = content.decode("utf-8", "replace")
                raise self._guard.error_of(reply.status_code, text, reply.headers)
            return _parse(content, self._model)


class VendorReranker:
    """A vendor's reranker with a circuit breaker; implements `ScoreModel`."""

    def __init__(
        self,
        *,
        transport: Transport,
        wire: RerankClient,
        prices: PriceSource,
        breaker: CircuitBreaker,
    ) -> None:
        self.name = transport.name
        self._transport = transport
        self._wire = wire
        self._prices = prices
        self._breaker = breaker

    async def score(
        self, question: str, texts: Sequence[str], run: Run = OUTSIDE
    ) -> Sequence[float]:
        self._breaker.enter()
        try:
            scores = await self._score(question, texts, run)
        except ModelError as error:
            self._breaker.note_failure(error)
            raise
        except asyncio.CancelledError:
            self._breaker.abandon()
            raise
        self._breaker.note_success()
        return scores

    async def close(self) -> None:
        """Close the connections to the server."""
        await self._wire.close()

    async def _score(self, question: str, texts: Sequence[str], run: Run) -> Sequence[float]:
        meter = UsageMeter(TASK_NAME, self.name, self._prices)
        characters = len(question) * len(texts) + sum(map(len, texts))
        with meter.exchange() as entry:
            try:
                reply = await self._transport.call(
                    run,
                    characters // CHARACTERS_PER_TOKEN,
                    lambda seconds: self._wire.rerank(question, texts, seconds),
                )
            except UnreadableOutput:
                entry.record_usage(None)
                raise
            entry.record_usage(reply.read_usage())
            return _order(reply, len(texts), self.name)


async def _read(reply: Response, model: str) -> bytes:
    content = b""
    async for part in reply.aiter_bytes():
        content += part
        if len(content) > LARGEST_REPLY:
            raise UnreadableOutput(f"the reply of {model!r} exceeds {LARGEST_REPLY} bytes")
    return content


def _parse(content: bytes, model: str) -> RerankReply:
    try:
        reply = _REPLY.validate_json(content)
    except ValidationError as error:
        raise UnreadableOutput(
            f"the reply of {model!r} ({len(content)} bytes) does not contain valid indexes and "
            f"scores: {error.error_count()} errors"
        ) from error
    return reply if isinstance(reply, RerankReply) else RerankReply.model_construct(scored=reply)


def _order(reply: RerankReply, count: int, model: str) -> list[float]:
    """Return the scores in the order of the texts; raises `UnreadableOutput`."""
    scores = {scored.index: scored.score for scored in reply.scored}
    if len(reply.scored) != count or scores.keys() != set(range(count)):
        raise UnreadableOutput(
            f"expected one score for each of {count} texts from {model!r}, found "
            f"{len(reply.scored)} for {len(scores.keys() & set(range(count)))} of them"
        )
    return [scores[index] for index in range(count)]
