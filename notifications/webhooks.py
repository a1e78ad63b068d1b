r"""Sends the events of the desk to other programs, as defined by the Standard Webhooks
specification.

```
notices of ended messages --collect--> deliveries in Redis --deliver--> the endpoints
events of gaps and sources --announce-/        \-- tried again, dead after the last attempt
```

A process that dies loses nothing: a notice is acknowledged after its delivery is stored, and a
delivery is removed after the endpoint has accepted it. An event may arrive twice, with the same id.
"""

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import httpx2
import structlog
from pydantic import JsonValue

from broker.errors import BrokerUnavailableError
from broker.ports import EndedReader, ReplyReader
from broker.values import EndedMessage
from envelope.question import Question
from memory.errors import MemoryUnavailableError
from memory.webhook_queue import RedisWebhookQueue, WebhookDelivery
from outbound.errors import AddressRefusedError, FetchError
from outbound.fetcher import GuardedTransport
from outbound.resolution import GuardedResolver
from records.record import Redact, make_record

log = structlog.get_logger("webhooks")

ENDED = "message.ended"
RATED = "message.rated"
GAP = "gap.found"
SOURCE_FAILED = "source.failed"
KINDS = (ENDED, RATED, GAP, SOURCE_FAILED)
_KIND_OF_NOTICE = {"ended": ENDED, "rated": RATED}

DELAYS_SECONDS = (5.0, 60.0, 300.0, 1_800.0, 7_200.0, 18_000.0, 36_000.0)
"""The delay before each retry. A delivery that fails after the last one is dead."""
TIMEOUT_SECONDS = 15.0
LEASE_SECONDS = 60
AT_ONCE = 16
BLOCK_SECONDS = 5.0
LOOK_SECONDS = 1.0
AWAY_SECONDS = 5.0
_GONE = 410
"""The status with which an endpoint cancels its subscription."""
_LONGEST_ERROR = 200
UNAVAILABLE = (BrokerUnavailableError, MemoryUnavailableError)

Rating = tuple[str, str]
"""`up` or `down`, and the reason."""
FindRating = Callable[[Question], Awaitable[Rating | None]]


@dataclass(frozen=True, slots=True)
class WebhookTarget:
    """The destination of events, of certain `kinds` and assistants (tenant, name); empty means all
    assistants.

    Deliveries are signed with each of the `secrets`, newest first, so that a secret can be rotated:
    the receiver knows the new one before the old one is removed. `is_private` is true if the host
    may be in this network.
    """

    name: str
    url: str
    secrets: tuple[bytes, ...]
    kinds: tuple[str, ...] = KINDS
    assistants: tuple[tuple[str, str], ...] = ()
    is_private: bool = False

    def wants(self, delivery: WebhookDelivery) -> bool:
        """Return whether this endpoint should receive an event."""
        named = (delivery.tenant, delivery.assistant)
        return delivery.kind in self.kinds and (not self.assistants or named in self.assistants)


