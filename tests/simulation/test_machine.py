from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from envelope.question import Question
from tests.simulation.comparison import PROCESSES
from tests.simulation.expected_state import MANAGER, SEARCH
from tests.simulation.scenario import Play, Scenario, ask, question
from tests.simulation.simulated_redis import SimulatedClock, simulate

ACTORS = {"A": SEARCH, "B": SEARCH, "M": MANAGER, "N": MANAGER}
LEASE_MS = 15_000

actors = st.sampled_from(sorted(ACTORS))
processes = st.sampled_from(PROCESSES)
questions = st.builds(
    question,
    st.sampled_from(["m1", "m2", "m3"]),
    st.sampled_from(["c1", "c2", "c3"]),
    st.sampled_from(["acme", "umbrella"]),
)


class BrokerMachine(RuleBasedStateMachine):
    """Every operation of the broker, by anybody, at any time; compared after each."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = SimulatedClock()
        self.time = ExitStack()
        self.time.enter_context(simulate(self.clock))
        scenario = Scenario(submissions=(), actors=ACTORS, times={}, processes=PROCESSES, slots=3)
        self.play = Play(scenario, self.clock)

    @rule(
        asked=questions,
        seconds=st.sampled_from([10.0, 60.0, 300.0]),
        later=st.sampled_from([0.0, 0.0, 5.0, 90.0]),
        chat=st.sampled_from(["", "chat", "mail"]),
    )
    def submit(self, asked: Question, seconds: float, later: float, chat: str) -> None:
        self.play.trial.submit(ask(asked, seconds=seconds, later=later, chat=chat))

    @rule(actor=actors)
    def take(self, actor: str) -> None:
        self.play.make_take(actor)

    @precondition(lambda self: any(self.play.hands.values()))
    @rule(data=st.data(), kind=st.sampled_from(["pass", "pass", "retry", "fail", "bury"]))
    def settle(self, data: st.DataObject, kind: str) -> None:
        actor = data.draw(st.sampled_from([name for name, held in self.play.hands.items() if held]))
        self.play.make_settle(actor, kind if ACTORS[actor] == SEARCH else "pass")

    @rule(actor=actors, verb=st.sampled_from(["crash", "renew", "give_back", "leave"]))
    def lose_or_keep(self, actor: str, verb: str) -> None:
        self.play.make((verb, actor))

    @rule(process=processes)
    def time_goes_by_for_a_timer(self, process: str) -> None:
        waits = f"due {process}" in self.play.half
        self.play.make(("send_due" if waits else "look", process))

    @rule(process=processes)
    def sweep(self, process: str) -> None:
        waits = f"sweep {process}" in self.play.half
        self.play.make(("bury_poison" if waits else "sweep", process))

    @rule(asked=questions, forget=st.booleans())
    def cancel(self, asked: Question, forget: bool) -> None:
        self.play.trial.cancel(asked, forget=forget)

    @rule(milliseconds=st.sampled_from([1, 4_999, LEASE_MS - 1, LEASE_MS, 60_000]))
    def wait(self, milliseconds: int) -> None:
        self.play.trial.wait(milliseconds)

    def teardown(self) -> None:
        try:
            self.play.drain()
        finally:
            self.time.close()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("runs", [20, pytest.param(200, marks=pytest.mark.long)])
def test_long_runs_of_every_operation_in_any_order_keep_every_promise(runs: int) -> None:
    run_state_machine_as_test(
        BrokerMachine,
        settings=settings(
            max_examples=runs,
            stateful_step_count=50,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
