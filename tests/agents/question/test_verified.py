"""A verified answer is found within the run of the question that it is for."""

from collections.abc import Sequence
from typing import Any

from agents.question.verified import AskedQuestion, match_verified
from envelope.run import Run
from envelope.verified import VerifiedAnswer
from llm.errors import ModelUnavailable
from tests.support.broker_harness import question


class Recording:
    """A model, and a search for answers, that remember the run that they work for."""

    name = "recording"

    def __init__(self, answers: Sequence[VerifiedAnswer]) -> None:
        self.answers = answers
        self.runs: list[Run] = []

    async def find(
        self, texts: Sequence[str], groups: Sequence[str], run: Run
    ) -> Sequence[VerifiedAnswer]:
        self.runs.append(run)
        return self.answers

    async def ask(self, task: Any, inputs: Any, run: Run, **options: Any) -> Any:
        self.runs.append(run)
        raise ModelUnavailable("the vendor is away")


async def test_the_vectors_and_the_call_of_a_match_are_paid_by_its_run() -> None:
    answer = VerifiedAnswer(id="a", question="Who may renew a licence?", answer="An Admin.")
    desk, run = Recording([answer]), Run(question())

    result = await match_verified(
        AskedQuestion("Is renewing up to anybody?", "renewing?"), desk.find, desk, run
    )

    assert desk.runs == [run, run]
    assert (result.answer, result.error) == (None, "ModelUnavailable: the vendor is away")
