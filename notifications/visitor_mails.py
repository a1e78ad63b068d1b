"""Sends emails to visitors, and retries those that the mail server did not accept.

Only ids are stored. The text of an email is written when it is sent, so that nothing is sent after
an erasure.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import structlog

from envelope.question import Question
from memory.webhook_queue import RedisWebhookQueue, WebhookDelivery
from notifications.handover import LINK_SECONDS, HandOverError, MailSender, RecipientRefusedError
from notifications.webhooks import UNAVAILABLE, name_event

log = structlog.get_logger("handover")

CONFIRM, ANSWER = "visitor.confirm", "visitor.answer"
DELAYS_SECONDS = (60.0, 300.0, 1_800.0, 7_200.0, 18_000.0, 36_000.0)
"""The delay before each retry. An email that fails after the last retry is abandoned."""
LEASE_SECONDS = 600
"""Longer than any exchange with a mail server, because each step has a time limit."""
AT_ONCE = 4
LOOK_SECONDS = 1.0
AWAY_SECONDS = 5.0
REPORT_SECONDS = 60.0

Write = Callable[[WebhookDelivery], Awaitable["VisitorMail | None"]]
"""Writes an email, or returns None if it is no longer needed. Raises `NotYetError`."""


class NotYetError(Exception):
    """An email cannot be written yet. It is sent later, and this does not count as a failure."""


@dataclass(frozen=True, slots=True)
class VisitorMail:
    """An email to a visitor."""

    to: str
    subject: str
    text: str


class VisitorMails:
    """The queue of emails to visitors; `report` receives a notice for operators."""

    def __init__(
        self,
        queue: RedisWebhookQueue,
        sender: MailSender,
        report: Callable[[str], None],
        *,
        delays_seconds: Sequence[float] = DELAYS_SECONDS,
    ) -> None:
        self._queue = queue
        self._sender = sender
        self._report = report
        self._delays_seconds = delays_seconds

    async def add(
        self, kind: str, question: Question, language: str, *, once: str = "", held: bool = False
    ) -> WebhookDelivery | None:
        """Store an email about a message, only once for each kind and `once`; return None if it was
        already stored.

        If `held` is true, the caller sends it now, and other processes send it only if this process
        dies.
        """
        mail = WebhookDelivery(
            event_id=name_event(kind, *question.conversation, question.message_id, once),
            kind=kind,
            tenant=question.tenant,
            assistant=question.assistant,
            at=time.time(),
            conversation_id=question.conversation_id,
            message_id=question.message_id,
            data={"language": language},
        )
        delay = LEASE_SECONDS if held else 0
        return mail if await self._queue.add_once(mail, delay_seconds=delay) else None

    async def send(self, mail: WebhookDelivery, write: Write) -> bool:
        """Send a stored email, or postpone it; return False if it will never be sent."""
        try:
            written = await write(mail)
        except NotYetError:
            await self._queue.put_off(mail, seconds=AWAY_SECONDS)
            return True
        if written is None:
            await self._queue.finish(mail)
            return False
        try:
            await self._sender.send(
                written.to, written.subject, written.text, mail_id=mail.event_id
            )
        except HandOverError as error:
            return await self._record_failure(mail, error)
        await self._queue.finish(mail)
        return True

    async def send_due(self, write: Write) -> int:
        """Send the emails that are due; return their number."""
        due = await self._queue.claim(count=AT_ONCE, lease_seconds=LEASE_SECONDS)
        for mail in due:
            try:
                await self.send(mail, write)
            except UNAVAILABLE:
                raise
            except Exception as error:
                # A fault of one e-mail must not keep the others.
                log.exception("visitor_mail_not_written")
                await self._record_failure(mail, error)
        return len(due)

    async def run(self, write: Write) -> None:
        """Send emails when they are due, until cancelled."""
        loop, reported_at = asyncio.get_running_loop(), float("-inf")
        while True:
            try:
                count = await self.send_due(write)
                # Another process may have sent what failed here.
                if count or loop.time() - reported_at > REPORT_SECONDS:
                    self._report(await self.describe_failures())
                    reported_at = loop.time()
                await asyncio.sleep(0 if count else LOOK_SECONDS)
            except UNAVAILABLE as error:
                log.warning("visitor_mail_delayed", error=str(error), retry_seconds=AWAY_SECONDS)
                await asyncio.sleep(AWAY_SECONDS)

    async def describe_failures(self) -> str:
        """Describe the emails that the mail server has not accepted; empty if there are none."""
        waiting = [mail for mail in await self._queue.list_waiting() if mail.attempts]
        since = time.time() - LINK_SECONDS
        given_up = [mail for mail in await self._queue.list_dead() if mail.at >= since]
        if not waiting and not given_up:
            return ""
        last = max((*waiting, *given_up), key=lambda mail: mail.at)
        return (
            f"E-mails to visitors that the mail server did not accept: {len(waiting)} will "
            f"be sent again, {len(given_up)} of the last seven days will not. The answers are "
            f"in the conversations. Last error: {last.error}"
        )

    async def _record_failure(self, mail: WebhookDelivery, error: Exception) -> bool:
        failed = mail.model_copy(update={"attempts": mail.attempts + 1, "error": str(error)[:200]})
        is_final = isinstance(error, RecipientRefusedError)
        if is_final or failed.attempts > len(self._delays_seconds):
            log.error("visitor_mail_dead", attempts=failed.attempts, error=str(error))
            await self._queue.bury(failed)
            return False
        seconds = self._delays_seconds[failed.attempts - 1]
        log.warning("visitor_mail_failed", error=str(error), retry_seconds=seconds)
        await self._queue.put_off(failed, seconds=seconds)
        return True
