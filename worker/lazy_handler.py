"""Creates the handler of a role when its first entry arrives."""

from collections.abc import Callable

from broker.values import Delivery, Settlement
from envelope.envelope import Envelope
from envelope.role import Role
from worker.port import Handler


class LazyHandler:
    """Creates the handler with `make` on first use.

    Some roles may never receive an entry in this process, and some modules are slow to import.
    """

    def __init__(self, role: Role, make: Callable[[], Handler]) -> None:
        self.role = role
        self._make = make
        self._handler: Handler | None = None

    async def handle(self, delivery: Delivery, envelope: Envelope) -> Settlement:
        if self._handler is None:
            self._handler = self._make()
        return await self._handler.handle(delivery, envelope)
