"""What is sent to a role that nobody is ends on first sight, instead of at its deadline."""

from broker.lease_renewer import InLoopRenewal, LeaseRenewal
from broker.values import Delivery, Forward, FrameSend, Settlement
from envelope.envelope import Envelope
from envelope.role import Role
from gateway.desk import Message
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness
from worker.port import SilentMeter
from worker.process import WorkerProcess, WorkerSpec


class Astray:
    """A manager that sends everything where nobody is."""

    role = Role.MANAGER

    async def handle(self, delivery: Delivery, envelope: Envelope) -> Settlement:
        return Forward((FrameSend("nobody", envelope.encode()),))


async def test_an_envelope_for_an_unknown_role_is_a_dead_letter_on_first_sight(
    harness: WorkerHarness,
) -> None:
    played = "Fake" in type(harness.client).__name__
    kind = InLoopRenewal if played else LeaseRenewal
    process = WorkerProcess(
        harness.broker,
        [WorkerSpec(Astray(), 1)],
        renewal=kind(harness.make_broker),
        meter=SilentMeter(),
    )
    async with process.running():
        desk = harness.desk()
        message = Message("How do I add a rule?", "c1", "m1")
        await desk.submit(message)

        async def find_end() -> object:
            return await harness.broker.replies.read_reply(desk.question(message))

        reply = await wait_until(find_end)

    (letter,) = await harness.broker.admin.list_dead_letters()
    assert reply["text"] == "apology/en"
    assert (letter.reason, letter.attempts) == ("unknown_role", 1)
    assert "'nobody'" in letter.error