class WebhookSender:
    """Collects events and delivers them; call `run` in one or several processes."""

    def __init__(
        self,
        endpoints: Sequence[WebhookTarget],
        queue: RedisWebhookQueue,
        notices: EndedReader,
        replies: ReplyReader,
        find_rating: FindRating,
        *,
        redact: Redact = str,
        delays_seconds: Sequence[float] = DELAYS_SECONDS,
    ) -> None:
        self._endpoints = {endpoint.name: endpoint for endpoint in endpoints}
        self._queue = queue
        self._notices = notices
        self._replies = replies
        self._find_rating = find_rating
        self._redact = redact
        self._delays_seconds = delays_seconds
        self._since: Mapping[str, float] = {}

    async def collect(self) -> None:
        """Store deliveries for new notices, until cancelled."""
        await _repeat(self.collect_next)

    async def deliver(self) -> None:
        """Deliver due events, until cancelled."""
        await _repeat(self._deliver_or_wait)

    async def collect_next(self, *, block_seconds: float = BLOCK_SECONDS) -> int:
        """Store a delivery for each notice; return how many there were.

        An endpoint receives no events from before it was first configured.
        """
        if not self._since:
            self._since = await self._queue.subscribe(list(self._endpoints))
        taken = await self._notices.take(count=AT_ONCE, block_seconds=block_seconds)
        for message in taken:
            kind = _KIND_OF_NOTICE.get(message.event)
            if kind is not None:
                await self._share_out(_read_notice(kind, message))
        if taken:
            await self._notices.acknowledge(taken)
        return len(taken)

    async def deliver_due(self) -> int:
        """Deliver due events; return how many deliveries were attempted."""
        due = await self._queue.claim(count=AT_ONCE, lease_seconds=LEASE_SECONDS)
        async with asyncio.TaskGroup() as tasks:
            for delivery in due:
                tasks.create_task(self._handle_alone(delivery))
        return len(due)

    async def _handle_alone(self, delivery: WebhookDelivery) -> None:
        """Handle one delivery; its failure does not affect the others.

        While Redis does not respond, no attempt is counted, and the delivery is claimed again after
        its lease.
        """
        try:
            await self._handle_counted(delivery)
        except UNAVAILABLE as error:
            log.warning("webhooks_delayed", error=str(error), retry_seconds=LEASE_SECONDS)

    async def _handle_counted(self, delivery: WebhookDelivery) -> None:
        try:
            await self._handle(delivery)
        except UNAVAILABLE:
            raise
        except Exception as error:
            log.exception("webhook_not_handled", event_id=delivery.event_id)
            await self._record_failure(delivery, f"{type(error).__name__}: {error}")

    async def _deliver_or_wait(self) -> None:
        if not await self.deliver_due():
            await asyncio.sleep(LOOK_SECONDS)

    async def _share_out(self, event: WebhookDelivery) -> None:
        """Store a delivery for each endpoint that should receive the event."""
        for endpoint in self._endpoints.values():
            is_new = event.at >= self._since.get(endpoint.name, 0)
            if is_new and endpoint.wants(event):
                await self._queue.add(event.model_copy(update={"endpoint": endpoint.name}))

    async def _handle(self, delivery: WebhookDelivery) -> None:
        if not delivery.endpoint:
            await self._share_out(delivery)
            await self._queue.finish(delivery)
            return
        endpoint = self._endpoints.get(delivery.endpoint)
        body = None if endpoint is None else await self._write(delivery)
        if endpoint is None or body is None:
            # The endpoint was removed from the settings, or the conversation erased.
            log.info("webhook_dropped", endpoint=delivery.endpoint, event_id=delivery.event_id)
            await self._queue.finish(delivery)
            return
        error, is_final = await post_event(endpoint, delivery.event_id, body)
        if not error:
            await self._queue.finish(delivery)
            return
        await self._record_failure(delivery, error, is_final=is_final)

    async def _record_failure(
        self, delivery: WebhookDelivery, error: str, *, is_final: bool = False
    ) -> None:
        """Count a failed attempt, and schedule the next one unless it was the last."""
        failed = delivery.model_copy(
            update={"attempts": delivery.attempts + 1, "error": error[:_LONGEST_ERROR]}
        )
        if is_final or failed.attempts > len(self._delays_seconds):
            log.error(
                "webhook_dead",
                endpoint=delivery.endpoint,
                event_id=delivery.event_id,
                attempts=failed.attempts,
                error=error,
            )
            await self._queue.bury(failed)
            return
        await self._queue.put_off(failed, seconds=self._delays_seconds[failed.attempts - 1])

    async def _write(self, delivery: WebhookDelivery) -> str | None:
        """Return the body of an event, or None if its message was erased."""
        data: Mapping[str, JsonValue] | None = delivery.data
        if (question := delivery.question) is not None:
            data = await self._describe_message(question, delivery.kind)
        if data is None:
            return None
        timestamp = datetime.fromtimestamp(delivery.at, UTC).isoformat()
        named = {"tenant": delivery.tenant, "assistant": delivery.assistant}
        body = {"type": delivery.kind, "timestamp": timestamp, "data": {**named, **data}}
        return json.dumps(body, ensure_ascii=False, separators=(",", ":"))

    async def _describe_message(
        self, question: Question, kind: str
    ) -> Mapping[str, JsonValue] | None:
        entries = await self._replies.read_journal(question)
        if entries and entries[-1].fields.get("forgot"):
            return None
        record = make_record(question, entries)
        if record is None:
            return None
        record = record.redacted(self._redact)
        data: dict[str, JsonValue] = {
            "conversation_id": record.conversation_id,
            "message_id": record.message_id,
            "channel": record.channel,
            "language": record.language,
            "question": record.question,
            "outcome": record.outcome,
            "reason": record.reason,
            "answered_by": record.answered_by,
            "answer": record.answer,
            "sources": [*record.sources],
            "seconds": record.seconds,
        }
        if kind == RATED:
            rating = await self._find_rating(question)
            if rating is None:
                return None
            data |= {"rating": rating[0], "rating_reason": self._redact(rating[1])}
        return data


