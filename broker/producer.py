"""Submits messages and cancels them. A local worker with a free slot receives a message
immediately.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from broker.context import BrokerContext
from broker.entry_codec import base_frame_name, encode_accepted, read_delivered, submission_result
from broker.keys import QuestionKeys, message_id_key, pace_key, results_key
from broker.leases import DeliveryLoader
from broker.maintenance.erasure import ConversationEraser
from broker.maintenance.scheduler import encode_superseded_reply, make_superseded_reply
from broker.ports import LocalConsumer
from broker.settlement import ScriptCall, encode_last_resort, outcome_of
from broker.transport.scripts import CANCEL, SUBMIT
from broker.values import Accepted, Busy, Duplicate, Fields, Submission
from envelope.encoding import to_json
from envelope.question import Question

RECOVERY_SECONDS = 1.0
"""After this time, a call whose response was lost has either run or failed."""


@dataclass(frozen=True, slots=True)
class AdmissionPolicy:
    """Admits enough questions to keep the workers busy, with only a few waiting.

    - `share`: how long questions may wait for free slots under overload, as a share of the time
      for which they are processed. Answers to accepted questions are delayed by about this share.
    - `at_least`: the number of questions that are always admitted; the concurrency of one worker's
      smallest role is a safe value.
    - `lanes`: roles with separate streams, outside the flow that is measured.
    """

    share: float = 0.12
    at_least: int = 16
    lanes: tuple[str, ...] = ()


NO_PACE = AdmissionPolicy(share=0.0)
"""Admission is limited only by the quota of a shard."""


@dataclass(frozen=True, slots=True)
class SubmissionLimits:
    """The limits on accepted messages; see `RedisBroker` for each."""

    quota: int = 10_000
    longest_queue: int = 20
    retry_after_seconds: float = 2.0
    pace: AdmissionPolicy = NO_PACE


class RedisProducer:
    """Submits messages to one Redis, and cancels them."""

    def __init__(
        self,
        context: BrokerContext,
        loader: DeliveryLoader,
        eraser: ConversationEraser,
        limits: SubmissionLimits,
    ) -> None:
        self.shards = context.shards
        self._context = context
        self._loader = loader
        self._eraser = eraser
        self._limits = limits
        self._local_consumers: list[Sequence[LocalConsumer]] = []

    async def submit(self, submission: Submission) -> Accepted | Duplicate | Busy:
        """Submit a message; a local consumer with a free slot receives it in the same round
        trip.
        """
        shard, names = self._context.locate(submission.question)
        receiver = self._find_receiver(submission.role)
        call = self._make_submit_call(submission, shard, names, receiver)
        try:
            with nullcontext() if receiver is None else receiver.awaiting():
                kind, value, *more = await self._context.run(SUBMIT, call.keys, call.args)
                if receiver is not None and kind == b"accepted" and more and more[0]:
                    await self._deliver(receiver, submission, shard, more[0])
        except (Exception, asyncio.CancelledError):
            _schedule_recovery(receiver)
            raise
        return submission_result(kind, value, *more)

    async def cancel(
        self,
        question: Question,
        *,
        forget: bool = False,
        reason: str | None = None,
        adds: Fields | None = None,
    ) -> bool:
        """Mark a message as superseded, or forget it; see the port."""
        if forget:
            await self._eraser.mark(question)
        more = {} if reason is None else {"termination_reason": reason}
        was_open = await self._cancel(question, {**(adds or {}), **more}, forget=forget)
        if forget:
            await self._eraser.after(question, alone=True)
        return was_open

    @contextmanager
    def local_consumers(self, consumers: Sequence[LocalConsumer]) -> Iterator[None]:
        """Within the context, deliver new submissions to consumers that have free slots."""
        self._local_consumers.append(consumers)
        try:
            yield
        finally:
            self._local_consumers.remove(consumers)

    async def _cancel(self, question: Question, more: Fields, *, forget: bool) -> bool:
        shard, names = self._context.locate(question)
        results = await self._context.result_lists(shard, [names.record])
        call = self._context.call(shard)
        reply = to_json({**make_superseded_reply(question), **more})
        args = [*call.args, names.name, reply, "1" if forget else ""]
        keys = [*call.keys, *names.closing, *results]
        return bool(await self._context.run(CANCEL, keys, args))

    def _find_receiver(self, role: str) -> LocalConsumer | None:
        for group in self._local_consumers:
            for consumer in group:
                if consumer.role == role and consumer.free_slots > 0:
                    return consumer
        return None

    async def _deliver(
        self, receiver: LocalConsumer, submission: Submission, shard: int, taken: Sequence[Any]
    ) -> None:
        """Deliver the entry taken by the submission, which is its own message or an earlier one."""
        read = read_delivered(taken, submission=submission, shard=shard, consumer=receiver.consumer)
        for delivery in await self._loader.select_workable([read]):
            receiver.deliver(delivery)

    def _make_submit_call(
        self,
        submission: Submission,
        shard: int,
        names: QuestionKeys,
        receiver: LocalConsumer | None,
    ) -> ScriptCall:
        call, limits = self._context.call(shard, [submission.role]), self._limits
        results = submission.result_list
        call.keys.extend([
            *names.closing,
            names.messages,
            message_id_key(submission.question.message_id, shard),
            results_key(results, shard) if results else names.record,
            pace_key(shard),
        ])  # fmt: skip
        call.args.extend([
            names.name,
            submission.question.tenant,
            submission.role,
            submission.frame,
            int(submission.deadline_seconds * 1000),
            encode_last_resort(submission.last_resort, submission.dead_letter_changes),
            outcome_of(submission.last_resort),
            results,
            int(submission.not_before_seconds * 1000),
            encode_accepted(submission.accepted),
            limits.quota,
            limits.longest_queue,
            encode_superseded_reply(submission),
            submission.retry_of,
            "" if submission.keep_seconds is None else int(submission.keep_seconds * 1000),
            "" if receiver is None else receiver.consumer,
            "" if receiver is None else base_frame_name(submission),
            limits.pace.share,
            max(1, limits.pace.at_least),
            int(limits.retry_after_seconds * 1000),
            len(limits.pace.lanes),
            *limits.pace.lanes,
        ])  # fmt: skip
        _add_prefetch(call, receiver, submission.question)
        return call


def _schedule_recovery(receiver: LocalConsumer | None) -> None:
    """Schedule a search for entries that never arrived, at a time when the call must have ended."""
    if receiver is not None:
        asyncio.get_running_loop().call_later(RECOVERY_SECONDS, receiver.schedule_recovery)


def _add_prefetch(call: ScriptCall, receiver: LocalConsumer | None, question: Question) -> None:
    wanted = None if receiver is None else receiver.prefetch_memory(question)
    if wanted is None:
        call.args.extend(["", "", ""])
        return
    call.keys.extend([wanted.list, *wanted.hashes])
    call.args.extend([len(wanted.hashes), wanted.first, wanted.last])
