"""Lets workers, managers, a sweeper, the timer, the client and the clock move in any order.

A move is a tuple of words and numbers; what may move next depends on the state. Every move of an
actor is one round trip to Redis, or a thing that happens to it without one (a crash, time passing).
"""

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from broker.values import (
    Bury,
    ConsumerDemand,
    Delivery,
    Fields,
    Finish,
    Forward,
    FrameSend,
    JournalEntry,
    Retry,
    ReturnResult,
    ScatterBranches,
    Settlement,
    Submission,
)
from envelope.memory_access import Append
from envelope.outcome import Outcome
from envelope.question import Question
from tests.simulation.branch_moves import Branching, Long, path_of, settle_in_branches, word_of
from tests.simulation.comparison import PROCESSES, Half, Trial
from tests.simulation.expected_state import MANAGER, SEARCH, Rules
from tests.simulation.simulated_redis import Edit, SimulatedClock
from tests.support.local_consumer import RecordingConsumer

if TYPE_CHECKING:
    from tests.simulation.state_graph import Horizon

Move = tuple[str | int, ...]

LAST_RESORT: Fields = {"outcome": "failed", "text": "sorry"}
BETTER_RESORT: Fields = {"outcome": "failed", "text": "found, and not yet read"}
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Scenario:
    """What may happen. `actors`: consumer to role; `times`: how often each rare thing may.

    `fused`: who settles prefetches; `long`: whoever has room for what is sent takes it so,
    and frames are long enough to be kept. `handed`: the client hands what it submits to a manager.
    """

    submissions: tuple[Submission, ...]
    actors: Mapping[str, str]
    times: Mapping[str, int]
    cancels: tuple[tuple[Question, bool], ...] = ()
    forgets: bool = False
    fused: bool = False
    long: bool = False
    handed: bool = False
    processes: tuple[str, ...] = PROCESSES[:1]
    branching: Branching | None = None
    pausing: bool = False
    slots: int = 1
    rules: Rules = field(default_factory=Rules)


def question(message: str, conversation: str = "c1", tenant: str = "acme") -> Question:
    return Question(
        tenant=tenant, assistant="desk", conversation_id=conversation, message_id=message
    )


def ask(
    asked: Question, *, seconds: float = 60.0, later: float = 0.0, chat: str = ""
) -> Submission:
    return Submission(
        question=asked,
        frame=b"ask",
        role=MANAGER,
        deadline_seconds=seconds,
        last_resort=LAST_RESORT,
        result_list=chat,
        not_before_seconds=later,
    )


