"""What is sent to a role that nobody is ends on first sight, instead of at its deadline."""

from broker.port import Delivery, Forward, Send, Settlement
from broker.renewal import LeaseRenewal, PlayedRenewal
from envelope.envelope import Envelope
from envelope.role import Role
from gateway.desk import Message
from tests.broker.rig import eventually
from tests.worker.cast import House
from worker.port import SilentMeter
from worker.process import Staffing, WorkerProcess


class Astray:
    """A manager that sends everything where nobody is."""

    role = Role.MANAGER

    async def handle(self, delivery: Delivery, envelope: Envelope) -> Settlement:
        return Forward((Send("nobody", envelope.encode()),))


async def test_an_envelope_for_an_unknown_role_is_a_dead_letter_on_first_sight(
    house: House,
) -> None:
    played = "Fake" in type(house.client).__name__
    kind = PlayedRenewal if played else LeaseRenewal
    process = WorkerProcess(
        house.broker,
        [Staffing(Astray(), 1)],
        renewal=kind(house.make_broker),
        meter=SilentMeter(),
    )
    async with process.running():
        desk = house.desk()
        message = Message("How do I add a rule?", "c1", "m1")
        await desk.submit(message)

        async def ended() -> object:
            return await house.broker.reply(desk.question(message))

        reply = await eventually(ended)

    (letter,) = await house.broker.dead_letters()
    assert reply["text"] == "apology/en"
    assert (letter.reason, letter.attempts) == ("unknown_role", 1)
    assert "'nobody'" in letter.error
