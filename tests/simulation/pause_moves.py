"""Messages that pause, replies that claim what a pause keeps, and messages that close it.

`p` messages begin a pause, `r` messages reply to it, `t` messages are about something else. A reply
is claimed in a round trip of its manager before it is settled, so that a crash, a lost lease, the
expiry and every other message may come between the two.
"""

import pickle
from typing import Any

from broker.values import Delivery, Finish, Forward, Settlement
from envelope.memory_access import Delete, MemoryWrite, SetFields
from envelope.outcome import Outcome
from tests.simulation.branch_moves import word_of
from tests.simulation.expected_state import MANAGER, SEARCH
from tests.simulation.scenario import Move, Play, Scenario
from tests.simulation.simulated_redis import Edit, SimulatedClock
from tests.simulation.state_graph import PAUSE_MS, Horizon

KEPT = "rd:{0}:kept:acme/desk/c1"
PAUSE_SECONDS = PAUSE_MS // 1000
LONGEST_SECONDS = 100
"""How long a reply that came in time may take: what a pause keeps lives so much longer."""
Claims = dict[tuple[str, str], bool]


class PausingPlay(Play):
    """A scenario with pauses. `granted` are the messages that got a payload, by its pause.

    `effects` counts the settled effects of a message, `claims` is what each manager knows.
    """

    def __init__(self, scenario: Scenario, clock: SimulatedClock, edit: Edit | None = None) -> None:
        super().__init__(scenario, clock, edit)
        self.claims: Claims = {}
        self.granted: dict[str, set[str]] = {}
        self.effects: dict[str, int] = {}

    def saved(self) -> tuple[Any, ...]:
        own = (self.claims, self.granted, self.effects)
        return (pickle.dumps(own, pickle.HIGHEST_PROTOCOL), *super().saved())

    def put_back(self, saved: tuple[Any, ...]) -> None:
        own, *others = saved
        self.claims, self.granted, self.effects = pickle.loads(own)  # noqa: S301 - written by `saved`
        super().put_back(tuple(others))

    def own_state(self, horizon: Horizon) -> tuple[Any, ...]:
        held = {each.entry_id for hand in self.hands.values() for each in hand}
        known = sorted(
            (actor, granted) for (actor, id_), granted in self.claims.items() if id_ in held
        )
        granted = sorted((pause, *sorted(names)) for pause, names in self.granted.items())
        left_ms = max(0, self._find_expiry() - self.trial.model.now)
        shown = [
            (k.pause, k.by, horizon.measure_due(left_ms)) for k in self.trial.model.kept.values()
        ]
        return (
            tuple(known),
            tuple(granted),
            tuple(sorted(self.effects.items())),
            tuple(shown),
            self._list_in_time(),
        )

    def make_claim(self, actor: str) -> None:
        """Claim what the pause keeps, for the message that is held; it may have ended since."""
        delivery = self.hands[actor][0]
        name = delivery.question.message_id
        pause = self._find_pause()
        is_granted = self._is_in_time(name, pause) and self.trial.claim(KEPT, pause, name)
        self.claims[actor, delivery.entry_id] = is_granted
        if is_granted:
            self.granted.setdefault(pause, set()).add(name)
        self.check_claims()

    def make_until_over(self) -> None:
        """Let time pass until the pause expires."""
        self._spend("until_over")
        self.trial.wait(self._find_expiry() - self.trial.model.now)
        self.trial.check()

    def make_settle(self, actor: str, kind: str) -> None:
        delivery = self.hands[actor][0]
        before = self.trial.seen["settled"]
        super().make_settle(actor, kind)
        self.claims.pop((actor, delivery.entry_id), None)
        if delivery.role == SEARCH and kind == "pass" and self.trial.seen["settled"] > before:
            name = delivery.question.message_id
            self.effects[name] = self.effects.get(name, 0) + 1
        self.check_claims()

    def make_crash(self, actor: str) -> None:
        super().make_crash(actor)
        self.claims = {key: value for key, value in self.claims.items() if key[0] != actor}

    def check_claims(self) -> None:
        """Hold everything that happened to the promises of pauses."""
        granted = [name for names in self.granted.values() for name in names]
        for pause, names in self.granted.items():
            assert len(names) <= 1, f"{pause} was given to {sorted(names)}"
        for name, count in self.effects.items():
            assert name in granted, f"{name} had an effect without a claim"
            assert count == 1, f"{name} had its effect {count} times"
        for known in self.trial.model.messages.values():
            name = known.question.message_id
            if name.startswith("r") and known.outcome == Outcome.ANSWERED.value:
                assert self.effects.get(name) == 1, f"{name} was answered without its effect"
            if name.startswith("r") and known.outcome == Outcome.REFUSED.value:
                assert name not in granted, f"{name} was refused after its claim"

    def drain(self) -> None:
        super().drain()
        self.check_claims()

    def _moves_of(self, actor: str, role: str) -> list[Move]:
        moves = super()._moves_of(actor, role)
        if not self._must_claim(actor):
            return moves
        settles = [move for move in moves if move[0] == "settle"]
        return [*(move for move in moves if move not in settles), ("claim", actor)]

    def _times(self) -> list[Move]:
        result = super()._times()
        if self.left.get("until_over") and self._find_expiry() > self.trial.model.now:
            result.append(("until_over",))
        return result

    def _find_expiry(self) -> int:
        kept = self.trial.model.kept.get(KEPT)
        return 0 if kept is None else kept.until - LONGEST_SECONDS * 1000

    def _is_in_time(self, name: str, pause: str) -> bool:
        """Return whether a reply was accepted before the pause expired."""
        kept = self.trial.model.kept.get(KEPT)
        if kept is None or kept.pause != pause:
            return True
        [accepted] = [
            known.at_us // 1000
            for known in self.trial.model.messages.values()
            if known.question.message_id == name
        ]
        return accepted < self._find_expiry()

    def _list_in_time(self) -> tuple[tuple[str, bool], ...]:
        """Return for each reply that has no answer yet whether it came in time."""
        kept = self.trial.model.kept.get(KEPT)
        names = (
            known.question.message_id
            for known in self.trial.model.messages.values()
            if known.is_open
        )
        return tuple(
            (name, kept is None or self._is_in_time(name, kept.pause))
            for name in names
            if name.startswith("r")
        )

    def _must_claim(self, actor: str) -> bool:
        """Return whether the message that is held is a reply whose claim was not tried."""
        held = self.hands[actor]
        if not held or held[0].role != MANAGER or word_of(held[0]) != "ask":
            return False
        is_reply = held[0].question.message_id.startswith("r")
        return is_reply and (actor, held[0].entry_id) not in self.claims

    def _find_pause(self) -> str:
        """Return the pause that a manager read when it began: of the last message that paused."""
        paused = [
            known.question.message_id
            for known in self.trial.model.messages.values()
            if known.question.message_id.startswith("p") and not known.is_open
        ]
        return paused[-1] if paused else "p0"

    def _settlement(self, delivery: Delivery, kind: str) -> Settlement:
        name = delivery.question.message_id
        if kind != "pass" or delivery.role == SEARCH:
            return super()._settlement(delivery, kind)
        if word_of(delivery) != "ask":
            return _end(name, Outcome.ANSWERED, Delete(key=KEPT))
        if name.startswith("p"):
            kept = {"id": name, "by": "", "payload": f"payload of {name}"}
            seconds = PAUSE_SECONDS + LONGEST_SECONDS
            keeps = SetFields(key=KEPT, fields=kept, ttl_seconds=seconds)
            return _end(name, Outcome.CLARIFICATION, keeps)
        if name.startswith("t"):
            return _end(name, Outcome.ANSWERED, Delete(key=KEPT))
        if any(self.claims.get((actor, delivery.entry_id)) for actor in self.hands):
            return Forward((self._send(SEARCH, "look"),))
        return _end(name, Outcome.REFUSED)


def make_play(scenario: Scenario, clock: SimulatedClock, edit: Edit | None = None) -> Play:
    """Return the play of a scenario, with its pauses where it has some."""
    return (PausingPlay if scenario.pausing else Play)(scenario, clock, edit)


def _end(name: str, outcome: Outcome, *writes: MemoryWrite) -> Finish:
    return Finish(outcome, {"outcome": outcome.value, "text": name}, remember=list(writes))
