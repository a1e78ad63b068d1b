"""What the workers of a swarm do in a run: work and be paid, fail, hang, or hold their process."""

import asyncio
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from envelope.run import Run
from llm.port import Model, Task
from tests.faults.ledger import Ledger
from tests.support.swarm_agents import Act


@dataclass(frozen=True, slots=True)
class SwarmScript:
    """The swarm of each question; times in seconds.

    `raising` and `hanging` are ids of workers. With `holds` the process keeps whatever worker it
    takes. The others take `takes_seconds`, and are paid at the end. Rounds end after
    `join_seconds`, None: with three quarters of the remaining time.
    """

    workers: int = 8
    parallel: int = 8
    retries: int = 3
    raising: tuple[str, ...] = ()
    hanging: tuple[str, ...] = ()
    holds: bool = False
    takes_seconds: float = 0.0
    join_seconds: float | None = None


class PaidWork(BaseModel):
    """What a worker asks the model, and what the model says."""

    worker: str


def make_act(script: SwarmScript, model: Model, ledger: Ledger) -> Act:
    """Return what a worker does; the ledger has a line when it begins and when it is done."""

    async def act(name: str, _began: int, run: Run) -> Any:
        where = {"worker": name, "name": run.find_question().message_id}
        ledger.note("work begun", **where)
        if script.holds or name in script.hanging:
            await asyncio.Event().wait()
        if name in script.raising:
            raise ValueError("this one fails always")
        await asyncio.sleep(script.takes_seconds)
        task = Task(f"work {name}", PaidWork, PaidWork)
        await model.ask(task, PaidWork(worker=name), run)
        ledger.note("work done", **where)
        return None

    return act