class Play:
    """One scenario as it stands, on both sides."""

    def __init__(self, scenario: Scenario, clock: SimulatedClock, edit: Edit | None = None) -> None:
        self.scenario = scenario
        self.trial = Trial(clock, scenario.rules, edit)
        self.asked = 0
        self.cancelled: frozenset[int] = frozenset()
        self.left = dict(scenario.times)
        self.hands: dict[str, list[Delivery]] = {actor: [] for actor in scenario.actors}
        self.half: dict[str, Half] = {}

    def saved(self) -> tuple[Any, ...]:
        """Return everything as it stands."""
        own = (self.asked, self.cancelled, self.left, self.hands, self.half)
        return (*self.trial.saved(), pickle.dumps(own, pickle.HIGHEST_PROTOCOL))

    def put_back(self, saved: tuple[Any, ...]) -> None:
        """Return to what was saved."""
        *both, own = saved
        self.trial.put_back((both[0], both[1]))
        self.asked, self.cancelled, self.left, self.hands, self.half = pickle.loads(own)  # noqa: S301 - written by `saved`

    def own_state(self, horizon: "Horizon") -> tuple[Any, ...]:
        """Return what decides on what may follow, besides the model."""
        return ()

    def moves(self) -> list[Move]:
        """Return what may happen next and would change something."""
        found: list[Move] = []
        if self.asked < len(self.scenario.submissions):
            found.append(("ask",))
            if self.left.get("ask_unnotified") and self._taker() is not None:
                found.append(("ask_unnotified",))
        reached = {known.question for known in self.trial.model.messages.values()}
        for number, (asked, _) in enumerate(self.scenario.cancels):
            if number not in self.cancelled and asked in reached:
                found.append(("cancel", number))
        for actor, role in self.scenario.actors.items():
            found += self._moves_of(actor, role)
        for process in self.scenario.processes:
            found += self._moves_of_process(process)
        found += self._times()
        return found

    def make(self, move: Move) -> None:
        """Let it happen, on both sides; raises AssertionError when they differ."""
        verb, *rest = move
        getattr(self, f"make_{verb}")(*rest)

    def make_ask(self) -> None:
        taker = self._submit_next()
        if taker is not None:
            self.hands[taker.consumer] += taker.held

    def make_ask_unnotified(self) -> None:
        """Lose the answer: who was handed something owns it without knowing."""
        self._spend("ask_unnotified")
        self._submit_next()

    def make_recover(self, actor: str) -> None:
        self._spend("recover")
        self.trial.recover(self.scenario.actors[actor], actor, self.hands[actor])

    def make_cancel(self, number: int) -> None:
        self.cancelled |= {number}
        asked, forget = self.scenario.cancels[number]
        self.trial.cancel(asked, forget=forget)

    def make_take(self, actor: str) -> None:
        role = self.scenario.actors[actor]
        self.hands[actor] += self.trial.take(role, actor, self.scenario.slots)

    def make_settle(self, actor: str, kind: str) -> None:
        self._spend(kind)
        delivery = self.hands[actor].pop(0)
        delivery.branch = path_of(delivery.whole())
        settlement = self._settlement(delivery, kind)
        want = self._want(delivery, settlement, actor)
        _, taken = self.trial.settle([(delivery, settlement)], want)
        self.hands[actor if want is None else want.consumer] += taken

    def make_crash(self, actor: str) -> None:
        """Die without a word: what it held stays held until its lease runs out."""
        self._spend("crash")
        self.hands[actor] = []

    def make_renew(self, actor: str) -> None:
        self._spend("renew")
        for delivery in self.hands[actor]:
            delivery.branch = path_of(delivery.whole())
        lost = self.trial.renew(self.hands[actor])
        self.hands[actor] = [each for each in self.hands[actor] if each.entry_id not in lost]

    def make_give_back(self, actor: str) -> None:
        self._spend("give_back")
        self.trial.give_back(self.hands[actor])
        self.hands[actor] = []

    def make_leave(self, actor: str) -> None:
        self._spend("leave")
        self.trial.leave(self.scenario.actors[actor], actor)
        self.hands[actor] = []

    def make_sweep_early(self, process: str) -> None:
        """Sweep where no lease has run out."""
        self._spend("sweep_early")
        self.make_sweep(process)

    def make_sweep(self, process: str) -> None:
        self._stand("sweep", process, self.trial.sweep(process))

    def make_look(self, process: str) -> None:
        self._stand("due", process, self.trial.look(process))

    def make_send_due(self, process: str) -> None:
        self.trial.send_due(self.half.pop(f"due {process}"))

    def make_bury_poison(self, process: str) -> None:
        half = self.half.pop(f"sweep {process}")
        self._stand("sweep", process, self.trial.bury_poison(half))

    def make_die(self, process: str) -> None:
        """Let a process die between what it saw and what it does about it."""
        self._spend("die")
        for verb in ("due", "sweep"):
            self.half.pop(f"{verb} {process}", None)

    def make_lapse(self) -> None:
        """Let exactly one lease pass."""
        self._spend("lapse")
        self.trial.wait(self.scenario.rules.lease_ms)

    def make_doze(self) -> None:
        """Let half a lease pass."""
        self._spend("doze")
        self.trial.wait(self.scenario.rules.lease_ms // 2)

    def make_until_due(self) -> None:
        """Let time pass until something is due."""
        self._spend("until_due")
        self.trial.wait(self._nearest() - self.trial.model.now)

    def drain(self) -> None:
        """End it: everybody dies, every deadline passes, and nothing may be left over."""
        self.half = {}
        model = self.trial.model
        for _ in range(len(model.messages) + 1):
            deadlines = (model.messages[name].deadline for name in model.open_names())
            last = max((*deadlines, *model.delayed.values()), default=0)
            self.trial.wait(max(0, last - model.now))
            self.trial.due()
        assert not model.open_names(), "every question ends at its deadline at the latest"
        self.trial.wait(2 * self.scenario.rules.lease_ms)
        half = self.trial.sweep(PROCESSES[0])
        while half is not None:
            half = self.trial.bury_poison(half)
        for role in (MANAGER, SEARCH):
            for each in self.trial.take(role, "last", 100):
                each.branch = path_of(each.whole())
                (kept,), _ = self.trial.settle([(each, self._settlement(each, "pass"))])
                assert not kept, "what comes back after the outcome changes nothing"
        self.trial.wait(2 * DAY_MS)
        self.trial.check_nothing_left()

    def _moves_of(self, actor: str, role: str) -> list[Move]:
        held, model = self.hands[actor], self.trial.model
        found: list[Move] = []
        if held and self.left.get("crash"):
            found.append(("crash", actor))
        if held:
            found += [("settle", actor, kind) for kind in self._kinds(role)]
            found += [(verb, actor) for verb in ("renew", "give_back") if self.left.get(verb)]
        if self.left.get("leave"):
            found.append(("leave", actor))
        known = [delivery.entry_id for delivery in held]
        if self.left.get("recover") and model.unknown(role, actor, known):
            found.append(("recover", actor))
        if len(held) < self.scenario.slots and model.has_new(role):
            found.append(("take", actor))
        return found

    def _submit_next(self) -> RecordingConsumer | None:
        submission = self.scenario.submissions[self.asked]
        if self.scenario.long:
            asked: Any = Long(submission.frame.decode())
            submission = replace(submission, frame=asked.encode(), decoded=asked)
        self.asked += 1
        taker = self._taker()
        self.trial.submit(submission, taker)
        return taker

    def _taker(self) -> RecordingConsumer | None:
        """Return the first manager with room, where the client hands over."""
        rooms = (
            RecordingConsumer(role, actor, free_slots=self.scenario.slots - len(self.hands[actor]))
            for actor, role in self.scenario.actors.items()
            if role == MANAGER and self.scenario.handed
        )
        return next((hands for hands in rooms if hands.free_slots > 0), None)

    def _moves_of_process(self, process: str) -> list[Move]:
        model = self.trial.model
        found: list[Move] = []
        if f"due {process}" in self.half:
            found.append(("send_due", process))
        elif any(model.look()):
            found.append(("look", process))
        if f"sweep {process}" in self.half:
            found.append(("bury_poison", process))
        elif model.has_late() and model.may_sweep(process):
            found.append(("sweep", process))
        elif self.left.get("sweep_early") and model.may_sweep(process):
            found.append(("sweep_early", process))
        if self.left.get("die") and any(key.endswith(process) for key in self.half):
            found.append(("die", process))
        return found

    def _stand(self, verb: str, process: str, half: Half | None) -> None:
        if half is not None:
            self.half[f"{verb} {process}"] = half

    def _kinds(self, role: str) -> list[str]:
        rare = ("retry", "fail", "bury", "bury_alone") if role == SEARCH else ()
        return ["pass", *(kind for kind in rare if self.left.get(kind))]

    def _times(self) -> list[Move]:
        model = self.trial.model
        found: list[Move] = []
        if any(model.streams.values()):
            found += [(verb,) for verb in ("lapse", "doze") if self.left.get(verb)]
        if self.left.get("until_due") and self._nearest() > model.now:
            found.append(("until_due",))
        return found

    def _nearest(self) -> int:
        model = self.trial.model
        deadlines = (model.messages[name].deadline for name in model.open_names())
        return min((*deadlines, *model.delayed.values()), default=0)

    def _spend(self, what: str) -> None:
        if what in self.left:
            self.left[what] -= 1

    def _settlement(self, delivery: Delivery, kind: str) -> Settlement:
        if self.scenario.branching is not None:
            branched = settle_in_branches(
                self.scenario.branching, word_of(delivery), delivery.role, kind, self._send
            )
            return self._finish(delivery) if branched is None else branched
        if kind != "pass":
            return _RARE[kind]
        if delivery.role == SEARCH:
            return Forward(
                (self._send(MANAGER, "found"),), journal=(JournalEntry("agent_run", {}),)
            )
        if word_of(delivery) == "ask":
            return Forward((self._send(SEARCH, "look"),), last_resort=BETTER_RESORT)
        return self._finish(delivery)

    def _send(self, role: str, word: str) -> FrameSend:
        frame: Any = Long(word)
        return (
            FrameSend(role, decoded=frame) if self.scenario.long else FrameSend(role, word.encode())
        )

    def _want(
        self, delivery: Delivery, settlement: Settlement, actor: str
    ) -> ConsumerDemand | None:
        """Return who prefetches: who settles, or somebody with room for what is sent."""
        if not self.scenario.long:
            return ConsumerDemand(delivery.role, actor, 1) if self.scenario.fused else None
        if isinstance(settlement, Forward):
            role = settlement.sends[0].role
        elif isinstance(settlement, ReturnResult | ScatterBranches):
            role = MANAGER if isinstance(settlement, ReturnResult) else SEARCH
        else:
            return None
        for other, of in self.scenario.actors.items():
            if of == role and len(self.hands[other]) < self.scenario.slots:
                return ConsumerDemand(role, other, 1)
        return None

    def _finish(self, delivery: Delivery) -> Finish:
        outcome = Outcome.FAILED if word_of(delivery) == "poison" else Outcome.ANSWERED
        question = delivery.question
        history = f"rd:{{0}}:memory:{question.conversation_id}"
        return Finish(
            outcome,
            {"outcome": outcome.value, "text": question.message_id},
            remember=[
                Append(key=history, values=(question.message_id,), keep=10, ttl_seconds=3600)
            ],
            forget="all" if self.scenario.forgets else "",
        )


_RARE: dict[str, Settlement] = {
    "retry": Retry(b"again", "busy", seconds=1.0),
    "fail": Retry(b"again", "broken"),
    "bury": Bury("gave_up", "cannot read it", poison_notice=FrameSend(MANAGER, b"poison")),
    "bury_alone": Bury("gave_up", "cannot read it"),
}