def sign(secret: bytes, event_id: str, timestamp: int, body: str) -> str:
    """Return the signature of a delivery."""
    signed = hmac.new(secret, f"{event_id}.{timestamp}.{body}".encode(), hashlib.sha256).digest()
    return f"v1,{base64.b64encode(signed).decode()}"


async def announce(
    queue: RedisWebhookQueue,
    kind: str,
    *,
    tenant: str,
    assistant: str,
    subject: str,
    data: Mapping[str, JsonValue],
) -> None:
    """Announce an event that does not belong to a message, once; raises `MemoryUnavailableError`.

    `subject` identifies the event, such as the ID of a gap or a source with the time; announcing
    the same subject again has no effect. `data` must not contain text from a conversation, because
    it is stored here.
    """
    event_id = name_event(kind, tenant, assistant, subject)
    await queue.add_once(
        WebhookDelivery(
            event_id=event_id,
            kind=kind,
            tenant=tenant,
            assistant=assistant,
            at=time.time(),
            data=dict(data),
        )
    )


async def post_event(endpoint: WebhookTarget, event_id: str, body: str) -> tuple[str, bool]:
    """Return why an endpoint did not accept an event, or an empty string; and whether the failure
    is permanent.
    """
    timestamp = int(time.time())
    signatures = [sign(secret, event_id, timestamp, body) for secret in endpoint.secrets]
    headers = {
        "Content-Type": "application/json",
        "webhook-id": event_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signatures),
    }
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            status = await post_json(endpoint, headers, body)
    except TimeoutError:
        return f"no answer within {TIMEOUT_SECONDS:.0f} seconds", False
    except (httpx2.HTTPError, AddressRefusedError, FetchError) as error:
        return f"{type(error).__name__}: {error}"[:_LONGEST_ERROR], False
    return ("" if 200 <= status < 300 else f"status {status}"), status == _GONE


async def post_json(endpoint: WebhookTarget, headers: Mapping[str, str], body: str) -> int:
    """Post JSON and return the status; the response body is not read, and redirects are not
    followed.
    """
    resolver = GuardedResolver()
    url = httpx2.URL(endpoint.url)
    if endpoint.is_private:
        await resolver.start_at(url.host, url.port or (443 if url.scheme == "https" else 80))
    sent = {"User-Agent": "refdesk", **headers}
    async with (
        httpx2.AsyncClient(transport=GuardedTransport(resolver), trust_env=False) as client,
        client.stream("POST", url, headers=sent, content=body) as answer,
    ):
        return answer.status_code


def name_event(*parts: str) -> str:
    """Return an event id derived from these parts; the same parts always result in the same id."""
    return f"msg_{hashlib.sha256(chr(31).join(parts).encode()).hexdigest()[:32]}"


def _read_notice(kind: str, message: EndedMessage) -> WebhookDelivery:
    question = message.question
    # A message ends once; each rating of it is an event of its own.
    once = "" if kind == ENDED else message.entry_id
    names = (*question.conversation, question.message_id, once)
    return WebhookDelivery(
        event_id=name_event(kind, *names),
        kind=kind,
        tenant=question.tenant,
        assistant=question.assistant,
        at=int(message.entry_id.partition("-")[0]) / 1000,
        conversation_id=question.conversation_id,
        message_id=question.message_id,
    )


async def _repeat(step: Callable[[], Awaitable[object]]) -> None:
    """Repeat a step until cancelled, with a pause while Redis does not respond."""
    own = asyncio.current_task()
    while own is None or not own.cancelling():
        try:
            await step()
        except UNAVAILABLE as error:
            log.warning("webhooks_delayed", error=str(error), retry_seconds=AWAY_SECONDS)
            await asyncio.sleep(AWAY_SECONDS)
